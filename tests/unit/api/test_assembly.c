// Assembly through the public functions: the JSON keeps its contract for every sample, figures and
// predictions are those of the facts, and questions that make no sense are refused.

#include "kernelgen.h"
#include "test.h"

#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>

#define SAMPLES KG_SOURCE_DIR "/tests/data/asm/"

static struct kg_context *context;

static struct kg_assembly *read_sample(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, SAMPLES "%s", name);
    FILE *file = fopen(path, "rb");
    static char bytes[1 << 20];
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    struct kg_assembly *assembly = NULL;
    CHECK(length > 0 && length < sizeof bytes);
    CHECK(kg_assembly_read(context, name, bytes, length, &assembly) == KG_OK);
    return assembly;
}

static json_t *report(const struct kg_assembly *assembly, int index,
                      const struct kg_assembly_launch *launch)
{
    char *text = NULL;
    CHECK(kg_assembly_report(assembly, index, launch, true, &text) == KG_OK);
    json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    CHECK(json != NULL);
    kg_text_release(text);
    return json;
}

// ---- The contract

enum { TEXT = 1, INTEGER = 2, NUMBER = 4, BOOLEAN = 8, ARRAY = 16, OBJECT = 32, NONE = 64 };

struct member {
    const char *name;
    int types;
};

static int type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return TEXT;
    case JSON_INTEGER:
        return INTEGER | NUMBER;
    case JSON_REAL:
        return NUMBER;
    case JSON_TRUE:
    case JSON_FALSE:
        return BOOLEAN;
    case JSON_ARRAY:
        return ARRAY;
    case JSON_OBJECT:
        return OBJECT;
    case JSON_NULL:
        return NONE;
    }
    return 0;
}

static void check_members(const json_t *object, const struct member *members, size_t count)
{
    for (size_t m = 0; m < count; m++) {
        const json_t *value = json_object_get(object, members[m].name);
        bool right = value && type_of(value) & members[m].types;
        CHECK(right);
        if (!right)
            fprintf(stderr, "  member %s\n", members[m].name);
        if (value && json_is_number(value) && strcmp(members[m].name, "points") != 0)
            CHECK(json_number_value(value) >= 0); // what is unknown is null, never -1
    }
    CHECK(json_object_size(object) == count); // a member more belongs into docs/asm.md and here
}

#define CHECK_MEMBERS(object, members)                                                             \
    check_members((object), (members), sizeof(members) / sizeof(members)[0])

