// From the text of an op to a verdict on one family's kernels, for tests: the whole op is one group
// of the family. A kernel is compiled once and then run for many sizes and kinds of input, its
// outputs poisoned and fenced, and compared with the reference.

#ifndef KG_TESTS_FAMILY_BENCH_H
#define KG_TESTS_FAMILY_BENCH_H

#include "device/device.h"
#include "gen/target.h"
#include "support/case_turns.h"
#include "test.h"
#include "verify/reference.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BENCH_FENCE 64 // bytes before and after every output; a line of the cache

struct bench {
    struct kg_device *device;
    struct kg_arena arena;
    struct kg_error error;
    struct kg_op *instance;
    const struct kg_family *family;
    struct kg_space space;
    char source_text[256]; // of the config in use, for messages
    struct kg_kernel *kernel;
};

enum bench_inputs { BENCH_SIGNED, BENCH_SPECIAL, BENCH_TIES, BENCH_INPUT_KINDS };

static void bench_stop(const struct bench *bench, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, bench->error.text);
    exit(1);
}

// The folder of compiled kernels is removed by bench_close.
static char bench_folder[] = "/tmp/kg-bench-XXXXXX";

static void bench_open(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    if (!mkdtemp(bench_folder) ||
        kg_device_open("host", bench_folder, 2, &bench->device, &bench->error) != KG_OK)
        bench_stop(bench, "host device");
}

// `dtype` binds every type variable; NULL takes the first one allowed.
static void bench_define(struct bench *bench, const char *text, const char *dtype)
{
    struct kg_file *file;
    struct kg_op *op;
    struct kg_bindings bindings;
    kg_arena_free(&bench->arena);
    if (kg_lang_parse(&bench->arena, "test.kg", text, strlen(text), &file, &bench->error) !=
            KG_OK ||
        kg_lang_select(file, NULL, &op, &bench->error) != KG_OK)
        bench_stop(bench, text);
    kg_lang_default_bindings(op, &bindings);
    for (int v = 0; dtype && v < op->typevar_count; v++)
        bindings.dtypes[v] = kg_dtype_find(dtype, strlen(dtype));
    if (kg_lang_instantiate(&bench->arena, op, &bindings, &bench->instance, &bench->error) != KG_OK)
        bench_stop(bench, "instantiate");
}

static void bench_sizes(const struct bench *bench, const char *text, int64_t *sizes)
{
    for (int s = 0; s < bench->instance->size_count; s++) {
        const struct kg_size *size = bench->instance->sizes[s];
        size_t length = strlen(size->name);
        sizes[s] = size->value;
        for (const char *at = text; !size->is_param && (at = strstr(at, size->name)); at++)
            if (at[length] == '=' && (at == text || at[-1] == ' '))
                sizes[s] = strtoll(at + length + 1, NULL, 10);
    }
}

