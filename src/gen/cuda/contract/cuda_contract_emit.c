// The job of a product, and the functions around it: see cuda_contract.h and
// kernels/cuda/contract_job.cuh, which says what a job is.
//
// A definition may give tensors and sizes the names of the job's members, so the arguments are in a
// struct of their own, which each method unpacks. The names of parameters are reserved words for
// kg_emit_name.

#include "gen/cuda/contract/cuda_contract_writer.h"

#include "gen/arguments.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/shared/axes.h"

#include <stdio.h>

static const struct kg_nest *nest_at(const struct kg_cuda_contract_plan *plan, int i)
{
    return plan->group->problem->nests[plan->group->first + i];
}

struct kg_contract_writer kg_contract_writer_make(const struct kg_cuda_contract_plan *plan,
                                                  struct kg_code *code)
{
    struct kg_contract_writer writer = {.plan = plan, .code = code};
    writer.names.contiguous = plan->group->problem->contiguous;
    writer.names.narrow = kg_group_narrow(plan->group);
    return writer;
}

// ---- The arguments ----

// Calls `add` for each member of the struct: the arguments of the group, and the strides of
// contiguous tensors, which are computed.
static void each_member(const struct kg_cuda_contract_plan *plan, struct kg_text *text,
                        void (*add)(struct kg_text *text, const struct kg_group *group,
                                    const struct kg_argument *argument, const char *separator))
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    const struct kg_problem *problem = plan->group->problem;
    int count = kg_group_arguments(plan->group, arguments);
    for (int i = 0; i < count; i++)
        if (arguments[i].kind != KG_ARGUMENT_SCRATCH)
            add(text, plan->group, &arguments[i], i > 0 ? ", " : "");
    for (int i = 0; problem->contiguous && i < count; i++)
        for (int dim = 0; arguments[i].kind == KG_ARGUMENT_TENSOR &&
                          dim + 1 < problem->tensors[arguments[i].id]->rank;
             dim++)
            add(text, plan->group, &(struct kg_argument){KG_ARGUMENT_STRIDE, arguments[i].id, dim},
                ", ");
}

static void add_name(struct kg_text *text, const struct kg_group *group,
                     const struct kg_argument *argument, const char *separator)
{
    const struct kg_problem *problem = group->problem;
    kg_text_add(text, separator);
    kg_emit_name(text, argument->kind == KG_ARGUMENT_SIZE ? problem->op->sizes[argument->id]->name
                                                          : problem->tensors[argument->id]->name);
    if (argument->kind == KG_ARGUMENT_STRIDE)
        kg_text_format(text, "_s%d", argument->dim);
}

static void add_place(struct kg_text *text, const struct kg_group *group,
                      const struct kg_argument *argument, const char *separator)
{
    bool is_place = argument->kind == KG_ARGUMENT_TENSOR;
    kg_text_add(text, separator);
    kg_text_add(text, is_place ? "kg_after(" : "");
    add_name(text, group, argument, "");
    kg_text_add(text, is_place ? ")" : "");
}

static void add_member(struct kg_text *text, const struct kg_group *group,
                       const struct kg_argument *argument, const char *separator)
{
    (void)separator;
    const struct kg_tensor *tensor = group->problem->tensors[argument->id];
    if (argument->kind == KG_ARGUMENT_TENSOR)
        kg_text_format(text, "    %s%s *__restrict__ ",
                       kg_group_writes(group, tensor) ? "" : "const ",
                       kg_emit_tensor_storage(tensor));
    else
        kg_text_add(text, "    int64_t ");
    add_name(text, group, argument, "");
    kg_text_add(text, ";\n");
}

static void emit_given(struct kg_contract_writer *writer)
{
    kg_code_line(writer->code, "struct %s_given {", writer->plan->entry);
    each_member(writer->plan, writer->code->text, add_member);
    kg_code_line(writer->code, "};\n");
}

