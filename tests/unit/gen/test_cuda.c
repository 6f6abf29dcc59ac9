// What the families for CUDA write, of every shipped definition, for contiguous tensors and strided
// views: complete sources, and launches that fit the device. Where there is NVRTC it compiles one
// source in 16, or in KG_EVERY. KG_DUMP=FOLDER leaves the sources there, KG_OPS=TEXT leaves out the
// definitions whose names do not begin like that.

#include "asm/gpu.h"
#include "base/files.h"
#include "device/device.h"
#include "gen/built.h"
#include "hopper_unit.h"
#include "lang/lang.h"
#include "support/case_turns.h"
#include "support/folder.h"
#include "test.h"

#include <dirent.h>
#include <stdlib.h>

static struct kg_error error;
static struct kg_device_facts facts;
static struct kg_device *device; // that compiles; NULL: there is no NVRTC
static int emitted, every = 16;

static void describe_device(void)
{
    const struct kg_gpu *gpu = kg_gpu_find("h100");
    CHECK(gpu != NULL);
    snprintf(facts.name, sizeof facts.name, "%s", gpu->name);
    snprintf(facts.isa, sizeof facts.isa, "sm_90a");
    facts.units = gpu->sms;
    facts.bandwidth = gpu->bandwidth;
    facts.cache[3] = gpu->l2_bytes;
    facts.vector_bytes = 16;
    facts.shared_bytes = gpu->sm->shared_opt_in;
    facts.unit = (struct kg_unit_limits)HOPPER_UNIT;
}

// How many functions run; the limits are the device's.
static int check_launches(const struct kg_grids *grids, const struct kg_grid *list)
{
    int running = 0;
    for (int i = 0; i < grids->count; i++) {
        const struct kg_grid *grid = &list[i];
        int threads = grid->threads[0] * grid->threads[1] * grid->threads[2];
        CHECK(threads >= 1 && threads <= 1024);
        CHECK(grid->blocks[0] >= 0 && grid->blocks[0] < (int64_t)1 << 31);
        CHECK(grid->blocks[1] >= 0 && grid->blocks[1] <= 65535);
        CHECK(grid->blocks[2] >= 0 && grid->blocks[2] <= 65535);
        CHECK(grid->shared <= facts.shared_bytes);
        CHECK(grid->cluster <= 1 || grid->blocks[0] % grid->cluster == 0);
        running += grid->blocks[0] * grid->blocks[1] * grid->blocks[2] > 0;
    }
    return running;
}

static bool is_empty(const struct kg_problem *problem)
{
    for (int i = 0; i < problem->tensor_count; i++)
        if (problem->layouts[i].elements == 0)
            return true;
    return false;
}

// Where there is something to do, some function does it, wherever tensors lie.
static void check_grids(const struct kg_choice *choice, int group)
{
    struct kg_grids grids = {0};
    const struct kg_problem *problem = choice->matches[group]->group.problem;
    choice->matches[group]->family->grids(choice->matches[group], &choice->configs[group], &grids);
    CHECK(grids.count >= 1 && grids.count <= KG_MAX_GRIDS);
    CHECK(check_launches(&grids, grids.grids) > 0 || is_empty(problem));
    CHECK(grids.alignment == 0 || check_launches(&grids, grids.unaligned) > 0 || is_empty(problem));
}

static void dump(const struct kg_op *op, const char *kind, int group, const struct kg_text *source)
{
    const char *folder = getenv("KG_DUMP");
    struct kg_text path = {0};
    if (!folder)
        return;
    kg_text_format(&path, "%s/%s_%s_%d.cu", folder, op->name, kind, group);
    CHECK_STATUS(kg_files_publish(kg_text_string(&path), source->data, source->length, &error),
                 KG_OK, &error);
    kg_text_free(&path);
}

static void compile(const struct kg_op *op, const struct kg_choice *choice, struct kg_text *text)
{
    struct kg_binary binary = {0};
    struct kg_source source = {.text = text->data, .entry = "kernel", .options = ""};
    enum kg_status status = device->backend->compile(device, &source, 60, &binary, &error);
    CHECK_STATUS(status, KG_OK, &error);
    if (status != KG_OK) {
        struct kg_text words = {0};
        kg_choice_print(choice, &words);
        fprintf(stderr, "%s: %s\n", op->name, kg_text_string(&words));
        kg_text_free(&words);
    }
    kg_binary_free(&binary);
}