// `strides`: every tensor lies spread out, inner dimensions two apart.
static struct kg_problem *bench_problem(struct bench *bench, const char *sizes_text, bool strides)
{
    int64_t sizes[KG_MAX_SIZES] = {0}, wide[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    struct kg_problem *problem = NULL;
    bench_sizes(bench, sizes_text, sizes);
    for (int t = 0; t < bench->instance->tensor_count; t++) {
        const struct kg_tensor *tensor = bench->instance->tensors[t];
        int64_t stride = 2, extent;
        for (int d = tensor->rank - 1; d >= 0; d--) {
            if (kg_lang_size_value(tensor->dims[d], sizes, &extent, &bench->error) != KG_OK)
                bench_stop(bench, sizes_text);
            wide[t][d] = stride;
            stride = stride * (extent > 0 ? extent : 1) + 3;
        }
    }
    if (kg_problem_make(bench->instance, sizes, strides ? wide : NULL, &problem, &bench->error) !=
        KG_OK)
        bench_stop(bench, sizes_text);
    return problem;
}

static struct kg_group bench_group(const struct kg_problem *problem)
{
    return (struct kg_group){problem, 0, problem->nest_count};
}

// Compiles the config (NULL: the guess) for problems like this one. False when it is not valid.
static bool bench_compile(struct bench *bench, const struct kg_problem *problem, const char *family,
                          const struct kg_config *config)
{
    struct kg_group group = bench_group(problem);
    struct kg_text reason = {0}, source = {0}, name = {0};
    struct kg_config chosen = {0};
    struct kg_binary binary = {0};
    bench->family = kg_target_family(&kg_target_host, family);
    bench->device->backend->unload(bench->kernel);
    bench->kernel = NULL;
    const struct kg_match *match =
        kg_match_find(bench->family, &group, &bench->device->facts, &reason);
    if (!match || !kg_match_is_advised(match, &reason)) {
        kg_error_set(&bench->error, KG_ERROR_UNSUPPORTED, "%s", kg_text_string(&reason));
        bench_stop(bench, bench->instance->source);
    }
    memset(&bench->space, 0, sizeof bench->space);
    bench->family->space(match, &bench->space);
    if (config)
        chosen = *config;
    else
        bench->family->guess(match, &chosen);
    kg_config_print(&bench->space, &chosen, &name);
    snprintf(bench->source_text, sizeof bench->source_text, "%s", kg_text_string(&name));
    bool valid = bench->family->valid(match, &chosen, &reason);
    if (valid) {
        CHECK(bench->family->emit(match, &chosen, "kernel", &source));
        struct kg_source unit = {kg_text_string(&source), "kernel", ""};
        if (getenv("KG_SHOW"))
            puts(unit.text);
        if (bench->device->backend->compile(bench->device, &unit, 60.0, &binary, &bench->error) !=
                KG_OK ||
            bench->device->backend->load(bench->device, &binary, "kernel", &bench->kernel,
                                         &bench->error) != KG_OK) {
            bench_stop(bench, bench->source_text);
        }
        kg_binary_free(&binary);
    } else {
        CHECK(config && reason.length > 0); // a guess is always valid
    }
    kg_text_free(&reason);
    kg_text_free(&source);
    kg_text_free(&name);
    return valid;
}

static uint64_t bench_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static double bench_value(enum bench_inputs kind, bool is_float, uint64_t *state)
{
    double unit = (double)bench_random(state) / 1073741824.0 - 1.0;
    if (kind == BENCH_TIES)
        return floor(unit * 2.0);
    if (!is_float)
        return floor(unit * 9.0);
    if (kind == BENCH_SPECIAL && bench_random(state) % 61 == 0) {
        static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e-40};
        return special[bench_random(state) % 6];
    }
    return unit * exp2((double)(bench_random(state) % 8) - 4.0);
}

// Behind an output stands its fence, behind an input nothing.
static size_t bench_fences(const struct kg_problem *problem, int id)
{
    return id < problem->op->input_count ? 1 : 2;
}

// Bytes that are mapped for a tensor, and one page more, which nobody may read.
static size_t bench_mapped(const struct kg_problem *problem, int id)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = problem->layouts[id].bytes + 3 * BENCH_FENCE;
    return (bytes + page - 1) / page * page;
}

static unsigned char *bench_map(const struct kg_problem *problem, int id)
{
    const size_t mapped = bench_mapped(problem, id), page = (size_t)sysconf(_SC_PAGESIZE);
    // At the start of a line: so are most tensors, and some kernels have a path for those.
    const size_t lines = (problem->layouts[id].bytes + BENCH_FENCE - 1) / BENCH_FENCE;
    const size_t fences = bench_fences(problem, id);
    char *whole = mmap(NULL, mapped + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED || mprotect(whole, mapped, PROT_READ | PROT_WRITE) != 0)
        exit(1);
    return (unsigned char *)whole + mapped - (lines + fences) * BENCH_FENCE;
}

static void bench_unmap(const struct kg_problem *problem, int id, unsigned char *memory)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const size_t bytes = bench_mapped(problem, id) + page;
    const size_t lines = (problem->layouts[id].bytes + BENCH_FENCE - 1) / BENCH_FENCE;
    const size_t fences = bench_fences(problem, id);
    munmap(memory + (lines + fences) * BENCH_FENCE + page - bytes, bytes);
}

