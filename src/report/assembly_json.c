// A kernel's facts as JSON. docs/asm.md specifies it: unknown values are null.

#include "report/assembly_parts.h"

#include <limits.h>
#include <math.h>

static void integer_or_null(struct kg_json *json, const char *key, int64_t value, bool known)
{
    if (known)
        kg_json_integer(json, key, value);
    else
        kg_json_text(json, key, NULL);
}

static void known_integer(struct kg_json *json, const char *key, int64_t value)
{
    integer_or_null(json, key, value, value >= 0);
}

static void number_or_null(struct kg_json *json, const char *key, double value, bool known)
{
    kg_json_number(json, key, known ? value : NAN);
}

// Null if the kernel has no such bound.
static void dimensions(struct kg_json *json, const char *key, const int size[3])
{
    if (size[0] <= 0) {
        kg_json_text(json, key, NULL);
        return;
    }
    kg_json_begin_array(json, key);
    for (int i = 0; i < 3; i++)
        kg_json_integer(json, NULL, size[i] > 0 ? size[i] : 1);
    kg_json_end_array(json);
}

void kg_assembly_file_json(struct kg_json *json, const struct kg_assembly_subject *subject)
{
    static const char *const formats[] = {
        [KG_ASM_PTX] = "ptx", [KG_ASM_CUBIN] = "cubin", [KG_ASM_OBJECT] = "object"};
    kg_json_text(json, "file", subject->name);
    kg_json_text(json, "format", formats[subject->file.format]);
    kg_json_text(json, "version", subject->file.version);
    kg_json_text(json, "positions", subject->file.format == KG_ASM_PTX ? "line" : "byte");
    kg_json_text(json, "notice", subject->notice);
}

static void add_mix(struct kg_json *json, const char *key, const double values[KG_WORK_COUNT])
{
    kg_json_begin_object(json, key);
    for (int w = 0; w < KG_WORK_COUNT; w++)
        if (values[w] > 0)
            kg_json_number(json, kg_work_key((enum kg_work)w), values[w]);
    kg_json_end_object(json);
}

static void add_loop(struct kg_json *json, enum kg_asm_format format,
                     const struct kg_asm_kernel *kernel, int index, bool spills)
{
    static const char *const kinds[] = {[KG_TRIPS_UNKNOWN] = "unknown",
                                        [KG_TRIPS_CONSTANT] = "constant",
                                        [KG_TRIPS_SYMBOL] = "symbol"};
    const struct kg_asm_loop *loop = &kernel->loops[index];
    const struct kg_flow_loop *flow = &kernel->flow.loops[index];
    kg_json_begin_object(json, NULL);
    kg_json_integer(json, "first", loop->first);
    kg_json_integer(json, "last", loop->last);
    kg_json_integer(json, "depth", flow->depth);
    integer_or_null(json, "parent", flow->parent, flow->parent >= 0);
    kg_json_boolean(json, "conditional", flow->conditional);
    kg_json_text(json, "trips_kind", kinds[loop->kind]);
    number_or_null(json, "trips", loop->trips, loop->kind == KG_TRIPS_CONSTANT);
    kg_json_text(json, "trips_symbol", loop->symbol);
    kg_json_number(json, "instructions", kg_mix_total(&loop->mix));
    number_or_null(json, "issue_cycles", loop->issue_cycles, format != KG_ASM_PTX);
    number_or_null(json, "stall_cycles", loop->stall_cycles, format == KG_ASM_CUBIN);
    integer_or_null(json, "spill_loads", loop->spill_loads, spills);
    integer_or_null(json, "spill_stores", loop->spill_stores, spills);
    integer_or_null(json, "spill_bytes", loop->spill_bytes, spills);
    kg_json_number(json, "tensor_flops", loop->mix.tensor_flops);
    kg_json_number(json, "flops", loop->mix.flops);
    add_mix(json, "mix", loop->mix.count);
    add_mix(json, "bytes", loop->mix.bytes);
    kg_json_end_object(json);
}

static void add_limits(struct kg_json *json, const struct kg_occupancy *occupancy)
{
    static const char *const keys[KG_LIMIT_COUNT] = {
        [KG_LIMIT_WARPS] = "threads",       [KG_LIMIT_BLOCKS] = "blocks",
        [KG_LIMIT_REGISTERS] = "registers", [KG_LIMIT_SHARED] = "shared_memory",
        [KG_LIMIT_BARRIERS] = "barriers",
    };
    kg_json_text(json, "limiter", keys[occupancy->limiter]);
    kg_json_begin_object(json, "limits");
    for (int l = 0; l < KG_LIMIT_COUNT; l++)
        integer_or_null(json, keys[l], occupancy->limit[l], occupancy->limit[l] != INT_MAX);
    kg_json_end_object(json);
}

