// Records beside those of an earlier date: what counts as slower, and which problems are the same.

#include "report/regression.h"
#include "support/sample_records.h"
#include "test.h"

static struct kg_store *now, *then;
static struct kg_error error;

static void open_stores(void)
{
    CHECK_STATUS(kg_store_open_memory(&now, &error), KG_OK, &error);
    CHECK_STATUS(kg_store_open_memory(&then, &error), KG_OK, &error);
}

static void close_stores(void)
{
    kg_store_close(now);
    kg_store_close(then);
}

static void learn(struct kg_store *store, const struct kg_key *key, double seconds, double spread)
{
    char choice[] = "direct: block=4";
    struct kg_wisdom wisdom = sample_wisdom(choice);
    wisdom.seconds = seconds;
    wisdom.spread = spread;
    wisdom.replaces = true;
    CHECK_STATUS(kg_store_learn(store, key, &wisdom, &error), KG_OK, &error);
}

static void measure(const struct kg_key *key, const char *choice, double seconds, double spread)
{
    struct kg_outcome outcome = sample_outcome(choice);
    outcome.timing.median = seconds;
    outcome.timing.spread = spread;
    CHECK_STATUS(kg_store_append(now, key, &outcome, &error), KG_OK, &error);
}

static void check(const char *op, const char *last, bool slower, const char *line)
{
    struct kg_text text = {0};
    struct kg_comparison comparison;
    CHECK_STATUS(kg_comparison_make(now, then, op, &comparison, &error), KG_OK, &error);
    kg_comparison_write(&comparison, false, &text);
    CHECK((comparison.counts[KG_SINCE_SLOWER] > 0) == slower);
    bool said = strstr(kg_text_string(&text), last) && strstr(kg_text_string(&text), line);
    CHECK(said);
    if (!said)
        fprintf(stderr, "%s", kg_text_string(&text));
    kg_text_free(&text);
    kg_comparison_free(&comparison);
}

// Wisdom keeps the fastest time ever; what counts is how fast the candidates were last.
static void the_latest_measurements_count(void)
{
    open_stores();
    struct kg_key key = sample_key();
    learn(then, &key, 10e-6, 1e-7);
    learn(now, &key, 10e-6, 1e-7);
    measure(&key, "direct: block=4", 10e-6, 1e-7);
    check(NULL, "0 slower, 0 faster, 1 the same", false, "same    softmax T=f16 P=4096 D=1000");
    measure(&key, "direct: block=4", 13e-6, 1e-7);
    check(NULL, "1 slower, 0 faster, 0 the same", true,
          "10.00 us, now 13.00 us (x1.300, noise 0.20 us)");
    measure(&key, "direct: block=8", 8e-6, 1e-7);
    check(NULL, "0 slower, 1 faster, 0 the same", false, "now 8.00 us");
    close_stores();
}

// Within both spreads together, or within 2 %.
static void noise_does_not_count(void)
{
    open_stores();
    struct kg_key key = sample_key();
    learn(then, &key, 10e-6, 1e-6);
    measure(&key, "direct: block=4", 11.9e-6, 1e-6);
    check(NULL, "0 slower, 0 faster, 1 the same", false, "noise 2.00 us");
    measure(&key, "direct: block=4", 12.1e-6, 1e-6);
    check(NULL, "1 slower", true, "slower");
    close_stores();
    open_stores();
    learn(then, &key, 10e-6, 0);
    measure(&key, "direct: block=4", 10.19e-6, 0);
    check(NULL, "1 the same", false, "same");
    measure(&key, "direct: block=4", 10.21e-6, 0);
    check(NULL, "1 slower", true, "slower");
    close_stores();
}

// Another driver or compiler is named; another device, size or protocol is another problem.
static void problems_are_matched(void)
{
    open_stores();
    struct kg_key old = sample_key(), key = sample_key();
    learn(then, &old, 10e-6, 1e-7);
    key.driver = "6.2";
    key.compiler = "cc 13 -O3";
    measure(&key, "direct: block=4", 20e-6, 1e-7);
    check(NULL, "1 slower", true,
          "driver: 6.1, now 6.2\n        compiler: cc 12 -O3, now cc 13 -O3\n");
    check("softmax", "1 slower", true, "");
    check("other", "0 slower, 0 faster, 0 the same within noise, 0 not on record now, 0 new", false,
          "");
    close_stores();
    const struct {
        const char *device, *sizes, *protocol;
        int units;
    } others[] = {{"Another CPU", old.sizes, old.protocol, 8},
                  {old.device, "P=1 D=1", old.protocol, 8},
                  {old.device, old.sizes, "warm launch", 8},
                  {old.device, old.sizes, old.protocol, 4}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        open_stores();
        key = sample_key();
        learn(then, &old, 10e-6, 1e-7);
        key.device = others[i].device;
        key.sizes = others[i].sizes;
        key.protocol = others[i].protocol;
        key.units = others[i].units;
        measure(&key, "direct: block=4", 20e-6, 1e-7);
        check(NULL, "0 slower, 0 faster, 0 the same within noise, 1 not on record now, 1 new",
              false, "gone");
        close_stores();
    }
}

TEST_MAIN(the_latest_measurements_count, noise_does_not_count, problems_are_matched)