static void *bench_memory(const struct kg_problem *problem, int id, enum bench_inputs kind)
{
    enum kg_dtype dtype = problem->tensors[id]->type.dtype;
    size_t bytes = problem->layouts[id].bytes;
    uint64_t state = (uint64_t)id * 977 + (uint64_t)kind + bytes;
    unsigned char *memory = bench_map(problem, id);
    memset(memory, 0xa5, bytes + bench_fences(problem, id) * BENCH_FENCE);
    if (id < problem->op->input_count)
        for (size_t i = 0; i < bytes * 8 / (size_t)kg_dtypes[dtype].bits; i++) {
            double value = bench_value(kind, kg_dtypes[dtype].is_float, &state);
            if (dtype == KG_U8 || dtype == KG_BOOL)
                value = dtype == KG_BOOL ? value > 0.0 : fabs(value);
            kg_dtype_store(dtype, memory + BENCH_FENCE, i, value);
        }
    return memory;
}

static bool bench_is_near(const struct kg_tensor *tensor, const void *data, size_t at,
                          const struct kg_expected *expected, int64_t i, double *got)
{
    enum kg_dtype dtype = tensor->type.dtype;
    if (expected->slack && isinf(expected->slack[i]))
        return true;
    if (expected->integer) {
        *got = (double)kg_dtype_load_integer(dtype, data, at);
        return kg_dtype_load_integer(dtype, data, at) == expected->integer[i];
    }
    *got = kg_dtype_load(dtype, data, at);
    double wanted = kg_dtype_round(dtype, expected->value[i]);
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(*got) : *got == wanted;
    double least = fmax(fabs(wanted), kg_dtypes[dtype].smallest); // denormals round coarsely
    double slack = expected->slack[i] + kg_dtypes[dtype].epsilon * least;
    return fabs(*got - expected->value[i]) <= slack;
}

// Every index of the tensor in row-major order: the element it stands for in memory.
static size_t bench_place(const struct kg_layout *layout, int rank, int64_t linear)
{
    int64_t place = 0;
    for (int d = rank - 1; d >= 0; d--) {
        place += linear % layout->shape[d] * layout->stride[d];
        linear /= layout->shape[d];
    }
    return (size_t)place;
}

static void bench_compare(const struct bench *bench, const struct kg_problem *problem, int id,
                          const unsigned char *memory, const struct kg_expected *expected,
                          const char *sizes, int kind)
{
    const struct kg_tensor *tensor = problem->tensors[id];
    const struct kg_layout *layout = &problem->layouts[id];
    int wrong = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        double got = 0.0;
        size_t at = bench_place(layout, tensor->rank, i);
        if (bench_is_near(tensor, memory + BENCH_FENCE, at, expected, i, &got))
            continue;
        if (wrong++ == 0)
            fprintf(stderr, "%s %s, inputs %d: %s[%lld] is %.9g, not %.9g (slack %.3g) in\n%s\n",
                    sizes, bench->source_text, kind, tensor->name, (long long)i, got,
                    expected->value ? expected->value[i] : (double)expected->integer[i],
                    expected->slack ? expected->slack[i] : 0.0, problem->op->source);
    }
    CHECK(wrong == 0);
    bool fenced = true;
    for (size_t i = 0; i < BENCH_FENCE; i++)
        fenced &= memory[i] == 0xa5 && memory[BENCH_FENCE + layout->bytes + i] == 0xa5;
    CHECK(fenced);
}

