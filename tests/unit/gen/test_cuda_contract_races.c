// Expected times of products against measured ones: shows what a changed constant costs, for the
// rule's choices (tests/data/h100_products.txt, h100_choices.txt) and for the order of whole spaces
// in a search (tests/data/h100_spaces.txt). Nothing is timed.

#include "base/files.h"
#include "cuda_choice.h"

#include <math.h>

#define MOST_RIVALS 128

static const char definition[] = "op nt(a: f16[M, K], b: f16[N, K]) -> (c: f16[M, N])\n"
                                 "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n";

// The configs of one shape that were raced.
struct race {
    char sizes[64];
    int count;
    int chosen; // the rule's; -1: another one
    double measured[MOST_RIVALS];
    double expected[MOST_RIVALS];
};

static int races, chosen, compared, right;
static double worst, losses; // the rule's time over the fastest

static void describe(const char *gpu)
{
    describe_gpu(gpu, "sm_90a");
    facts.clock = 1.98e9;
    facts.matrix_flops[KG_F16] = 4096 * 132 * facts.clock;
    facts.cache[3] = 50 << 20;
}

static void describe_device(void)
{
    describe("h100");
}

// Parameters that the text omits are 0.
static void add_rival(struct race *race, double measured, const char *config)
{
    struct made made = make_strided(definition, NULL, race->sizes, NULL);
    struct kg_choice choice, guess;
    char words[256];
    snprintf(words, sizeof words, "%s%s%s", config, strstr(config, "raster=") ? "" : " raster=0",
             strstr(config, "maxnreg=") ? "" : " maxnreg=0");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool read = kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice);
    double seconds = read ? kg_choice_expected(&choice) : 0;
    if (seconds <= 0)
        fprintf(stderr, "%s: nothing is expected of %s\n", race->sizes, config);
    CHECK(seconds > 0);
    if (read && race->count < MOST_RIVALS) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &guess);
        if (guess.matches[0] == choice.matches[0] &&
            memcmp(&guess.configs[0], &choice.configs[0], sizeof guess.configs[0]) == 0)
            race->chosen = race->count;
        race->measured[race->count] = measured;
        race->expected[race->count] = seconds;
        race->count++;
    }
    unmake(&made);
}

// Pairs within two percent of each other do not count.
static void compare_pairs(const struct race *race)
{
    for (int i = 0; i < race->count; i++)
        for (int j = i + 1; j < race->count; j++) {
            double ratio = race->measured[i] / race->measured[j];
            if (ratio < 1.02 && ratio > 1 / 1.02)
                continue;
            compared++;
            right += (ratio > 1) == (race->expected[i] > race->expected[j]);
        }
}

static void settle(const struct race *race)
{
    int fastest = 0;
    if (race->count == 0)
        return;
    races++;
    compare_pairs(race);
    if (race->chosen < 0)
        return;
    for (int i = 1; i < race->count; i++)
        fastest = race->measured[i] < race->measured[fastest] ? i : fastest;
    double loss = race->measured[race->chosen] / race->measured[fastest];
    if (loss > 1.02)
        printf("%s: the rule's takes %.1f us, the fastest %.1f\n", race->sizes,
               race->measured[race->chosen], race->measured[fastest]);
    worst = fmax(worst, loss);
    losses += log(loss);
    chosen++;
}

static void read_line(char *line, struct race *race)
{
    char *config = line;
    if (line[0] == '#')
        return;
    if (line[0] != ' ') {
        settle(race);
        *race = (struct race){.chosen = -1};
        snprintf(race->sizes, sizeof race->sizes, "%s", line);
        return;
    }
    double measured = strtod(line, &config);
    CHECK(race->count < MOST_RIVALS && *config == ' ');
    add_rival(race, measured, config + strspn(config, " "));
}

static void read_races(const char *path)
{
    char *text, *rest;
    size_t length;
    struct kg_error error = {0};
    struct race race = {.chosen = -1};
    describe_device();
    races = chosen = compared = right = 0;
    worst = losses = 0;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest));)
        read_line(line, &race);
    settle(&race);
    free(text);
}

static void test_races(void)
{
    read_races(KG_SOURCE_DIR "/tests/data/h100_products.txt");
    double mean = exp(losses / chosen), share = (double)right / compared;
    printf("what the rule chooses took part in %d of %d races, and %.4f of the winner's time, at "
           "worst %.3f; %.3f of %d pairs are expected rightly\n",
           chosen, races, mean, worst, share, compared);
    CHECK(races == 113 && chosen >= 78);
    CHECK(mean < 1.01 && worst < 1.05);
    CHECK(share > 0.82);
}

