// Which reductions the reduce family for CUDA takes, which way, by how many blocks, and what it
// launches. That its sources compile is for test_cuda.c.

#include "cuda_choice.h"

static const char definitions[] =
    "op rows(x: f32[P, D]) -> (y: f32[P])\n{\n    y[p] = sum(d) x[p, d]\n}\n"
    "op columns(x: f32[P, D]) -> (y: f32[D])\n{\n    y[d] = max(p) x[p, d]\n}\n"
    "op middle(x: f16[A, B, C]) -> (y: i64[A, C])\n{\n    y[a, c] = argmin(b) x[a, b, c]\n}\n"
    "op place(x: f16[A, B, C]) -> (y: i32[A])\n{\n    y[a] = argmax(b, c) x[a, b, c]\n}\n"
    "op outer(x: f16[A, B, C]) -> (y: i32[C])\n{\n    y[c] = argmax(a, b) x[a, b, c]\n}\n"
    "op inner(x: f16[A, B, C]) -> (y: i32[A])\n"
    "{\n    y[a] = argmax(b in 1..B, c in 1..C) x[a, b, c]\n}\n"
    "op all(x: f32[P, D]) -> (y: f32[])\n{\n    y[] = sqrt(sum(p, d) x[p, d] * x[p, d])\n}\n"
    "op part(x: f32[P, D]) -> (y: f32[D])\n{\n    y[d] = sum(p in 1..P) x[p, d]\n}\n"
    "op scan(x: f32[P, D]) -> (y: f32[P, D])\n{\n    y[p, d] = sum(j <= p) x[j, d]\n}\n"
    "op centred(x: f32[P, D]) -> (y: f32[P, D])\n"
    "{\n    m[p] = mean(d) x[p, d]\n    y[p, d] = x[p, d] - m[p]\n}\n"
    "op constant(x: f32[P]) -> (y: f32[P])\n"
    "{\n    y[p] = sum(n in 0..281474976710656) x[p]\n}\n"
    "op many(x: f32[P]) -> (y: i64[P])\n"
    "{\n    y[p] = argmax(n in 0..281474976710656) x[p]\n}\n"
    "op squares(x: f32[P, D]) -> (y: f32[D])\n"
    "{\n    e[p, d] = x[p, d] * x[p, d]\n    y[d] = sum(p) e[p, d]\n}\n";

static void describe_device(void)
{
    describe_gpu("h100", "sm_90a");
}

static void check_choice(const char *op, const char *sizes, const char *wanted)
{
    check_choice_of(definitions, op, sizes, wanted);
}

static void test_takers(void)
{
    check_choice("rows", "P=4096 D=4096", "rowwise:");
    check_choice("rows", "P=1 D=1", "rowwise:");
    check_choice("rows", "P=2 D=16777216", "reduce: column=0");
    check_choice("columns", "P=4096 D=4096", "reduce: column=1");
    check_choice("columns", "P=16777216 D=2", "reduce: column=1");
    check_choice("columns", "P=0 D=5", "reduce: column=1");
    check_choice("columns", "P=5 D=0", "rowwise:");
    check_choice("squares", "P=4096 D=4096", "reduce*2: column=1");
    check_choice("middle", "A=64 B=1024 C=512", "reduce: column=1");
    check_choice("place", "A=64 B=64 C=64", "rowwise:");
    check_choice("place", "A=2 B=4096 C=4096", "reduce: column=0");
    check_choice("outer", "A=64 B=64 C=512", "reduce: column=1");
    check_choice("inner", "A=64 B=64 C=64", "direct:");
    check_choice("all", "P=8192 D=8192", "reduce*2: column=0 threads=256 vector=4");
    check_choice("all", "P=8191 D=8191", "reduce*2: column=0 threads=256 vector=1");
    check_choice("all", "P=0 D=1", "reduce*2: column=0");
    check_choice("all", "P=64 D=512",
                 "reduce*2: column=0 threads=512 vector=4 unroll=2 split=8 cluster=1");
    check_choice("all", "P=2 D=128", // one block, and of the least a warp
                 "reduce*2: column=0 threads=32 vector=4 unroll=2 split=1 cluster=0");
    check_choice("all", "P=1 D=7", "reduce*2: column=0 threads=32 vector=1 unroll=1 split=1");
    check_choice("all", "P=32 D=128",
                 "reduce*2: column=0 threads=512 vector=4 unroll=2 split=1 cluster=0");
    check_choice("all", "P=128 D=128",
                 "reduce*2: column=0 threads=1024 vector=4 unroll=4 split=1 cluster=0");
    check_choice("all", "P=128 D=132",
                 "reduce*2: column=0 threads=512 vector=4 unroll=2 split=8 cluster=1");
    check_choice("all", "P=257 D=128", // more than a cluster reads in the time of a launch
                 "reduce*2: column=0 threads=256 vector=4 unroll=1 split=");
    check_choice("columns", "P=1024 D=72", "reduce: column=1 threads=256 vector=4");
    check_choice("all", "P=1024 D=1024",
                 "reduce*2: column=0 threads=256 vector=4 unroll=4 "
                 "split=132 cluster=0");
    check_choice("middle", "A=64 B=1024 C=4096",
                 "reduce: column=1 threads=128 vector=4 unroll=8 "
                 "split=1 cluster=0");
    // Few columns of each outer index: joined columns, if there are outputs enough.
    check_choice("middle", "A=8192 B=64 C=32", "reduce: column=2 threads=128 vector=4");
    check_choice("middle", "A=8192 B=64 C=17", "reduce: column=2 threads=128 vector=1");
    check_choice("middle", "A=512 B=512 C=16", "reduce: column=1");
    check_choice("middle", "A=512 B=64 C=1024", "reduce: column=1");
    // Blocks that share columns: single elements where these are read in a few launches' time.
    check_choice("columns", "P=32768 D=64",
                 "reduce: column=1 threads=256 vector=1 unroll=16 split=132 cluster=0");
    check_choice("columns", "P=1048576 D=64", "reduce: column=1 threads=256 vector=4");
    check_choice("part", "P=64 D=64", "direct:");
    check_choice("constant", "P=4", "reduce:"); // more terms than any tensor has elements
    check_choice("many", "P=64", "rowwise:");   // a thread of columns counts places in 32 bits
    check_choice("centred", "P=64 D=4096", "rowwise*2:");
    check_choice("centred", "P=1 D=16777216", "reduce: column=0");
}

