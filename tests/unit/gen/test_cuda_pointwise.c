// The pointwise family for CUDA: which form a problem takes, how vectors are shared among threads,
// and which functions run. Their results are judged where there is a GPU (tests/device).

#include "cuda_guess.h"

#define DTYPES "where T in f16 f32 f64 i8\n"
static const char last[] =
    "op r(x: T[P, D], v: T[D]) -> (y: T[P, D]) " DTYPES "{ y[p, d] = x[p, d] + v[d] }";
static const char first[] =
    "op r(x: T[P, D], v: T[P]) -> (y: T[P, D]) " DTYPES "{ y[p, d] = x[p, d] + v[p] }";
static const char middle[] = "op r(x: T[N, C, P, D], v: T[C, D]) -> (y: T[N, C, P, D]) " DTYPES
                             "{ y[n, c, p, d] = x[n, c, p, d] + v[c, d] }";
static const char turned[] = "op r(x: T[P, D]) -> (y: T[D, P]) " DTYPES "{ y[d, p] = x[p, d] }";
static const char mixed[] = "op r(x: T[P, D], z: T[D, P], v: T[D]) -> (y: T[D, P]) " DTYPES
                            "{ y[d, p] = x[p, d] * z[d, p] + v[d] }";

static bool runs(const struct kg_grid *grid, int64_t along, int64_t across, int wide, int high)
{
    return grid->blocks[0] == along && grid->blocks[1] == across && grid->threads[0] == wide &&
           grid->threads[1] == high;
}

