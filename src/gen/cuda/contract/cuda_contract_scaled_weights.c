// The weights of kernels/cuda/contract_scaled.cuh and contract_scaled_wgmma.cuh.

#include "gen/cuda/contract/cuda_contract_scaled.h"

#include "asm/gpu.h"
#include "gen/cuda/contract/cuda_contract_writer.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"

enum { STEP = 16, WORD = 32 };

int kg_cuda_scaled_weights(const struct kg_cuda_contract_plan *plan)
{
    return plan->scaled[1].element ? 1 : 0;
}

const struct kg_scaled_operand *kg_cuda_scaled_operand(const struct kg_cuda_contract_plan *plan)
{
    return &plan->scaled[kg_cuda_scaled_weights(plan)];
}

enum kg_dtype kg_cuda_scaled_dtype(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_contract_dtype(plan, 1 - kg_cuda_scaled_weights(plan));
}

int64_t kg_cuda_scaled_rows(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_weights(plan) ? plan->m : plan->n;
}

int64_t kg_cuda_scaled_columns(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_weights(plan) ? plan->n : plan->m;
}

enum kg_dtype kg_cuda_scaled_weight_dtype(const struct kg_cuda_contract_plan *plan)
{
    return kg_emit_tensor_dtype(kg_cuda_scaled_operand(plan)->element->tensor);
}

bool kg_cuda_scaled_is_packed(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->is_packed;
}

bool kg_cuda_scaled_is_lines(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *element = kg_cuda_scaled_operand(plan)->element;
    int last = element->tensor->rank - 1;
    return last >= 0 && !kg_cuda_scaled_is_packed(plan) &&
           kg_expr_uses(element->map[last].subscript, plan->contract.axes[KG_CONTRACT_K][0], true);
}

int kg_cuda_scaled_bits(const struct kg_cuda_contract_plan *plan)
{
    return kg_dtypes[kg_cuda_scaled_weight_dtype(plan)].bits;
}

int kg_cuda_scaled_of_word(const struct kg_cuda_contract_plan *plan)
{
    return WORD / kg_cuda_scaled_bits(plan);
}

bool kg_cuda_scaled_rounds(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->rounds != KG_F32;
}

// Whether a value has the dtype to which weights are rounded.
static bool is_rounded(const struct kg_cuda_contract_plan *plan, const struct kg_expr *expr)
{
    enum kg_dtype dtype = kg_cuda_scaled_operand(plan)->rounds;
    return expr->kind == KG_EXPR_READ   ? !expr->pad && kg_emit_tensor_dtype(expr->tensor) == dtype
           : expr->kind == KG_EXPR_CAST ? expr->cast.dtype == dtype
                                        : false;
}

bool kg_cuda_scaled_has_half_scales(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    return scaled->scale_count == 1 && !scaled->scales[0].divides &&
           is_rounded(plan, scaled->scales[0].expr) &&
           (!scaled->offset || is_rounded(plan, scaled->offset));
}

bool kg_cuda_scaled_sums_rows(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_scaled_operand(plan)->offset && !kg_cuda_scaled_rounds(plan);
}

static bool is_signed(enum kg_dtype dtype)
{
    return dtype == KG_I4 || dtype == KG_I8;
}

static bool is_float(const struct kg_cuda_contract_plan *plan)
{
    return kg_dtype_is_narrow_float(kg_cuda_scaled_weight_dtype(plan));
}

// What is as far from the least as from the greatest integer that weights can be, or next to it.
static int middle_of(const struct kg_cuda_contract_plan *plan)
{
    return is_signed(kg_cuda_scaled_weight_dtype(plan)) ? 0 : 1 << (kg_cuda_scaled_bits(plan) - 1);
}

