// The host functions of `kg_gen_launcher_cuda`, compiled by nvcc, against the same kernels launched
// by this library: same tensors, same bits, also at addresses that are not aligned.
//
// The two halves may run on different machines:
//
//     gpu_cuda_launchers prepare FOLDER    writes and compiles FOLDER/NAME.so; needs nvcc
//     gpu_cuda_launchers compare FOLDER    runs them; needs the GPU, and no compiler but NVRTC
//
// Without arguments both run, in a folder of their own, on a few forms of cuda_form_table.h; what
// lacks nvcc or a GPU is skipped. KG_FORM=NAME takes one form, KG_FORM=all every one.

#include "cuda_form_table.h"

#include "gen/prepared.h"
#include "gen/shared/signature.h"
#include "gen/standalone.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

#include <dlfcn.h>

#define ISA "sm_90a"

// Besides the forms of the table: what the rules choose.
#define W4A16                                                                                      \
    "op w4a16(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n" \
    "param G = 128 where T in f16 bf16\n"                                                          \
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }\n"
#define SCALED_BY                                                                                  \
    "op scaled(x: T[P, D], factor: f32[]) -> (y: T[P, D]) where T in bf16 f16\n"                   \
    "param stream = 2, eps = 0.5 { y[p, d] = x[p, d] * factor[] + eps * stream }\n"
#define NORM                                                                                       \
    "op norm(x: T[P, D], stream: T[D]) -> (y: T[P, D]) where T in bf16 f16\n"                      \
    "{ m[d] = mean(p) x[p, d]\n  y[p, d] = (x[p, d] - m[d]) * stream[d] }\n"
#define ATTENTION                                                                                  \
    "op attention(q: f16[H, M, E], k: f16[H, N, E], v: f16[H, N, E]) -> (o: f16[H, M, E])\n"       \
    "{ s[h, m, n] = (sum(e) q[h, m, e] * k[h, n, e]) * 0.125\n"                                    \
    "  t[h, m] = max(n) s[h, m, n]\n  p[h, m, n] = exp(s[h, m, n] - t[h, m])\n"                    \
    "  o[h, m, e] = (sum(n) p[h, m, n] * v[h, n, e]) / (sum(n) p[h, m, n]) }\n"

static const struct form ruled[] = {
    {"4-bit weights", W4A16, "M=64 K=512 N=256", NULL},
    {"few rows of 4-bit weights", W4A16, "M=1 K=1000 N=258 T=bf16", NULL},
    {"a scalar and params", SCALED_BY, "P=37 D=1000", NULL},
    {"several kernels", NORM, "P=300 D=520", NULL},
    {"attention", ATTENTION, "H=4 M=256 N=256 E=64", NULL},
    {"nothing", ADD, "P=0 D=64", NULL},
};

// Of the table, without KG_FORM: one grid, several, scratch, maps, clusters.
static const char *const sample[] = {"pointwise",     "reduce, row split",   "rowwise, cluster",
                                     "wgmma, packed", "wgmma, pair of rows", "wgmma_f32, odd"};

static struct kg_error error;
static struct kg_device *device;

static bool is_wanted(const struct form *form)
{
    const char *wanted = getenv("KG_FORM");
    if (wanted)
        return strcmp(wanted, "all") == 0 || strcmp(wanted, form->name) == 0;
    for (size_t i = 0; i < sizeof sample / sizeof sample[0]; i++)
        if (strcmp(sample[i], form->name) == 0)
            return true;
    return !form->choice;
}

// "reduce, row split" -> "reduce__row_split"
static void file_name(const struct form *form, char out[128])
{
    size_t i = 0;
    for (; form->name[i] && i < 127; i++)
        out[i] = form->name[i] == ' ' || form->name[i] == ',' ? '_' : form->name[i];
    out[i] = '\0';
}

static bool find_choice(const struct form *form, const struct made *made, struct kg_choice *choice)
{
    if (!form->choice) {
        kg_choice_guess(made->problem, &device->facts, &kg_target_cuda, choice);
        return choice->count > 0;
    }
    return kg_choice_read(made->problem, &device->facts, &kg_target_cuda, form->choice, choice);
}

// ---- Preparing