static void broadcasts(void)
{
    struct kg_grids grids;
    // As wide as a block: the first dimension of the grid is for rows.
    check_guess(last, "P=262144 D=512 T=f32",
                "pointwise: threads=128 vector=4 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(grids.count == 3 && grids.alignment == 16);
    CHECK(runs(&grids.grids[2], 262144, 1, 128, 1) && grids.grids[0].blocks[0] == 0);
    CHECK(runs(&grids.unaligned[1], 262144, 1, 128, 1) && grids.unaligned[2].blocks[0] == 0);
    // Wider: blocks that follow each other lie side by side.
    check_guess(first, "P=512 D=262144 T=f32",
                "pointwise: threads=128 vector=4 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[2], 512, 512, 128, 1));
    // More rows than a grid's second dimension counts: the third one has levels of them.
    check_guess(last, "P=200000 D=2048 T=f32",
                "pointwise: threads=128 vector=4 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[2], 4, 50000, 128, 1) && grids.grids[2].blocks[2] == 4);
    // More elements than 32 bits count.
    check_guess(first, "P=70001 D=262144 T=f16",
                "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[0], 256, 35001, 128, 1) && grids.grids[0].blocks[2] == 2);
    CHECK(grids.grids[2].blocks[0] == 0);
}

// Loads of a thread: 16 bytes at once where nothing but memory holds a launch up.
static void loads(void)
{
    static const char light[] =
        "op r(x: T[N], z: T[N]) -> (y: T[N]) " DTYPES "{ y[n] = x[n] + z[n] }";
    static const char one[] = "op r(x: T[N]) -> (y: T[N]) " DTYPES "{ y[n] = max(x[n], 0) }";
    static const char heavy[] =
        "op r(x: T[N], z: T[N]) -> (y: T[N]) where T in f16 f32 { y[n] = exp(x[n]) + z[n] }";
    static const char rows[] = "op r(x: T[N, C, W], v: T[C]) -> (y: T[N, C, W]) " DTYPES
                               "{ y[n, c, w] = x[n, c, w] + v[c] }";
    struct kg_grids grids;
    check_guess(light, "N=100000000 T=f16",
                "pointwise: threads=256 vector=4 rows=1 stream=0 maxnreg=0", &grids);
    check_guess(light, "N=100000000 T=f32",
                "pointwise: threads=256 vector=2 rows=1 stream=0 maxnreg=0", &grids);
    check_guess(one, "N=100000000 T=f32",
                "pointwise: threads=256 vector=2 rows=2 stream=0 maxnreg=0", &grids);
    // A thread finds the place of each vector.
    check_guess(rows, "N=512 C=512 W=512 T=f16",
                "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    check_guess(rows, "N=512 C=512 W=512 T=f32",
                "pointwise: threads=128 vector=4 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    // Too little for each thread otherwise.
    check_guess(one, "N=100000000 T=f16",
                "pointwise: threads=128 vector=4 rows=4 stream=0 maxnreg=0", &grids);
    check_guess(light, "N=100000000 T=i8",
                "pointwise: threads=128 vector=8 rows=4 stream=0 maxnreg=0", &grids);
    check_guess(heavy, "N=100000000 T=f32",
                "pointwise: threads=128 vector=2 rows=4 stream=0 maxnreg=0", &grids);
}

static void small(void)
{
    struct kg_grids grids;
    check_guess(last, "P=2 D=256 T=f16",
                "pointwise: threads=128 vector=2 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[2], 2, 1, 128, 1) && grids.alignment == 4);
    check_guess(last, "P=512 D=256 T=f16",
                "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[2], 128, 1, 32, 4));
    check_guess(last, "P=0 D=256 T=f16",
                "pointwise: threads=128 vector=2 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    for (int i = 0; i < 3; i++)
        CHECK(grids.grids[i].blocks[0] == 0 && grids.unaligned[i].blocks[0] == 0);
}

static void short_last_axis(void)
{
    struct kg_grids grids;
    check_guess(middle, "N=64 C=1024 P=1024 D=2 T=f32",
                "pointwise: threads=128 vector=4 rows=2 stream=0 maxnreg=0 tile=0 last=2 flat=0",
                &grids);
    CHECK(grids.count == 3 && grids.alignment == 16);
    CHECK(runs(&grids.grids[2], 4, 32768, 128, 1));
    CHECK(runs(&grids.unaligned[1], 262144, 1, 1, 128)); // made for any last axis
    check_guess(middle, "N=64 C=1024 P=1024 D=1 T=f16",
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=1 flat=0",
                &grids);
    // Rounds that no vector holds.
    check_guess(middle, "N=64 C=1024 P=1024 D=3 T=f16",
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
    check_guess(middle, "N=64 C=1024 P=5 D=2 T=f32",
                "pointwise: threads=128 vector=4 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
}

// Rows that are no whole numbers of vectors, in one line.
static void flat(void)
{
    struct kg_grids grids;
    check_guess(last, "P=3001 D=1001 T=f16",
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
    CHECK(grids.count == 3 && grids.alignment == 16);
    CHECK(runs(&grids.grids[2], 1467, 1, 128, 1)); // of 3004001 elements, the last vector has one
    CHECK(runs(&grids.unaligned[1], 1467, 1, 128, 1));
    check_guess(first, "P=3001 D=1004 T=f16",
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
    CHECK(grids.alignment == 16);
    // Too few vectors for all units.
    check_guess(last, "P=301 D=101 T=f16",
                "pointwise: threads=128 vector=1 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    CHECK(grids.alignment == 2);
    // Formulas of indices, where the index of a row need not be divided out otherwise.
    static const char triangle[] =
        "op r(x: T[M, N]) -> (y: T[M, N]) " DTYPES "{ y[m, n] = where(n <= m, x[m, n], 0) }";
    check_guess(triangle, "M=3001 N=1001 T=f16",
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] > 0);
    check_guess(triangle, "M=3001 N=1002 T=f16",
                "pointwise: threads=128 vector=2 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
    check_guess(triangle, "M=30001 N=1002 T=f16", // does not fit into the L2
                "pointwise: threads=128 vector=8 rows=2 stream=0 maxnreg=0 tile=0 last=0 flat=1",
                &grids);
    // One line anyway: vectors are whole but for the last.
    static const char one[] = "op r(x: T[N]) -> (y: T[N]) " DTYPES "{ y[n] = max(x[n], 0) }";
    check_guess(one, "N=1000001 T=f16", "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0",
                &grids);
    CHECK(grids.alignment == 16 && runs(&grids.grids[2], 977, 1, 128, 1));
}

static void transposes(void)
{
    struct kg_grids grids;
    check_guess(turned, "P=16384 D=8192 T=f16",
                "pointwise: threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=64 last=0 flat=0",
                &grids);
    CHECK(grids.count == 3 && grids.alignment == 16);
    CHECK(runs(&grids.grids[2], 256 * 128, 1, 256, 1));
    CHECK(runs(&grids.unaligned[1], 256 * 128, 1, 256, 1));
    // Whole in one direction only.
    check_guess(turned, "P=16384 D=8191 T=f16",
                "pointwise: threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=64 last=0 flat=0",
                &grids);
    CHECK(grids.alignment == 0 && runs(&grids.grids[1], 256 * 128, 1, 256, 1));
    check_guess(mixed, "P=1000 D=1000 T=f32",
                "pointwise: threads=256 vector=4 rows=1 stream=0 maxnreg=0 tile=64 last=0 flat=0",
                &grids);
    CHECK(runs(&grids.grids[2], 256, 1, 256, 1));
    check_guess(mixed, "P=1000 D=1000 T=f64",
                "pointwise: threads=256 vector=2 rows=1 stream=0 maxnreg=0 tile=64 last=0 flat=0",
                &grids);
    check_guess(turned, "P=100000 D=3 T=f16",
                "pointwise: threads=128 vector=8 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=0",
                &grids);
}

// What cannot work, or repeats something else, is refused.
static void refusals(void)
{
    static const struct {
        const char *words, *reason;
    } rows[] = {
        {"threads=512 vector=8 rows=1 stream=0 maxnreg=0 tile=64 last=0", ""},
        {"threads=256 vector=8 rows=2 stream=0 maxnreg=0 tile=64 last=0",
         "in tiles a thread has as many vectors as there are: rows does not count"},
        {"threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=32 last=0",
         "a tile has fewer vectors than a block has threads"},
        {"threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=128 last=0",
         "a tile is more than the threads of a block hold"},
        {"threads=256 vector=16 rows=1 stream=0 maxnreg=0 tile=64 last=0",
         "a vector is wider than a store"},
        {"threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=64 last=0 flat=1",
         "tiles leave the last axis alone"},
        {"threads=256 vector=8 rows=1 stream=0 maxnreg=0 tile=0 last=0 flat=1", ""},
    };
    struct made made = make(turned, "P=1024 D=1024 T=f16");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (size_t i = 0; made.status == KG_OK && i < sizeof rows / sizeof rows[0]; i++) {
        const struct kg_family *family = kg_target_family(&kg_target_cuda, "pointwise");
        const struct kg_group group = {made.problem, 0, 1};
        const struct kg_match *match = kg_match_find(family, &group, &facts, NULL);
        struct kg_text reason = {0};
        struct kg_config config;
        struct kg_space space;
        family->space(match, &space);
        CHECK(kg_config_read(&space, rows[i].words, &config));
        CHECK(family->valid(match, &config, &reason) == !*rows[i].reason);
        CHECK_TEXT(kg_text_string(&reason), rows[i].reason);
        kg_text_free(&reason);
    }
    unmake(&made);
}

static void test_pointwise(void)
{
    broadcasts();
    loads();
    small();
    short_last_axis();
    flat();
    transposes();
    refusals();
}

TEST_MAIN(test_pointwise)