// The read of an array, if the expression is one whose last subscript is the last axis of the
// weights' columns, and no other depends on it; else NULL.
static const struct kg_access *adjacent_read(const struct kg_cuda_contract_plan *plan,
                                             const struct kg_expr *expr)
{
    const struct kg_contract *contract = &plan->contract;
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    int count = contract->axis_count[role];
    if (!expr || expr->kind != KG_EXPR_READ || expr->pad || count == 0)
        return NULL;
    const struct kg_access *access = kg_nest_access(contract->nest, expr);
    int last = access->tensor->rank - 1, axis = contract->axes[role][count - 1];
    for (int dim = 0; dim <= last; dim++) {
        const struct kg_affine *map = &access->map[dim];
        if ((map->is_gather && !kg_contract_is_of_batch(contract, map->subscript)) ||
            kg_expr_uses(map->subscript, axis, true) != (dim == last))
            return NULL;
    }
    const struct kg_expr *subscript = last < 0 ? NULL : access->map[last].subscript;
    return subscript && subscript->kind == KG_EXPR_INDEX &&
                   kg_axes_from_zero(contract->nest->axes[axis])
               ? access
               : NULL;
}

static const struct kg_access *adjacent_scales(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    if (scaled->scale_count != 1 || scaled->scales[0].divides)
        return NULL;
    const struct kg_access *access = adjacent_read(plan, scaled->scales[0].expr);
    return access && kg_dtype_is_half(kg_emit_tensor_dtype(access->tensor)) ? access : NULL;
}

static const struct kg_access *adjacent_zeros(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    if (scaled->zero_count != 1 || scaled->zeros[0].adds)
        return NULL;
    const struct kg_access *access = adjacent_read(plan, scaled->zeros[0].expr);
    enum kg_dtype dtype = access ? kg_emit_tensor_dtype(access->tensor) : KG_F32;
    return dtype == KG_U4 || dtype == KG_I4 || dtype == KG_U8 || dtype == KG_I8 ? access : NULL;
}

int kg_cuda_scaled_zero_bits(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *zeros = adjacent_zeros(plan);
    return zeros ? kg_dtypes[kg_emit_tensor_dtype(zeros->tensor)].bits : 4;
}

// Offsets, if they are an array, times the scale or not.
static const struct kg_access *adjacent_offsets(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    if (!scaled->offset || !adjacent_scales(plan))
        return NULL;
    const struct kg_access *access = adjacent_read(plan, scaled->offset);
    return access && kg_dtype_is_half(kg_emit_tensor_dtype(access->tensor)) ? access : NULL;
}

// ---- Validity ----

// How far from 0 or, with 8 bits, from the middle zero points may be, so that they and all
// differences to them are exact in the type of the products.
static int most_zero(const struct kg_cuda_contract_plan *plan)
{
    enum { F16_OF_4 = 1008, F16_OF_8 = 896, BF16_OF_4 = 112, BF16_OF_8 = 128 };
    bool has_bytes = kg_cuda_scaled_bits(plan) == 8;
    if (kg_cuda_scaled_dtype(plan) == KG_F16)
        return has_bytes ? F16_OF_8 : F16_OF_4;
    return has_bytes ? BF16_OF_8 : BF16_OF_4;
}

static bool takes_weights(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    int64_t from = kg_cuda_scaled_bits(plan) == 8 ? middle_of(plan) : 0, limit = most_zero(plan);
    if (scaled->rounds != KG_F32 && scaled->rounds != kg_cuda_scaled_dtype(plan))
        return kg_cuda_contract_refuse(reason, "weights are rounded to another type than that of "
                                               "the other operand");
    if (scaled->group > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "groups of more than 2^30 steps of the sum");
    if (scaled->group % STEP != 0)
        return kg_cuda_contract_refuse(reason,
                                       "scales and zero points change within 16 steps of the sum");
    if (scaled->least_zero < from - limit || scaled->greatest_zero > from + limit)
        return kg_cuda_contract_refuse(reason, "zero points are too large for 16-bit operands");
    return true;
}

