// What rules choose where a device's rates are known: by expected times, on an H200 and an H100.

#include "asm/gpu.h"
#include "gen/built.h"
#include "gen/cuda/cuda_memory_time.h"
#include "hopper_unit.h"
#include "support/sample_problem.h"
#include "test.h"

static const char mean_of_rows[] =
    "op m(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32 "
    "{ s[p] = mean(d) x[p, d] * x[p, d]\n y[p, d] = x[p, d] * s[p] }";
static const char sum_of_rows[] =
    "op s(x: T[P, D]) -> (y: T[P]) where T in f16 f32 { y[p] = sum(d) x[p, d] }";
static const char place_of_most[] =
    "op a(x: T[P, D]) -> (y: i32[P]) where T in f16 f32 { y[p] = argmax(d) x[p, d] }";
static const char sum_of_columns[] =
    "op s(x: T[P, D]) -> (y: T[D]) where T in f16 f32 { y[d] = sum(p) x[p, d] }";
static const char add[] = "op a(x: T[P, D], v: T[D]) -> (y: T[P, D]) where T in f16 f32 "
                          "{ y[p, d] = x[p, d] + v[d] }";

static struct kg_device_facts describe(const char *handle)
{
    const struct kg_gpu *gpu = kg_gpu_find(handle);
    return (struct kg_device_facts){.isa = "sm_90a",
                                    .units = gpu->sms,
                                    .clock = gpu->clock,
                                    .bandwidth = gpu->bandwidth,
                                    .cache = {0, gpu->sm->shared, gpu->l2_bytes, gpu->l2_bytes},
                                    .shared_bytes = gpu->sm->shared_opt_in,
                                    .latency = gpu->sm->latency * 1e-9,
                                    .unit = HOPPER_UNIT};
}

// Seconds that are expected of what the rule chooses, and the threads of its blocks.
static double choose(const char *text, const char *sizes, const char *handle, int *threads)
{
    struct kg_device_facts facts = describe(handle);
    struct made made = make(text, sizes);
    struct kg_choice choice;
    struct kg_grids grids = {0};
    double seconds = 0;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        choice.matches[0]->family->grids(choice.matches[0], &choice.configs[0], &grids);
        seconds = kg_choice_expected(&choice);
    }
    for (int i = 0; i < grids.count; i++)
        if (grids.grids[i].blocks[0] > 0)
            *threads = grids.grids[i].threads[0];
    unmake(&made);
    return seconds;
}

// Blocks begin one after the other: a block for each of many short rows would be too many.
static void short_rows_share_blocks(void)
{
    int threads = 0;
    choose(mean_of_rows, "P=1048576 D=256 T=f16", "h200", &threads);
    CHECK(threads <= 32);
    choose(mean_of_rows, "P=800000 D=279 T=f16", "h200", &threads);
    CHECK(threads <= 32);
}