// Among choices that are close, for which the rule has constants of its own.
static void test_choices(void)
{
    read_races(KG_SOURCE_DIR "/tests/data/h100_choices.txt");
    double mean = exp(losses / chosen);
    printf("of two choices each, the rule's took part in %d of %d, and %.4f of the faster one's "
           "time\n",
           chosen, races, mean);
    CHECK(races == 33 && chosen >= 32);
    CHECK(mean < 1.006);
}

static void test_spaces(void)
{
    read_races(KG_SOURCE_DIR "/tests/data/h100_spaces.txt");
    double share = (double)right / compared;
    printf("of whole spaces, %d shapes, %.3f of %d pairs are expected rightly\n", races, share,
           compared);
    CHECK(races == 14 && compared > 13000);
    CHECK(share > 0.85);
}

static void check_rule(const char *sizes, const char *words)
{
    struct made made = make_strided(definition, NULL, sizes, NULL);
    struct kg_choice guess;
    struct kg_text text = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &guess);
    kg_choice_print(&guess, &text);
    if (!strstr(kg_text_string(&text), words))
        fprintf(stderr, "%s: not %s but %s\n", sizes, words, kg_text_string(&text));
    CHECK(strstr(kg_text_string(&text), words) != NULL);
    kg_text_free(&text);
    unmake(&made);
}

// Results of races whose sizes are in no file.
static void test_rule(void)
{
    describe_device();
    // As fast with a cold L2 as half as many blocks of 64 columns, and faster with a warm one.
    check_rule("M=4 N=4096 K=4096", "tile_m=64 tile_n=32 tile_k=128");
    check_rule("M=32 N=4096 K=4096", "tile_m=64 tile_n=32 tile_k=128");
    // Vectors too: no other form has as many bytes in flight.
    check_rule("M=1 N=28672 K=4096", "contract/wgmma: ");
    check_rule("M=1 N=8192 K=8192", "contract/wgmma: ");
    check_rule("M=1 N=8192 K=28672", "contract/wgmma: ");
    // A large operand is streamed in stages of 256 bytes, one that is too large is not.
    check_rule("M=64 N=28672 K=4096", "tile_m=64 tile_n=128 tile_k=128");
    check_rule("M=64 N=57344 K=8192", "tile_m=64 tile_n=224 tile_k=64");
    // Wide tiles of which the output covers less than half do not pay; neither do whole tiles where
    // split-K keeps more SMs busy.
    check_rule("M=16 N=57344 K=8192", "tile_n=16 tile_k=128");
    check_rule("M=128 N=4096 K=14336", "tile_m=64 tile_n=128 tile_k=128 stages=4 cluster_m=1 "
                                       "cluster_n=1 pingpong=0 split_k=2 swap=1");
    // Lines of 2000 and of 6000 bytes: multicast clusters. Aligned lines: none.
    check_rule("M=1000 N=1000 K=1000",
               "tile_m=128 tile_n=80 tile_k=64 stages=8 cluster_m=4 cluster_n=2");
    check_rule("M=1000 N=2000 K=3000", "cluster_m=4 cluster_n=2");
    check_rule("M=1024 N=1024 K=1024", "cluster_m=1 cluster_n=1");
    // Tiles that are in no table, where both fits expect them to be faster.
    check_rule("M=1820 N=1232 K=3968", "tile_m=128 tile_n=144 tile_k=64");
    check_rule("M=137 N=632 K=29920", "split_k=4 swap=1");
    // Lines that are not made of whole vectors take too long where each element is loaded alone.
    check_rule("M=6 N=857 K=9763", "contract/wgmma: ");
    check_rule("M=1 N=7019 K=13410", "contract/mma: ");
    // Odd lines, which the table of tiles does not know: while a tile is stored, another one is
    // multiplied. Stored by sector, large outputs take 0.93, 0.94, 0.95 and 0.78 of the time.
    check_rule("M=2994 N=2994 K=2994", "pingpong=1");
    check_rule("M=6523 N=31775 K=628", "pingpong=1 split_k=1 swap=0 overlap=16");
    check_rule("M=2048 N=50257 K=768", "pingpong=1 split_k=1 swap=0 overlap=16");
    check_rule("M=806 N=11621 K=707", "overlap=16");
    check_rule("M=11082 N=12507 K=187", "overlap=16");
    // Long K of few tiles, split, took 0.89 and 0.86 of the time (H200).
    check_rule("M=626 N=1664 K=16320", "tile_m=128 tile_n=128 tile_k=64 stages=6 cluster_m=1 "
                                       "cluster_n=1 pingpong=0 split_k=2");
    check_rule("M=245 N=1152 K=11968", "tile_m=128 tile_n=80 tile_k=64 stages=8 cluster_m=1 "
                                       "cluster_n=1 pingpong=0 split_k=4");
    // Short K, which the table of tiles does not know either: 0.90 of the time (H200).
    check_rule("M=7552 N=8128 K=896", "pingpong=1");
    // A warp that has a small tile to itself copies odd lines slowly.
    check_rule("M=147 N=147 K=147", "contract/wgmma: ");
    // Small tiles by mma.sync, which are expected to be clearly faster than the plain rule's.
    check_rule("M=38 N=1073 K=182", "contract/mma: tile_m=32 tile_n=32 tile_k=32");
}