// Functions that take any op's arguments: an array of tensors, an array of sizes.
static void add_adapter(const struct kg_op *op, struct kg_text *text)
{
    kg_text_format(text,
                   "\nextern \"C\" size_t kg_test_scratch(const int64_t *kg_sizes)\n"
                   "{\n    (void)kg_sizes;\n    return %s_scratch_bytes(",
                   op->name);
    int count = 0;
    for (int i = 0; i < op->size_count; i++)
        if (kg_size_is_argument(op->sizes[i]))
            kg_text_format(text, "%skg_sizes[%d]", count++ ? ", " : "", i);
    kg_text_format(text,
                   ");\n}\n\n"
                   "extern \"C\" int kg_test_launch(void *const *kg_tensors, const int64_t "
                   "*kg_sizes, void *scratch, size_t bytes, void *stream)\n"
                   "{\n    (void)kg_sizes;\n    return (int)%s_launch(",
                   op->name);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        kg_text_format(text, "(%s *)kg_tensors[%d], ",
                       kg_emit_plain_storage(op->tensors[i]->type.dtype), i);
    for (int i = 0; i < op->size_count; i++)
        if (kg_size_is_argument(op->sizes[i]))
            kg_text_format(text, "kg_sizes[%d], ", i);
    kg_text_add(text, "scratch, bytes, (cudaStream_t)stream);\n}\n"
                      "extern \"C\" const char *kg_test_error(int status)\n"
                      "{\n    return cudaGetErrorName((cudaError_t)status);\n}\n");
}

// What nvcc says of the file, which is nothing.
static bool compile(const char *folder, const char *name)
{
    char command[2048], said[2048];
    snprintf(command, sizeof command,
             "cd '%s' && nvcc -std=c++17 -gencode arch=compute_%s,code=%s -shared -Xcompiler "
             "-fPIC,-Wall,-Wextra --Werror all-warnings -o '%s.so' '%s.cu' 2>&1",
             folder, ISA + 3, ISA, name, name);
    FILE *output = popen(command, "r");
    size_t length = output ? fread(said, 1, sizeof said - 1, output) : 0;
    said[length] = '\0';
    int status = output ? pclose(output) : -1;
    if (status != 0 || length > 0)
        printf("%s: nvcc says\n%s\n", name, said);
    return status == 0 && length == 0;
}

static void prepare_form(const struct form *form, const char *folder)
{
    char name[128], path[512];
    struct made made = make(form->op, form->sizes);
    struct kg_choice choice;
    struct kg_text text = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    file_name(form, name);
    snprintf(path, sizeof path, "%s/%s.cu", folder, name);
    bool written = made.problem && find_choice(form, &made, &choice) &&
                   kg_gen_launcher_cuda(made.problem, &choice, &device->facts, &text);
    CHECK(written);
    if (written) {
        // The adapter belongs to the host's half: it stands before the file's last #endif.
        kg_text_add(&text, "#ifndef __CUDACC_RTC__");
        add_adapter(made.op, &text);
        kg_text_add(&text, "#endif\n");
        FILE *file = fopen(path, "w");
        CHECK(file && fputs(kg_text_string(&text), file) >= 0);
        if (file)
            fclose(file);
        CHECK(compile(folder, name));
    }
    kg_text_free(&text);
    unmake(&made);
}

// ---- Comparing

struct launcher {
    void *library;
    size_t (*scratch)(const int64_t *sizes);
    int (*launch)(void *const *tensors, const int64_t *sizes, void *scratch, size_t bytes,
                  void *stream);
    const char *(*error)(int status);
};

static bool open_launcher(const struct form *form, const char *folder, struct launcher *launcher)
{
    char name[128], path[512];
    file_name(form, name);
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    launcher->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!launcher->library) {
        printf("%-28s %s\n", form->name, dlerror());
        return false;
    }
    void *found[] = {dlsym(launcher->library, "kg_test_scratch"),
                     dlsym(launcher->library, "kg_test_launch"),
                     dlsym(launcher->library, "kg_test_error")};
    memcpy(&launcher->scratch, &found[0], sizeof found[0]);
    memcpy(&launcher->launch, &found[1], sizeof found[1]);
    memcpy(&launcher->error, &found[2], sizeof found[2]);
    return found[0] && found[1] && found[2];
}

#define SLACK 64 // bytes behind the start of an allocation, for addresses that are not aligned

// One set of tensors, and memory beside them.
struct run {
    const struct kg_problem *problem;
    int count; // of tensors
    void *memory[KG_MAX_TENSORS];
    void *tensors[KG_MAX_TENSORS];
    void *scratch;
};