void kg_contract_unpack(struct kg_contract_writer *writer)
{
    kg_code_begin(writer->code);
    kg_text_add(writer->code->text, "[[maybe_unused]] const auto &[");
    each_member(writer->plan, writer->code->text, add_name);
    kg_text_add(writer->code->text, "] = given;");
    kg_code_end(writer->code);
}

// ---- Members of the job ----

void kg_contract_emit_axes(struct kg_contract_writer *writer, enum kg_contract_role part,
                           const char *position)
{
    const struct kg_contract *contract = &writer->plan->contract;
    char rest[8];
    snprintf(rest, sizeof rest, "at%d", part);
    kg_cuda_axes(writer->code, contract->nest, contract->axes[part], contract->axis_count[part],
                 rest, position);
}

static void emit_counts(struct kg_contract_writer *writer)
{
    static const char *const names[KG_CONTRACT_ROLES] = {"batches", "rows", "columns", "depth"};
    const struct kg_contract *contract = &writer->plan->contract;
    struct kg_code *code = writer->code;
    for (int part = 0; part < KG_CONTRACT_ROLES; part++) {
        kg_code_open(code, "KG_METHOD int64_t %s() const", names[part]);
        if (contract->axis_count[part] > 0)
            kg_contract_unpack(writer);
        kg_code_begin(code);
        kg_text_add(code->text, contract->axis_count[part] == 0 ? "return 1" : "return ");
        for (int i = 0; i < contract->axis_count[part]; i++) {
            kg_text_add(code->text, i > 0 ? " * " : "");
            kg_axes_extent(code->text, contract->nest->axes[contract->axes[part][i]]);
        }
        kg_text_add(code->text, ";");
        kg_code_end(code);
        kg_code_close(code);
    }
}

static enum kg_contract_role lines_of(int operand)
{
    return operand ? KG_CONTRACT_N : KG_CONTRACT_M;
}

// For operand A "item, row, step"; for B the step comes before the column.
static const char *parameters_of(int operand)
{
    return operand ? "int64_t item, int64_t step, int64_t column"
                   : "int64_t item, int64_t row, int64_t step";
}

static void emit_operand(struct kg_contract_writer *writer, int operand)
{
    const struct kg_contract *contract = &writer->plan->contract;
    struct kg_code *code = writer->code;
    kg_code_open(code, "KG_METHOD compute %c(%s) const", "ab"[operand], parameters_of(operand));
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
    kg_contract_emit_axes(writer, lines_of(operand), operand ? "column" : "row");
    kg_contract_emit_axes(writer, KG_CONTRACT_K, "step");
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    for (int i = 0; i < contract->operands[operand].count; i++) {
        const struct kg_contract_factor *factor = &contract->operands[operand].factors[i];
        bool alone = contract->operands[operand].count == 1 && !factor->divides;
        kg_text_add(code->text, factor->divides ? i > 0 ? " / " : "1 / " : i > 0 ? " * " : "");
        kg_text_add(code->text, alone ? "" : "(");
        kg_emit_value(code->text, contract->nest, factor->expr, contract->type, &writer->names);
        kg_text_add(code->text, alone ? "" : ")");
    }
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_close(code);
}

// The stride of an axis in elements: "2 * x_s0 + 1".
static void print_stride(struct kg_contract_writer *writer, const struct kg_access *access,
                         int axis)
{
    struct kg_text *text = writer->code->text;
    const char *plus = "";
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        int64_t coefficient = access->map[dim].coefficient[axis];
        if (coefficient == 0)
            continue;
        bool neighbours = dim + 1 == access->tensor->rank && writer->names.contiguous;
        kg_text_add(text, plus);
        plus = " + ";
        if (neighbours || coefficient != 1)
            kg_text_format(text, "%lld%s", (long long)coefficient, neighbours ? "" : " * ");
        if (neighbours)
            continue;
        kg_emit_name(text, access->tensor->name);
        kg_text_format(text, "_s%d", dim);
    }
    kg_text_add(text, *plus ? "" : "0");
}

