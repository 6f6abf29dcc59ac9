// Quantised weights of several matrices, of which each item of the batch chooses one by an index
// from memory, as tokens choose experts: w[e[b], k, n].

#include "gen/cuda/contract/cuda_contract_scaled.h"

#include "gen/cuda/contract/cuda_contract_writer.h"
#include "gen/shared/axes.h"
#include "gen/shared/bound.h"

int kg_cuda_scaled_gather(const struct kg_cuda_contract_plan *plan, const struct kg_access *access)
{
    int found = -1;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *at = access->map[dim].subscript;
        if (access->map[dim].is_gather && found < 0 && at->kind == KG_EXPR_READ && !at->pad)
            found = dim;
        else if (kg_contract_uses_batch(&plan->contract, at))
            return -1;
    }
    return found;
}

bool kg_cuda_scaled_is_gathered(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    for (int dim = 0; dim < element->tensor->rank; dim++)
        if (element->map[dim].is_gather)
            return true;
    return false;
}

bool kg_cuda_scaled_shares_gather(const struct kg_cuda_contract_plan *plan,
                                  const struct kg_access *access, int dim)
{
    const struct kg_nest *nest = plan->contract.nest;
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    int of_element = kg_cuda_scaled_gather(plan, element);
    return of_element >= 0 && kg_cuda_scaled_gather(plan, access) == dim &&
           kg_size_same(access->tensor->dims[dim], element->tensor->dims[of_element]) &&
           kg_access_same(kg_nest_access(nest, access->map[dim].subscript),
                          kg_nest_access(nest, element->map[of_element].subscript));
}

// kg_group_bytes counts a gathered dimension as one element, and the panels of packed weights.
double kg_cuda_scaled_bytes(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_nest *nest = plan->contract.nest;
    double bytes = kg_group_bytes(plan->group);
    if (kg_cuda_scaled_is_packed(plan)) // of one matrix
        bytes +=
            (double)plan->k * (double)kg_cuda_scaled_columns(plan) * kg_cuda_scaled_bits(plan) / 8;
    if (!kg_cuda_scaled_is_gathered(plan))
        return bytes;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        const struct kg_layout *layout = &plan->group->problem->layouts[access->tensor->id];
        int dim = kg_cuda_scaled_gather(plan, access);
        if (dim < 0 || layout->shape[dim] == 0)
            continue;
        int64_t chosen = layout->shape[dim] < plan->batches ? layout->shape[dim] : plan->batches;
        bytes += (double)(chosen - 1) / (double)layout->shape[dim] * (double)layout->elements *
                 kg_dtypes[kg_emit_tensor_dtype(access->tensor)].bits / 8;
    }
    return bytes;
}

// ---- Coordinates of tensor maps ----

void kg_cuda_scaled_batch_of_rows(const struct kg_cuda_contract_plan *plan,
                                  struct kg_cuda_contract_plan *of_rows)
{
    const struct kg_access *rows = plan->plain[1 - kg_cuda_scaled_weights(plan)];
    struct kg_contract *contract = &of_rows->contract;
    *of_rows = *plan;
    contract->axis_count[KG_CONTRACT_BATCH] = 0;
    of_rows->batches = 1;
    for (int i = 0; i < plan->contract.axis_count[KG_CONTRACT_BATCH]; i++) {
        int axis = plan->contract.axes[KG_CONTRACT_BATCH][i];
        bool moves = false;
        for (int dim = 0; dim < rows->tensor->rank; dim++)
            moves = moves || rows->map[dim].coefficient[axis] != 0;
        if (!moves)
            continue;
        contract->axes[KG_CONTRACT_BATCH][contract->axis_count[KG_CONTRACT_BATCH]++] = axis;
        of_rows->batches *= contract->nest->extent[axis];
    }
}

static void open_method(struct kg_contract_writer *writer, const char *name)
{
    kg_code_open(writer->code, "KG_METHOD int %s([[maybe_unused]] int64_t item) const", name);
    if (writer->plan->config.swap)
        kg_code_line(writer->code, "const auto &given = this->job.given;");
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
    kg_code_begin(writer->code);
    kg_text_add(writer->code->text, "return (int)(");
}

static void close_method(struct kg_contract_writer *writer)
{
    kg_text_add(writer->code->text, ");");
    kg_code_end(writer->code);
    kg_code_close(writer->code);
}

// The linear index over the axes that move rows.
static void emit_rows_box(struct kg_contract_writer *writer)
{
    struct kg_text *text = writer->code->text;
    struct kg_cuda_contract_plan of_rows;
    kg_cuda_scaled_batch_of_rows(writer->plan, &of_rows);
    const struct kg_contract *contract = &of_rows.contract;
    int count = contract->axis_count[KG_CONTRACT_BATCH];
    open_method(writer, "rows_box");
    for (int i = 0; i + 1 < count; i++)
        kg_text_add(text, "(");
    for (int i = 0; i < count; i++) {
        int axis = contract->axes[KG_CONTRACT_BATCH][i];
        if (i > 0) {
            kg_text_add(text, ") * ");
            kg_axes_extent(text, contract->nest->axes[axis]);
            kg_text_add(text, " + ");
        }
        kg_text_format(text, "i%d", axis);
    }
    kg_text_add(text, count == 0 ? "0" : "");
    close_method(writer);
}

static void emit_weights_box(struct kg_contract_writer *writer)
{
    const struct kg_cuda_contract_plan *plan = writer->plan;
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    int dim = kg_cuda_scaled_gather(plan, element);
    open_method(writer, "weights_box");
    if (dim >= 0)
        kg_emit_subscript(writer->code->text, plan->contract.nest, element, dim, &writer->names);
    else // then TMA loads none of it
        kg_text_add(writer->code->text, "0");
    close_method(writer);
}

void kg_cuda_scaled_emit_boxes(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_contract_writer writer = kg_contract_writer_make(plan, code);
    if (plan->config.swap)
        kg_code_line(code, "struct %s_boxes : kg_swapped<%s_job> {", plan->entry, plan->entry);
    else
        kg_code_line(code, "struct %s_boxes : %s_job {", plan->entry, plan->entry);
    code->depth++;
    emit_rows_box(&writer);
    emit_weights_box(&writer);
    code->depth--;
    kg_code_line(code, "};\n");
}
