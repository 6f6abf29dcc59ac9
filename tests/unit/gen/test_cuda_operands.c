// The sources of a product's operands on a GPU: how many bf16 terms represent an operand's values,
// which dtype intermediates have in memory, and that every product of the shipped definitions that
// can use tensor cores does.

#include "cuda_choice.h"

#include "gen/shared/contract_operands.h"
#include "lang/lang.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>

// ---- Numbers as sums of terms ----

// The remainder of a value after this many bf16 terms.
static double rest_of(double value, int parts)
{
    for (int part = 0; part < parts; part++)
        value -= kg_dtype_round(KG_BF16, value);
    return value;
}

static void terms_have_all_bits(void)
{
    int wrong = 0;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        uint16_t element = (uint16_t)bits;
        double value = kg_dtype_load(KG_F16, &element, 0);
        wrong += isfinite(value) && rest_of(value, 2) != 0;
        value = kg_dtype_load(KG_BF16, &element, 0);
        wrong += isfinite(value) && rest_of(value, 1) != 0;
    }
    for (int value = -128; value < 256; value++)
        wrong += rest_of(value, 1) != 0 || kg_dtype_round(KG_F16, value) != value;
    CHECK(wrong == 0);
    uint32_t state = 1;
    for (int i = 0; i < 100000; i++) {
        state = state * 1664525u + 1013904223u;
        // Of either sign, from 2^-100 up to the largest that rounding keeps finite.
        uint32_t bits = (state & 0x80ffffff) | (27 + (state >> 8) % 226) << 23;
        float value;
        memcpy(&value, &bits, sizeof value);
        wrong += rest_of(value, 3) != 0;
    }
    CHECK(wrong == 0);
    CHECK(rest_of(0x1.004p0, 1) != 0 &&
          rest_of(0x1.01002p0, 2) != 0); // else the check above shows nothing
}

// ---- Terms of operands ----

#define PRODUCT(types, a, b)                                                                       \
    "op product(" types ", s: f32[K]) -> (c: f32[M, N])\n{ c[m, n] = sum(k) " a " * " b " }\n"

// `wanted` occurs in the source that contract/wgmma_f32 writes; NULL: it does not take the op.
static void check_parts(const char *definition, const char *wanted)
{
    struct made made = make_strided(definition, "product", "M=512 N=512 K=512", NULL);
    const struct kg_family *family = kg_target_family(&kg_target_cuda, "contract/wgmma_f32");
    struct kg_config config;
    struct kg_text source = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_group group = {made.problem, 0, 1};
    const struct kg_match *match = kg_match_find(family, &group, &facts, NULL);
    CHECK((match != NULL) == (wanted != NULL));
    if (match && wanted) {
        family->guess(match, &config);
        CHECK(family->emit(match, &config, "kernel", &source));
        bool found = strstr(kg_text_string(&source), wanted) != NULL;
        CHECK(found);
        if (!found)
            fprintf(stderr, "not %s: %s", wanted, definition);
    }
    kg_text_free(&source);
    unmake(&made);
}

static void terms_of_operands(void)
{
    describe_gpu("h100", "sm_90a");
    check_parts(PRODUCT("a: f32[M, K], b: f32[K, N]", "a[m, k]", "b[k, n]"), "counts<3, 3, false>");
    check_parts(PRODUCT("a: f32[M, K], b: f16[K, N]", "a[m, k]", "b[k, n]"), "counts<3, 2, false>");
    check_parts(PRODUCT("a: bf16[M, K], b: f32[K, N]", "a[m, k]", "b[k, n]"),
                "counts<1, 3, false>");
    check_parts(PRODUCT("a: f16[M, K], b: bf16[K, N]", "a[m, k]", "b[k, n]"),
                "counts<2, 1, false>");
    // f16 and bf16 represent all bytes, and a choice between numbers makes no others.
    check_parts(PRODUCT("a: f16[M, K], b: i8[K, N]", "a[m, k]", "b[k, n]"), "counts<1, 1, true>");
    check_parts(PRODUCT("a: u8[M, K], b: bf16[K, N]", "a[m, k]", "b[k, n]"), "counts<1, 1, false>");
    check_parts(PRODUCT("a: f16[M, K], b: f16[K, N]", "where(k <= m, a[m, k], 0)", "b[k, n]"),
                "counts<1, 1, true>");
    check_parts(PRODUCT("a: f32[M, K], b: f16[K, N]", "cast(f16, exp(a[m, k]))", "b[k, n]"),
                "counts<1, 1, true>");
    // Rounding to 0.1 and products need more bits.
    check_parts(PRODUCT("a: f16[M, K], b: f16[K, N]", "max(a[m, k], 0.1)", "b[k, n]"),
                "counts<3, 2, false>");
    check_parts(PRODUCT("a: f16[M, K], b: f16[K, N]", "a[m, k]", "(s[k] * b[k, n])"),
                "counts<2, 3, false>");
    // Ops that need no terms, and ops that are not computed in f32.
    check_parts(PRODUCT("a: f16[M, K], b: f16[K, N]", "a[m, k]", "b[k, n]"), NULL);
    check_parts(PRODUCT("a: f64[M, K], b: f32[K, N]", "a[m, k]", "b[k, n]"), NULL);
    check_parts(PRODUCT("a: i8[M, K], b: i8[K, N]", "a[m, k]", "b[k, n]"), NULL);
}

