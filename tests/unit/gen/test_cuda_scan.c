// The scan family for CUDA: what it takes, how rows and columns are shared among threads, and which
// functions run. Their results are judged where there is a GPU (tests/device).

#include "cuda_guess.h"

static const char row[] = "op r(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"
                          "{ y[p, d] = sum(j <= d) x[p, j] }";
static const char column[] = "op r(x: T[P, D]) -> (y: T[P, D]) where T in f16 f32\n"
                             "{ y[p, d] = sum(j > p) x[j, d] }";

static void check_family(const char *formula, const char *family)
{
    char text[512];
    struct kg_choice choice;
    snprintf(text, sizeof text, "op r(x: f32[P, D], w: f32[D]) -> (y: f32[P, D])\n{ %s }", formula);
    struct made made = make(text, "P=7 D=64");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(choice.count == 1);
        CHECK_TEXT(choice.matches[0]->family->name, family);
    }
    unmake(&made);
}

static void families(void)
{
    check_family("y[p, d] = sum(j <= d) x[p, j] * w[j]", "scan");
    check_family("y[p, d] = max(j > d) x[p, j] + w[d]", "scan");
    check_family("y[p, d] = prod(j >= p) x[j, d]", "scan");
    check_family("t[p, d] = exp(x[p, d])\ns[p, d in 0..D] = sum(j < d) t[p, j]\n"
                 "y[p, d] = s[p, d] * w[d] + t[p, d]",
                 "scan");
    // Each result adds up other values.
    check_family("y[p, d] = sum(j <= d) x[p, j] * (d - j)", "direct");
}

static void rows(void)
{
    struct kg_grids grids;
    check_guess(row, "P=4096 D=32768 T=f32",
                "scan: threads=256 vector=4 hold=4 cluster=1 chunk=0 maxnreg=0", &grids);
    CHECK(grids.count == 3 && grids.alignment == 16 && grids.scratch == 0);
    CHECK(grids.grids[0].blocks[0] == 4096 && grids.grids[1].blocks[0] == 0);
    CHECK(grids.unaligned[0].blocks[0] == 0 && grids.unaligned[1].blocks[0] == 4096);
    // Short rows share a block.
    check_guess(row, "P=1000 D=64 T=f16",
                "scan: threads=8 vector=8 hold=1 cluster=1 chunk=0 maxnreg=0", &grids);
    CHECK(grids.grids[0].threads[0] == 8 && grids.grids[0].threads[1] == 16);
    CHECK(grids.grids[0].blocks[0] == 63);
    // Where rows begin within vectors, these are read whole; their elements are told apart.
    check_guess(row, "P=4096 D=4097 T=f16",
                "scan: threads=256 vector=8 hold=2 cluster=1 chunk=0 maxnreg=0", &grids);
    CHECK(grids.count == 3 && grids.alignment == 16 && grids.scratch == 0);
    CHECK(grids.grids[2].blocks[0] == 4096 && grids.unaligned[1].blocks[0] == 4096);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 0);
    CHECK(grids.unaligned[0].blocks[0] == 0 && grids.unaligned[2].blocks[0] == 0);
    // But not where a tensor has rows of another kind.
    check_guess("op r(x: f16[P, D], w: f16[D]) -> (y: f16[P, D])\n"
                "{ y[p, d] = sum(j <= d) x[p, j] * w[j] }",
                "P=4096 D=4097", "scan: threads=256 vector=1 hold=8 cluster=1 chunk=0 maxnreg=0",
                &grids);
    CHECK(grids.count == 2 && grids.alignment == 2);
    check_guess(row, "P=0 D=64 T=f32",
                "scan: threads=8 vector=4 hold=2 cluster=1 chunk=0 maxnreg=0", &grids);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 0);
}

