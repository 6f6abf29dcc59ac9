// The configs of matrix products on CUDA that searches choose from, and their expected times.

#include "cuda_choice.h"
#include "gen/families.h"
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

// The configs that one family lists for a group.
struct listed {
    const struct kg_match *match;
    struct kg_config guess;
    int count, refused;
    bool has_guess;
};

static bool is_valid(const struct kg_match *match, const struct kg_config *config)
{
    struct kg_text reason = {0};
    bool valid = match->family->valid(match, config, &reason);
    if (!valid)
        fprintf(stderr, "%s: %s\n", match->family->name, kg_text_string(&reason));
    kg_text_free(&reason);
    return valid;
}

static bool note_listed(void *user, const struct kg_config *config)
{
    struct listed *listed = user;
    listed->count++;
    listed->refused += !is_valid(listed->match, config);
    listed->has_guess |= memcmp(config, &listed->guess, sizeof *config) == 0;
    return true;
}

// Each form lists valid configs, among them the rule's if the form is advised. Returns their
// number.
static int check_forms(const struct kg_group *group)
{
    int count = 0;
    for (const struct kg_family *const *family = kg_target_cuda.families; *family; family++) {
        struct listed listed = {.match = kg_match_find(*family, group, &facts, NULL)};
        struct kg_text reason = {0};
        if (!listed.match || strncmp((*family)->name, "contract/", 9) != 0)
            continue;
        (*family)->guess(listed.match, &listed.guess);
        (*family)->list(listed.match, note_listed, &listed);
        CHECK(listed.refused == 0);
        CHECK(listed.has_guess || !kg_match_is_advised(listed.match, &reason));
        count += listed.count;
        kg_text_free(&reason);
    }
    return count;
}

static int compare(const void *a, const void *b)
{
    const struct kg_candidate *x = a, *y = b;
    return x->reading != y->reading
               ? x->reading - y->reading
               : memcmp(x->config.value, y->config.value, sizeof x->config.value);
}

// No config is listed twice, the guess is listed, every listed config has an expected time, and
// none is several times slower than the best.
static void check_candidates(const char *op, const char *sizes, struct kg_candidates *candidates,
                             int least, int most)
{
    int twice = 0, impossible = 0, limited = 0, slow = 0;
    double best = INFINITY;
    CHECK(candidates->complete && candidates->expected);
    CHECK(candidates->count >= least && candidates->count <= most);
    if (candidates->count < least || candidates->count > most)
        fprintf(stderr, "%s %s: %d\n", op, sizes, candidates->count);
    for (int i = 0; i < candidates->count; i++)
        best = fmin(best, candidates->items[i].expected);
    for (int i = 0; i < candidates->count; i++) {
        const struct kg_candidate *candidate = &candidates->items[i];
        const struct kg_reading *reading = &candidates->readings[candidate->reading];
        impossible += !(candidate->expected > candidate->bound);
        slow += candidate->expected > 3 * best;
        // Register limits are listed only where they let more blocks run.
        limited += candidate->config.value[reading->limit] > 0;
    }
    CHECK(impossible == 0);
    CHECK(slow <= 1); // the guess
    CHECK(limited <= candidates->count / 8);
    qsort(candidates->items, (size_t)candidates->count, sizeof *candidates->items, compare);
    for (int i = 1; i < candidates->count; i++)
        twice += compare(&candidates->items[i - 1], &candidates->items[i]) == 0;
    CHECK(twice == 0);
}

// Only the forms of products: other families that take such groups are not tested here.
static const struct kg_family *const forms[] = {
    &kg_cuda_contract_packed, &kg_cuda_contract_scaled_wgmma,
    &kg_cuda_contract_scaled, &kg_cuda_contract_wgmma_f32,
    &kg_cuda_contract_wgmma,  &kg_cuda_contract_thin,
    &kg_cuda_contract_mma,    &kg_cuda_contract_mma_i8,
    &kg_cuda_contract_tile,   NULL,
};
static const struct kg_target products = {.name = "products", .families = forms};

