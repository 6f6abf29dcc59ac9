// What is known of a module's kernels on Ascend devices (910B), by the rules of triton-ascend's
// documentation: programs, the unified buffer, tails of rows, dtypes that are not there, and what
// is computed one element at a time. Buffers of the cube unit are those of Huawei's Ascend C guide.

#include "gen/triton/triton_module.h"

#include "gen/triton/triton_kernel.h"
#include "lang/lang.h"

#include <string.h>

enum { UNIFIED = 96 * 1024 }; // bytes of the unified buffer; as many take the next tile's transfers
enum { VECTOR_TAIL = 32, CUBE_TAIL = 512 }; // bytes that rows are padded to

void kg_triton_add_most(struct kg_triton_unit *unit, int values, bool product)
{
    const char *device = unit->host->device;
    if (product)
        kg_text_format(unit->launches, "_most(%s, %d, 32768)", device, values);
    else
        kg_text_format(unit->launches, "_most(%s, %d), _programs(%s)", device, values, device);
    if (!unit->proofs)
        return;
    int most = 1; // as in _most
    while (2 * most * 4 * values <= UNIFIED)
        most *= 2;
    kg_text_format(unit->proofs,
                   "%s: %d values of 4 bytes for an element, at most %d elements: %d KiB\n",
                   unit->entry, values, most, (most * 4 * values + 1023) / 1024);
}

static bool is_unknown(enum kg_dtype dtype)
{
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    return (info->is_float && info->bits == 64) ||
           (!info->is_float && !info->is_signed && info->bits > 8);
}

// The dtypes of the definition that there are no kernels for.
static void add_dtypes(const struct kg_op *op, struct kg_text *text)
{
    bool seen[KG_DTYPE_COUNT] = {false}, any = false;
    for (int i = 0; i < op->typevar_count; i++)
        for (int k = 0; k < op->typevars[i]->count; k++)
            seen[op->typevars[i]->allowed[k]] = true;
    for (int i = 0; i < op->input_count + op->output_count; i++)
        if (!op->tensors[i]->type.variable)
            seen[op->tensors[i]->type.dtype] = true;
    for (int i = 0; i < KG_DTYPE_COUNT; i++) {
        if (!seen[i] || !is_unknown((enum kg_dtype)i))
            continue;
        kg_text_format(text, "%s %s", any ? "," : "    not there:", kg_dtypes[i].name);
        any = true;
    }
    kg_text_add(text, any ? "\n" : "");
}

static bool uses(const struct kg_triton_module *module, const char *word)
{
    for (int v = 0; v < module->variant_count; v++)
        if (strstr(kg_text_string(&module->variants[v].kernels), word))
            return true;
    return false;
}

// Whether a variant is of dtypes that these devices have.
static bool is_for_ascend(const struct kg_triton_module *module,
                          const struct kg_triton_variant *variant)
{
    for (int c = 0; c < variant->count; c++) {
        bool known = true;
        for (int i = 0; i < module->op->typevar_count; i++)
            known &= !is_unknown(variant->combinations[c][i]);
        if (known)
            return true;
    }
    return false;
}

// Whether kernels of such a variant compute in float64, which these devices lack.
static bool computes_in_float64(const struct kg_triton_module *module)
{
    for (int v = 0; v < module->variant_count; v++) {
        const char *kernels = kg_text_string(&module->variants[v].kernels);
        if (is_for_ascend(module, &module->variants[v]) &&
            (strstr(kernels, "tl.float64") || strstr(kernels, "_pow(")))
            return true;
    }
    return false;
}

// The fewest bits of an element, of all dtypes that a tensor may have.
static int least_bits(const struct kg_tensor *tensor)
{
    const struct kg_typevar *variable = tensor->type.variable;
    int least = kg_dtypes[tensor->type.dtype].bits;
    for (int i = 0; variable && i < variable->count; i++)
        if (i == 0 || kg_dtypes[variable->allowed[i]].bits < least)
            least = kg_dtypes[variable->allowed[i]].bits;
    return least;
}

// The rows of which tensors are whole multiples of `unit` bytes for which sizes.
static void add_tails(const struct kg_op *op, int unit, struct kg_text *text)
{
    bool any = false;
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        if (tensor->rank == 0)
            continue;
        const struct kg_expr *length = tensor->dims[tensor->rank - 1];
        kg_text_format(text, "%s%s if ", any ? ", " : "    tails: no padding of ", tensor->name);
        kg_text_add(text, length->kind == KG_EXPR_CALL ? "(" : "");
        kg_lang_print_expr(text, length);
        kg_text_format(text, "%s %% %d == 0", length->kind == KG_EXPR_CALL ? ")" : "",
                       unit * 8 / least_bits(tensor));
        any = true;
    }
    kg_text_add(text, any ? "\n" : "");
}

// How often a word occurs in all kernels, with a text in the same line behind it.
static int count_lines(const struct kg_triton_module *module, const char *word, const char *behind)
{
    int count = 0;
    for (int v = 0; v < module->variant_count; v++)
        for (const char *at = kg_text_string(&module->variants[v].kernels);
             (at = strstr(at, word)) != NULL; at++) {
            const char *end = strchr(at, '\n'), *found = strstr(at, behind);
            count += found && (!end || found < end);
        }
    return count;
}

static void add_slow(const struct kg_triton_module *module, struct kg_text *text)
{
    static const struct {
        const char *word, *behind, *what;
    } patterns[] = {
        {"tl.int64", "", "64-bit integers"},
        {"tl.where(", "_in,", "selections by comparisons of integers"},
        {"tl.minimum(tl.maximum(", "", "reads at places that a tensor holds"},
    };
    bool any = false;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        int count = count_lines(module, patterns[i].word, patterns[i].behind);
        if (!count)
            continue;
        kg_text_format(text, "%s%s (%d)", any ? ", " : "    element by element: ", patterns[i].what,
                       count);
        any = true;
    }
    kg_text_add(text, any ? "\n" : "    element by element: nothing\n");
}

void kg_triton_ascend(const struct kg_triton_module *module, struct kg_text *text)
{
    bool product = uses(module, "BLOCK_M");
    kg_text_add(text, "\nOn Ascend (device npu):\n\n");
    kg_text_format(text,
                   "    grid: one dimension, a program for each %s, which takes tiles in turns\n",
                   !product                     ? "vector core"
                   : uses(module, "BLOCK_COLS") ? "vector core (or core with a cube unit, where "
                                                  "tl.dot is used)"
                                                : "core with a cube unit");
    kg_text_format(text,
                   "    unified buffer: %d of 192 KiB for a tile, as much for the next one's "
                   "transfers\n",
                   UNIFIED / 1024);
    for (int v = 0; v < module->variant_count; v++) {
        const char *lines = kg_text_string(&module->variants[v].proofs);
        while (*lines) {
            size_t length = strcspn(lines, "\n") + 1;
            kg_text_add(text, "        ");
            kg_text_add_bytes(text, lines, length);
            lines += length;
        }
    }
    if (product)
        kg_text_add(text, "    cube unit: tiles take at most 32 of 64 KiB of L0A, 32 of 64 of "
                          "L0B, 16 of 128 of L0C\n");
    add_tails(module->op, product ? CUBE_TAIL : VECTOR_TAIL, text);
    add_dtypes(module->op, text);
    if (computes_in_float64(module))
        kg_text_add(text, "    not there: float64, which some kernels compute in\n");
    add_slow(module, text);
}