bool kg_cuda_scaled_takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    const struct kg_sm *sm = kg_sm_find(plan->facts->isa);
    int weights = kg_cuda_scaled_weights(plan);
    if (!plan->scaled[weights].element || !plan->plain[1 - weights] ||
        !kg_dtype_is_half(kg_cuda_scaled_dtype(plan)))
        return kg_cuda_contract_refuse(
            reason, "one operand has to be an array of f16 or bf16, the other one of integers of "
                    "4 or 8 bits, less an integer and times scales, or of 8-bit floats");
    if (!sm || sm->sm < 80 || sm->matrix[KG_MATRIX_16] == 0)
        return kg_cuda_contract_refuse(reason, "this form needs tensor cores of sm_80 or newer");
    if (kg_cuda_scaled_weight_dtype(plan) == KG_F8E4M3 && sm->sm < 89)
        return kg_cuda_contract_refuse(reason, "before sm_89, no instruction converts f8e4m3");
    return takes_weights(plan, reason);
}

bool kg_cuda_scaled_is_whole(const struct kg_cuda_contract_plan *plan, int words)
{
    int of_word = kg_cuda_scaled_of_word(plan), vector = of_word * words;
    const struct kg_contract *contract = &plan->contract;
    const struct kg_problem *problem = plan->group->problem;
    const struct kg_access *weights =
        adjacent_read(plan, kg_cuda_scaled_operand(plan)->element->read);
    const struct kg_access *scales = adjacent_scales(plan), *zeros = adjacent_zeros(plan);
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    if (!weights ||
        contract->nest->extent[contract->axes[role][contract->axis_count[role] - 1]] % vector != 0)
        return false;
    return kg_cuda_is_whole(problem, weights->tensor, ~0u, vector) &&
           (!scales || kg_cuda_is_whole(problem, scales->tensor, ~0u, of_word)) &&
           (!zeros ||
            kg_cuda_is_whole(problem, zeros->tensor, ~0u, WORD / kg_cuda_scaled_zero_bits(plan)));
}

bool kg_cuda_scaled_has_whole_zeros(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_access *zeros = adjacent_zeros(plan);
    enum kg_contract_role role = kg_cuda_scaled_weights(plan) ? KG_CONTRACT_N : KG_CONTRACT_M;
    int columns = contract->axes[role][contract->axis_count[role] - 1];
    if (!zeros)
        return false;
    int of_word = WORD / kg_cuda_scaled_zero_bits(plan);
    return contract->nest->extent[columns] % of_word == 0 &&
           kg_cuda_is_whole(plan->group->problem, zeros->tensor, ~0u, of_word);
}

// Whether a subscript is the run of K steps with the same scales and zero points.
static bool is_run(const struct kg_cuda_contract_plan *plan, const struct kg_expr *at)
{
    return at->kind == KG_EXPR_CALL && at->function == KG_FN_DIV &&
           at->arguments[0]->kind == KG_EXPR_INDEX &&
           at->arguments[0]->index->id == plan->contract.axes[KG_CONTRACT_K][0] &&
           at->arguments[1]->kind == KG_EXPR_NUMBER &&
           at->arguments[1]->integer == kg_cuda_scaled_operand(plan)->group;
}

// Whether the elements of an array are at one distance, which may be 0, from each run to the next:
// scales may stay the same for several runs of zero points. NULL: there is no array.
static bool follows_runs(const struct kg_cuda_contract_plan *plan, const struct kg_access *access)
{
    int axis = plan->contract.axes[KG_CONTRACT_K][0];
    for (int dim = 0; access && dim < access->tensor->rank; dim++)
        if (kg_expr_uses(access->map[dim].subscript, axis, true) &&
            !is_run(plan, access->map[dim].subscript))
            return false;
    return true;
}

bool kg_cuda_scaled_has_whole_factors(const struct kg_cuda_contract_plan *plan, int columns)
{
    const struct kg_problem *problem = plan->group->problem;
    const struct kg_access *scales = adjacent_scales(plan), *zeros = adjacent_zeros(plan);
    return kg_cuda_scaled_columns(plan) % columns == 0 && follows_runs(plan, scales) &&
           follows_runs(plan, zeros) &&
           (!scales || kg_cuda_is_whole(problem, scales->tensor, ~0u, columns)) &&
           (!zeros || kg_cuda_is_whole(problem, zeros->tensor, ~0u, columns));
}