// The offset of K index `step` from K index 0, in elements.
static void emit_k_offset(struct kg_contract_writer *writer, int operand)
{
    const struct kg_contract *contract = &writer->plan->contract;
    const struct kg_access *access = writer->plan->plain[operand];
    struct kg_code *code = writer->code;
    int count = contract->axis_count[KG_CONTRACT_K];
    kg_code_open(code, "KG_METHOD int64_t %c_k_offset(int64_t step) const", "ab"[operand]);
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_K, "step");
    kg_code_begin(code);
    kg_text_add(code->text, count == 0 ? "return 0" : "return ");
    for (int i = 0; i < count; i++) {
        int axis = contract->axes[KG_CONTRACT_K][i];
        bool from_zero = kg_axes_from_zero(contract->nest->axes[axis]);
        kg_text_format(code->text, "%s%si%d", i > 0 ? " + " : "", from_zero ? "" : "(", axis);
        if (!from_zero) {
            kg_text_add(code->text, " - ");
            kg_emit_axis_begin(code->text, contract->nest->axes[axis]);
            kg_text_add(code->text, ")");
        }
        kg_text_add(code->text, " * (");
        print_stride(writer, access, axis);
        kg_text_add(code->text, ")");
    }
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_close(code);
}

static void emit_place(struct kg_contract_writer *writer, int operand)
{
    const struct kg_contract *contract = &writer->plan->contract;
    const struct kg_access *access = writer->plan->plain[operand];
    struct kg_code *code = writer->code;
    kg_code_open(code, "KG_METHOD const element_%c *%c_at(%s) const", "ab"[operand], "ab"[operand],
                 parameters_of(operand));
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
    kg_contract_emit_axes(writer, lines_of(operand), operand ? "column" : "row");
    kg_contract_emit_axes(writer, KG_CONTRACT_K, "step");
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    kg_emit_name(code->text, access->tensor->name);
    kg_text_add(code->text, " + (");
    kg_emit_offset(code->text, contract->nest, access, &writer->names);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_close(code);
}

static void emit_widen(struct kg_contract_writer *writer, int operand)
{
    enum kg_dtype dtype = kg_cuda_contract_dtype(writer->plan, operand);
    struct kg_code *code = writer->code;
    kg_code_open(code, "KG_METHOD compute widen_%c(element_%c element) const", "ab"[operand],
                 "ab"[operand]);
    kg_code_line(
        code, kg_dtype_is_narrow_float(dtype) ? "return kg_unpack_%s(element);" : "return element;",
        kg_dtypes[dtype].name);
    kg_code_close(code);
}

// ---- The epilogue ----

// "kg_unpack_f16(in_column.e0)".
static void print_epilogue_read(const struct kg_contract_writer *writer, struct kg_text *text,
                                int number)
{
    static const char *const names[KG_EPILOGUE_SCOPE_COUNT] = {"in_row", "in_column", "in_element"};
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    kg_cuda_contract_epilogue_reads(writer->plan, list);
    enum kg_dtype dtype = kg_emit_tensor_dtype(list[number].access->tensor);
    bool is_narrow = kg_dtype_is_narrow_float(dtype);
    if (is_narrow)
        kg_text_format(text, "kg_unpack_%s(", kg_dtypes[dtype].name);
    kg_text_add(text, names[list[number].scope]);
    if (list[number].scope != KG_EPILOGUE_PER_ELEMENT)
        kg_text_format(text, ".e%d", number);
    kg_text_add(text, is_narrow ? ")" : "");
}

// Prints the read of a value that the group computed earlier (rounded to the dtype it is stored
// in), or of one of the listed epilogue reads. Returns false for all other reads.
static bool print_read(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_contract_writer *writer = user;
    const struct kg_tensor *tensor = access->tensor;
    int maker = kg_group_maker(writer->plan->group, tensor);
    int listed = maker < 0 ? kg_cuda_contract_find_epilogue_read(writer->plan, access) : -1;
    if (listed >= 0)
        print_epilogue_read(writer, text, listed);
    if (maker < 0)
        return listed >= 0;
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    char value[32];
    snprintf(value, sizeof value, "v%d", tensor->id);
    if (!kg_dtype_is_computed(dtype))
        kg_text_format(text, "kg_cast_%s(", kg_dtypes[dtype].name);
    else
        kg_text_add(text, "(");
    kg_emit_convert(text, kg_emit_nest_type(nest_at(writer->plan, maker)), tensor->compute, value);
    kg_text_add(text, ")");
    return true;
}