// The form that is expected to be fastest, by its rule.
static const struct kg_match *find_fastest(const struct kg_problem *problem,
                                           struct kg_config *config)
{
    const struct kg_group group = {problem, 0, problem->nest_count};
    const struct kg_match *fastest = NULL;
    double least = INFINITY;
    for (int i = 0; forms[i]; i++) {
        const struct kg_match *match = kg_match_find(forms[i], &group, &facts, NULL);
        struct kg_config guess;
        if (!match || !kg_match_is_advised(match, NULL))
            continue;
        forms[i]->guess(match, &guess);
        double seconds = forms[i]->expected(match, &guess);
        if (seconds >= least)
            continue;
        least = seconds;
        fastest = match;
        *config = guess;
    }
    CHECK(fastest != NULL);
    return fastest;
}

static void check_list(const char *op, const char *sizes, int least, int most)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_error error;
    struct kg_config guess;
    struct kg_candidates candidates;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status != KG_OK)
        return;
    const struct kg_match *match = find_fastest(made.problem, &guess);
    CHECK_STATUS(kg_candidates_list(match, &products, 65536, NULL, NULL, &candidates, &error),
                 KG_OK, &error);
    CHECK(kg_candidates_find(&candidates, match, &guess) >= 0);
    CHECK(candidates.size == check_forms(&match->group)); // else a guess was added
    check_candidates(op, sizes, &candidates, least, most);
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

static const struct kg_match *match_wgmma(const struct made *made)
{
    const struct kg_group group = {made->problem, 0, 1};
    const struct kg_match *match = kg_match_find(&kg_cuda_contract_wgmma, &group, &facts, NULL);
    CHECK(match != NULL);
    return match;
}

static int position(const struct kg_space *space, const char *name)
{
    int at = 0;
    while (at < space->count && strcmp(space->parameters[at].name, name) != 0)
        at++;
    CHECK(at < space->count);
    return at;
}

struct counted {
    int split; // the parameter's position in a config
    int shared;
};

static bool count_shared(void *user, const struct kg_config *config)
{
    struct counted *counted = user;
    counted->shared += config->value[counted->split] == 0;
    return true;
}