static bool allocate(size_t bytes, void **memory)
{
    bool done = device->backend->allocate(device, bytes, memory, &error) == KG_OK &&
                device->backend->fill(device, *memory, 0xa5, bytes, &error) == KG_OK;
    CHECK(done);
    return done;
}

// Numbers of either sign and similar magnitude, whatever they are read as: the upper bytes of a
// float of any width are those of numbers between 0.5 and 4. Integers and nibbles take any value.
static void fill_values(const struct kg_tensor *tensor, unsigned char *bytes, size_t count)
{
    static const unsigned char top[KG_DTYPE_COUNT] = {
        [KG_F16] = 0x38, [KG_BF16] = 0x3f,   [KG_F32] = 0x3f,
        [KG_F64] = 0x3f, [KG_F8E4M3] = 0x38, [KG_F8E5M2] = 0x3c};
    enum kg_dtype dtype = tensor->type.dtype;
    size_t width = (size_t)kg_dtypes[dtype].bits / 8;
    uint64_t seed = 88172645463325252u + (uint64_t)tensor->id;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        unsigned char byte = (unsigned char)(seed >> 56);
        if (dtype == KG_BOOL)
            byte &= 1;
        else if (top[dtype] && i % width == width - 1)
            byte = (unsigned char)((byte & 0x80) | top[dtype]);
        bytes[i] = byte;
    }
}

static bool make_run(const struct kg_problem *problem, size_t shift, size_t scratch,
                     struct run *run)
{
    const struct kg_op *op = problem->op;
    *run = (struct run){.problem = problem, .count = op->input_count + op->output_count};
    for (int id = 0; id < run->count; id++) {
        size_t bytes = problem->layouts[id].bytes;
        // Elements of less than a byte begin at a byte.
        size_t width = (size_t)(kg_dtypes[op->tensors[id]->type.dtype].bits + 7) / 8;
        if (!allocate(bytes + SLACK, &run->memory[id]))
            return false;
        run->tensors[id] = (char *)run->memory[id] + shift * width;
        unsigned char *values = malloc(bytes + 1);
        if (!values)
            return false;
        fill_values(op->tensors[id], values, bytes);
        if (id < op->input_count && bytes > 0)
            CHECK_STATUS(device->backend->copy(device, run->tensors[id], values, bytes, &error),
                         KG_OK, &error);
        free(values);
    }
    return scratch == 0 || allocate(scratch, &run->scratch);
}

static void free_run(struct run *run)
{
    for (int id = 0; id < run->count; id++)
        if (run->memory[id])
            device->backend->release(device, run->memory[id]);
    if (run->scratch)
        device->backend->release(device, run->scratch);
}

// How many bytes of the outputs, and of what is around them, differ.
static size_t count_differences(const struct run *a, const struct run *b)
{
    size_t different = 0;
    for (int id = a->problem->op->input_count; id < a->count; id++) {
        size_t bytes = a->problem->layouts[id].bytes + SLACK;
        unsigned char *one = malloc(bytes), *other = malloc(bytes);
        CHECK(one && other);
        if (one && other) {
            CHECK_STATUS(device->backend->copy(device, one, a->memory[id], bytes, &error), KG_OK,
                         &error);
            CHECK_STATUS(device->backend->copy(device, other, b->memory[id], bytes, &error), KG_OK,
                         &error);
            for (size_t i = 0; i < bytes; i++)
                different += one[i] != other[i];
        }
        free(one);
        free(other);
    }
    return different;
}

static void compare_runs(const struct launcher *launcher, const struct kg_problem *problem,
                         const struct kg_prepared *prepared, size_t shift)
{
    size_t workspace = kg_prepared_workspace(prepared), scratch = launcher->scratch(problem->sizes);
    struct run plan, launched;
    CHECK(scratch == workspace);
    if (make_run(problem, shift, workspace, &plan) &&
        make_run(problem, shift, scratch, &launched)) {
        CHECK_STATUS(kg_prepared_run(prepared, plan.tensors, plan.scratch, NULL, &error), KG_OK,
                     &error);
        int status =
            launcher->launch(launched.tensors, problem->sizes, launched.scratch, scratch, NULL);
        CHECK(status == 0);
        size_t different = count_differences(&plan, &launched);
        CHECK(different == 0);
        printf("  %s: %s, %zu bytes differ\n", shift ? "shifted" : "aligned",
               launcher->error(status), different);
    }
    free_run(&plan);
    free_run(&launched);
}

