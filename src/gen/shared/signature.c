// Parameters of plain C functions: see signature.h.

#include "gen/shared/signature.h"

const char *kg_emit_plain_storage(enum kg_dtype dtype)
{
    if (kg_dtype_is_in_c(dtype))
        return kg_emit_storage(dtype);
    return kg_dtypes[dtype].bits <= 8 ? "uint8_t" : "uint16_t";
}

bool kg_size_is_argument(const struct kg_size *size)
{
    return !size->is_param;
}

int kg_emit_size_parameters(const struct kg_op *op, struct kg_text *text)
{
    int count = 0;
    for (int i = 0; i < op->size_count; i++) {
        if (!kg_size_is_argument(op->sizes[i]))
            continue;
        kg_text_add(text, count++ > 0 ? ", int64_t " : "int64_t ");
        kg_emit_name(text, op->sizes[i]->name);
    }
    return count;
}

void kg_emit_parameters(const struct kg_op *op, struct kg_text *text)
{
    struct kg_text sizes = {0};
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        kg_text_format(text, "%s%s%s *", i ? ", " : "", i < op->input_count ? "const " : "",
                       kg_emit_plain_storage(op->tensors[i]->type.dtype));
        kg_emit_name(text, op->tensors[i]->name);
    }
    if (kg_emit_size_parameters(op, &sizes) > 0)
        kg_text_format(text, ", %s", kg_text_string(&sizes));
    text->failed |= sizes.failed;
    kg_text_free(&sizes);
}

void kg_emit_storage_notes(const struct kg_op *op, struct kg_text *text)
{
    bool halves = false, bytes = false, packed = false;
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        enum kg_dtype dtype = op->tensors[i]->type.dtype;
        halves |= kg_dtype_is_half(dtype);
        bytes |= kg_dtype_is_narrow_float(dtype) && kg_dtypes[dtype].bits == 8;
        packed |= kg_dtype_is_packed(dtype);
    }
    if (halves)
        kg_text_add(text, "// The uint16_t of an f16 or bf16 holds its bits.\n");
    if (bytes)
        kg_text_add(text, "// The uint8_t of a float of 8 bits holds its bits.\n");
    if (packed)
        kg_text_add(text, "// Two 4-bit elements share a byte, the even one in the low half.\n");
}
