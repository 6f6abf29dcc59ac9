// The comparison of two runs: every element counts, and nothing between them or behind them.

#include "support/sample_problem.h"
#include "test.h"
#include "verify/case.h"

struct kept_case {
    struct made made;
    struct kg_case item;
    unsigned char *image;
};

static struct kept_case kept_case_make(struct made made)
{
    struct kept_case kept = {.made = made};
    CHECK_STATUS(made.status, KG_OK, &kept.made.error);
    kept.item.problem = made.problem;
    kg_image_plan(made.problem, false, KG_PLACED_AT_BEGIN, 0, &kept.item.image);
    kept.image = malloc(kept.item.image.bytes);
    memset(kept.image, kg_image_fills[0], kept.item.image.bytes);
    return kept;
}

static void kept_case_free(struct kept_case *kept)
{
    free(kept->image);
    unmake(&kept->made);
}

// Are two runs the same if the second leaves `value` in a byte of the output?
static bool is_same(struct kept_case *kept, size_t byte, unsigned char value)
{
    struct kg_kept first = {.sum = 0};
    struct kg_error error = {0};
    char reason[200] = "";
    unsigned char *at = kept->image + kept->item.image.offset[1] + byte, before = *at;
    CHECK_STATUS(kg_image_keep(&kept->item, kept->image, &first, &error), KG_OK, &error);
    *at = value;
    bool same = kg_image_same(&kept->item, &first, kept->image, reason, sizeof reason);
    CHECK(same == !reason[0]);
    *at = before;
    kg_kept_free(&first);
    return same;
}

// Outputs of some bytes, and those of which only a checksum is kept.
static void gaps(void)
{
    static const char *const sizes[] = {"P=5 D=7", "P=700 D=1000"};
    const char *text = "op f(x: f32[P, D]) -> (y: f64[P, D]) { y[p, d] = x[p, d] }";
    for (int large = 0; large < 2; large++) {
        int64_t p = large ? 700 : 5, d = large ? 1000 : 7, row = 2 * d + 3;
        const int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{row, 2}, {row, 2}};
        struct kept_case kept = kept_case_make(make_strided(text, NULL, sizes[large], strides));
        size_t last = 8 * (size_t)((p - 1) * row + 2 * (d - 1));
        CHECK(is_same(&kept, 0, 0xff));
        CHECK(is_same(&kept, 8, 1) && is_same(&kept, 8 * (size_t)(2 * d), 1)); // between elements
        CHECK(!is_same(&kept, 0, 1) && !is_same(&kept, 16 + 3, 1) && !is_same(&kept, last + 7, 1));
        kept_case_free(&kept);
    }
}

static void half_bytes(void)
{
    static const char *const sizes[] = {"N=7", "N=9000001"};
    for (int large = 0; large < 2; large++) {
        struct kept_case kept =
            kept_case_make(make("op f(x: u4[N]) -> (y: u4[N]) { y[n] = x[n] }", sizes[large]));
        size_t last = kept.made.problem->layouts[1].bytes - 1;
        CHECK(is_same(&kept, last, 0x0f) && !is_same(&kept, last, 0xf0));
        CHECK(!is_same(&kept, 0, 0x0f));
        kept_case_free(&kept);
    }
}

TEST_MAIN(gaps, half_bytes)
