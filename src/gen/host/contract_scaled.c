// Columns of integers of 4 or 8 bits with scales, as weights are quantised: which operands
// kernels/host/contract_strips.h can take, and the functions that it has from the formula.

#include "gen/host/contract_writer.h"

#include "gen/shared/operand_values.h"

#include <math.h>
#include <string.h>

// Steps of k with the same scales: fewer would leave little to do between two scales.
enum { LEAST_GROUP = 16, WORD_BITS = 32 };

// Do elements lie side by side along one axis, and at one distance along the other?
static bool is_along(const struct kg_access *element, int axis, int other)
{
    int last = element->tensor->rank - 1;
    for (int dim = 0; dim <= last; dim++) {
        const struct kg_affine *map = &element->map[dim];
        if (map->coefficient[axis] != (dim == last) ||
            (dim == last && map->coefficient[other] != 0))
            return false;
    }
    return last > 0;
}

// Is there an offset that is scaled, too? What divides both may be zero, or so small that they are
// infinite: their sum, divided, is another number.
static bool scales_offset(const struct kg_scaled_operand *scaled)
{
    bool any = false;
    for (int i = 0; i < scaled->scale_count; i++)
        any |= scaled->outside[i];
    return scaled->offset && any;
}

enum kg_contract_layout kg_contract_scaled(const struct kg_contract *contract,
                                           struct kg_scaled_operand *scaled)
{
    if (!contract->group->problem->contiguous || contract->axis_count[KG_CONTRACT_N] != 1 ||
        !kg_scaled_operand_read(contract, 1, scaled, NULL) || scales_offset(scaled) ||
        (scaled->group != 0 && scaled->group < LEAST_GROUP))
        return KG_CONTRACT_OTHER;
    const struct kg_dtype_info *dtype = &kg_dtypes[kg_emit_tensor_dtype(scaled->element->tensor)];
    if (dtype->is_float || dtype->bits > 8)
        return KG_CONTRACT_OTHER;
    int n = contract->axes[KG_CONTRACT_N][0], k = contract->axes[KG_CONTRACT_K][0];
    if (scaled->is_packed)
        return KG_CONTRACT_PANELS;
    if (is_along(scaled->element, n, k))
        return KG_CONTRACT_ALONG_N;
    // Zeros and scales of a word are those of all its elements.
    return !scaled->offset && is_along(scaled->element, k, n) &&
                   scaled->group % (WORD_BITS / dtype->bits) == 0
               ? KG_CONTRACT_ALONG_K
               : KG_CONTRACT_OTHER;
}

double kg_contract_scaled_cycles(double rows, double elements, double lanes, double peak)
{
    // Cycles to make a vector of floats of elements; to read back those of panels takes as long.
    // A register tile has 4 rows, panels are for more than 8 rows, an item has 1024.
    const double step = 1.6, tile = 4, few = 8, item = 1024;
    double times = rows <= few ? ceil(rows / tile) : 2 * ceil(rows / item);
    return elements * (times * step / lanes + 2 * rows / peak);
}

// Terms of bf16 that an element of A is the sum of; 0: more than two.
static int terms_of_rows(const struct kg_contract *contract)
{
    unsigned values = kg_operand_values(contract, 0);
    return values & KG_VALUES_BF16 ? 1 : values & KG_VALUES_F16 ? 2 : 0;
}

double kg_contract_tile_cycles(const struct kg_contract *contract, double rows, double elements)
{
    // As a core of a Granite Rapids takes to make bf16 of an element, and for a row: to multiply
    // it by a term, and to add scaled sums. An item has 1024 rows.
    const double made = 0.4, term = 0.0033, added = 0.003, side = 16, item = 1024;
    const double high = ceil(rows / side) * side;
    return elements * (ceil(rows / item) * made + high * (terms_of_rows(contract) * term + added));
}

bool kg_contract_tiles(const struct kg_contract *contract, const struct kg_device_facts *facts,
                       enum kg_contract_layout layout, const struct kg_scaled_operand *scaled)
{
    return layout != KG_CONTRACT_OTHER && contract->type == KG_TYPE_F32 &&
           scaled->rounds == KG_F32 && terms_of_rows(contract) > 0 && facts->vector_bytes >= 64 &&
           strstr(facts->isa, "amx_bf16");
}

