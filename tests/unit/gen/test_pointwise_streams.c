// Element-wise formulas on the host whose results are streamed: which are by rule, and that
// elements gathered into streamed pieces, or read under a condition, are right, at sizes of whole
// pieces and of less.

#include "family_bench.h"

static struct bench bench;

static const char take[] =
    "op r(x: f32[P, D], at: i32[D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, at[d]] }";
static const char take_half[] =
    "op r(x: f16[P, D], at: i32[D]) -> (y: f16[P, D])\n{ y[p, d] = x[p, at[d]] }";
static const char take_rows[] =
    "op r(x: f32[P, D], at: i32[P]) -> (y: f32[P, D])\n{ y[p, d] = x[at[p], d] }";
static const char chain[] = "op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = relu(x[p, d]) }";
static const char outer[] =
    "op r(a: f32[P], b: f32[D]) -> (y: f32[P, D])\n{ y[p, d] = a[p] + b[d] }";
static const char from_bytes[] =
    "op r(x: u8[P, D]) -> (y: f32[P, D])\n{ y[p, d] = cast(f32, x[p, d]) }";

// Caches of 1 MiB for each of two cores, and of 32 MiB for both; `interleaving` is what the
// machine gains by copying from several places in turn, `streamed` the bytes from which on stores
// past the caches gain, if they were measured. What is gathered is only streamed by wide vectors.
static void test_choice(double interleaving, double streamed, int vector_bytes)
{
    static const struct {
        const char *text, *sizes;
        bool streams;
        bool beyond; // if stores past the caches were seen to gain from 12 MiB on
    } cases[] = {
        {take, "P=4096 D=4096", true, true},        {take, "P=1024 D=1024", false, false},
        {take, "P=200000 D=128", false, false},     {take_half, "P=8192 D=4096", false, false},
        {chain, "P=4096 D=4096", true, true},       {chain, "P=1024 D=1024", true, false},
        {chain, "P=64 D=1024", false, false},       {take_rows, "P=4096 D=4096", false, false},
        {outer, "P=4096 D=1024", false, false},     {outer, "P=8192 D=2048", true, true},
        {from_bytes, "P=2048 D=1024", true, false},
    };
    struct kg_device_facts facts = bench.device->facts;
    facts.cache[2] = 1 << 20;
    facts.cache[3] = 32 << 20;
    facts.units = 2;
    facts.interleaving = interleaving;
    facts.streamed = streamed;
    facts.vector_bytes = vector_bytes;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_config guess;
        bench_define(&bench, cases[i].text, NULL);
        struct kg_problem *problem = bench_problem(&bench, cases[i].sizes, false);
        struct kg_group group = bench_group(problem);
        const struct kg_match *match =
            kg_match_find(kg_target_family(&kg_target_host, "pointwise"), &group, &facts, NULL);
        CHECK(match != NULL);
        match->family->guess(match, &guess);
        bool streams = streamed > 0 ? cases[i].beyond : cases[i].streams;
        if (strstr(cases[i].text, "at["))
            streams = streams && vector_bytes == 64;
        if ((guess.value[1] > 0) != streams)
            fprintf(stderr, "%s\nat %s: stream=%lld\n", cases[i].text, cases[i].sizes,
                    (long long)guess.value[1]);
        CHECK((guess.value[1] > 0) == streams);
        CHECK(guess.value[3] == (streams && interleaving > 1.1 ? 4 : 1));
        kg_problem_free(problem);
    }
}

static void test_right(const char *text, const char *values)
{
    static const char *const sizes[] = {"P=1 D=1",    "P=3 D=95", "P=9 D=1024", "P=5 D=64",
                                        "P=1 D=5000", "P=0 D=64", NULL};
    struct kg_config config;
    bench_define(&bench, text, NULL);
    struct kg_problem *problem = bench_problem(&bench, "P=9 D=1024", false);
    bench_compile(&bench, problem, "pointwise", NULL);
    CHECK(kg_config_read(&bench.space, values, &config));
    CHECK(bench_compile(&bench, problem, "pointwise", &config));
    for (int s = 0; sizes[s]; s++)
        for (int kind = 0; kind < BENCH_INPUT_KINDS; kind++)
            bench_run(&bench, sizes[s], false, (enum bench_inputs)kind);
    kg_problem_free(problem);
}

// Formulas that read under a condition, and how many of these reads are done before it.
static const struct {
    const char *text;
    int fetched;
} chosen[] = {
    {"op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = where(d <= p, x[p, d], 0) }", 1},
    {"op r(x: f32[P, D], z: f32[P, D], m: bool[P, D]) -> (y: f32[P, D])\n"
     "{ y[p, d] = where(m[p, d], 2 * x[p, d], z[p, d]) + x[p, d] }",
     2},
    {"op r(x: bf16[P, D], m: bool[D]) -> (y: bf16[P, D])\n{ y[p, d] = where(m[d], x[p, d], -1) }",
     1},
    // The condition is the same for all of a row.
    {"op r(x: f32[P, D], m: bool[P]) -> (y: f32[P, D])\n{ y[p, d] = where(m[p], x[p, d], 0) }", 0},
    {"op r(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = where(x[p, d] > 0, d + 1, p) }", 0},
};

static void test_fetched(const char *text, int expected)
{
    struct kg_config config;
    struct kg_text source = {0};
    int found = 0;
    bench_define(&bench, text, NULL);
    struct kg_problem *problem = bench_problem(&bench, "P=9 D=1024", false);
    struct kg_group group = bench_group(problem);
    const struct kg_match *match = kg_match_find(kg_target_family(&kg_target_host, "pointwise"),
                                                 &group, &bench.device->facts, NULL);
    CHECK(match != NULL);
    match->family->space(match, &bench.space);
    CHECK(kg_config_read(&bench.space, "block=1024 stream=64 tile=0 ways=1", &config));
    CHECK(match->family->emit(match, &config, "kernel", &source));
    for (const char *at = source.data; (at = strstr(at, " kg_fetch(fetched")); at++)
        found++;
    if (found != expected)
        fprintf(stderr, "%s: %d reads before conditions\n", text, found);
    CHECK(found == expected);
    kg_text_free(&source);
    kg_problem_free(problem);
}

int main(void)
{
    bench_open(&bench);
    test_choice(1.3, 0, 64);
    test_choice(0.5, 0, 64);
    test_choice(0, 0, 64); // unknown
    test_choice(1.3, 12 << 20, 64);
    test_choice(1.3, 0, 32);
    test_right(take, "block=1024 stream=64 tile=0 ways=4");
    test_right(take, "block=1024 stream=128 tile=0 ways=1");
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++) {
        test_fetched(chosen[i].text, chosen[i].fetched);
        test_right(chosen[i].text, "block=1024 stream=64 tile=0 ways=1");
        test_right(chosen[i].text, "block=1024 stream=64 tile=0 ways=4");
    }
    bench_close(&bench);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
