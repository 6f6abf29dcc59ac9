// How emitted Triton kernels load what they read: values of rows once, and what caches are told.

#include "gen/standalone.h"
#include "support/sample_problem.h"
#include "test.h"

#include <string.h>

static const struct kg_device_facts device = {
    .units = 2, .cache = {0, 32768, 524288, 33554432}, .vector_bytes = 32};

// Whether the module of the definition has this in it.
static bool has(const char *definition, const char *sizes, const char *wanted)
{
    struct kg_text text = {0};
    struct made made = make(definition, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(kg_gen_standalone_triton(made.problem, NULL, &device, &text));
    bool found = strstr(kg_text_string(&text), wanted) != NULL;
    unmake(&made);
    kg_text_free(&text);
    return found;
}

// What a tile's rows have one value of is loaded with one dimension; what its columns have, is not.
static void values_of_rows(void)
{
    static const char rows[] = "op rows(x: f32[P, D], r: f32[P]) -> (y: f32[P, D])\n"
                               "{ y[p, d] = x[p, d] + r[p] }\n",
                      columns[] = "op columns(x: f32[P, D], c: f32[D]) -> (y: f32[P, D])\n"
                                  "{ y[p, d] = x[p, d] + c[d] }\n",
                      gathered[] = "op gathered(x: f32[P, D], t: f32[V], i: i64[P])\n"
                                   "    -> (y: f32[P, D])\n"
                                   "{ y[p, d] = x[p, d] + t[i[p]] }\n",
                      line[] = "op line(x: f32[P]) -> (y: f32[P])\n{ y[p] = x[p] + 1 }\n";
    CHECK(has(rows, "P=4 D=8", "tl.load(r_ptr + tl.reshape(p * r_s0, [BLOCK_ROWS])"));
    CHECK(has(rows, "P=4 D=8", "mask=tl.reshape(p_in, [BLOCK_ROWS])"));
    CHECK(has(rows, "P=4 D=8", ".expand_dims(1)"));
    CHECK(has(gathered, "P=4 D=8 V=5", "tl.load(i_ptr + tl.reshape(p * i_s0, [BLOCK_ROWS])"));
    CHECK(!has(columns, "P=4 D=8", "reshape"));
    CHECK(!has(line, "P=4", "reshape"));
}

// What is read once is evicted first, unless as much is written: then the call decides by how much.
// Other programs, later passes and later launches find what they read again.
static void hints(void)
{
    static const char copy[] = "op copy(x: f32[P, D], c: f32[D]) -> (y: f32[P, D])\n"
                               "{ y[p, d] = x[p, d] + c[d] }\n",
                      sums[] = "op sums(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }\n",
                      twice[] = "op twice(x: f32[P, D]) -> (a: f32[D], b: f32[P])\n"
                                "{ a[d] = sum(p) x[p, d]\n  b[p] = sum(d) x[p, d] }\n";
    CHECK(has(copy, "P=4 D=8", "eviction_policy=ONCE"));
    CHECK(has(copy, "P=4 D=8", "ONCE=_once(x, c, y)"));
    CHECK(has(copy, "P=4 D=8", "eviction_policy=\"evict_last\""));
    CHECK(!has(copy, "P=4 D=8", "eviction_policy=\"evict_first\""));
    CHECK(has(sums, "P=4 D=8", "eviction_policy=\"evict_first\""));
    CHECK(!has(sums, "P=4 D=8", "ONCE"));
    CHECK(has(twice, "P=4 D=8", "eviction_policy=\"evict_first\"")); // of the second launch
    CHECK(has(twice, "P=4 D=8", "tl.load(x_ptr + p * x_s0 + d * x_s1, mask=d_in & p_in, other=0)"));
}

TEST_MAIN(values_of_rows, hints)