// ---- Arrays with a line for each run ----

// Whether dimension `dim` of an array is the batch, of which one is to be found, or what the batch
// chooses of the weights.
static bool is_batch(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                     int dim)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_expr *at = access->map[dim].subscript;
    if (kg_cuda_scaled_is_gathered(plan))
        return kg_cuda_scaled_shares_gather(plan, access, dim);
    return at->kind == KG_EXPR_INDEX && contract->axis_count[KG_CONTRACT_BATCH] == 1 &&
           at->index->id == contract->axes[KG_CONTRACT_BATCH][0] &&
           kg_axes_from_zero(contract->nest->axes[at->index->id]);
}

// The dimension of an array whose subscript is the run of K steps; the others are the columns, the
// last one, and the batch, if there is one. -1: the array is none, NULL included.
static int find_run_dimension(const struct kg_cuda_contract_plan *plan,
                              const struct kg_access *access)
{
    const struct kg_contract *contract = &plan->contract;
    int found = -1;
    bool has_batch = contract->axis_count[KG_CONTRACT_BATCH] == 0;
    for (int dim = 0; access && dim + 1 < access->tensor->rank; dim++) {
        const struct kg_expr *at = access->map[dim].subscript;
        if (!has_batch && is_batch(plan, access, dim)) {
            has_batch = true;
            continue;
        }
        if (!is_run(plan, at) || found >= 0)
            return -1;
        found = dim;
    }
    return has_batch ? found : -1;
}

const struct kg_access *kg_cuda_scaled_scales_of_runs(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *scales = adjacent_scales(plan);
    return find_run_dimension(plan, scales) >= 0 ? scales : NULL;
}

const struct kg_access *kg_cuda_scaled_offsets_of_runs(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *offsets = adjacent_offsets(plan);
    return find_run_dimension(plan, offsets) >= 0 ? offsets : NULL;
}

const struct kg_access *kg_cuda_scaled_zeros_of_runs(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_access *zeros = adjacent_zeros(plan);
    return find_run_dimension(plan, zeros) >= 0 ? zeros : NULL;
}

bool kg_cuda_scaled_map_runs(const struct kg_cuda_contract_plan *plan,
                             const struct kg_access *access, int columns, int64_t runs,
                             struct kg_map *map)
{
    enum { UNIT = 2, ACCESS = 16 }; // bytes of an element of the map, and of TMA's alignment
    const struct kg_tensor *tensor = access->tensor;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    int bits = kg_dtypes[kg_emit_tensor_dtype(tensor)].bits;
    int dim = find_run_dimension(plan, access);
    int64_t of_batch = 0, batches = plan->batches;
    for (int other = 0; other + 1 < tensor->rank; other++)
        of_batch = other == dim ? of_batch : layout->stride[other] * bits / 8;
    if (kg_cuda_scaled_is_gathered(plan))
        batches = layout->shape[kg_cuda_scaled_gather(plan, access)];
    *map = (struct kg_map){
        .tensor = tensor->id,
        .element = UNIT,
        .rank = 3,
        .shape = {kg_ceil_div(kg_cuda_scaled_columns(plan) * bits, 8 * UNIT),
                  kg_ceil_div(plan->k, kg_cuda_scaled_operand(plan)->group), batches},
        .stride = {UNIT, layout->stride[dim] * bits / 8, batches > 1 ? of_batch : ACCESS},
        .box = {columns * bits / (8 * UNIT), (int)runs, 1},
    };
    return layout->stride[tensor->rank - 1] == 1 && map->stride[1] > 0 && map->stride[2] > 0 &&
           map->stride[1] % ACCESS == 0 && map->stride[2] % ACCESS == 0;
}

// ---- Code ----