// ---- Intermediates in memory ----

static void check_memory(const char *body, enum kg_dtype wanted)
{
    struct kg_text text = {0};
    kg_text_format(&text,
                   "op two(x: f16[M, K], w: f16[N, K]) -> (y: f16[M, N], z: f32[M, K])\n{ %s }\n",
                   body);
    struct made made = make_strided(kg_text_string(&text), "two", "M=64 N=64 K=64", NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_tensor *found = NULL;
    for (int id = 0; made.problem && id < made.problem->tensor_count; id++)
        if (strcmp(made.problem->tensors[id]->name, "h") == 0)
            found = made.problem->tensors[id];
    CHECK(found && found->memory == wanted);
    if (found)
        CHECK((int64_t)made.problem->layouts[found->id].bytes ==
              64 * 64 * kg_dtypes[wanted].bits / 8);
    if (found && found->memory != wanted)
        fprintf(stderr, "%s: %s\n", body, kg_dtypes[found->memory].name);
    unmake(&made);
    kg_text_free(&text);
}

static void intermediates_in_memory(void)
{
    static const char y[] = "y[m, n] = sum(k) cast(f16, h[m, k]) * w[n, k]\n";
    struct kg_text text = {0};
    check_memory("h[m, k] = exp(x[m, k])\n y[m, n] = sum(k) cast(f16, h[m, k]) * w[n, k]\n"
                 "z[m, k] = cast(f16, h[m, k]) + 1",
                 KG_F16);
    // Read without a cast, or in two dtypes, or beyond its end.
    kg_text_format(&text, "h[m, k] = exp(x[m, k])\n %s z[m, k] = h[m, k]", y);
    check_memory(kg_text_string(&text), KG_F32);
    kg_text_cut(&text, 0);
    kg_text_format(&text, "h[m, k] = exp(x[m, k])\n %s z[m, k] = cast(bf16, h[m, k])", y);
    check_memory(kg_text_string(&text), KG_F32);
    kg_text_cut(&text, 0);
    kg_text_format(&text, "h[m, k] = exp(x[m, k])\n %s z[m, k] = cast(f16, pad(h[m, k + 1], 0))",
                   y);
    check_memory(kg_text_string(&text), KG_F32);
    kg_text_free(&text);
    // A value that is only read through a cast needs no other dtype.
    check_memory("h[m, k] = cast(bf16, exp(x[m, k]))\n y[m, n] = sum(k) h[m, k] * w[n, k]\n"
                 "z[m, k] = h[m, k]",
                 KG_BF16);
    check_memory("h[m, k] = cast(i8, round(x[m, k]))\n y[m, n] = sum(k) h[m, k] * w[n, k]\n"
                 "z[m, k] = h[m, k]",
                 KG_I8);
}

// ---- Shipped definitions ----

// Why a product may do without tensor cores; NULL: it may not.
static const char *excuse_of(const struct kg_contract *contract)
{
    const struct kg_nest *nest = contract->nest;
    if (contract->type == KG_TYPE_F64)
        return "f64 is summed in f64";
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_dtype_info *info = &kg_dtypes[nest->accesses[i].tensor->type.dtype];
        if (contract->type == KG_TYPE_I64 && info->bits > 8)
            return "tensor cores take integers of 8 bits";
    }
    if (nest->class == KG_CLASS_WINDOW)
        return "windows of an image are no arrays";
    for (int part = KG_CONTRACT_M; part <= KG_CONTRACT_K; part++)
        if (contract->axis_count[part] == 0)
            return "a product with a vector is bound by memory";
    for (int i = 0; i < nest->access_count; i++)
        for (int dim = 0; dim < nest->accesses[i].tensor->rank; dim++)
            if (nest->accesses[i].map[dim].is_gather)
                return "rows are gathered";
    return NULL;
}

