// The configs of matrix products on CUDA that searches choose from, and the times that are expected
// of them.

#include "cuda_choice.h"
#include "tune/candidates.h"

#include <math.h>

static const char definitions[] =
    "op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n"
    "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[k, m] * b[n, k] }\n"
    "op batched(a: T[B, M, K], b: T[B, K, N]) -> (c: T[B, M, N]) where T in f16 f32\n"
    "{ c[i, m, n] = sum(k) a[i, m, k] * b[i, k, n] }\n"
    "op w4(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 128\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }\n";

static void describe_device(const char *name, const char *isa)
{
    describe_gpu(name, isa);
    facts.clock = 1.98e9;
    facts.flops[KG_TYPE_F32] = 67e12;
    facts.flops[KG_TYPE_F64] = 33e12;
    facts.matrix_flops[KG_F16] = facts.matrix_flops[KG_BF16] = 989e12;
}

static void count_refusal(void *user, const struct kg_config *config, const char *reason)
{
    (void)config;
    fprintf(stderr, "refused: %s\n", reason);
    ++*(int *)user;
}

static int compare(const void *a, const void *b)
{
    const struct kg_candidate *x = a, *y = b;
    return memcmp(x->config.value, y->config.value, sizeof x->config.value);
}

// All are valid, none is there twice, the guess is among them, and nothing is expected of any that
// cannot be.
static void check_list(const char *op, const char *sizes, int least, int most)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_error error;
    struct kg_choice choice;
    struct kg_candidates candidates;
    int refused = 0, twice = 0, impossible = 0, limited = 0;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status != KG_OK)
        return;
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    const struct kg_family *family = choice.matches[0]->family;
    CHECK_TEXT(family->name, "contract");
    CHECK_STATUS(kg_candidates_list(&choice.matches[0]->group, family, &facts, &kg_target_cuda,
                                    &choice.configs[0], 65536, count_refusal, &refused, &candidates,
                                    &error),
                 KG_OK, &error);
    CHECK(refused == 0 && candidates.complete && candidates.estimated);
    CHECK(candidates.count == candidates.size); // else the guess was added
    CHECK(candidates.count >= least && candidates.count <= most);
    if (candidates.count != candidates.size || candidates.count < least || candidates.count > most)
        fprintf(stderr, "%s %s: %d\n", op, sizes, candidates.count);
    for (int i = 0; i < candidates.count; i++) {
        impossible += !(candidates.items[i].estimate > candidates.items[i].bound);
        // Limits are for what wins by them, else they are left out.
        limited += candidates.items[i].config.value[candidates.limit] > 0;
    }
    CHECK(impossible == 0);
    CHECK(limited <= candidates.count / 8);
    qsort(candidates.items, (size_t)candidates.count, sizeof *candidates.items, compare);
    for (int i = 1; i < candidates.count; i++)
        twice += compare(&candidates.items[i - 1], &candidates.items[i]) == 0;
    CHECK(twice == 0);
    kg_candidates_free(&candidates);
    unmake(&made);
}

static void test_lists(void)
{
    enum { MOST = 4000 };
    describe_device("h100", "sm_90a");
    check_list("nt", "T=f16 M=256 N=256 K=256", 400, MOST);
    check_list("nt", "T=f16 M=2048 N=2048 K=2048", 400, MOST);
    check_list("nn", "T=bf16 M=8192 N=8192 K=8192", 400, MOST);
    check_list("nt", "T=f16 M=1 N=4096 K=4096", 400, MOST);
    check_list("nt", "T=f16 M=64 N=4096 K=14336", 400, MOST);
    check_list("tt", "T=f16 M=64 N=64 K=65536", 400, MOST);
    check_list("nt", "T=f16 M=8192 N=8 K=8192", 400, MOST);
    check_list("nn", "T=f16 M=4097 N=4095 K=4100", 400, MOST);
    check_list("batched", "T=f16 B=64 M=512 N=512 K=512", 400, MOST);
    check_list("w4", "T=f16 M=16 N=4096 K=4096", 20, MOST);
    check_list("nn", "T=f64 M=1000 N=1000 K=1000", 20, MOST);
    check_list("nt", "T=f16 M=1 N=1 K=1", 1, MOST);
    check_list("nt", "T=f16 M=0 N=16 K=16", 1, MOST);
    describe_device("a100", "sm_80");
    facts.matrix_flops[KG_F16] = 312e12;
    check_list("nt", "T=f16 M=2048 N=2048 K=2048", 100, MOST);
    check_list("nn", "T=f32 M=2048 N=2048 K=2048", 20, MOST);
}