static void add_occupancy(struct kg_json *json, const struct kg_assembly_launch *launch,
                          const struct kg_appraisal *appraisal)
{
    static const char *const origins[] = {
        [KG_THREADS_GIVEN] = "given",
        [KG_THREADS_REQUIRED] = "required",
        [KG_THREADS_BOUNDED] = "launch bounds",
        [KG_THREADS_ASSUMED] = "assumed",
    };
    if (!appraisal->sm) {
        kg_json_text(json, "occupancy", NULL);
        return;
    }
    const struct kg_occupancy *occupancy = &appraisal->occupancy;
    kg_json_begin_object(json, "occupancy");
    kg_json_text(json, "device", appraisal->gpu ? appraisal->gpu->name : NULL);
    kg_json_boolean(json, "device_assumed", appraisal->gpu_assumed);
    kg_json_integer(json, "threads", appraisal->threads);
    kg_json_text(json, "threads_from", origins[appraisal->threads_from]);
    kg_json_integer(json, "dynamic_shared_bytes", launch->shared_bytes);
    kg_json_boolean(json, "upper_bound", !appraisal->registers_known);
    kg_json_integer(json, "blocks", occupancy->blocks);
    kg_json_integer(json, "warps", occupancy->warps);
    kg_json_number(json, "share", occupancy->share);
    add_limits(json, occupancy);
    kg_json_end_object(json);
}

// Rates of the whole device.
static void add_gpu(struct kg_json *json, const struct kg_gpu *gpu)
{
    static const char *const formats[KG_MATRIX_COUNT] = {
        [KG_MATRIX_64] = "f64",   [KG_MATRIX_TF32] = "tf32", [KG_MATRIX_16] = "16_bits",
        [KG_MATRIX_8] = "8_bits", [KG_MATRIX_4] = "4_bits",
    };
    if (!gpu) {
        kg_json_text(json, "gpu", NULL);
        return;
    }
    kg_json_begin_object(json, "gpu");
    kg_json_text(json, "name", gpu->name);
    kg_json_integer(json, "sms", gpu->sms);
    kg_json_number(json, "clock_hz", gpu->clock);
    kg_json_number(json, "bytes_per_second", gpu->bandwidth);
    kg_json_integer(json, "l2_bytes", gpu->l2_bytes);
    kg_json_integer(json, "block_shared_bytes", gpu->sm->shared_opt_in);
    kg_json_begin_object(json, "matrix_flops_per_second");
    for (int f = 0; f < KG_MATRIX_COUNT; f++)
        kg_json_number(json, formats[f],
                       (double)kg_sm_matrix(gpu->sm, (enum kg_matrix)f) * gpu->sms * gpu->clock);
    kg_json_end_object(json);
    kg_json_end_object(json);
}

static void add_terms(struct kg_json *json, const char *key, const double term[KG_TERM_COUNT])
{
    kg_json_begin_object(json, key);
    for (int t = 0; t < KG_TERM_COUNT; t++)
        if (term[t] > 0)
            kg_json_number(json, kg_term_name((enum kg_term)t), term[t]);
    kg_json_end_object(json);
}

static void add_model(struct kg_json *json, const struct kg_appraisal *appraisal)
{
    if (!appraisal->has_model) {
        kg_json_text(json, "model", NULL);
        return;
    }
    const struct kg_model *model = &appraisal->model;
    kg_json_begin_object(json, "model");
    kg_json_number(json, "waves", model->waves.waves);
    kg_json_number(json, "tail", model->waves.idle);
    kg_json_number(json, "bound_seconds", model->bound);
    kg_json_text(json, "bound_by", kg_term_name(model->limiter));
    kg_json_number(json, "estimate_seconds", model->estimate);
    kg_json_text(json, "estimate_by", kg_term_name(model->expected_limiter));
    kg_json_text(json, "coefficients", appraisal->coefficients);
    add_terms(json, "bound_terms", model->term);
    add_terms(json, "expected_terms", model->expected);
    kg_json_begin_object(json, "features");
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        kg_json_number(json, kg_feature_name((enum kg_feature)f), model->feature[f]);
    kg_json_end_object(json);
    kg_json_end_object(json);
}