static bool is_on_tensor_cores(const struct kg_family *family)
{
    static const char *const names[] = {
        "contract/wgmma",        "contract/wgmma_f32", "contract/mma",   "contract/mma_i8",
        "contract/scaled_wgmma", "contract/scaled",    "contract/packed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(family->name, names[i]) == 0)
            return true;
    return false;
}

// Counts the products of a problem, and adds those on tensor cores to `found`.
static void check_products(const struct made *made, int *found)
{
    struct kg_choice choice;
    kg_choice_guess(made->problem, &facts, &kg_target_cuda, &choice);
    for (int at = 0; at < made->problem->nest_count; at++) {
        const struct kg_group group = {made->problem, at, 1};
        struct kg_contract contract;
        if (!kg_contract_read(&group, &contract, NULL) || excuse_of(&contract))
            continue;
        int owner = 0;
        while (at >= choice.matches[owner]->group.first + choice.matches[owner]->group.count)
            owner++;
        bool is_fine = is_on_tensor_cores(choice.matches[owner]->family);
        CHECK(is_fine);
        *found += is_fine;
        if (!is_fine)
            fprintf(stderr, "%s: %s by %s\n", made->op->name, contract.nest->output->name,
                    choice.matches[owner]->family->name);
    }
}

// Of one op, for every dtype of its first variable.
static void check_op(const char *text, const struct kg_op *op, int *found)
{
    int dtypes = op->typevar_count > 0 ? op->typevars[0]->count : 1;
    for (int i = 0; i < dtypes; i++) {
        struct kg_text choices = {0};
        for (int size = 0; size < op->size_count; size++)
            if (!op->sizes[size]->is_param)
                kg_text_format(&choices, "%s%s=256", choices.length ? " " : "",
                               op->sizes[size]->name);
        if (op->typevar_count > 0)
            kg_text_format(&choices, " %s=%s", op->typevars[0]->name,
                           kg_dtypes[op->typevars[0]->allowed[i]].name);
        struct made made = make_strided(text, op->name, kg_text_string(&choices), NULL);
        if (made.status == KG_OK)
            check_products(&made, found);
        unmake(&made);
        kg_text_free(&choices);
    }
}

static int check_file(const char *path)
{
    struct kg_text text = {0};
    struct kg_arena arena = {0};
    struct kg_file *file = NULL;
    struct kg_error error;
    char buffer[4096];
    int found = 0;
    FILE *stream = fopen(path, "r");
    CHECK(stream != NULL);
    for (size_t count; stream && (count = fread(buffer, 1, sizeof buffer - 1, stream)) > 0;) {
        buffer[count] = 0;
        kg_text_add(&text, buffer);
    }
    if (stream)
        fclose(stream);
    CHECK_STATUS(kg_lang_parse(&arena, path, kg_text_string(&text), text.length, &file, &error),
                 KG_OK, &error);
    for (int i = 0; file && i < file->op_count; i++)
        check_op(kg_text_string(&text), file->ops[i], &found);
    kg_arena_free(&arena);
    kg_text_free(&text);
    return found;
}

// By rule, with all sizes 256.
static void shipped_products_are_on_tensor_cores(void)
{
    enum { LEAST = 60 }; // products of matrices in ops/, with their dtypes
    glob_t files;
    int found = 0;
    describe_gpu("h100", "sm_90a");
    facts.clock = 1.755e9;
    facts.vector_bytes = 16;
    facts.matrix_flops[KG_F16] = facts.matrix_flops[KG_BF16] = 989e12;
    facts.matrix_flops[KG_I8] = facts.matrix_flops[KG_U8] = 1979e12;
    facts.flops[KG_TYPE_F32] = 60e12;
    facts.flops[KG_TYPE_I64] = 15e12;
    CHECK(glob(KG_SOURCE_DIR "/ops/*.kg", 0, NULL, &files) == 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        found += check_file(files.gl_pathv[i]);
    globfree(&files);
    CHECK(found >= LEAST);
    printf("%d products on tensor cores\n", found);
}

TEST_MAIN(terms_have_all_bits, terms_of_operands, intermediates_in_memory,
          shipped_products_are_on_tensor_cores)