static struct kg_grids launches(const char *op, const char *sizes, const char *words)
{
    return launches_of(definitions, op, sizes, words);
}

static void test_launches(void)
{
    struct kg_grids grids =
        launches("all", "P=512 D=512",
                 "reduce*2: column=0 threads=256 vector=4 unroll=4 split=32 cluster=0 maxnreg=0");
    CHECK(grids.count == 3 && grids.alignment == 16 && grids.scratch == 32 * 16);
    CHECK(grids.grids[0].blocks[0] == 1 && grids.grids[0].blocks[1] == 32);
    CHECK(grids.grids[1].blocks[0] == 0 && grids.unaligned[0].blocks[0] == 0);
    CHECK(grids.unaligned[1].blocks[1] == 32 && grids.unaligned[2].blocks[0] == 1);
    CHECK(grids.grids[2].threads[0] == 32 && grids.grids[2].threads[1] == 1);
    CHECK(grids.grids[2].early && grids.unaligned[2].early && grids.grids[0].early);
    grids = launches("all", "P=4096 D=4096", // large: only what comes second starts early
                     "reduce*2: column=0 threads=256 vector=4 unroll=4 split=264 cluster=0 "
                     "maxnreg=0");
    CHECK(grids.grids[2].early && grids.unaligned[2].early && !grids.grids[0].early);
    grids = launches("rows", "P=2 D=16777216", // a block for each output
                     "reduce: column=0 threads=256 vector=4 unroll=4 split=264 cluster=0 "
                     "maxnreg=0");
    CHECK(grids.grids[2].blocks[0] == 2 && grids.grids[2].threads[0] == 256);
    grids = launches("columns", "P=4096 D=72",
                     "reduce: column=1 threads=256 vector=4 unroll=4 split=1 cluster=0 maxnreg=0");
    CHECK(grids.count == 2 && grids.scratch == 0); // 18 vectors
    CHECK(grids.grids[0].threads[0] == 32 && grids.grids[0].threads[1] == 8);
    CHECK(grids.grids[0].blocks[0] == 1 && grids.grids[0].blocks[1] == 1);
    grids = launches("columns", "P=4096 D=71", // no whole vectors
                     "reduce: column=1 threads=256 vector=4 unroll=4 split=8 cluster=0 maxnreg=0");
    CHECK(grids.alignment == 0 && grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[1] == 8);
    CHECK(grids.grids[2].threads[0] == 32 && grids.grids[2].blocks[0] == 3);
    // Joined columns: 48 vectors by warps.
    const char *joined =
        "reduce: column=2 threads=128 vector=4 unroll=4 split=1 cluster=0 maxnreg=0";
    grids = launches("middle", "A=16 B=9 C=12", joined);
    CHECK(grids.alignment == 8 && grids.grids[0].blocks[0] == 2 && grids.grids[0].blocks[1] == 1);
    CHECK(grids.grids[0].threads[0] == 32 && grids.grids[0].threads[1] == 4);
    grids = launches("middle", "A=0 B=9 C=12", joined);
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] == 0);
    CHECK(launches("middle", "A=16 B=9 C=10", joined).count == 0); // a vector would cross
    CHECK(launches("columns", "P=9 D=12", joined).count == 0);     // no outer index
    // A cluster needs no second function.
    grids = launches("all", "P=256 D=512",
                     "reduce*2: column=0 threads=512 vector=4 unroll=4 split=8 cluster=1 "
                     "maxnreg=0");
    CHECK(grids.count == 2 && grids.scratch == 0 && grids.grids[0].cluster == 8);
    CHECK(grids.grids[0].blocks[0] == 8 && grids.grids[0].blocks[1] == 1);
    grids = launches("columns", "P=4096 D=72",
                     "reduce: column=1 threads=256 vector=4 unroll=4 split=8 cluster=1 maxnreg=0");
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] == 8 && grids.unaligned[1].cluster == 8);
    grids = launches("all", "P=4096 D=4096",
                     "reduce*2: column=0 threads=256 vector=4 unroll=4 split=32 cluster=1 "
                     "maxnreg=0");
    CHECK(grids.count == 0);
    // Nothing to reduce, and more blocks than there is work for.
    grids = launches("columns", "P=0 D=5",
                     "reduce: column=1 threads=256 vector=1 unroll=1 split=1 cluster=0 maxnreg=0");
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] == 1 && grids.grids[1].blocks[0] == 0);
    grids =
        launches("columns", "P=40 D=64",
                 "reduce: column=1 threads=256 vector=4 unroll=4 split=132 cluster=0 maxnreg=0");
    CHECK(grids.count == 0);
}