static void add_bounds(struct kg_json *json, const struct kg_asm_kernel *kernel)
{
    kg_json_begin_object(json, "launch_bounds");
    dimensions(json, "max_threads", kernel->max_threads);
    dimensions(json, "required_threads", kernel->required_threads);
    integer_or_null(json, "min_blocks", kernel->min_blocks, kernel->min_blocks > 0);
    integer_or_null(json, "max_registers", kernel->max_registers, kernel->max_registers > 0);
    dimensions(json, "cluster", kernel->cluster);
    integer_or_null(json, "max_cluster", kernel->max_cluster, kernel->max_cluster > 0);
    kg_json_end_object(json);
}

static void add_advice(struct kg_json *json, const struct kg_asm_kernel *kernel,
                       const struct kg_appraisal *appraisal)
{
    kg_json_begin_array(json, "advisories");
    for (int a = 0; a < kernel->advice_count + appraisal->note_count; a++) {
        struct kg_advice advice = kg_advice_at(kernel, appraisal, a);
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "level", advice.level == KG_ADVICE_WARNING ? "warning" : "note");
        const struct kg_bottleneck_row *bottleneck = kg_asm_advice_bottleneck(advice.code);
        kg_json_text(json, "code", advice.code);
        kg_json_text(json, "bottleneck", bottleneck ? bottleneck->key : NULL);
        kg_json_text(json, "text", advice.text);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
}

static void add_density(struct kg_json *json, const struct kg_asm_summary *summary)
{
    kg_json_begin_object(json, "work");
    kg_json_number(json, "flops", summary->flops);
    kg_json_boolean(json, "on_matrix_units", summary->tensor);
    kg_json_number(json, "shared_bytes", summary->shared_bytes);
    kg_json_number(json, "global_bytes", summary->global_bytes);
    kg_json_boolean(json, "more_bytes_unseen", summary->hidden_bytes);
    kg_json_number(json, "flop_per_shared_byte", kg_density(summary->flops, summary->shared_bytes));
    kg_json_number(json, "flop_per_global_byte", kg_density(summary->flops, summary->global_bytes));
    kg_json_end_object(json);
}

static void add_figures(struct kg_json *json, const struct kg_asm_kernel *kernel,
                        const struct kg_asm_summary *summary)
{
    known_integer(json, "registers", kernel->registers);
    known_integer(json, "shared_bytes", kernel->shared_bytes);
    known_integer(json, "stack_bytes", kernel->stack_bytes);
    known_integer(json, "spill_store_bytes", kernel->spill_store_bytes);
    known_integer(json, "spill_load_bytes", kernel->spill_load_bytes);
    known_integer(json, "loop_spill_bytes", summary->loop_spill_bytes);
    known_integer(json, "barriers", kernel->barriers);
    known_integer(json, "parameter_bytes", kernel->parameter_bytes);
    add_bounds(json, kernel);
    kg_json_integer(json, "instructions", kernel->instructions);
    kg_json_begin_object(json, "opcodes");
    for (int o = 0; o < kernel->opcode_count; o++)
        kg_json_integer(json, kernel->opcodes[o].name, kernel->opcodes[o].count);
    kg_json_end_object(json);
    add_mix(json, "mix", kernel->mix.count);
    add_mix(json, "bytes", kernel->mix.bytes);
}

void kg_assembly_kernel_json(struct kg_json *json, const char *key,
                             const struct kg_assembly_subject *subject,
                             const struct kg_asm_kernel *kernel,
                             const struct kg_assembly_launch *launch,
                             const struct kg_appraisal *appraisal)
{
    const struct kg_asm_summary *summary = &appraisal->summary;
    kg_json_begin_object(json, key);
    kg_json_text(json, "name", kernel->name);
    kg_json_text(json, "arch", kernel->arch);
    add_figures(json, kernel, summary);
    kg_json_begin_array(json, "loops");
    for (int l = 0; l < kernel->flow.loop_count; l++)
        add_loop(json, subject->file.format, kernel, l, summary->loop_spill_loads >= 0);
    kg_json_end_array(json);
    integer_or_null(json, "main_loop", summary->main_loop, summary->main_loop >= 0);
    add_density(json, summary);
    add_occupancy(json, launch, appraisal);
    add_gpu(json, appraisal->gpu);
    add_model(json, appraisal);
    kg_json_text(json, "missing", appraisal->missing[0] ? appraisal->missing : NULL);
    kg_json_number(json, "points", appraisal->points);
    add_advice(json, kernel, appraisal);
    kg_json_end_object(json);
}