static void emit_problem(const struct kg_op *op, const struct kg_problem *problem, const char *kind)
{
    struct kg_choice choice, again;
    struct kg_text text = {0};
    kg_choice_guess(problem, &facts, &kg_target_cuda, &choice);
    CHECK(choice.count > 0);
    for (int i = 0; i < choice.count; i++) {
        struct kg_text source = {0};
        CHECK(kg_choice_source(&choice, i, "kernel", &source));
        CHECK(strstr(kg_text_string(&source), "kernel_0(") != NULL);
        check_grids(&choice, i);
        if (device && emitted % every == 0 && has_turn(emitted / every, 3))
            compile(op, &choice, &source);
        emitted++;
        dump(op, kind, i, &source);
        kg_text_free(&source);
    }
    // As text and back.
    kg_choice_print(&choice, &text);
    bool same = kg_choice_read(problem, &facts, &kg_target_cuda, kg_text_string(&text), &again);
    CHECK(same);
    if (!same)
        fprintf(stderr, "%s: %s\n", op->name, kg_text_string(&text));
    kg_text_free(&text);
}

// With the sizes of one row, and 16 for those that it does not name.
static void emit_sizes(const struct kg_op *op, const struct kg_op *instance,
                       const struct kg_shapes *shapes, int row)
{
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES], strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = 16;
    for (int i = 0; i < shapes->size_count && row < shapes->row_count; i++)
        sizes[shapes->sizes[i]->id] = shapes->rows[row * shapes->size_count + i];
    CHECK_STATUS(kg_problem_make(instance, sizes, NULL, &problem, &error), KG_OK, &error);
    emit_problem(op, problem, "contiguous");
    for (int i = 0; i < op->input_count + op->output_count; i++)
        for (int d = 0; d < op->tensors[i]->rank; d++)
            strides[i][d] = problem->layouts[i].stride[d] * 2;
    kg_problem_free(problem);
    // Packed tensors have no strided form.
    if (kg_problem_make(instance, sizes, (const int64_t(*)[KG_MAX_RANK])strides, &problem,
                        &error) == KG_OK)
        emit_problem(op, problem, "strided");
    kg_problem_free(problem);
}

// Planned for the smallest case, and for what it is to be tuned for.
static void emit_op(const struct kg_op *op)
{
    struct kg_arena arena = {0};
    struct kg_bindings bindings;
    struct kg_op *instance;
    kg_lang_default_bindings(op, &bindings);
    CHECK_STATUS(kg_lang_instantiate(&arena, op, &bindings, &instance, &error), KG_OK, &error);
    emit_sizes(op, instance, &op->goal.verify, 0);
    for (int row = 0; row < op->goal.tune.row_count; row++)
        emit_sizes(op, instance, &op->goal.tune, row);
    kg_arena_free(&arena);
}

static void emit_file(const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    struct kg_file *file = NULL;
    struct kg_arena arena = {0};
    CHECK_STATUS(kg_files_read(path, 1 << 20, &bytes, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_parse(&arena, path, bytes, length, &file, &error), KG_OK, &error);
    const char *wanted = getenv("KG_OPS");
    for (int i = 0; file && i < file->op_count; i++)
        if (!wanted || strncmp(file->ops[i]->name, wanted, strlen(wanted)) == 0)
            emit_op(file->ops[i]);
    kg_arena_free(&arena);
    free(bytes);
}

static void every_definition(void)
{
    DIR *folder = opendir(KG_SOURCE_DIR "/ops");
    CHECK(folder != NULL);
    int files = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        char path[4096];
        if (length < 4 || strcmp(entry->d_name + length - 3, ".kg") != 0)
            continue;
        snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, entry->d_name);
        emit_file(path);
        files++;
    }
    closedir(folder);
    CHECK(files > 10);
}

static void test_definitions(void)
{
    char home[] = "/tmp/kernelgen-cuda-XXXXXX";
    const char *wanted = getenv("KG_EVERY");
    every = wanted ? (int)strtol(wanted, NULL, 10) : every;
    every = every > 0 ? every : 1;
    CHECK(folder_make(home));
    describe_device();
    CHECK_STATUS(kg_device_open("sm_90a", home, 1, &device, &error), KG_OK, &error);
    struct kg_source source = {
        .text = "extern \"C\" __global__ void kernel_0() {}", .entry = "kernel", .options = ""};
    struct kg_binary binary = {0};
    if (device->backend->compile(device, &source, 60, &binary, &error) == KG_ERROR_MISSING) {
        printf("NVRTC is not installed: nothing was compiled\n");
        kg_device_close(device);
        device = NULL;
    }
    kg_binary_free(&binary);
    every_definition();
    kg_device_close(device);
    folder_remove(home);
}

TEST_MAIN(test_definitions)