static void few_rows(void)
{
    struct kg_grids grids;
    check_guess(row, "P=32 D=1048576 T=f32",
                "scan: threads=1024 vector=4 hold=4 cluster=4 chunk=0 maxnreg=64", &grids);
    CHECK(grids.count == 3 && grids.scratch == 0);
    CHECK(grids.grids[0].blocks[0] == 128 && grids.grids[0].cluster == 4);
    check_guess(row, "P=2 D=10000000 T=f32",
                "scan: threads=512 vector=4 hold=4 cluster=1 chunk=65536 maxnreg=64", &grids);
    CHECK(grids.count == 4 && grids.scratch == (size_t)2 * 153 * 16);
    for (int i = 0; i < 4; i++) {
        CHECK(grids.grids[i].blocks[0] == (i % 2 == 0 ? 2 * 153 : 0));
        CHECK(grids.unaligned[i].blocks[0] == (i % 2 == 1 ? 2 * 153 : 0));
    }
}

static void columns(void)
{
    struct kg_grids grids;
    check_guess(column, "P=100 D=1000000 T=f32",
                "scan: threads=256 vector=4 hold=8 cluster=1 chunk=0 maxnreg=0 rows=1", &grids);
    CHECK(grids.grids[0].blocks[0] == (250000 + 255) / 256);
    CHECK(grids.unaligned[1].blocks[0] == (1000000 + 255) / 256);
    // Threads below each other, and chunks: 8 of the 128 vectors of a row are a block's.
    check_guess(column, "P=4096 D=1024 T=f16",
                "scan: threads=256 vector=8 hold=4 cluster=1 chunk=256 maxnreg=0 rows=32", &grids);
    CHECK(grids.count == 4 && grids.scratch == (size_t)16 * 1024 * 16);
    CHECK(grids.grids[0].blocks[0] == 16 * 128 / 8 && grids.grids[2].blocks[0] == 16 * 128 / 8);
    CHECK(grids.unaligned[1].blocks[0] == 16 * 1024 / 8);
    // A column is as good as a row.
    check_guess(column, "P=3000 D=1 T=f32",
                "scan: threads=256 vector=1 hold=8 cluster=1 chunk=0 maxnreg=0 rows=256", &grids);
    CHECK(grids.grids[0].blocks[0] == 1);
}

// What no block can be: tables of totals beyond what static shared memory holds, threads that
// other threads of a warp are not below.
static void column_limits(void)
{
    static const struct {
        const char *words;
        bool valid;
    } cases[] = {
        {"scan: threads=512 vector=8 hold=1 cluster=1 chunk=64 maxnreg=0 rows=16", false},
        {"scan: threads=512 vector=8 hold=1 cluster=1 chunk=0 maxnreg=0 rows=16", true},
        {"scan: threads=64 vector=1 hold=1 cluster=1 chunk=0 maxnreg=0 rows=128", false},
        {"scan: threads=128 vector=1 hold=8 cluster=1 chunk=0 maxnreg=0 rows=128", true},
        {"scan: threads=128 vector=1 hold=16 cluster=1 chunk=0 maxnreg=0 rows=128", false},
        {"scan: threads=128 vector=1 hold=8 cluster=1 chunk=0 maxnreg=0", true}, // as written once
    };
    struct kg_choice choice;
    struct made made = make(column, "P=1000 D=512 T=f32");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool valid = kg_choice_read(made.problem, &facts, &kg_target_cuda, cases[i].words, &choice);
        if (valid != cases[i].valid)
            fprintf(stderr, "%s\n", cases[i].words);
        CHECK(valid == cases[i].valid);
    }
    unmake(&made);
}

// A kernel with chunks that runs rows shorter than one: nothing is added up beforehand.
static void one_chunk(void)
{
    struct kg_choice choice;
    struct kg_grids grids;
    struct made tuned = make(row, "P=3 D=100000 T=f32"), made = make(row, "P=3 D=1000 T=f32");
    const char *words = "scan: threads=128 vector=4 hold=2 cluster=1 chunk=16384 maxnreg=0";
    CHECK(kg_choice_read(tuned.problem, &facts, &kg_target_cuda, words, &choice));
    const struct kg_match *match = kg_match_again(choice.matches[0], made.problem);
    match->family->grids(match, &choice.configs[0], &grids);
    CHECK(grids.count == 4 && grids.scratch == 0);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 0);
    CHECK(grids.grids[2].blocks[0] == 3 && grids.unaligned[3].blocks[0] == 3);
    unmake(&tuned);
    unmake(&made);
}

TEST_MAIN(families, rows, few_rows, columns, column_limits, one_chunk)