static const struct member file_members[] = {
    {"schema", INTEGER}, {"file", TEXT},          {"format", TEXT},   {"version", TEXT},
    {"positions", TEXT}, {"notice", TEXT | NONE}, {"kernels", ARRAY},
};
static const struct member kernel_members[] = {
    {"name", TEXT},
    {"arch", TEXT},
    {"registers", INTEGER | NONE},
    {"shared_bytes", INTEGER | NONE},
    {"stack_bytes", INTEGER | NONE},
    {"spill_store_bytes", INTEGER | NONE},
    {"spill_load_bytes", INTEGER | NONE},
    {"loop_spill_bytes", INTEGER | NONE},
    {"barriers", INTEGER | NONE},
    {"parameter_bytes", INTEGER | NONE},
    {"launch_bounds", OBJECT},
    {"instructions", INTEGER},
    {"opcodes", OBJECT},
    {"mix", OBJECT},
    {"bytes", OBJECT},
    {"loops", ARRAY},
    {"main_loop", INTEGER | NONE},
    {"work", OBJECT},
    {"occupancy", OBJECT | NONE},
    {"gpu", OBJECT | NONE},
    {"model", OBJECT | NONE},
    {"missing", TEXT | NONE},
    {"points", NUMBER},
    {"advisories", ARRAY},
};
static const struct member loop_members[] = {
    {"first", INTEGER},
    {"last", INTEGER},
    {"depth", INTEGER},
    {"parent", INTEGER | NONE},
    {"conditional", BOOLEAN},
    {"trips_kind", TEXT},
    {"trips", NUMBER | NONE},
    {"trips_symbol", TEXT | NONE},
    {"instructions", NUMBER},
    {"issue_cycles", NUMBER | NONE},
    {"stall_cycles", NUMBER | NONE},
    {"spill_loads", INTEGER | NONE},
    {"spill_stores", INTEGER | NONE},
    {"spill_bytes", INTEGER | NONE},
    {"tensor_flops", NUMBER},
    {"flops", NUMBER},
    {"mix", OBJECT},
    {"bytes", OBJECT},
};
static const struct member bound_members[] = {
    {"max_threads", ARRAY | NONE},  {"required_threads", ARRAY | NONE},
    {"min_blocks", INTEGER | NONE}, {"max_registers", INTEGER | NONE},
    {"cluster", ARRAY | NONE},      {"max_cluster", INTEGER | NONE},
};
static const struct member work_members[] = {
    {"flops", NUMBER | NONE},
    {"on_matrix_units", BOOLEAN},
    {"shared_bytes", NUMBER},
    {"global_bytes", NUMBER},
    {"more_bytes_unseen", BOOLEAN},
    {"flop_per_shared_byte", NUMBER | NONE},
    {"flop_per_global_byte", NUMBER | NONE},
};
static const struct member occupancy_members[] = {
    {"device", TEXT | NONE},
    {"device_assumed", BOOLEAN},
    {"threads", INTEGER},
    {"threads_from", TEXT},
    {"dynamic_shared_bytes", INTEGER},
    {"upper_bound", BOOLEAN},
    {"blocks", INTEGER},
    {"warps", INTEGER},
    {"share", NUMBER},
    {"limiter", TEXT},
    {"limits", OBJECT},
};
static const struct member gpu_members[] = {
    {"name", TEXT},
    {"sms", INTEGER},
    {"clock_hz", NUMBER},
    {"bytes_per_second", NUMBER},
    {"l2_bytes", INTEGER},
    {"block_shared_bytes", INTEGER},
    {"matrix_flops_per_second", OBJECT},
};
static const struct member model_members[] = {
    {"waves", NUMBER},
    {"tail", NUMBER},
    {"bound_seconds", NUMBER},
    {"bound_by", TEXT},
    {"estimate_seconds", NUMBER},
    {"estimate_by", TEXT},
    {"coefficients", TEXT},
    {"bound_terms", OBJECT},
    {"expected_terms", OBJECT},
    {"features", OBJECT},
};
static const struct member advice_members[] = {
    {"level", TEXT}, {"code", TEXT}, {"bottleneck", TEXT | NONE}, {"text", TEXT}};

static double sum_of(const json_t *object)
{
    const char *key;
    json_t *value;
    double sum = 0;
    json_object_foreach((json_t *)(uintptr_t)object, key, value) sum += json_number_value(value);
    return sum;
}

static void check_kernel(const json_t *kernel, bool modelled)
{
    CHECK_MEMBERS(kernel, kernel_members);
    CHECK_MEMBERS(json_object_get(kernel, "launch_bounds"), bound_members);
    CHECK_MEMBERS(json_object_get(kernel, "work"), work_members);
    const json_t *occupancy = json_object_get(kernel, "occupancy");
    const json_t *model = json_object_get(kernel, "model");
    if (json_is_object(occupancy))
        CHECK_MEMBERS(occupancy, occupancy_members);
    const json_t *gpu = json_object_get(kernel, "gpu");
    if (json_is_object(gpu))
        CHECK_MEMBERS(gpu, gpu_members);
    CHECK(json_is_object(model) == modelled);
    if (json_is_object(model))
        CHECK_MEMBERS(model, model_members);
    // Every instruction has one mnemonic and one class.
    double instructions = json_number_value(json_object_get(kernel, "instructions"));
    CHECK(sum_of(json_object_get(kernel, "opcodes")) == instructions);
    CHECK(sum_of(json_object_get(kernel, "mix")) == instructions);
    size_t i;
    json_t *item;
    json_t *loops = json_object_get(kernel, "loops");
    json_array_foreach(loops, i, item) CHECK_MEMBERS(item, loop_members);
    json_array_foreach(json_object_get(kernel, "advisories"), i, item)
        CHECK_MEMBERS(item, advice_members);
    const json_t *main_loop = json_object_get(kernel, "main_loop");
    if (json_is_integer(main_loop))
        CHECK(json_integer_value(main_loop) < (json_int_t)json_array_size(loops));
}

static bool ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length > tail && strcmp(name + length - tail, end) == 0;
}