// What the source of this choice says of the vectors that are loaded at once, one by one and whole.
static void check_batch(const char *op, const char *sizes, const char *words, const char *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    struct kg_choice choice;
    struct kg_text source = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool known = kg_choice_read(made.problem, &facts, &kg_target_cuda, words, &choice);
    CHECK(known && kg_choice_source(&choice, 0, "kernel", &source));
    const char *found = strstr(kg_text_string(&source), "BATCH = ");
    CHECK(wanted ? found && strncmp(found, wanted, strlen(wanted)) == 0 : !found);
    kg_text_free(&source);
    unmake(&made);
}

// Elements that are taken one by one come in batches: small ones, where vectors are whole.
static void test_batches(void)
{
    static const char columns[] =
        "reduce: column=1 threads=256 vector=8 unroll=16 split=4 cluster=0 maxnreg=0";
    static const char few[] =
        "reduce*2: column=0 threads=256 vector=4 unroll=4 split=4 cluster=0 maxnreg=0";
    static const char row[] =
        "reduce*2: column=0 threads=256 vector=4 unroll=8 split=4 cluster=0 maxnreg=0";
    check_batch("columns", "P=4096 D=4096", columns, "BATCH = WHOLE ? UNROLL : 2 };");
    check_batch("columns", "P=4096 D=4095", columns, "BATCH = WHOLE ? UNROLL : 8 };");
    check_batch("all", "P=512 D=512", row, "BATCH = WHOLE ? UNROLL : 4 };");
    check_batch("all", "P=512 D=512", few, NULL);
    check_batch("all", "P=511 D=511", row, NULL);
}

// Rules let a thread load 64 elements at once at most, whatever is reduced.
static void test_elements_at_once(void)
{
    static const char *const sizes[] = {"P=4096 D=4096", "P=65536 D=4096", "P=1000003 D=72",
                                        "P=300 D=1000000"};
    for (int i = 0; i < 4; i++) {
        struct made made = make_strided(definitions, "columns", sizes[i], NULL);
        struct kg_choice choice;
        CHECK_STATUS(made.status, KG_OK, &made.error);
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        enum { VECTOR = 2, UNROLL = 3 }; // parameters of the family
        struct kg_space space;
        choice.matches[0]->family->space(choice.matches[0], &space);
        CHECK_TEXT(space.parameters[VECTOR].name, "vector");
        CHECK_TEXT(space.parameters[UNROLL].name, "unroll");
        CHECK(choice.configs[0].value[VECTOR] * choice.configs[0].value[UNROLL] <= 64);
        unmake(&made);
    }
}

static void test_reasons(void)
{
    const struct kg_family *family = kg_target_family(&kg_target_cuda, "reduce");
    CHECK(family != NULL);
    static const char *const cases[][2] = {
        {"part", "an index does not run over the whole of 0 to its end"},
        {"scan", "the range of the reduction depends on an output index"},
        {"rows", "rows on their own: rowwise does them"},
    };
    for (int i = 0; i < 3; i++) {
        struct made made = make_strided(definitions, cases[i][0], "P=4096 D=64", NULL);
        struct kg_text reason = {0};
        CHECK_STATUS(made.status, KG_OK, &made.error);
        struct kg_group group = {made.problem, 0, 1};
        const struct kg_match *match = kg_match_find(family, &group, &facts, &reason);
        CHECK(!match || !kg_match_is_advised(match, &reason));
        CHECK_TEXT(kg_text_string(&reason), cases[i][1]);
        kg_text_free(&reason);
        unmake(&made);
    }
}

TEST_MAIN(describe_device, test_takers, test_launches, test_batches, test_elements_at_once,
          test_reasons)
