// What is known of a module's kernels on Ascend devices, by the rules of triton-ascend's
// documentation: at most 65535 programs, a unified buffer of 192 KiB, tails of 32 bytes, no float64
// and no unsigned integers of more than 8 bits, 64-bit integers and reads at computed places one
// element at a time.

#include "gen/triton/triton_module.h"

#include <string.h>

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

void kg_triton_ascend(const struct kg_triton_module *module, struct kg_text *text)
{
    bool product = uses(module, "BLOCK_M");
    kg_text_add(text, "\nOn Ascend (device npu):\n\n"
                      "    grid: checked at each launch, at most 65535 programs\n");
    if (!product || uses(module, "BLOCK_COLS"))
        kg_text_add(text, "    unified buffer: tiles are chosen so that all values of a tile take "
                          "96 of 192 KiB\n");
    if (product)
        kg_text_add(text, "    products: the buffers of the cube unit are not accounted for\n");
    kg_text_add(text, "    tails: blocks are powers of two; rows whose stride is a multiple of 32 "
                      "bytes are aligned\n");
    add_dtypes(module->op, text);
    if (uses(module, ".to(tl.int64)") || uses(module, ", tl.int64)"))
        kg_text_add(text, "    slow: 64-bit integers are computed one by one\n");
    if (uses(module, "tl.float64") || uses(module, "_pow("))
        kg_text_add(text, "    not there: float64, which some kernels compute in\n");
    if (uses(module, "tl.minimum(tl.maximum("))
        kg_text_add(text, "    slow: reads at places that a tensor holds are made one by one\n");
}