// Runs the kernel on one kind of inputs and compares.
static void bench_run(struct bench *bench, const char *sizes, bool strides, enum bench_inputs kind)
{
    struct kg_problem *problem = bench_problem(bench, sizes, strides);
    int inputs = problem->op->input_count, outputs = problem->op->output_count;
    unsigned char *memory[KG_MAX_TENSORS] = {0};
    void *tensors[KG_MAX_TENSORS + KG_MAX_NESTS] = {0};
    int64_t strides_of[(KG_MAX_TENSORS + KG_MAX_NESTS) * KG_MAX_RANK];
    struct kg_expected expected[KG_MAX_TENSORS];
    for (int t = 0; t < problem->tensor_count; t++)
        memcpy(strides_of + t * KG_MAX_RANK, problem->layouts[t].stride,
               sizeof problem->layouts[t].stride);
    for (int t = 0; t < inputs + outputs; t++) {
        memory[t] = bench_memory(problem, t, kind);
        tensors[t] = memory[t] + BENCH_FENCE;
    }
    struct kg_launch launch = {.tensors = tensors, .sizes = problem->sizes, .strides = strides_of};
    CHECK_STATUS(bench->device->backend->launch(bench->kernel, &launch, &bench->error), KG_OK,
                 &bench->error);
    if (kg_reference_run(problem, (const void *const *)tensors, 2, NULL, expected, &bench->error) !=
        KG_OK)
        bench_stop(bench, "reference");
    for (int t = inputs; t < inputs + outputs; t++)
        bench_compare(bench, problem, t, memory[t], &expected[t - inputs], sizes, (int)kind);
    kg_expected_free(expected, outputs);
    for (int t = 0; t < inputs + outputs; t++)
        bench_unmap(problem, t, memory[t]);
    kg_problem_free(problem);
}

// Two configs of every op: the guess, and one that `seed` draws from the valid ones; all sizes, all
// kinds of inputs. Compiling them takes minutes: ops have turns.
static void bench_op(struct bench *bench, const char *family, const char *text, const char *dtype,
                     const char *const *sizes, uint64_t seed)
{
    static int number;
    if (!has_turn(number++, 3))
        return;
    bench_define(bench, text, dtype);
    struct kg_problem *problem = bench_problem(bench, sizes[0], false);
    for (int turn = 0; turn < 2; turn++) {
        struct kg_config config;
        bool ready = turn == 0 && bench_compile(bench, problem, family, NULL);
        while (!ready) {
            int64_t drawn = (int64_t)bench_random(&seed) % kg_space_size(&bench->space);
            config = kg_space_config(&bench->space, drawn);
            ready = bench_compile(bench, problem, family, &config);
        }
        for (int s = 0; sizes[s]; s++)
            for (int kind = 0; kind < BENCH_INPUT_KINDS; kind++)
                bench_run(bench, sizes[s], false, (enum bench_inputs)kind);
    }
    kg_problem_free(problem);
}

// The same for tensors with gaps.
static inline void bench_strided(struct bench *bench, const char *family, const char *text,
                                 const char *dtype, const char *sizes)
{
    bench_define(bench, text, dtype);
    struct kg_problem *problem = bench_problem(bench, sizes, true);
    bench_compile(bench, problem, family, NULL);
    bench_run(bench, sizes, true, BENCH_SIGNED);
    kg_problem_free(problem);
}

// Why the family does not take the op.
static inline void bench_refusal(struct bench *bench, const char *family, const char *text,
                                 const char *sizes, const char *reason)
{
    struct kg_text words = {0};
    bench_define(bench, text, NULL);
    struct kg_problem *problem = bench_problem(bench, sizes, false);
    struct kg_group group = bench_group(problem);
    const struct kg_match *match = kg_match_find(kg_target_family(&kg_target_host, family), &group,
                                                 &bench->device->facts, &words);
    CHECK(!match || !kg_match_is_advised(match, &words));
    CHECK_TEXT(kg_text_string(&words), reason);
    kg_text_free(&words);
    kg_problem_free(problem);
}

static void bench_close(struct bench *bench)
{
    struct kg_text command = {0};
    bench->device->backend->unload(bench->kernel);
    kg_device_close(bench->device);
    kg_arena_free(&bench->arena);
    kg_text_free(&command);
}

// The same of the op with this signature and formula, of one dtype.
static inline void bench_formula(struct bench *bench, const char *family, const char *signature,
                                 const char *formula, const char *dtype, const char *const *sizes,
                                 uint64_t seed)
{
    char text[512];
    snprintf(text, sizeof text, "op r%s\nwhere T in %s\n{ %s }", signature, dtype, formula);
    bench_op(bench, family, text, NULL, sizes, seed);
}

#endif