// Declares v<id>, the value of statement `i`.
static void emit_value(struct kg_contract_writer *writer, int i)
{
    const struct kg_contract *contract = &writer->plan->contract;
    const struct kg_nest *nest = nest_at(writer->plan, i);
    struct kg_emit_names names = writer->names;
    struct kg_code *code = writer->code;
    enum kg_type type = kg_emit_nest_type(nest);
    names.user = writer;
    names.read = print_read;
    kg_code_begin(code);
    kg_text_format(code->text, "const %s v%d = ", kg_emit_type(type), nest->output->id);
    if (i > 0) {
        kg_emit_value(code->text, nest, nest->body, type, &names);
    } else {
        kg_text_add(code->text, contract->negative ? "-total" : "total");
        for (int c = 0; c < contract->constant_count; c++) {
            kg_text_add(code->text, contract->constants[c].divides ? " / (" : " * (");
            kg_emit_value(code->text, nest, contract->constants[c].expr, contract->type,
                          &writer->names);
            kg_text_add(code->text, ")");
        }
    }
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

static void emit_store(struct kg_contract_writer *writer, int i)
{
    const struct kg_nest *nest = nest_at(writer->plan, i);
    char value[32];
    snprintf(value, sizeof value, "v%d", nest->output->id);
    kg_code_begin(writer->code);
    kg_emit_store(writer->code->text, nest, &writer->names, kg_emit_nest_type(nest), value);
    kg_code_end(writer->code);
}

// "kg_pack_f16(v3)": the value of `type` as an element in memory.
static void print_element(struct kg_text *text, enum kg_dtype dtype, enum kg_type type,
                          const char *value)
{
    bool is_narrow = kg_dtype_is_narrow_float(dtype);
    // Conversion through f32 would round f64 and large integers twice.
    bool wide = is_narrow && (type == KG_TYPE_F64 || type == KG_TYPE_I64);
    enum kg_type to = wide ? KG_TYPE_F64 : kg_dtypes[dtype].compute;
    if (is_narrow)
        kg_text_format(text, "kg_pack_%s%s(", kg_dtypes[dtype].name, wide ? "_f64" : "");
    else
        kg_text_format(text, "(%s)(", kg_emit_storage(dtype));
    kg_emit_convert(text, type, to, value);
    kg_text_add(text, ")");
}

static void open_finish(struct kg_contract_writer *writer, const char *head, const char *last)
{
    kg_code_open(writer->code, "KG_METHOD %s(int64_t item, int64_t row, int64_t column%s) const",
                 head, last);
    kg_contract_unpack(writer);
    kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
    kg_contract_emit_axes(writer, KG_CONTRACT_M, "row");
    kg_contract_emit_axes(writer, KG_CONTRACT_N, "column");
}

static void print_place(struct kg_contract_writer *writer,
                        const struct kg_cuda_contract_epilogue_read *read)
{
    kg_emit_name(writer->code->text, read->access->tensor->name);
    kg_text_add(writer->code->text, " + (");
    kg_emit_offset(writer->code->text, read->nest, read->access, &writer->names);
    kg_text_add(writer->code->text, ")");
}

// The values that all elements of a row (or column) share: the struct that holds them, and the
// methods that load and prefetch them.
static void emit_line_values(struct kg_contract_writer *writer,
                             enum kg_cuda_contract_epilogue_scope scope)
{
    const char *name = scope == KG_EPILOGUE_PER_COLUMN ? "column" : "row";
    struct kg_code *code = writer->code;
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    int count = kg_cuda_contract_epilogue_reads(writer->plan, list);
    kg_code_line(code, "struct %s_values {", name);
    for (int i = 0; i < count; i++)
        if (list[i].scope == scope)
            kg_code_line(code, "    %s e%d;", kg_emit_tensor_storage(list[i].access->tensor), i);
    kg_code_line(code, "};");
    for (int prefetches = 0; prefetches < 2; prefetches++) {
        kg_code_open(code,
                     prefetches ? "KG_METHOD void prefetch_%s(int64_t item, int64_t %s) const"
                                : "KG_METHOD %s_values load_%s(int64_t item, int64_t %s) const",
                     name, name, name);
        kg_contract_unpack(writer);
        kg_contract_emit_axes(writer, KG_CONTRACT_BATCH, "item");
        kg_contract_emit_axes(
            writer, scope == KG_EPILOGUE_PER_COLUMN ? KG_CONTRACT_N : KG_CONTRACT_M, name);
        kg_code_begin(code);
        const char *before = prefetches ? "kg_prefetch_l2(" : "return {*(";
        for (int i = 0; i < count; i++) {
            if (list[i].scope != scope)
                continue;
            kg_text_add(code->text, before);
            print_place(writer, &list[i]);
            kg_text_add(code->text, prefetches ? "); " : ")");
            before = prefetches ? before : ", *(";
        }
        kg_text_add(code->text, prefetches ? "" : *before == ',' ? "};" : "return {};");
        kg_code_end(code);
        kg_code_close(code);
    }
}

// The address of the per-element value, and whether two adjacent columns can be read as one word.
static void emit_element_values(struct kg_contract_writer *writer)
{
    struct kg_code *code = writer->code;
    struct kg_cuda_contract_epilogue_read list[KG_CONTRACT_EPILOGUE_READS];
    int i = kg_cuda_contract_epilogue_reads(writer->plan, list);
    while (i > 0 && list[i - 1].scope != KG_EPILOGUE_PER_ELEMENT)
        i--;
    const struct kg_tensor *tensor = i > 0 ? list[i - 1].access->tensor : NULL;
    open_finish(writer, "const uint16_t *element_at", "");
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    if (tensor)
        print_place(writer, &list[i - 1]);
    else
        kg_text_add(code->text, "nullptr");
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_open(code, "KG_METHOD bool elements_in_pairs() const");
    kg_contract_unpack(writer);
    kg_code_begin(code);
    kg_text_add(code->text, tensor ? "return ((uint64_t)" : "return false");
    if (tensor) {
        kg_emit_name(code->text, tensor->name);
        kg_text_add(code->text, " & 3) == 0");
    }
    for (int dim = 0; tensor && dim < tensor->rank; dim++) {
        bool last = dim + 1 == tensor->rank;
        if (last && writer->names.contiguous)
            continue;
        kg_text_add(code->text, last ? " && " : " && (");
        kg_emit_name(code->text, tensor->name);
        kg_text_format(code->text, last ? "_s%d == 1" : "_s%d & 1) == 0", dim);
    }
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_close(code);
}

static void emit_finish(struct kg_contract_writer *writer)
{
    struct kg_code *code = writer->code;
    int last = kg_cuda_contract_last(writer->plan);
    const struct kg_nest *nest = nest_at(writer->plan, last);
    char value[32];
    snprintf(value, sizeof value, "v%d", nest->output->id);
    open_finish(writer, "out value",
                ", compute total, const row_values &in_row, const column_values &in_column, "
                "uint16_t in_element");
    for (int i = 0; i <= last; i++) {
        emit_value(writer, i);
        if (i < last && !kg_group_is_private(writer->plan->group, nest_at(writer->plan, i)->output))
            emit_store(writer, i);
    }
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    print_element(code->text, kg_emit_tensor_dtype(nest->output), kg_emit_nest_type(nest), value);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_open(code, "KG_METHOD out value(int64_t item, int64_t row, int64_t column, "
                       "compute total) const");
    kg_code_line(code, "return value(item, row, column, total, load_row(item, row), "
                       "load_column(item, column), "
                       "PER_ELEMENT ? *element_at(item, row, column) : (uint16_t)0);");
    kg_code_close(code);
    open_finish(writer, "out *out_at", "");
    kg_code_begin(code);
    kg_text_add(code->text, "return ");
    kg_emit_name(code->text, nest->output->name);
    kg_text_add(code->text, " + (");
    kg_emit_output_offset(code->text, nest, &writer->names);
    kg_text_add(code->text, ");");
    kg_code_end(code);
    kg_code_close(code);
    kg_code_open(code, "KG_METHOD void store(int64_t item, int64_t row, int64_t column, "
                       "out element) const");
    kg_code_line(code, "*out_at(item, row, column) = element;");
    kg_code_close(code);
}

// ---- The job ----

void kg_cuda_contract_emit_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_contract_writer writer = kg_contract_writer_make(plan, code);
    const struct kg_tensor *output = kg_cuda_contract_output(plan);
    emit_given(&writer);
    kg_code_line(code, "struct %s_job {", plan->entry);
    code->depth++;
    kg_code_line(code, "using compute = %s;", kg_emit_type(plan->contract.type));
    for (int operand = 0; operand < 2; operand++)
        kg_code_line(code, "using element_%c = %s;", "ab"[operand],
                     kg_emit_storage(kg_cuda_contract_dtype(plan, operand)));
    kg_code_line(code, "using out = %s;", kg_emit_tensor_storage(output));
    kg_code_line(
        code, "enum : bool { PLAIN_A = %d, PLAIN_B = %d, K_MAJOR_A = %d, K_MAJOR_B = %d };",
        plan->plain[0] != NULL, plan->plain[1] != NULL, plan->k_major[0], plan->k_major[1]);
    struct kg_cuda_contract_epilogue_read reads[KG_CONTRACT_EPILOGUE_READS];
    bool by[KG_EPILOGUE_SCOPE_COUNT] = {false};
    for (int i = kg_cuda_contract_epilogue_reads(plan, reads) - 1; i >= 0; i--)
        by[reads[i].scope] = true;
    kg_code_line(
        code,
        "enum : bool { USES_POSITION = %d, PER_ROW = %d, PER_COLUMN = %d, PER_ELEMENT = %d };",
        kg_cuda_contract_epilogue_uses_position(plan), by[KG_EPILOGUE_PER_ROW],
        by[KG_EPILOGUE_PER_COLUMN], by[KG_EPILOGUE_PER_ELEMENT]);
    kg_code_line(code, "enum : bool { HAS_STRIDES_OUT = %d };",
                 kg_cuda_contract_output_has_strides(plan));
    kg_code_line(code, "%s_given given;", plan->entry);
    emit_counts(&writer);
    for (int operand = 0; operand < 2; operand++) {
        emit_operand(&writer, operand);
        if (!plan->plain[operand])
            continue;
        emit_place(&writer, operand);
        emit_k_offset(&writer, operand);
        emit_widen(&writer, operand);
    }
    emit_line_values(&writer, KG_EPILOGUE_PER_ROW);
    emit_line_values(&writer, KG_EPILOGUE_PER_COLUMN);
    emit_element_values(&writer);
    emit_finish(&writer);
    code->depth--;
    kg_code_line(code, "};\n");
}

void kg_cuda_contract_declare_job(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    kg_code_begin(code);
    if (plan->config.swap)
        kg_text_format(code->text, "const kg_swapped<%s_job> job = {{{", plan->entry);
    else
        kg_text_format(code->text, "const %s_job job = {{", plan->entry);
    each_member(plan, code->text, plan->waits ? add_place : add_name);
    kg_text_add(code->text, plan->config.swap ? "}}};" : "}};");
    kg_code_end(code);
}

void kg_cuda_contract_emit_fold(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                int number)
{
    enum { THREADS = 256 };
    if (plan->config.split_k == 1)
        return;
    kg_text_add(code->text, "\n");
    kg_cuda_open_function(code, plan->group, plan->entry, number, THREADS, 0);
    kg_cuda_contract_declare_job(code, plan);
    kg_code_line(code, "kg_contract_fold<%d>(job, scratch);", plan->config.split_k);
    kg_code_close(code);
}