void kg_contract_define_scaled(const struct kg_contract_writer *writer,
                               enum kg_contract_layout layout,
                               const struct kg_scaled_operand *scaled)
{
    struct kg_text *text = writer->text;
    kg_emit_line(text, 0, "#define KG_SCALED %d", layout != KG_CONTRACT_OTHER);
    kg_emit_line(text, 0, "#define KG_SCALED_LINES %d", layout == KG_CONTRACT_ALONG_K);
    kg_emit_line(text, 0, "#define KG_SCALED_PACKED %d", layout == KG_CONTRACT_PANELS);
    if (layout != KG_CONTRACT_OTHER) {
        enum kg_dtype dtype = kg_emit_tensor_dtype(scaled->element->tensor);
        kg_emit_line(text, 0, "#define KG_GROUP %lld", (long long)scaled->group);
        kg_emit_line(text, 0, "#define KG_SCALED_BITS %d", kg_dtypes[dtype].bits);
        kg_emit_line(text, 0, "#define KG_SCALED_SIGNED %d", kg_dtypes[dtype].is_signed);
        kg_emit_line(text, 0, "#define KG_SCALED_OFFSET %d",
                     !scaled->offset            ? 0
                     : scaled->offset_subtracts ? -1
                                                : 1);
        kg_emit_line(text, 0, "#define KG_SCALED_ROUNDS %s",
                     scaled->rounds == KG_F16    ? "KG_F16"
                     : scaled->rounds == KG_BF16 ? "KG_BF16"
                                                 : "0");
        kg_emit_line(text, 0, "#define KG_SCALED_LEAST_ZERO %lld", (long long)scaled->least_zero);
        kg_emit_line(text, 0, "#define KG_SCALED_GREATEST_ZERO %lld",
                     (long long)scaled->greatest_zero);
        kg_emit_line(text, 0, "#define KG_SCALED_TERMS %d", terms_of_rows(writer->contract));
    }
    kg_text_add(text, "\n");
}

// Where elements lie: their first one, and the distance between lines or, of panels, between rows
// of them.
static void emit_elements(const struct kg_contract_writer *writer,
                          const struct kg_scaled_operand *scaled, int axis)
{
    const struct kg_access *element = scaled->element;
    const struct kg_contract *contract = writer->contract;
    struct kg_text *text = writer->text;
    kg_text_add(text, "static const uint8_t *b_elements(const struct kg_host_call *call, int64_t "
                      "item, int64_t *first,\n                                 int64_t *step)\n{\n"
                      "    (void)item;\n");
    kg_emit_host_bindings(text, contract->group, false);
    kg_contract_all_axes(writer, 1, KG_CONTRACT_BATCH, "item");
    struct kg_emit_names names = writer->names;
    struct kg_contract copy = *contract;
    names.user = &copy;
    names.axis = kg_contract_print_begin;
    kg_text_add(text, "    *first = ");
    kg_emit_offset(text, contract->nest, element, &names);
    kg_text_add(text, ";\n    *step = ");
    if (scaled->is_packed) {
        enum { DIMENSIONS = 3 };
        kg_emit_name(text, element->tensor->name);
        kg_text_format(text, "_s%d", element->tensor->rank - DIMENSIONS);
    } else {
        kg_contract_stride(text, element, axis);
    }
    kg_text_add(text, ";\n    return (const uint8_t *)");
    kg_emit_name(text, element->tensor->name);
    kg_text_add(text, ";\n}\n\n");
}

void kg_contract_emit_scaled(const struct kg_contract_writer *writer,
                             enum kg_contract_layout layout, const struct kg_scaled_operand *scaled)
{
    const struct kg_contract *contract = writer->contract;
    struct kg_contract_operand zeros = {.count = scaled->zero_count};
    struct kg_contract_operand scales = {.count = scaled->scale_count};
    for (int i = 0; i < scaled->zero_count; i++)
        zeros.factors[i] =
            (struct kg_contract_factor){scaled->zeros[i].expr, scaled->zeros[i].adds};
    for (int i = 0; i < scaled->scale_count; i++)
        scales.factors[i] = scaled->scales[i];
    if (layout != KG_CONTRACT_ALONG_K) {
        emit_elements(writer, scaled, contract->axes[KG_CONTRACT_K][0]);
        kg_contract_emit_part(writer, "b_zeros", true, &zeros);
        kg_contract_emit_part(writer, "b_scales", false, &scales);
        const struct kg_contract_operand offsets = {.count = 1,
                                                    .factors = {{scaled->offset, false}}};
        if (scaled->offset)
            kg_contract_emit_part(writer, "b_offsets", false, &offsets);
    } else {
        emit_elements(writer, scaled, contract->axes[KG_CONTRACT_N][0]);
        kg_contract_emit_groups(writer, "b_group_zeros", true, &zeros, scaled->group);
        kg_contract_emit_groups(writer, "b_group_scales", false, &scales, scaled->group);
    }
}