struct counted {
    int split; // where it stands in a config
    int shared;
};

static bool count_shared(void *user, const struct kg_config *config)
{
    struct counted *counted = user;
    counted->shared += config->value[counted->split] == 0;
    return true;
}

// The rule has no blocks share tiles evenly, and so many configs that searches are given do.
static void check_shares(const char *sizes, int least)
{
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    struct kg_choice choice;
    struct kg_space space;
    struct counted counted = {0, 0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    const struct kg_family *family = choice.matches[0]->family;
    family->space(&choice.matches[0]->group, &facts, &kg_target_cuda, &space);
    while (strcmp(space.parameters[counted.split].name, "split") != 0)
        counted.split++;
    CHECK(choice.configs[0].value[counted.split] != 0);
    family->list(&choice.matches[0]->group, &facts, &kg_target_cuda, count_shared, &counted);
    CHECK(counted.shared >= least && (least > 0 || counted.shared == 0));
    unmake(&made);
}

// Where tiles do not come out even. By rule blocks would share them if much was to be gained, which
// no race has shown yet.
static void test_shares(void)
{
    describe_device("h100", "sm_90a");
    check_shares("T=f16 M=2304 N=2304 K=9216", 20);
    check_shares("T=f16 M=2176 N=2176 K=8192", 20);
    check_shares("T=f16 M=3072 N=3072 K=3072", 10);
    check_shares("T=f16 M=4096 N=4096 K=4096", 10);
    check_shares("T=f16 M=1024 N=1024 K=64", 0);
    check_shares("T=f16 M=1 N=4096 K=4096", 0);
}

// What clusters of so many blocks are listed.
struct clusters {
    int rows, columns, down, across; // where they stand in a config
    int64_t extent;                  // of the product, both ways
    int pairs, larger;
    int empty; // with a block that has no tile
};

static bool count_clusters(void *user, const struct kg_config *config)
{
    struct clusters *found = user;
    const int64_t *value = config->value;
    int64_t down = value[found->down], across = value[found->across];
    found->pairs += down * across == 2;
    found->larger += down * across > 2;
    found->empty += value[found->rows] * (down - 1) >= found->extent ||
                    value[found->columns] * (across - 1) >= found->extent;
    return true;
}

static int position(const struct kg_space *space, const char *name)
{
    int at = 0;
    while (at < space->count && strcmp(space->parameters[at].name, name) != 0)
        at++;
    CHECK(at < space->count);
    return at;
}

static struct clusters clusters_of(const char *sizes, int64_t extent)
{
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    struct kg_choice choice;
    struct kg_space space;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    const struct kg_family *family = choice.matches[0]->family;
    family->space(&choice.matches[0]->group, &facts, &kg_target_cuda, &space);
    struct clusters found = {
        .rows = position(&space, "rows"),
        .columns = position(&space, "columns"),
        .down = position(&space, "down"),
        .across = position(&space, "across"),
        .extent = extent,
    };
    family->list(&choice.matches[0]->group, &facts, &kg_target_cuda, count_clusters, &found);
    unmake(&made);
    return found;
}

static double expected(const char *sizes, const char *config)
{
    char words[256];
    struct kg_choice choice;
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    snprintf(words, sizeof words, "contract: mma=64 %s pingpong=0 split=1 swap=0 order=0 maxnreg=0",
             config);
    bool read = kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice);
    CHECK(read);
    double seconds = read ? kg_choice_expected(&choice) : 0;
    unmake(&made);
    return seconds;
}

// More than pairs where lines begin anywhere, and never a block without a tile.
static void test_clusters(void)
{
    describe_device("h100", "sm_90a");
    struct clusters whole = clusters_of("T=f16 M=1024 N=1024 K=1024", 1024);
    CHECK(whole.pairs > 100 && whole.larger == 0 && whole.empty == 0);
    struct clusters uneven = clusters_of("T=f16 M=1000 N=1000 K=1000", 1000);
    CHECK(uneven.pairs > 100 && uneven.larger > 100 && uneven.empty == 0);
    struct clusters small = clusters_of("T=f16 M=60 N=60 K=1000", 60);
    CHECK(small.empty == 0);
    // Blocks that copy for each other have to meet; where lines are whole and few, that is all.
    const char *sizes = "T=f16 M=512 N=512 K=512", *tile = "rows=64 columns=64 depth=128 stages=6";
    char alone[128], pair[128];
    snprintf(alone, sizeof alone, "%s down=1 across=1", tile);
    snprintf(pair, sizeof pair, "%s down=2 across=1", tile);
    CHECK(expected(sizes, pair) > expected(sizes, alone));
}

