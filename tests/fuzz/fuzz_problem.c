// Fuzzes what follows the parser: whatever reads and instantiates is made into a problem with
// small, empty or absurd sizes; problems are described in both languages and in JSON, and the
// kernels of their first choice are emitted for the host and for a GPU. Nothing is compiled or run.

#include "analyze/problem.h"
#include "analyze/roofline.h"
#include "device/device.h"
#include "fuzz/fuzz.h"
#include "gen/choice.h"
#include "gen/source_identity.h"
#include "support/folder.h"

#include <string.h>

#define MAX_OPS 2

static struct kg_device *devices[2];
static char folder[] = "/tmp/kernelgen-fuzz-XXXXXX"; // of compiled objects; nothing is compiled

static void remove_folder(void)
{
    for (int i = 0; i < 2; i++)
        kg_device_close(devices[i]);
    folder_remove(folder);
}

static void open_devices(void)
{
    struct kg_error error = {0};
    static const char *const names[] = {"host", "sm_90a"};
    FUZZ_CHECK(folder_make(folder));
    atexit(remove_folder);
    for (int i = 0; i < 2; i++)
        if (kg_device_open(names[i], folder, 2, &devices[i], &error) != KG_OK) {
            fprintf(stderr, "%s: %s\n", names[i], error.text);
            abort();
        }
}

static void check_kernels(const struct kg_problem *problem, const struct kg_device *device)
{
    const struct kg_target *target = kg_target_of(device);
    struct kg_choice choice, again;
    struct kg_text text = {0};
    struct kg_hash hash, other;
    kg_choice_guess(problem, &device->facts, target, &choice);
    FUZZ_CHECK(choice.count > 0 || problem->nest_count == 0);
    FUZZ_CHECK(kg_choice_bound(&choice) >= 0);
    FUZZ_CHECK(kg_choice_expected(&choice) >= 0);
    kg_choice_print(&choice, &text);
    // What prints is read again, and is the same kernels.
    FUZZ_CHECK(kg_choice_read(problem, &device->facts, target, kg_text_string(&text), &again));
    FUZZ_CHECK(kg_choice_hash(&choice, &hash) && kg_choice_hash(&again, &other));
    FUZZ_CHECK(hash.high == other.high && hash.low == other.low);
    kg_text_free(&text);
}

static void check_documents(const struct kg_problem *problem)
{
    struct kg_text text = {0};
    kg_analyze_document(&text, problem, NULL, KG_ENGLISH);
    kg_analyze_document(&text, problem, &devices[1]->facts, KG_CHINESE);
    kg_analyze_document_json(&text, problem, &devices[0]->facts);
    FUZZ_CHECK(!text.failed && text.length > 0);
    kg_text_free(&text);
}

// Sizes follow from the text, so that an input always behaves alike.
static void choose_sizes(uint64_t hash, bool is_large, int64_t sizes[KG_MAX_SIZES])
{
    static const int64_t small[] = {0, 1, 2, 3, 5, 8, 16, 33};
    static const int64_t large[] = {
        1, 7, 64, 1000, 4096, 65536, (int64_t)1 << 31, (int64_t)1 << 48};
    for (int i = 0; i < KG_MAX_SIZES; i++) {
        hash = hash * 6364136223846793005u + 1442695040888963407u;
        sizes[i] = (is_large ? large : small)[hash >> 61];
    }
}

// Emitting takes milliseconds, so an input is tried with one kind of sizes, on one device.
static void check_instance(const struct kg_op *instance, uint64_t hash)
{
    int64_t sizes[KG_MAX_SIZES];
    struct kg_problem *problem;
    struct kg_error error = {0};
    choose_sizes(hash, (hash >> 8) % 4 == 0, sizes);
    enum kg_status status = kg_problem_make(instance, sizes, NULL, &problem, &error);
    FUZZ_CHECK((status == KG_OK) == (problem != NULL));
    FUZZ_CHECK(status == KG_OK || error.text[0]);
    if (status != KG_OK)
        return;
    check_documents(problem);
    check_kernels(problem, devices[(hash >> 4) % 2]);
    kg_problem_free(problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    if (!devices[0])
        open_devices();
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 1099511628211u;
    enum kg_status status =
        kg_lang_parse(&arena, "fuzz.kg", (const char *)data, size, &file, &error);
    for (int i = 0; status == KG_OK && i < file->op_count && i < MAX_OPS; i++) {
        struct kg_bindings bindings;
        struct kg_op *instance;
        kg_lang_default_bindings(file->ops[i], &bindings);
        if (kg_lang_instantiate(&arena, file->ops[i], &bindings, &instance, &error) == KG_OK)
            check_instance(instance, hash);
    }
    kg_arena_free(&arena);
    return 0;
}
