// Which operands are quantised weights, and what is recognised of their formula.

#include "gen/shared/scaled_operand.h"
#include "lang/lang.h"
#include "support/sample_problem.h"
#include "test.h"

// A product of x[m, k] and the formula.
static struct made product_with(const char *formula)
{
    char text[768];
    snprintf(text, sizeof text,
             "op product(x: f16[M, K], w: u4[K, N], i: i4[K, N], t: u4[N, K], b: u8[K, N],\n"
             "           s: f16[ceil(K/G), N], c: f32[N], z: u4[ceil(K/G), N], v: i8[N],\n"
             "           r: f16[K], l: i64[N], e: f8e4m3[K, N],\n"
             "           o: f16[ceil(K/G), N]) -> (y: f16[M, N])\n"
             "param G = 64\n{ y[m, n] = sum(k) x[m, k] * %s }\n",
             formula);
    return make(text, "M=8 N=64 K=256");
}

static void what_is_recognised(void)
{
    static const struct {
        const char *formula;
        int64_t group, least, greatest;
        int zeros, scales; // 0 scales: not recognised; -1: recognised without
        int offset;        // 1: added, -1: subtracted
    } cases[] = {
        {"((w[k, n] - 8) * s[k/G, n])", 64, 8, 8, 1, 1, 0},
        {"(w[k, n] * s[k/G, n])", 64, 0, 0, 0, 1, 0},
        {"(i[k, n] * c[n])", 0, 0, 0, 0, 1, 0},
        {"((w[k, n] - z[k/G, n]) * s[k/G, n])", 64, 0, 15, 1, 1, 0},
        {"((w[k, n] - z[k/G, n] - 1) * s[k/G, n])", 64, 1, 16, 2, 1, 0},
        {"((w[k, n] - (z[k/G, n] + 1)) * s[k/G, n])", 64, 1, 16, 1, 1, 0},
        {"((w[k, n] - z[k/G, n] - 1 - 1) * s[k/G, n])", 0, 0, 0, 0, 0, 0},
        {"((i[k, n] + v[n]) * s[k/G, n])", 64, -127, 128, 1, 1, 0},
        {"((i[k, n] + 8 - v[n]) * s[k/G, n])", 64, -136, 119, 2, 1, 0},
        {"((w[k, n] - z[k/G, n]) * s[k/G, n] * c[n])", 64, 0, 15, 1, 2, 0},
        {"((w[k, n] - 8) * s[k/128*2, n])", 128, 8, 8, 1, 1, 0},
        {"((w[k, n] - z[k/96, n]) * s[k/G, n])", 32, 0, 15, 1, 1, 0},
        {"((t[n, k] - 8) * c[n])", 0, 8, 8, 1, 1, 0},
        {"((w[k, n] - 8) * r[k])", 1, 8, 8, 1, 1, 0},
        {"((b[k, n] - 8) * c[n])", 0, 8, 8, 1, 1, 0},
        {"b[k, n]", 0, 0, 0, 0, -1, 0},
        {"(e[k, n] * s[k/G, n])", 64, 0, 0, 0, 1, 0},
        {"((e[k, n] - 8) * c[n])", 0, 0, 0, 0, 1, -1},
        {"((w[k, n] - l[n]) * c[n])", 0, 0, 0, 0, 0, 0},
        {"(w[k, n] * s[k/G, n] + o[k/G, n])", 64, 0, 0, 0, 1, 1},
        {"(o[k/G, n] + c[n] * (w[k, n] - 8))", 64, 8, 8, 1, 1, 1},
        {"(w[k, n] * s[k/G, n] * c[n] - o[k/128, n] * c[n])", 64, 0, 0, 0, 2, -1},
        {"((w[k, n] - o[k/G, n]) * c[n])", 64, 0, 0, 0, 1, -1},
        {"(w[k, n] / c[n] - c[n])", 0, 0, 0, 0, 1, -1},
        {"(o[k/G, n] - w[k, n] * s[k/G, n])", 0, 0, 0, 0, 0, 0},
        {"(w[k, n] * c[n] + r[k])", 1, 0, 0, 0, 1, 1},
        {"((8 - w[k, n]) * c[n])", 0, 0, 0, 0, 0, 0},
        {"(s[k/G, n] * c[n])", 0, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = product_with(cases[i].formula);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, 1};
            struct kg_contract contract;
            struct kg_scaled_operand scaled = {0};
            struct kg_text reason = {0};
            bool wanted = cases[i].scales != 0;
            CHECK(kg_contract_read(&group, &contract, NULL));
            bool found = kg_scaled_operand_read(&contract, 1, &scaled, &reason);
            bool fine = found == wanted && (found || kg_text_string(&reason)[0]);
            if (found)
                fine = fine && scaled.group == cases[i].group &&
                       scaled.least_zero == cases[i].least &&
                       scaled.greatest_zero == cases[i].greatest &&
                       scaled.scale_count == (cases[i].scales > 0 ? cases[i].scales : 0) &&
                       scaled.zero_count == cases[i].zeros &&
                       (scaled.offset ? scaled.offset_subtracts ? -1 : 1 : 0) == cases[i].offset;
            CHECK(fine);
            if (!fine)
                fprintf(stderr, "%s: %s, group %lld, %d zeros from %lld to %lld, %d scales\n",
                        cases[i].formula, found ? "found" : kg_text_string(&reason),
                        (long long)scaled.group, scaled.zero_count, (long long)scaled.least_zero,
                        (long long)scaled.greatest_zero, scaled.scale_count);
            CHECK(!kg_scaled_operand_read(&contract, 0, &scaled, NULL));
            kg_text_free(&reason);
        }
        unmake(&made);
    }
}