// Microseconds, cold, of an H100 (80 GB, SXM5, driver 580), fastest first.
static const struct {
    const char *sizes, *config;
    double measured;
} times[] = {
    {"M=2048 N=2048 K=2048",
     "rows=256 columns=128 depth=64 stages=4 down=1 across=1 pingpong=0 split=1 swap=0", 27.9},
    {"M=2048 N=2048 K=2048",
     "rows=128 columns=128 depth=64 stages=6 down=1 across=2 pingpong=0 split=1 swap=0", 33.4},
    {"M=2048 N=2048 K=2048",
     "rows=64 columns=64 depth=128 stages=6 down=1 across=1 pingpong=0 split=1 swap=1", 44.1},
    {"M=2048 N=2048 K=2048",
     "rows=128 columns=64 depth=64 stages=3 down=1 across=1 pingpong=0 split=1 swap=0", 58.9},
    {"M=256 N=4096 K=14336",
     "rows=128 columns=128 depth=64 stages=6 down=1 across=1 pingpong=0 split=2 swap=0", 68.9},
    {"M=64 N=4096 K=4096",
     "rows=128 columns=32 depth=128 stages=5 down=1 across=1 pingpong=0 split=2 swap=1", 20.5},
    {"M=64 N=4096 K=4096",
     "rows=128 columns=64 depth=64 stages=3 down=1 across=1 pingpong=0 split=2 swap=1", 28.9},
    {"M=64 N=4096 K=4096",
     "rows=64 columns=8 depth=128 stages=12 down=1 across=1 pingpong=0 split=1 swap=1", 38.7},
    {"M=64 N=4096 K=4096",
     "rows=256 columns=96 depth=64 stages=4 down=1 across=2 pingpong=0 split=1 swap=0", 43.5},
};

// The same, by mma.sync, of lines that begin at multiples of 2 or 8 bytes. Of 1000 by 1000 by 1002,
// lines of 4 bytes, no more than 21 us are expected, and 34 were measured.
static void test_lines(void)
{
    static const struct {
        const char *sizes, *config;
        double measured;
    } lines[] = {
        {"T=f16 M=333 N=1777 K=1025", "rows=64 columns=64 depth=64 stages=4", 78.8},
        {"T=f16 M=2000 N=2000 K=2001", "rows=128 columns=64 depth=32 stages=8", 412},
        {"T=f16 M=2000 N=2000 K=2004", "rows=128 columns=64 depth=32 stages=8", 126},
    };
    describe_device("h100", "sm_90a");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char words[256];
        struct kg_choice choice;
        struct made made = make_strided(definitions, "nt", lines[i].sizes, NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        snprintf(words, sizeof words,
                 "contract: mma=16 %s down=1 across=1 pingpong=0 split=1 swap=0 order=0 maxnreg=0",
                 lines[i].config);
        bool read = kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice);
        double seconds = read ? kg_choice_expected(&choice) : 0;
        CHECK(read && fabs(log(seconds * 1e6 / lines[i].measured)) < 0.4);
        unmake(&made);
    }
}

static void test_times(void)
{
    const char *sizes = "";
    double before = 0;
    describe_device("h100", "sm_90a");
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct kg_text words = {0}, made_sizes = {0};
        struct kg_choice choice;
        kg_text_format(&made_sizes, "T=f16 %s", times[i].sizes);
        kg_text_format(&words, "contract: mma=64 %s order=0 maxnreg=0", times[i].config);
        struct made made = make_strided(definitions, "nt", kg_text_string(&made_sizes), NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        bool read =
            kg_choice_read(made.problem, &facts, &kg_target_cuda, kg_text_string(&words), &choice);
        CHECK(read);
        double seconds = read ? kg_choice_expected(&choice) : 0;
        CHECK(fabs(log(seconds * 1e6 / times[i].measured)) < 0.4);
        CHECK(seconds > before || strcmp(sizes, times[i].sizes) != 0);
        before = seconds;
        sizes = times[i].sizes;
        kg_text_free(&words);
        kg_text_free(&made_sizes);
        unmake(&made);
    }
    // Of a device that little is known of nothing is expected.
    facts.bandwidth = 0;
    struct made made = make_strided(definitions, "nt", "T=f16 M=64 N=64 K=64", NULL);
    struct kg_choice choice;
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    CHECK(kg_choice_expected(&choice) == 0);
    unmake(&made);
}

TEST_MAIN(test_lists, test_shares, test_clusters, test_times, test_lines)