static void check_sample(const char *name, const struct kg_assembly_launch *launch)
{
    struct kg_assembly *assembly = read_sample(name);
    if (!assembly)
        return;
    json_t *json = report(assembly, -1, launch), *kernel;
    CHECK_MEMBERS(json, file_members);
    CHECK(json_integer_value(json_object_get(json, "schema")) == 1);
    json_t *kernels = json_object_get(json, "kernels");
    CHECK((int)json_array_size(kernels) == kg_assembly_kernel_count(assembly));
    size_t k;
    json_array_foreach(kernels, k, kernel)
    {
        check_kernel(kernel, launch != NULL);
        struct kg_kernel_figures figures = {.size = sizeof figures};
        kg_assembly_kernel(assembly, (int)k, &figures);
        CHECK_TEXT(figures.name, json_string_value(json_object_get(kernel, "name")));
        json_t *registers = json_object_get(kernel, "registers");
        CHECK(json_is_null(registers) ? figures.registers == -1
                                      : json_integer_value(registers) == figures.registers);
        CHECK(json_is_null(registers) == ends_with(name, ".ptx"));
    }
    json_decref(json);
    kg_assembly_destroy(assembly);
}

// The family chooses the prior, and so the estimate, but neither the bound nor the features.
static void test_family(void)
{
    struct kg_assembly *assembly = read_sample("small.sm_90a.cubin");
    if (!assembly)
        return;
    const char *const families[] = {NULL, "pointwise", "no such family"};
    struct kg_prediction found[3];
    for (size_t f = 0; f < 3; f++) {
        struct kg_assembly_launch launch = {
            .size = sizeof launch, .grid = {1000}, .read_bytes = 1e9, .family = families[f]};
        found[f] = (struct kg_prediction){.size = sizeof found[f]};
        CHECK(kg_assembly_predict(assembly, 0, &launch, &found[f]) == KG_OK);
    }
    CHECK(found[0].bound > 0 && found[0].bound == found[1].bound);
    CHECK(found[0].estimate != found[1].estimate);
    CHECK(found[0].estimate == found[2].estimate);
    kg_assembly_destroy(assembly);
}

static void test_gpu(void)
{
    struct kg_assembly *assembly = read_sample("small.sm_90a.cubin");
    if (!assembly)
        return;
    struct kg_assembly_launch launch = {.device = "h100"};
    json_t *json = report(assembly, 0, &launch);
    const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    const json_t *gpu = json_object_get(kernel, "gpu");
    CHECK(json_integer_value(json_object_get(gpu, "sms")) == 132);
    CHECK(json_integer_value(json_object_get(gpu, "block_shared_bytes")) == 232448);
    const json_t *rates = json_object_get(gpu, "matrix_flops_per_second");
    double dense = json_number_value(json_object_get(rates, "16_bits"));
    CHECK(dense > 0.9e15 && dense < 1.2e15); // 989 TFLOPS at the clock that NVIDIA publishes
    json_decref(json);
    kg_assembly_destroy(assembly);
}

static void test_contract(void)
{
    DIR *folder = opendir(SAMPLES);
    int samples = 0;
    CHECK(folder != NULL);
    struct kg_assembly_launch launch = {.grid = {1000, 2}, .block = {64}, .read_bytes = 1e6};
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (ends_with(entry->d_name, ".cubin") || ends_with(entry->d_name, ".ptx")) {
            samples++;
            check_sample(entry->d_name, NULL);
            // Blocks of 64 are not for every sample; small ones take them.
            if (strncmp(entry->d_name, "small.", 6) == 0)
                check_sample(entry->d_name, &launch);
        }
    CHECK(samples >= 9);
    if (folder)
        closedir(folder);
}

// ---- Figures

static void test_figures(void)
{
    struct kg_assembly *assembly = read_sample("small.sm_90a.cubin");
    int index;
    CHECK(kg_assembly_find(assembly, "spilling", &index) == KG_OK);
    struct kg_kernel_figures spilling = {.size = sizeof spilling};
    kg_assembly_kernel(assembly, index, &spilling);
    CHECK(spilling.registers == 32 && spilling.spill_store_bytes == 256); // small.sm_90a.log
    CHECK(spilling.spill_load_bytes == 260 && spilling.stack_bytes == 152);
    CHECK(spilling.loop_spill_bytes == 212 && spilling.loops == 1);
    CHECK_TEXT(spilling.arch, "sm_90a");
    CHECK(kg_assembly_kernel(assembly, -1, &spilling) == KG_ERROR_ARGUMENT && !spilling.name);
    CHECK(kg_assembly_kernel(assembly, 1000, &spilling) == KG_ERROR_ARGUMENT && !spilling.arch);
    CHECK(kg_assembly_find(assembly, "shared", &index) == KG_OK);
    CHECK(kg_assembly_kernel(assembly, index, &spilling) == KG_OK);
    CHECK_TEXT(spilling.name, "shared_sum");
    CHECK(kg_assembly_find(assembly, "u", &index) == KG_ERROR_ARGUMENT && index == -1);
    CHECK(kg_assembly_find(assembly, "cuonted", &index) == KG_ERROR_ARGUMENT);
    CHECK(strstr(kg_context_error(context), "did you mean counted?") != NULL);
    kg_assembly_destroy(assembly);
}