// Threads without elements would only wait, and warps of a row for each other.
static void few_short_rows_have_few_threads(void)
{
    static const struct {
        const char *sizes;
        int threads;
    } cases[] = {{"P=2048 D=256 T=f16", 16}, {"P=512 D=256 T=f16", 16}, {"P=128 D=256 T=f16", 32},
                 {"P=2048 D=128 T=f16", 8},  {"P=128 D=128 T=f16", 16}, {"P=128 D=512 T=f16", 64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int threads = 0;
        choose(mean_of_rows, cases[i].sizes, "h100", &threads);
        CHECK(threads == cases[i].threads);
    }
}

// Within a tenth of what memory takes, and less where it is faster.
static void times_follow_memory(void)
{
    int threads;
    double bytes = 2.0 * 65536 * 4096 * 2;
    double h200 = choose(add, "P=65536 D=4096 T=f16", "h200", &threads);
    double h100 = choose(add, "P=65536 D=4096 T=f16", "h100", &threads);
    CHECK(h200 > bytes / 4.917e12 && h200 < 1.25 * bytes / 4.917e12);
    CHECK(h100 > bytes / 3.352e12 && h100 < 1.25 * bytes / 3.352e12);
    double tiny = choose(add, "P=1 D=64 T=f16", "h200", &threads);
    CHECK(tiny > 1e-6 && tiny < 1e-5);
}

// Registers, shared memory, threads and blocks of a unit each limit how many blocks it runs.
static void units_have_limits(void)
{
    struct kg_device_facts facts = describe("h200");
    struct kg_cuda_memory_work work = {.blocks = 1e6, .threads = 256, .registers = 32};
    CHECK(kg_cuda_memory_resident(&work, &facts) == 8);
    work.registers = 64;
    CHECK(kg_cuda_memory_resident(&work, &facts) == 4);
    work.limit = 32;
    CHECK(kg_cuda_memory_resident(&work, &facts) == 8);
    work.shared = 75 << 10;
    CHECK(kg_cuda_memory_resident(&work, &facts) == 3);
    work = (struct kg_cuda_memory_work){.blocks = 1e6, .threads = 32, .registers = 16};
    CHECK(kg_cuda_memory_resident(&work, &facts) == 32);
    // Clusters of more than two blocks leave some units alone.
    CHECK(kg_cuda_memory_units(&work, &facts) == 132);
    work.cluster = 2;
    CHECK(kg_cuda_memory_units(&work, &facts) == 132);
    work.cluster = 8;
    CHECK(kg_cuda_memory_units(&work, &facts) == 128);
    facts.units = 12;
    CHECK(kg_cuda_memory_units(&work, &facts) == 12);
}

// 33 rows by clusters of eight blocks are one more than 128 units run, two blocks on each.
static void clusters_that_do_not_fit_wait(void)
{
    struct kg_device_facts facts = describe("h200");
    struct kg_cuda_memory_work work = {
        .blocks = 32 * 8, .threads = 1024, .registers = 32, .cluster = 8, .trips = 1, .bytes = 7e6};
    const struct kg_cuda_memory_times *times = &kg_cuda_rowwise_times;
    double fits = kg_cuda_memory_seconds(&work, 1, &facts, times);
    work.blocks = 33 * 8;
    double waits = kg_cuda_memory_seconds(&work, 1, &facts, times);
    work.threads = 512; // four of these
    double smaller = kg_cuda_memory_seconds(&work, 1, &facts, times);
    CHECK(waits > 1.1 * fits && smaller < 1.05 * fits);
}

// The rule's choice, and what it emits.
static void choose_words(const char *text, const char *sizes, const char *handle,
                         struct kg_text *words, struct kg_text *source)
{
    struct kg_device_facts facts = describe(handle);
    struct made made = make(text, sizes);
    struct kg_choice choice;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        kg_choice_print(&choice, words);
        CHECK(choice.matches[0]->family->emit(choice.matches[0], &choice.configs[0], "k", source));
    }
    unmake(&made);
}

// Few rows above many columns: no block waits for another, and every unit has one.
static void few_rows_are_not_shared(void)
{
    static const struct {
        const char *sizes, *words;
    } cases[] = {{"P=88 D=10616 T=f16", "vector=1 unroll=16 split=1"},
                 {"P=300 D=4096 T=f16", "threads=512 vector=1 unroll=8 split=1"},
                 {"P=48 D=5584 T=f32", "threads=128 vector=1 unroll=8 split=1"},
                 {"P=2500 D=136 T=f32", "split=16"}}; // too few columns for all units
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kg_text words = {0}, source = {0};
        choose_words(sum_of_columns, cases[i].sizes, "h100", &words, &source);
        CHECK(strstr(kg_text_string(&words), cases[i].words));
        kg_text_free(&words);
        kg_text_free(&source);
    }
}

