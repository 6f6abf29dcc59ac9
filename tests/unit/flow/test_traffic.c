// Bytes past the cache: what plain loops read again, whole lines for single elements, and
// intermediates between kernels.

#include "flow/traffic.h"

#include "gen/grouping.h"
#include "gen/target.h"
#include "support/sample_problem.h"
#include "test.h"

#include <math.h>

// The cache of a core holds 64 KiB.
static const struct kg_device_facts facts = {.name = "Some CPU",
                                             .isa = "avx2",
                                             .units = 2,
                                             .clock = 2e9,
                                             .bandwidth = 1e10,
                                             .flops = {[KG_TYPE_F32] = 1e11},
                                             .cache = {0, 32 << 10, 64 << 10, 8 << 20},
                                             .vector_bytes = 32};

static struct made here;
static struct kg_choice choice;

// Plain loops, nest by nest.
static void begin(const char *text, const char *sizes)
{
    here = make(text, sizes);
    CHECK_STATUS(here.status, KG_OK, &here.error);
    kg_choice_plain(here.problem, &facts, &kg_target_host, &choice);
    CHECK(choice.count == here.problem->nest_count);
}

static void set(int group, const char *config)
{
    struct kg_space space;
    const struct kg_match *match = choice.matches[group];
    match->family->space(match, &space);
    CHECK(kg_config_read(&space, config, &choice.configs[group]));
}

static void check(double bytes)
{
    double moved = kg_flow_traffic(&choice, &facts);
    if (fabs(moved - bytes) > 1e-6 * bytes)
        fprintf(stderr, "%.0f bytes, not %.0f\n", moved, bytes);
    CHECK(fabs(moved - bytes) <= 1e-6 * bytes);
}

static void copies_move_what_they_must(void)
{
    begin("op copy(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] }\n", "P=512 D=1024");
    check(2.0 * 512 * 1024 * 4);
    unmake(&here);
}

// One sum after the other takes a line of 64 bytes for every element, unless the lines of a column
// stay in the cache until the next column.
static void columns_cost_lines(void)
{
    const char *text = "op sums(x: f32[P, D]) -> (y: f32[D])\n{ y[d] = sum(p) x[p, d] }\n";
    const double rows = 4096, columns = 256, out = columns * 4;
    begin(text, "P=4096 D=256");
    set(0, "block=256 lanes=1");
    check(rows * columns * 64 + out);
    set(0, "block=256 lanes=16"); // the neighbours are summed side by side
    check(rows * columns * 4 + out);
    unmake(&here);
    begin(text, "P=512 D=256"); // 512 lines are 32 KiB
    set(0, "block=256 lanes=1");
    check(512 * columns * 4 + out);
    unmake(&here);
}

// Rows of the second factor are read again for each row of the result.
static void products_read_again(void)
{
    begin("op product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
          "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n",
          "M=64 K=512 N=512");
    set(0, "block=256 lanes=16");
    // A block of 16 columns is a line of each row of b, 32 KiB in all, which the next row of the
    // result meets only after all other blocks.
    double b = 64.0 * 512 * 512 * 4, a = 64.0 * 512 * 4, c = 64.0 * 512 * 4;
    check(a + b + c);
    unmake(&here);
}

static void intermediates_count_twice(void)
{
    begin("op two(x: f32[N]) -> (y: f32[N])\n{ t[n] = exp(x[n])\n y[n] = t[n] * sum(i) t[i] }\n",
          "N=100000");
    double each = 100000.0 * 4;
    // t is written, read for the sum, and read for the product.
    double moved = kg_flow_traffic(&choice, &facts);
    CHECK(moved >= 5 * each && moved < 5.1 * each);
    struct kg_groupings groupings;
    CHECK(kg_groupings_list(here.problem, &facts, &kg_target_host, &groupings, NULL));
    for (int i = 0; i < groupings.count; i++)
        if (groupings.options[i].choice.count == 1) // t stays on chip
            CHECK(kg_flow_traffic(&groupings.options[i].choice, &facts) <= 3.1 * each);
    unmake(&here);
}

// Nobody knows where a gather goes: what it must read is all that is said of it.
static void gathers_are_not_followed(void)
{
    begin("op take(x: f32[V, D], i: i32[P]) -> (y: f32[P, D])\n{ y[p, d] = x[i[p], d] }\n",
          "V=1000 P=100 D=64");
    double moved = kg_flow_traffic(&choice, &facts), written = 100.0 * 64 * 4;
    CHECK(moved > written && moved < 2 * written);
    unmake(&here);
}

TEST_MAIN(copies_move_what_they_must, columns_cost_lines, products_read_again,
          intermediates_count_twice, gathers_are_not_followed)