static void open_method(struct kg_contract_writer *writer, const char *head)
{
    kg_code_open(writer->code,
                 "KG_METHOD %s([[maybe_unused]] int64_t item, [[maybe_unused]] int64_t step, "
                 "[[maybe_unused]] int64_t column) const",
                 head);
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
    kg_contract_emit_axes(
        writer, kg_cuda_scaled_weights(writer->plan) ? KG_CONTRACT_N : KG_CONTRACT_M, "column");
    kg_contract_emit_axes(writer, KG_CONTRACT_K, "step");
    kg_code_begin(writer->code);
    kg_text_add(writer->code->text, "return ");
}

static void close_method(struct kg_contract_writer *writer)
{
    kg_text_add(writer->code->text, ";");
    kg_code_end(writer->code);
    kg_code_close(writer->code);
}

static void emit_scale(struct kg_contract_writer *writer)
{
    const struct kg_contract *contract = &writer->plan->contract;
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(writer->plan);
    struct kg_text *text = writer->code->text;
    open_method(writer, "float scale");
    for (int i = 0; i < scaled->scale_count; i++) {
        bool divides = scaled->scales[i].divides;
        kg_text_add(text, divides ? i > 0 ? " / (" : "1 / (" : i > 0 ? " * (" : "(");
        kg_emit_value(text, contract->nest, scaled->scales[i].expr, KG_TYPE_F32, &writer->names);
        kg_text_add(text, ")");
    }
    kg_text_add(text, scaled->scale_count == 0 ? "1" : "");
    close_method(writer);
}

// " * (scale)", of those outside of the sum with the offset.
static void print_outer_scales(struct kg_contract_writer *writer)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(writer->plan);
    struct kg_text *text = writer->code->text;
    for (int i = 0; i < scaled->scale_count; i++) {
        if (!scaled->outside[i])
            continue;
        kg_text_add(text, scaled->scales[i].divides ? " / (" : " * (");
        kg_emit_value(text, writer->plan->contract.nest, scaled->scales[i].expr, KG_TYPE_F32,
                      &writer->names);
        kg_text_add(text, ")");
    }
}

static void emit_offset(struct kg_contract_writer *writer)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(writer->plan);
    struct kg_text *text = writer->code->text;
    open_method(writer, "float offset");
    if (scaled->offset) {
        kg_text_add(text, scaled->offset_subtracts ? "-(" : "(");
        kg_emit_value(text, writer->plan->contract.nest, scaled->offset, KG_TYPE_F32,
                      &writer->names);
        kg_text_add(text, ")");
        print_outer_scales(writer);
    } else {
        kg_text_add(text, "0");
    }
    close_method(writer);
}

// As offset, of an element of the array of offsets.
static void emit_widen_offset(struct kg_contract_writer *writer, const struct kg_access *offsets)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(writer->plan);
    enum kg_dtype dtype = kg_emit_tensor_dtype(offsets->tensor);
    struct kg_code *code = writer->code;
    kg_code_open(code,
                 "KG_METHOD float widen_offset(%s element, [[maybe_unused]] float scale) const",
                 kg_emit_storage(dtype));
    kg_code_line(code, "return %skg_unpack_%s(element)%s;", scaled->offset_subtracts ? "-" : "",
                 kg_dtypes[dtype].name, scaled->outside[0] ? " * scale" : "");
    kg_code_close(code);
}

static void emit_zero(struct kg_contract_writer *writer)
{
    const struct kg_contract *contract = &writer->plan->contract;
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(writer->plan);
    struct kg_text *text = writer->code->text;
    open_method(writer, "int zero");
    kg_text_add(text, "(int)(");
    for (int i = 0; i < scaled->zero_count; i++) {
        kg_text_add(text, scaled->zeros[i].adds ? "-(" : i > 0 ? "+(" : "(");
        kg_emit_value(text, contract->nest, scaled->zeros[i].expr, KG_TYPE_I64, &writer->names);
        kg_text_add(text, ")");
    }
    kg_text_add(text, scaled->zero_count > 0 ? ")" : "0)");
    close_method(writer);
}