// On an H200 what the rule's first steps would choose took 1.4 and 1.8 times as long for the first
// two; what the times of short reductions would choose for the long one, 1.1 times. Rows of 52 f16
// are scanned by half vectors: by whole ones, which they do not fill, they took 1.4 times as long.
// Places are found by vectors of four at most, and by 16 of two: vectors of eight, or eight of
// them, took 1.3 and 1.1 times as long.
static void much_faster_configs_are_found(void)
{
    static const char place_of_columns[] =
        "op a(x: T[P, D]) -> (y: i64[D]) where T in f16 f32 bf16 { y[d] = argmax(p) x[p, d] }";
    static const char running_sums[] = "op a(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32 bf16 "
                                       "{ y[p, d] = sum(k <= d) x[p, k] }";
    static const struct {
        const char *text, *sizes, *words;
    } cases[] = {{sum_of_columns, "P=347 D=30080 T=f16", "threads=256 vector=4 unroll=8 split=1"},
                 {place_of_columns, "P=861 D=2056 T=bf16", "vector=1 unroll=16 split=1"},
                 {sum_of_columns, "P=65536 D=4096 T=f16", "threads=128 vector=4 unroll=8 split=32"},
                 {running_sums, "P=100000 D=52 T=f16", "vector=4 hold=2"},
                 {place_of_columns, "P=33379 D=3408 T=bf16", "vector=4 unroll=8"},
                 {place_of_columns, "P=40832 D=838 T=bf16", "vector=2 unroll=16"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kg_text words = {0}, source = {0};
        choose_words(cases[i].text, cases[i].sizes, "h200", &words, &source);
        CHECK(strstr(kg_text_string(&words), cases[i].words));
        kg_text_free(&words);
        kg_text_free(&source);
    }
}

// Lanes that share a row begin anywhere in a line of memory: eight lanes of two elements took 1.4
// times as long as 16 on an H200.
static void odd_rows_are_shared_by_more_lanes(void)
{
    int threads = 0;
    choose(mean_of_rows, "P=1003543 D=214 T=f16", "h200", &threads);
    CHECK(threads >= 16);
}

// Where all blocks run at once only with as many registers as are expected, compilers are held to
// that; with more blocks, or fewer, they may take more.
static void registers_are_limited_for_one_round(void)
{
    static const char norm[] =
        "op l(x: T[P, D], g: T[D], b: T[D]) -> (y: T[P, D]) where T in f16 f32 "
        "{ c[p] = mean(d) x[p, d]\n v[p] = mean(d) (x[p, d] - c[p]) * (x[p, d] - c[p])\n"
        "y[p, d] = (x[p, d] - c[p]) * rsqrt(v[p] + 1e-5) * g[d] + b[d] }";
    static const struct {
        const char *sizes, *words;
    } cases[] = {{"P=686 D=2977 T=f32", "maxnreg=40"},
                 {"P=132 D=2977 T=f32", "maxnreg=0"},
                 {"P=6860 D=2977 T=f32", "maxnreg=0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kg_text words = {0}, source = {0};
        choose_words(norm, cases[i].sizes, "h200", &words, &source);
        CHECK(strstr(kg_text_string(&words), cases[i].words));
        kg_text_free(&words);
        kg_text_free(&source);
    }
}

// By the rule's choice; `source` is what it emits.
static bool evicts_into(const char *text, const char *sizes, struct kg_text *source)
{
    struct kg_text words = {0};
    choose_words(text, sizes, "h100", &words, source);
    bool found = strstr(kg_text_string(&words), "evict=1") != NULL ||
                 strstr(kg_text_string(&words), "stream=2") != NULL;
    kg_text_free(&words);
    return found;
}

static bool evicts(const char *text, const char *sizes)
{
    struct kg_text source = {0};
    bool found = evicts_into(text, sizes, &source);
    kg_text_free(&source);
    return found;
}

// What several threads read, or rows that a table has anywhere, is kept as usual.
static void shared_tensors_stay(void)
{
    static const char over[] = "op o(x: T[P, D], t: T[D]) -> (y: bool[P, D]) where T in f16 f32 "
                               "{ y[p, d] = x[p, d] > t[d] }",
                      gather[] =
                          "op g(t: T[V, D], i: i64[N]) -> (y: bool[N, D]) where T in f16 f32 "
                          "{ y[n, d] = t[i[n], d] > 0 }";
    struct kg_text source = {0};
    CHECK(evicts_into(over, "P=8192 D=2048 T=f32", &source));
    CHECK(source.length > 0 && strstr(kg_text_string(&source), "<WHOLE, 0, VECTOR>(t"));
    CHECK(source.length > 0 && strstr(kg_text_string(&source), "<WHOLE, CACHE, VECTOR>(x"));
    CHECK(!evicts(over, "P=512 D=2048 T=f32"));
    CHECK(!evicts(gather, "V=4000000 D=16 N=4000000 T=f32"));
    kg_text_free(&source);
}

// A block that holds a row by one vector of each thread has these evicted first, as long as the
// rows fill its threads. Faster memory would wait for them.
static void single_vectors_are_evicted(void)
{
    int threads = 0;
    CHECK(evicts(sum_of_rows, "P=65536 D=4096 T=f16"));
    choose(sum_of_rows, "P=65536 D=4096 T=f16", "h100", &threads);
    CHECK(threads == 512);
    choose(sum_of_rows, "P=262144 D=1024 T=f16", "h100", &threads);
    CHECK(threads == 128);
    choose(sum_of_rows, "P=131072 D=3000 T=f16", "h100", &threads);
    CHECK(threads < 512);
    choose(mean_of_rows, "P=65536 D=4096 T=f16", "h100", &threads);
    CHECK(threads < 512);
    choose(place_of_most, "P=65536 D=4096 T=f16", "h100", &threads);
    CHECK(threads < 512);
    choose(sum_of_rows, "P=65536 D=4096 T=f16", "h200", &threads);
    CHECK(threads < 512);
    choose(sum_of_rows, "P=262144 D=1024 T=f16", "h200", &threads);
    CHECK(threads < 128);
}

// Does each of the words stand in the source, and the last one after all others?
static bool stand_in_order(const struct kg_text *source, const char *const words[3])
{
    const char *all = source->length > 0 ? kg_text_string(source) : "";
    const char *first = strstr(all, words[0]), *last = strstr(all, words[2]);
    const char *between = first ? strstr(first, words[1]) : NULL;
    return between && last > between;
}

// Signals of a block, and what tiles store to shared memory, would hold up its first loads.
static void loads_come_first(void)
{
    static const char *const rows[] = {"kg_policy_here(kg_evict_first());",
                                       "kg_load_vec_policy<VECTOR>(x", "kg_start_next_of_few();"},
                             *const tiles[] = {"take0[part] = kg_load_predicated", "__syncwarp();",
                                               "kg_tile_fill(&tile0"};
    struct kg_text sum = {0}, turned = {0};
    CHECK(evicts_into(sum_of_rows, "P=65536 D=4096 T=f16", &sum));
    CHECK(stand_in_order(&sum, rows));
    evicts_into("op t(x: T[P, D]) -> (y: T[D, P]) where T in f16 f32 { y[d, p] = x[p, d] }",
                "P=4096 D=4096 T=f16", &turned);
    CHECK(stand_in_order(&turned, tiles));
    kg_text_free(&sum);
    kg_text_free(&turned);
}

// Of what is read once, and is more than the L2 holds, but not many times more.
static void reductions_spare_the_l2(void)
{
    static const char *const texts[] = {sum_of_rows, sum_of_columns};
    for (int i = 0; i < 2; i++) {
        CHECK(evicts(texts[i], "P=8192 D=4096 T=f16"));
        CHECK(evicts(texts[i], "P=8192 D=4096 T=f32"));
        CHECK(!evicts(texts[i], "P=2048 D=4096 T=f16"));
    }
    CHECK(!evicts(sum_of_columns, "P=65536 D=4096 T=f16"));
    // Results as large as what is read take the place of what other kernels wrote.
    CHECK(!evicts(mean_of_rows, "P=8192 D=4096 T=f16"));
}

static bool chooses(const char *text, const char *sizes, const char *parameter)
{
    struct kg_text words = {0}, source = {0};
    choose_words(text, sizes, "h200", &words, &source);
    bool found = strstr(kg_text_string(&words), parameter) != NULL;
    kg_text_free(&words);
    kg_text_free(&source);
    return found;
}

// What is read is evicted after what is written, if both together are many times what the L2 holds:
// element by element, through tiles and along rows; not where little is written.
static void results_leave_the_l2(void)
{
    static const char over[] = "op o(x: T[P, D], t: T[D]) -> (y: T[P, D]) where T in f16 f32 "
                               "{ y[p, d] = x[p, d] + t[d] }",
                      turned[] = "op t(x: T[P, D]) -> (y: T[D, P]) where T in f16 f32 "
                                 "{ y[d, p] = x[p, d] }";
    CHECK(chooses(over, "P=65536 D=2048 T=f16", "stream=3"));
    CHECK(!chooses(over, "P=32768 D=2048 T=f16", "stream=3"));
    CHECK(!chooses("op o(x: T[P, D], z: T[P, D]) -> (y: bool[P, D]) where T in f16 f32 "
                   "{ y[p, d] = x[p, d] > z[p, d] }",
                   "P=65536 D=2048 T=f16", "stream=3"));
    CHECK(chooses(turned, "P=20480 D=4096 T=f16", "stream=3"));
    CHECK(!chooses(turned, "P=16384 D=4096 T=f16", "stream=3"));
    CHECK(chooses(mean_of_rows, "P=65536 D=2048 T=f16", "evict=2"));
    CHECK(!chooses(mean_of_rows, "P=16384 D=2048 T=f16", "evict=2"));
    CHECK(!chooses(sum_of_rows, "P=262144 D=4096 T=f16", "evict=2"));
}

// Zeros of 16-bit floats are made unique as vectors where these floats themselves are compared.
static void zeros_are_made_unique_in_vectors(void)
{
    static const struct {
        const char *text, *sizes, *function;
    } cases[] = {
        {"op a(x: T[P, D]) -> (y: i64[D]) where T in f16 f32 bf16 { y[d] = argmax(p) x[p, d] }",
         "P=4096 D=4096 T=f16", "kg_unique_zeros_f16<WHOLE>(take0"},
        {"op a(x: T[P, D]) -> (y: i64[D]) where T in f16 f32 bf16 { y[d] = argmin(p) x[p, d] }",
         "P=4096 D=4096 T=bf16", "kg_unique_zeros_bf16<WHOLE>(take0"},
        {"op a(x: T[P, D]) -> (y: i64[D]) where T in f16 f32 bf16 { y[d] = argmax(p) x[p, d] }",
         "P=4096 D=4096 T=f32", NULL},
        {"op a(x: T[P, D]) -> (y: i64[D]) where T in f16 f32 { y[d] = argmax(p) x[p, d] * 2 }",
         "P=4096 D=4096 T=f16", NULL},
        {"op a(x: T[P, D]) -> (y: T[D]) where T in f16 f32 { y[d] = max(p) x[p, d] }",
         "P=4096 D=4096 T=f16", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kg_text words = {0}, source = {0};
        choose_words(cases[i].text, cases[i].sizes, "h200", &words, &source);
        const char *body = strstr(kg_text_string(&source), "_body(");
        CHECK(strstr(kg_text_string(&words), "reduce: column=1") && body);
        if (body && cases[i].function) {
            CHECK(strstr(body, cases[i].function) != NULL);
            CHECK(strstr(body, ", WHOLE>(total[lane].value, v0)") != NULL);
        } else if (body) {
            CHECK(strstr(body, "unique") == NULL && strstr(body, ", WHOLE>(total") == NULL);
        }
        kg_text_free(&words);
        kg_text_free(&source);
    }
}

TEST_MAIN(results_leave_the_l2, zeros_are_made_unique_in_vectors, short_rows_share_blocks,
          few_short_rows_have_few_threads, times_follow_memory, units_have_limits,
          clusters_that_do_not_fit_wait, few_rows_are_not_shared, much_faster_configs_are_found,
          single_vectors_are_evicted, loads_come_first, reductions_spare_the_l2,
          shared_tensors_stay, odd_rows_are_shared_by_more_lanes,
          registers_are_limited_for_one_round)