// Matrices of weights that items of the batch choose by an index from memory: whether the operand
// is recognised, and the axes of the batch, of rows and of columns.
static void what_the_batch_chooses(void)
{
    static const struct {
        const char *left, *right;
        int batch, rows, columns;
        bool found;
    } cases[] = {
        {"y[m, n]", "x[m, k] * (w[e[m], k, n] * c[e[m], n])", 1, 0, 1, true},
        {"y[m, n]", "x[m, k] * (w[e[m], k, n] * c[m, n])", 1, 0, 1, true},
        {"y[m, n]", "x[m, k] * w[e[m], k, n]", 1, 0, 1, true},
        {"z[b, r, n]", "v[b, r, k] * ((w[e[b], k, n] - 8) * c[e[b], n])", 1, 1, 1, true},
        // Of each token several: the second axis belongs to the batch, too.
        {"z[m, j, n]", "x[m, k] * (w[a[m, j], k, n] * c[a[m, j], n])", 2, 0, 1, true},
        {"z[j, r, n]", "x[r, k] * (w[e[j], k, n] * c[e[j], n])", 1, 1, 1, true},
        // Rows or columns that are gathered one by one are no matrices.
        {"y[m, n]", "cast(f32, q[e[m], k]) * w[0, k, n]", 0, 1, 1, true},
        {"y[m, n]", "x[m, k] * w[0, k, e[n]]", 0, 1, 1, false},
        {"y[m, n]", "x[m, k] * w[0, e[k], n]", 0, 1, 1, false},
        {"y[m, n]", "x[m, k] * q[e[n], k]", 0, 1, 1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "op choice(x: f16[M, K], v: f16[M, M, K], w: u4[E, K, N], q: u4[E, K],\n"
                 "          c: f32[E, N], e: i32[L], a: i32[M, M]) -> (%s: f32[%s])\n"
                 "{ %s = sum(k) %s }\n",
                 cases[i].left[0] == 'y' ? "y" : "z", cases[i].left[0] == 'y' ? "M, N" : "M, M, N",
                 cases[i].left, cases[i].right);
        struct made made = make(text, "M=8 N=64 K=256 E=8 L=512");
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, 1};
            struct kg_contract contract;
            struct kg_scaled_operand scaled = {0};
            CHECK(kg_contract_read(&group, &contract, NULL));
            bool found = kg_scaled_operand_read(&contract, 1, &scaled, NULL);
            const int *counts = contract.axis_count;
            bool fine = found == cases[i].found && counts[KG_CONTRACT_BATCH] == cases[i].batch &&
                        counts[KG_CONTRACT_M] == cases[i].rows &&
                        counts[KG_CONTRACT_N] == cases[i].columns;
            CHECK(fine);
            if (!fine)
                fprintf(stderr, "%s: %s, %d axes of the batch, %d of rows, %d of columns\n",
                        cases[i].right, found ? "found" : "not found", counts[KG_CONTRACT_BATCH],
                        counts[KG_CONTRACT_M], counts[KG_CONTRACT_N]);
        }
        unmake(&made);
    }
}

// Elements that are rounded once they are scaled: to which dtype, and with how many scales.
static void what_is_rounded(void)
{
    static const struct {
        const char *formula;
        enum kg_dtype rounds; // KG_DTYPE_COUNT: not recognised
        int64_t group;
        int scales, offset;
    } cases[] = {
        {"cast(f16, (w[k, n] - 8) * s[k/G, n])", KG_F16, 64, 1, 0},
        {"cast(bf16, w[k, n] * s[k/G, n] * c[n] + o[k/128, n])", KG_BF16, 64, 2, 1},
        {"cast(f16, i[k, n] / c[n] - o[k/G, n])", KG_F16, 64, 1, -1},
        {"cast(f16, cast(f16, w[k, n] - 8) * c[n])", KG_F16, 0, 1, 0},
        {"(cast(f16, w[k, n] - 8) * c[n])", KG_F32, 0, 1, 0}, // no number changes by that cast
        {"cast(f32, w[k, n] * c[n])", KG_F32, 0, 1, 0},
        {"(cast(f16, w[k, n] * c[n]) * c[n])", KG_DTYPE_COUNT, 0, 0, 0},
        {"cast(f16, cast(bf16, w[k, n] * c[n]))", KG_DTYPE_COUNT, 0, 0, 0},
        {"cast(f16, s[k/G, n] * c[n])", KG_DTYPE_COUNT, 0, 0, 0},
        {"cast(f16, exp(w[k, n] * c[n]))", KG_DTYPE_COUNT, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = product_with(cases[i].formula);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            const struct kg_group group = {made.problem, 0, 1};
            struct kg_contract contract;
            struct kg_scaled_operand scaled = {0};
            CHECK(kg_contract_read(&group, &contract, NULL));
            bool found = kg_scaled_operand_read(&contract, 1, &scaled, NULL);
            int offset = !scaled.offset ? 0 : scaled.offset_subtracts ? -1 : 1;
            bool fine =
                !found ? cases[i].rounds == KG_DTYPE_COUNT
                       : scaled.rounds == cases[i].rounds && scaled.group == cases[i].group &&
                             scaled.scale_count == cases[i].scales && offset == cases[i].offset;
            CHECK(fine);
            if (!fine)
                fprintf(stderr, "%s: %s, %s, group %lld, %d scales\n", cases[i].formula,
                        found ? "found" : "not found", kg_dtypes[scaled.rounds].name,
                        (long long)scaled.group, scaled.scale_count);
        }
        unmake(&made);
    }
}

TEST_MAIN(what_is_recognised, what_is_rounded, what_the_batch_chooses)