// Methods `array`, which returns the tensor that is read, and `place`, the element.
static void emit_array(struct kg_contract_writer *writer, const struct kg_access *access,
                       const char *array, const char *place)
{
    struct kg_code *code = writer->code;
    kg_code_open(code, "KG_METHOD const %s *%s() const", kg_emit_tensor_storage(access->tensor),
                 array);
    kg_contract_unpack(writer);
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    kg_emit_name(code->text, access->tensor->name);
    close_method(writer);
    open_method(writer, place);
    kg_emit_offset(code->text, writer->plan->contract.nest, access, &writer->names);
    close_method(writer);
}

// Whether all zero points are the same, and one that takes the place of weights whose scale is 0.
bool kg_cuda_scaled_has_one_zero(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    int64_t zero = scaled->least_zero;
    if (zero != scaled->greatest_zero || is_float(plan))
        return is_float(plan);
    if (kg_cuda_scaled_is_lines(plan) && scaled->group > 0 && zero != 0)
        return false; // there, weights whose scale is 0 become integers of 0
    if (kg_cuda_scaled_bits(plan) == 8)
        return zero == middle_of(plan);
    return zero >= middle_of(plan) - 8 && zero < middle_of(plan) + 8;
}

void kg_cuda_scaled_emit_weights(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_contract_writer writer = kg_contract_writer_make(plan, code);
    const struct kg_access *scales = adjacent_scales(plan), *zeros = adjacent_zeros(plan);
    const struct kg_access *offsets = adjacent_offsets(plan);
    int zero_bits = kg_cuda_scaled_zero_bits(plan);
    bool flips = zeros && is_signed(kg_emit_tensor_dtype(zeros->tensor));
    kg_code_line(code, "struct %s_weights {", plan->entry);
    code->depth++;
    kg_code_line(code,
                 "enum : bool { ADJACENT_SCALES = %d, ADJACENT_ZEROS = %d, NARROW_SCALES = %d, "
                 "ONE_ZERO = %d };",
                 scales != NULL, zeros != NULL,
                 scales && kg_emit_tensor_dtype(scales->tensor) == KG_F16,
                 kg_cuda_scaled_has_one_zero(plan));
    kg_code_line(code, "enum : bool { HAS_OFFSET = %d, ADJACENT_OFFSETS = %d };",
                 kg_cuda_scaled_sums_rows(plan), offsets != NULL);
    kg_code_line(code, "enum : int { ZERO_BITS = %d };", zero_bits);
    kg_code_line(
        code, "enum : uint32_t { ZERO_FLIP = %d, ZERO = %d };", flips ? 1 << (zero_bits - 1) : 0,
        kg_cuda_scaled_has_one_zero(plan) ? (int)kg_cuda_scaled_operand(plan)->least_zero & 15 : 0);
    kg_code_line(code, "%s_given given;", plan->entry);
    emit_array(&writer, kg_cuda_scaled_operand(plan)->element, "data", "int64_t place");
    if (zeros)
        emit_array(&writer, zeros, "zeros", "int64_t zero_place");
    if (scales) {
        enum kg_dtype dtype = kg_emit_tensor_dtype(scales->tensor);
        emit_array(&writer, scales, "scales", "int64_t scale_place");
        kg_code_open(code, "KG_METHOD float widen_scale(%s element) const", kg_emit_storage(dtype));
        kg_code_line(code, "return kg_unpack_%s(element);", kg_dtypes[dtype].name);
        kg_code_close(code);
    }
    if (offsets) {
        emit_array(&writer, offsets, "offsets", "int64_t offset_place");
        emit_widen_offset(&writer, offsets);
    }
    emit_scale(&writer);
    emit_zero(&writer);
    emit_offset(&writer);
    code->depth--;
    kg_code_line(code, "};\n");
}

void kg_cuda_scaled_declare(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "const %s_weights weights = {job%s.given};", plan->entry,
                 plan->config.swap ? ".job" : "");
}