static void test_predictions(void)
{
    struct kg_assembly *assembly = read_sample("small.sm_90a.cubin");
    int index;
    struct kg_prediction prediction = {.size = sizeof prediction};
    struct kg_assembly_launch launch = {.block = {256}};
    CHECK(kg_assembly_find(assembly, "spilling", &index) == KG_OK);
    CHECK(kg_assembly_predict(assembly, index, NULL, &prediction) == KG_OK);
    CHECK(prediction.threads == 128 && prediction.blocks == 16 && prediction.exact);
    CHECK(prediction.bound == 0 && prediction.waves == 0);
    CHECK_TEXT(prediction.device, "NVIDIA H100 80GB HBM3");
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_OK);
    CHECK(prediction.blocks == 8 && prediction.warps == 64 && prediction.occupancy == 1);
    launch = (struct kg_assembly_launch){
        .device = "h200", .grid = {132 * 16}, .shared_bytes = 100000, .read_bytes = 1e9};
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_OK);
    CHECK(prediction.blocks == 2 && prediction.waves == 8 && prediction.tail == 0);
    CHECK(prediction.bound > 1e9 / 5e12 && prediction.estimate >= prediction.bound);
    CHECK_TEXT(prediction.limiter, "shared memory");
    launch.shared_bytes = 300000; // more than there is
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_OK);
    CHECK(prediction.blocks == 0 && prediction.bound == 0);
    launch = (struct kg_assembly_launch){.device = "a100"};
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_ERROR_ARGUMENT);
    launch = (struct kg_assembly_launch){.grid = {-1}};
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_ERROR_ARGUMENT);
    launch = (struct kg_assembly_launch){.grid = {1}, .flops = -1};
    CHECK(kg_assembly_predict(assembly, index, &launch, &prediction) == KG_ERROR_ARGUMENT);
    CHECK(kg_assembly_predict(assembly, 99, NULL, &prediction) == KG_ERROR_ARGUMENT);
    kg_assembly_destroy(assembly);
}

// What a log says of a file that tells less.
static void test_log(void)
{
    static const char log[] =
        "ptxas info    : Compiling entry function 'clusters' for 'sm_90a'\n"
        "ptxas info    : Function properties for clusters\n"
        "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Used 40 registers, used 1 barriers\n"
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n";
    struct kg_assembly *assembly = read_sample("hopper.ptx");
    int index, matched;
    CHECK(kg_assembly_find(assembly, "clusters", &index) == KG_OK);
    struct kg_kernel_figures figures = {.size = sizeof figures};
    CHECK(kg_assembly_kernel(assembly, index, &figures) == KG_OK && figures.registers == -1);
    CHECK(kg_assembly_add_log(assembly, log, sizeof log - 1, &matched) == KG_OK && matched == 1);
    CHECK(kg_assembly_add_log(assembly, log, sizeof log - 1, NULL) == KG_OK);
    CHECK(kg_assembly_kernel(assembly, index, &figures) == KG_OK);
    CHECK(figures.registers == 40 && figures.spill_load_bytes == 8 && figures.barriers == 1);
    CHECK(figures.loop_spill_bytes == -1);
    json_t *json = report(assembly, index, NULL);
    json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    CHECK(json_array_size(json_object_get(kernel, "advisories")) == 1);
    json_decref(json);
    CHECK(kg_assembly_add_log(assembly, "nothing", 7, &matched) == KG_OK && matched == 0);
    kg_assembly_destroy(assembly);
}

// ---- Two files

static json_t *compare(const char *first, const char *second, const char *kernel)
{
    struct kg_assembly *a = read_sample(first), *b = read_sample(second);
    int index = -1, other = -1;
    char *text = NULL;
    if (kernel) {
        CHECK(kg_assembly_find(a, kernel, &index) == KG_OK);
        CHECK(kg_assembly_find(b, kernel, &other) == KG_OK);
    }
    CHECK(kg_assembly_compare(a, index, b, other, NULL, false, &text) == KG_OK);
    for (const char *line = text; line && *line;) { // narrow enough
        size_t length = strcspn(line, "\n");
        CHECK(length <= 100);
        line += length + (line[length] == '\n');
    }
    kg_text_release(text);
    CHECK(kg_assembly_compare(a, index, b, other, NULL, true, &text) == KG_OK);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    kg_text_release(text);
    kg_assembly_destroy(a);
    kg_assembly_destroy(b);
    return json;
}

