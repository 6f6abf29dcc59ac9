// The preludes of generated CUDA kernels: every function compiles for every architecture, and
// tidied sources keep what they use and nothing else. Without NVRTC only the second is tested.

#include "base/files.h"
#include "device/device.h"
#include "gen/shared/tidy.h"
#include "gen/skeleton.h"
#include "support/folder.h"
#include "test.h"

#include <ctype.h>

static char folder[] = "/tmp/kg-test-cuda-prelude-XXXXXX";
static struct kg_error error;
static bool has_compiler = true;

static const char *const preludes[] = {"cuda/prelude.cuh", "elements.h",        "values.h",
                                       "cuda/maths.cuh",   "cuda/vectors.cuh",  "cuda/lanes.cuh",
                                       "cuda/running.cuh", "cuda/arrivals.cuh", "cuda/narrow.cuh"};
enum { PRELUDES = sizeof preludes / sizeof preludes[0] };

static void add_preludes(struct kg_text *text)
{
    for (size_t i = 0; i < PRELUDES; i++) {
        kg_text_add(text, kg_skeleton_find(preludes[i]));
        kg_text_add(text, "\n");
    }
}

static void add_calls(struct kg_text *text)
{
    char *calls;
    size_t length;
    CHECK_STATUS(
        kg_files_read(KG_SOURCE_DIR "/tests/data/cuda_calls.cu", 1 << 20, &calls, &length, &error),
        KG_OK, &error);
    kg_text_add(text, calls);
    free(calls);
}

static int count_word(const char *text, const char *word, size_t length)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        count += begins && !(isalnum((unsigned char)at[length]) || at[length] == '_');
    }
    return count;
}

// A function that nothing calls would not be compiled at all.
static void everything_is_called(void)
{
    struct kg_text text = {0};
    add_preludes(&text);
    size_t end = text.length;
    add_calls(&text);
    int functions = 0;
    for (char *line = text.data; line && line < text.data + end; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *parameters = strncmp(line, "KG_INLINE ", 10) == 0 ? strchr(line, '(') : NULL;
        char *name = parameters;
        while (name && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
            name--;
        if (!name)
            continue;
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)(parameters - name), name);
        functions++;
        int uses = count_word(text.data, word, strlen(word));
        CHECK(uses >= 2);
        if (uses < 2)
            fprintf(stderr, "%s\n", word);
    }
    CHECK(functions > 150);
    kg_text_free(&text);
}

static bool has_word(const struct kg_text *text, const char *word)
{
    return count_word(text->data, word, strlen(word)) > 0;
}

static void compile(const struct kg_text *text, const char *architecture, const char *entry)
{
    struct kg_device *device;
    struct kg_binary binary = {0};
    CHECK_STATUS(kg_device_open(architecture, folder, 0, &device, &error), KG_OK, &error);
    if (!device)
        return;
    const struct kg_source source = {.text = text->data, .entry = entry, .options = ""};
    enum kg_status status = device->backend->compile(device, &source, 300, &binary, &error);
    if (status == KG_ERROR_MISSING) {
        has_compiler = false;
    } else {
        CHECK_STATUS(status, KG_OK, &error);
        CHECK(binary.length > 0 && !(binary.log && strstr(binary.log, "warning")));
    }
    kg_binary_free(&binary);
    kg_device_close(device);
}

static void unused_functions_go(void)
{
    struct kg_text text = {0};
    add_preludes(&text);
    kg_text_add(&text,
                "extern \"C\" __global__ void small_0(const kg_f16 *x, float *y)\n{\n"
                "    const float unused = 1.0f;\n"
                "    int turn = 0;\n"
                "    const float value = kg_gelu_f32(kg_load_f16(x, threadIdx.x));\n"
                "    y[threadIdx.x] = kg_block_fold<kg_fold_max_f32, 64>(value, turn);\n}\n");
    kg_gen_tidy(&text);
    CHECK(!text.failed);
    static const char *const kept[] = {
        "KG_INLINE",       "int64_t",    "kg_f16",       "kg_unpack_f16", "kg_load_f16",
        "kg_power_of_two", "kg_max_f32", "kg_tail_f32",  "kg_block_fold", "kg_fold_max_f32",
        "Activations",     "Minima",     "kg_from_lane", "kg_warp_fold",  "value",
    };
    static const char *const gone[] = {
        "unused",         "kg_pack_f16",   "kg_min_f32", "kg_max_f64",
        "kg_sigmoid_f32", "kg_reciprocal", "kg_exp_f32", "kg_vec",
        "kg_word",        "Trigonometry",  "Neighbours", "kg_fold_max_f64",
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        CHECK(has_word(&text, kept[i]));
        if (!has_word(&text, kept[i]))
            fprintf(stderr, "%s\n", kept[i]);
    }
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        CHECK(!has_word(&text, gone[i]));
        if (has_word(&text, gone[i]))
            fprintf(stderr, "%s\n", gone[i]);
    }
    CHECK(folder_make(folder));
    compile(&text, "sm_90a", "small");
    kg_text_free(&text);
}

// What only a later kernel brings along stays; what two bring along stands once.
static void repeats_go(void)
{
    struct kg_text text = {0};
    const char *maths = kg_skeleton_find("cuda/maths.cuh"),
               *lanes = kg_skeleton_find("cuda/lanes.cuh");
    kg_text_add(&text, maths);
    kg_text_add(&text, "first\n");
    size_t second = text.length;
    kg_text_add(&text, maths);
    kg_text_add(&text, lanes);
    kg_text_add(&text, "second\n");
    kg_gen_drop_repeats(&text, second);
    CHECK(!text.failed);
    const char *once = strstr(text.data, maths);
    CHECK(once && !strstr(once + 1, maths));
    const char *kept = strstr(text.data, lanes);
    CHECK(kept && strcmp(kept + strlen(lanes), "second\n") == 0);
    kg_text_free(&text);
}

static void everything_compiles(void)
{
    static const char *const architectures[] = {"sm_75",  "sm_80",   "sm_89",
                                                "sm_90a", "sm_100a", "sm_120a"};
    struct kg_text text = {0};
    add_preludes(&text);
    add_calls(&text);
    for (size_t i = 0; has_compiler && i < sizeof architectures / sizeof architectures[0]; i++)
        compile(&text, architectures[i], "call");
    kg_text_free(&text);
    folder_remove(folder);
}

int main(void)
{
    everything_is_called();
    unused_functions_go();
    repeats_go();
    everything_compiles();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    if (test_failures == 0 && !has_compiler) {
        printf("there is no NVRTC: nothing was compiled\n");
        return 77;
    }
    return test_failures != 0;
}