static double expect_of(const char *op, const char *sizes, const char *config)
{
    struct made made = make_strided(op, NULL, sizes, NULL);
    struct kg_choice choice;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool read = kg_choice_read(made.problem, &facts, &kg_target_cuda, config, &choice);
    double seconds = read ? kg_choice_expected(&choice) : 0;
    CHECK(seconds > 0);
    unmake(&made);
    return seconds;
}

static double expect_config(const char *sizes, const char *config)
{
    return expect_of(definition, sizes, config);
}

// Blocks of multicast clusters have an SM to themselves: few stages, with which two would fit, gain
// nothing. (210 products of 382 x 246 x 160 took 147 us so, 2.9 times as long as the best, H200.)
static void test_clusters(void)
{
#define FEW "contract/wgmma: tile_m=64 tile_n=128 tile_k=64 stages=3"
#define MANY "contract/wgmma: tile_m=64 tile_n=128 tile_k=64 stages=8"
#define PAIRS " cluster_m=2 cluster_n=2 pingpong=0 split_k=1 swap=0 raster=0 maxnreg=0"
#define ALONE " cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=0 raster=0 maxnreg=0"
    static const char sizes[] = "M=80000 N=2046 K=168";
    describe_device();
    CHECK(expect_config(sizes, FEW PAIRS) >= expect_config(sizes, MANY PAIRS));
    CHECK(expect_config(sizes, FEW ALONE) < expect_config(sizes, MANY ALONE));
}

// Unaligned lines are read again from memory. On a device with more bandwidth, clusters that share
// them gain less: in pairs this takes 0.89 of the time of eight blocks (H200).
static void test_bandwidth(void)
{
    static const char sizes[] = "M=1009 N=25024 K=16328";
    describe_device();
    check_rule(sizes, "cluster_m=2 cluster_n=4");
    describe("h200");
    check_rule(sizes, "cluster_m=2 cluster_n=1");
}

// Few rows of narrow lines. Copies of rows that are not there are issued, too, those of 4 bytes
// take twice as long as of 8, and pieces of 64 bytes cut more sectors than of 128. On an H200 the
// first two took 1.59 and 1.23 times as long as those that follow.
static void test_narrow(void)
{
#define RASTER_0 " raster=0 maxnreg=0"
#define SINGLY " cluster_m=1 cluster_n=1 pingpong=0 "
    describe("h200");
    CHECK(expect_config("M=4 N=4522 K=1306", "contract/mma: tile_m=16 tile_n=16 tile_k=32 stages=8 "
                                             "split_k=4" RASTER_0) >
          1.1 * expect_config("M=4 N=4522 K=1306",
                              "contract/wgmma: tile_m=64 tile_n=8 tile_k=128 stages=12" SINGLY
                              "split_k=1 swap=1" RASTER_0));
    CHECK(expect_config("M=7 N=612 K=10246", "contract/mma: tile_m=16 tile_n=32 tile_k=32 stages=8 "
                                             "split_k=32" RASTER_0) >
          1.1 * expect_config("M=7 N=612 K=10246",
                              "contract/wgmma: tile_m=64 tile_n=48 tile_k=128 stages=7" SINGLY
                              "split_k=8 swap=0" RASTER_0));
    check_rule("M=17 N=31256 K=1380", "contract/mma: tile_m=32 tile_n=128 tile_k=64 stages=4");
}

// Tiles that overlap begin within lines of memory of an operand that is not K-major: 2097 cubed
// takes 1.36 times as long so as it would from where lines begin.
static void test_overlap(void)
{
    static const char by_rows[] = "op nn(a: f16[M, K], b: f16[K, N]) -> (c: f16[M, N])\n"
                                  "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n";
    static const char sizes[] = "M=2097 N=2097 K=2097";
    static const char tile[] =
        "contract/wgmma: tile_m=64 tile_n=192 tile_k=64 stages=5 cluster_m=1 "
        "cluster_n=2 pingpong=1 split_k=1 swap=0 overlap=16 raster=0 "
        "maxnreg=0";
    describe_device();
    CHECK(expect_of(by_rows, sizes, tile) > 1.05 * expect_config(sizes, tile));
}

static void test_all(void)
{
    test_overlap();
    test_clusters();
    test_bandwidth();
    test_narrow();
    test_races();
    test_choices();
    test_spaces();
    test_rule();
}

TEST_MAIN(test_all)