static void test_comparison(void)
{
    json_t *json = compare("small.sm_80.cubin", "small.sm_90a.cubin", NULL), *pair;
    json_t *pairs = json_object_get(json, "pairs");
    size_t p;
    CHECK(json_array_size(pairs) == 6);
    json_array_foreach(pairs, p, pair)
    {
        const json_t *a = json_object_get(pair, "a"), *b = json_object_get(pair, "b");
        check_kernel(a, false);
        check_kernel(b, false);
        CHECK(json_equal(json_object_get(a, "name"), json_object_get(b, "name")));
    }
    CHECK(json_array_size(json_object_get(json, "only_a")) == 0);
    CHECK(json_array_size(json_object_get(json, "only_b")) == 1); // clusters began with sm_90
    json_decref(json);
    json = compare("small.sm_80.cubin", "small.sm_90a.cubin", "product");
    pair = json_array_get(json_object_get(json, "pairs"), 0);
    json_t *first = json_array_get(json_object_get(pair, "differences"), 0);
    CHECK_TEXT(json_string_value(json_object_get(first, "figure")), "registers");
    CHECK(json_integer_value(json_object_get(first, "a")) == 21);
    CHECK(json_number_value(json_object_get(first, "b")) == 19);
    json_decref(json);
    json = compare("small.sm_80.cubin", "small.sm_80.cubin", "spilling");
    pair = json_array_get(json_object_get(json, "pairs"), 0);
    CHECK(json_array_size(json_object_get(pair, "differences")) == 0);
    json_decref(json);
}

static void test_bad_pairs(void)
{
    struct kg_assembly *a = read_sample("small.sm_80.cubin"), *b = read_sample("hopper.ptx");
    char *text;
    CHECK(kg_assembly_compare(a, -1, b, -1, NULL, false, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK(kg_assembly_compare(a, 0, b, -1, NULL, false, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK(kg_assembly_compare(a, -1, b, 0, NULL, false, &text) == KG_ERROR_ARGUMENT && !text);
    CHECK(kg_assembly_compare(a, 0, b, 0, NULL, false, &text) == KG_OK && text);
    kg_text_release(text);
    kg_assembly_destroy(a);
    kg_assembly_destroy(b);
}

// Every page of every sample fits.
static void check_width(const struct kg_assembly *assembly, int index)
{
    struct kg_assembly_launch launch = {.grid = {77}, .read_bytes = 1e9, .flops = 1e12};
    char *text = NULL;
    CHECK(kg_assembly_report(assembly, index, &launch, false, &text) == KG_OK);
    for (const char *line = text; line && *line;) {
        size_t length = strcspn(line, "\n");
        CHECK(length <= 100);
        if (length > 100)
            fprintf(stderr, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
    kg_text_release(text);
}

static void test_width(void)
{
    static const char *const names[] = {"small.sm_90a.cubin", "small.sm_75.cubin", "hopper.ptx",
                                        "control.ptx",        "tensor.ptx",        "handmade.ptx"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        struct kg_assembly *assembly = read_sample(names[n]);
        for (int k = -1; k < kg_assembly_kernel_count(assembly); k++)
            check_width(assembly, k);
        kg_assembly_destroy(assembly);
    }
}

static void test_refusals(void)
{
    static const char *const texts[] = {"",
                                        "text",
                                        "!<arch>\n",
                                        "BC\xC0\xDE",
                                        "#include <x>",
                                        ".version 8.0\n.target sm_80\n",
                                        "\x50\xed\x55\xba"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct kg_assembly *assembly;
        enum kg_status status =
            kg_assembly_read(context, "sample", texts[t], strlen(texts[t]), &assembly);
        CHECK(status == KG_ERROR_CORRUPT && assembly == NULL);
        CHECK(strncmp(kg_context_error(context), "sample: ", 8) == 0);
    }
}

static void begin(void)
{
    // No records: a place where there can be none.
    struct kg_options options = {.home = "/dev/null/none"};
    CHECK(kg_context_create(&options, &context) == KG_OK && context != NULL);
}

static void end(void)
{
    kg_context_destroy(context);
}

TEST_MAIN(begin, test_contract, test_family, test_gpu, test_figures, test_predictions, test_log,
          test_comparison, test_bad_pairs, test_width, test_refusals, end)