// What the header of the file says is refused.
static void check_refusals(const struct launcher *launcher, const struct kg_problem *problem)
{
    int64_t sizes[KG_MAX_SIZES];
    size_t scratch = launcher->scratch(problem->sizes);
    struct run run;
    bool any = false;
    memcpy(sizes, problem->sizes, sizeof sizes);
    for (int i = 0; i < problem->op->size_count && !any; i++)
        if (kg_size_is_argument(problem->op->sizes[i])) {
            sizes[i]++;
            any = true;
        }
    if (make_run(problem, 0, scratch, &run)) {
        if (any)
            CHECK(launcher->launch(run.tensors, sizes, run.scratch, scratch, NULL) != 0);
        if (any)
            CHECK(launcher->scratch(sizes) == SIZE_MAX);
        if (scratch > 0) {
            CHECK(launcher->launch(run.tensors, problem->sizes, NULL, scratch, NULL) != 0);
            CHECK(launcher->launch(run.tensors, problem->sizes, run.scratch, scratch - 1, NULL) !=
                  0);
        }
        if (problem->layouts[0].bytes > 0) {
            run.tensors[0] = NULL;
            CHECK(launcher->launch(run.tensors, problem->sizes, run.scratch, scratch, NULL) != 0);
        }
    }
    free_run(&run);
}

static void compare_form(const struct form *form, const char *folder)
{
    struct made made = make(form->op, form->sizes);
    struct launcher launcher = {NULL};
    struct kg_choice choice;
    struct kg_built *built = NULL;
    struct kg_prepared *prepared = NULL;
    int before = test_failures;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool opened = open_launcher(form, folder, &launcher);
    CHECK(opened);
    if (opened && made.problem && find_choice(form, &made, &choice))
        CHECK_STATUS(kg_built_make(device, made.problem, &choice, 120, &built, &error), KG_OK,
                     &error);
    if (built)
        CHECK_STATUS(kg_prepared_make(built, made.problem, &prepared, &error), KG_OK, &error);
    if (prepared) {
        compare_runs(&launcher, made.problem, prepared, 0);
        compare_runs(&launcher, made.problem, prepared, 1);
        check_refusals(&launcher, made.problem);
    }
    printf("%-28s %s\n", form->name, prepared && test_failures == before ? "equal" : "FAILED");
    kg_prepared_free(prepared);
    kg_built_free(built);
    unmake(&made);
}

static void each(void (*use)(const struct form *form, const char *folder), const char *folder)
{
    for (size_t i = 0; i < sizeof ruled / sizeof ruled[0]; i++)
        if (is_wanted(&ruled[i]))
            use(&ruled[i], folder);
    for (int i = 0; i < FORM_COUNT; i++)
        if (is_wanted(&forms[i]))
            use(&forms[i], folder);
}

// Launchers are for one kind of GPU: plans are made for the same one.
static bool open_device(const char *name, const char *cache)
{
    bool opened = kg_device_open(name, cache, 0, &device, &error) == KG_OK;
    if (opened && strcmp(device->facts.isa, ISA) == 0)
        return true;
    printf("skipped: %s\n", opened ? "the GPU is none of " ISA : error.text);
    kg_device_close(device);
    device = NULL;
    return false;
}

static bool has_nvcc(void)
{
    FILE *output = popen("command -v nvcc", "r");
    bool found = output && fgetc(output) != EOF;
    return output && pclose(output) == 0 && found;
}

int main(int count, char **words)
{
    static char own[] = "/tmp/kg-test-launchers-XXXXXX";
    bool prepares = count < 2 || strcmp(words[1], "prepare") == 0;
    bool compares = count < 2 || strcmp(words[1], "compare") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!folder_make(own))
        return 1;
    const char *folder = count > 2 ? words[2] : own;
    bool able = !prepares || has_nvcc();
    if (!able)
        printf("skipped: there is no nvcc\n");
    if (able && prepares && open_device(ISA, own)) {
        each(prepare_form, folder);
        kg_device_close(device);
    }
    bool here = able && compares && open_device("cuda:0", own);
    if (here) {
        each(compare_form, folder);
        kg_device_close(device);
    }
    folder_remove(own);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures ? 1 : (compares && !here) || !able ? 77 : 0;
}