// Checks that the rule does not choose stream-K, and how many stream-K configs searches get.
static void check_shares(const char *sizes, int least)
{
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    struct kg_config guess;
    struct kg_space space;
    struct counted counted = {0, 0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_match *match = match_wgmma(&made);
    match->family->space(match, &space);
    match->family->guess(match, &guess);
    counted.split = position(&space, "split_k");
    CHECK(guess.value[counted.split] != 0);
    match->family->list(match, count_shared, &counted);
    CHECK(counted.shared >= least && (least > 0 || counted.shared == 0));
    unmake(&made);
}

// Tiles that do not fill whole waves. The rule would choose stream-K for a large gain, which no
// race has shown yet.
static void test_stream_k(void)
{
    describe_device("h100", "sm_90a");
    check_shares("T=f16 M=2304 N=2304 K=9216", 20);
    check_shares("T=f16 M=2176 N=2176 K=8192", 20);
    check_shares("T=f16 M=3072 N=3072 K=3072", 10);
    check_shares("T=f16 M=4096 N=4096 K=4096", 10);
    check_shares("T=f16 M=1024 N=1024 K=64", 0);
    check_shares("T=f16 M=1 N=4096 K=4096", 0);
}

// The clusters of this size that are listed.
struct clusters {
    int rows, columns, down, across; // positions of these parameters in a config
    int64_t extent;                  // of the product, in both directions
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

static struct clusters clusters_of(const char *sizes, int64_t extent)
{
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    struct kg_space space;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_match *match = match_wgmma(&made);
    match->family->space(match, &space);
    struct clusters found = {
        .rows = position(&space, "tile_m"),
        .columns = position(&space, "tile_n"),
        .down = position(&space, "cluster_m"),
        .across = position(&space, "cluster_n"),
        .extent = extent,
    };
    match->family->list(match, count_clusters, &found);
    unmake(&made);
    return found;
}

static double expected(const char *sizes, const char *config)
{
    char words[256];
    struct kg_choice choice;
    struct made made = make_strided(definitions, "nt", sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    snprintf(words, sizeof words,
             "contract/wgmma: %s pingpong=0 split_k=1 swap=0 raster=0 maxnreg=0", config);
    bool read = kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice);
    CHECK(read);
    double seconds = read ? kg_choice_expected(&choice) : 0;
    unmake(&made);
    return seconds;
}

// Clusters larger than pairs for unaligned lines only, and never a block without a tile.
static void test_clusters(void)
{
    describe_device("h100", "sm_90a");
    struct clusters whole = clusters_of("T=f16 M=1024 N=1024 K=1024", 1024);
    CHECK(whole.pairs > 100 && whole.larger == 0 && whole.empty == 0);
    struct clusters uneven = clusters_of("T=f16 M=1000 N=1000 K=1000", 1000);
    CHECK(uneven.pairs > 100 && uneven.larger > 100 && uneven.empty == 0);
    struct clusters small = clusters_of("T=f16 M=60 N=60 K=1000", 60);
    CHECK(small.empty == 0);
    // The blocks of a multicast cluster have to meet; with few aligned lines that is the only
    // difference.
    const char *sizes = "T=f16 M=512 N=512 K=512",
               *tile = "tile_m=64 tile_n=64 tile_k=128 stages=6";
    char alone[128], pair[128];
    snprintf(alone, sizeof alone, "%s cluster_m=1 cluster_n=1", tile);
    snprintf(pair, sizeof pair, "%s cluster_m=2 cluster_n=1", tile);
    CHECK(expected(sizes, pair) > expected(sizes, alone));
}

// Microseconds with a cold L2, on an H100 (80 GB, SXM5, driver 580), fastest first.
static const struct {
    const char *sizes, *config;
    double measured;
} times[] = {
    {"M=2048 N=2048 K=2048",
     "tile_m=256 tile_n=128 tile_k=64 stages=4 cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=0",
     27.9},
    {"M=2048 N=2048 K=2048",
     "tile_m=128 tile_n=128 tile_k=64 stages=6 cluster_m=1 cluster_n=2 pingpong=0 split_k=1 swap=0",
     33.4},
    {"M=2048 N=2048 K=2048",
     "tile_m=64 tile_n=64 tile_k=128 stages=6 cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=1",
     44.1},
    {"M=2048 N=2048 K=2048",
     "tile_m=128 tile_n=64 tile_k=64 stages=3 cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=0",
     58.9},
    {"M=256 N=4096 K=14336",
     "tile_m=128 tile_n=128 tile_k=64 stages=6 cluster_m=1 cluster_n=1 pingpong=0 split_k=2 swap=0",
     68.9},
    {"M=64 N=4096 K=4096",
     "tile_m=128 tile_n=32 tile_k=128 stages=5 cluster_m=1 cluster_n=1 pingpong=0 split_k=2 swap=1",
     20.5},
    {"M=64 N=4096 K=4096",
     "tile_m=128 tile_n=64 tile_k=64 stages=3 cluster_m=1 cluster_n=1 pingpong=0 split_k=2 swap=1",
     28.9},
    {"M=64 N=4096 K=4096",
     "tile_m=64 tile_n=8 tile_k=128 stages=12 cluster_m=1 cluster_n=1 pingpong=0 split_k=1 swap=1",
     38.7},
    {"M=64 N=4096 K=4096",
     "tile_m=256 tile_n=96 tile_k=64 stages=4 cluster_m=1 cluster_n=2 pingpong=0 split_k=1 swap=0",
     43.5},
};

// The same by mma.sync, with lines aligned to 2 or 8 bytes. For 1000 x 1000 x 1002, with lines
// aligned to 4 bytes, only 21 us are expected, but 34 were measured.
static void test_lines(void)
{
    static const struct {
        const char *sizes, *config;
        double measured;
    } lines[] = {
        {"T=f16 M=333 N=1777 K=1025", "tile_m=64 tile_n=64 tile_k=64 stages=4", 78.8},
        {"T=f16 M=2000 N=2000 K=2001", "tile_m=128 tile_n=64 tile_k=32 stages=8", 412},
        {"T=f16 M=2000 N=2000 K=2004", "tile_m=128 tile_n=64 tile_k=32 stages=8", 126},
    };
    describe_device("h100", "sm_90a");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char words[256];
        struct kg_choice choice;
        struct made made = make_strided(definitions, "nt", lines[i].sizes, NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        snprintf(words, sizeof words, "contract/mma: %s split_k=1 raster=0 maxnreg=0",
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
        kg_text_format(&words, "contract/wgmma: %s raster=0 maxnreg=0", times[i].config);
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
    // Nothing is expected of a device with few known facts.
    facts.bandwidth = 0;
    struct made made = make_strided(definitions, "nt", "T=f16 M=64 N=64 K=64", NULL);
    struct kg_choice choice;
    kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
    CHECK(kg_choice_expected(&choice) == 0);
    unmake(&made);
}

TEST_MAIN(test_lists, test_stream_k, test_clusters, test_times, test_lines)
