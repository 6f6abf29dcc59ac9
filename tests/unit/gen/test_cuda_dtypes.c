// Elements of every dtype in generated CUDA: what the families write to load, convert and store
// them compiles for architectures with and without instructions for it. Without NVRTC sources are
// made and looked at, and nothing is compiled.

#include "device/device.h"
#include "gen/built.h"
#include "support/case_turns.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

static struct kg_error error;
static bool has_compiler = true;

// One of each family, with T in and out.
static const struct {
    const char *text;
    bool integers; // too
} ops[] = {
    {"op f(x: T[P, D], b: T[D]) -> (y: T[P, D]) where T in %s { y[p, d] = x[p, d] * b[d] }", true},
    {"op f(x: T[P, D]) -> (y: T[P, D]) where T in %s { m[p] = max(d) x[p, d]\n"
     "  y[p, d] = x[p, d] - m[p] }",
     true},
    {"op f(x: T[P, D]) -> (y: T[D]) where T in %s { y[d] = sum(p) x[p, d] }", true},
    {"op f(x: T[P, D]) -> (y: T[P, D]) where T in %s { y[p, d] = sum(j <= d) x[p, j] }", true},
    {"op f(a: T[P, D], b: T[D, N]) -> (c: T[P, N]) where T in %s\n"
     "{ c[p, n] = sum(d) a[p, d] * b[d, n] }",
     true},
    {"op f(a: f16[P, D], b: f16[D, N], s: T[N]) -> (c: T[P, N]) where T in %s\n"
     "{ c[p, n] = (sum(d) a[p, d] * b[d, n]) * s[n] }",
     false},
    {"op f(x: f64[P, D]) -> (y: T[P, D]) where T in %s { y[p, d] = cast(T, x[p, d] * 2.0) }", true},
};
enum { OPS = sizeof ops / sizeof ops[0] };

static const char *const sizes[] = {"P=512 D=1024 N=256", "P=3 D=7 N=5"};

static void compile(struct kg_device *device, const struct kg_text *source, const char *wanted)
{
    struct kg_binary binary = {0};
    const struct kg_source what = {
        .text = kg_text_string(source), .entry = "kernel", .options = ""};
    enum kg_status status = device->backend->compile(device, &what, 120, &binary, &error);
    if (status == KG_ERROR_MISSING) {
        has_compiler = false;
    } else {
        CHECK_STATUS(status, KG_OK, &error);
        CHECK(status != KG_OK || !wanted || (binary.ptx && strstr(binary.ptx, wanted)));
    }
    kg_binary_free(&binary);
}

static void emit(struct kg_device *device, const char *text, const char *choices, const char *call,
                 const char *wanted)
{
    struct made made = make(text, choices);
    struct kg_choice choice;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        kg_choice_guess(made.problem, &device->facts, &kg_target_cuda, &choice);
        for (int i = 0; i < choice.count; i++) {
            struct kg_text source = {0};
            CHECK(kg_choice_source(&choice, i, "kernel", &source));
            CHECK(choice.count > 1 || !call || strstr(kg_text_string(&source), call));
            if (has_compiler)
                compile(device, &source, choice.count == 1 ? wanted : NULL);
            kg_text_free(&source);
        }
    }
    unmake(&made);
}

// An instruction in the code of every kernel that loads or stores the dtype.
static const char *instruction_of(const char *architecture, enum kg_dtype dtype)
{
    if (strcmp(architecture, "sm_89") != 0 && strcmp(architecture, "sm_90a") != 0)
        return NULL;
    return dtype == KG_F8E4M3   ? "cvt.rn.satfinite.e4m3x2.f32"
           : dtype == KG_F8E5M2 ? "cvt.rn.satfinite.e5m2x2.f32"
                                : NULL;
}

static void check_dtype(struct kg_device *device, const char *architecture, enum kg_dtype dtype,
                        int op)
{
    static int number;
    const struct kg_dtype_info *info = &kg_dtypes[dtype];
    char text[256], choices[64], call[32];
    if (!has_turn(number++, 3))
        return;
    snprintf(text, sizeof text, ops[op].text, info->name);
    snprintf(call, sizeof call, "kg_pack_%s", info->name);
    for (int row = 0; row < 2; row++) {
        snprintf(choices, sizeof choices, "%s", sizes[row]);
        emit(device, text, choices, kg_dtype_is_narrow_float(dtype) ? call : NULL,
             instruction_of(architecture, dtype));
    }
}

static void check_architecture(const char *architecture, const char *folder)
{
    static const enum kg_dtype dtypes[] = {KG_F8E4M3, KG_F8E5M2, KG_I16, KG_U16, KG_U32};
    struct kg_device *device;
    CHECK_STATUS(kg_device_open(architecture, folder, 1, &device, &error), KG_OK, &error);
    for (size_t i = 0; device && i < sizeof dtypes / sizeof dtypes[0]; i++) {
        bool is_float = kg_dtypes[dtypes[i]].is_float;
        // Integers are converted by C++'s own rules, whatever the architecture.
        if (!is_float && strcmp(architecture, "sm_90a") != 0)
            continue;
        for (int op = 0; op < OPS; op++)
            if (is_float || ops[op].integers)
                check_dtype(device, architecture, dtypes[i], op);
    }
    kg_device_close(device);
}

int main(void)
{
    static const char *const architectures[] = {"sm_75", "sm_80", "sm_89", "sm_90a"};
    char folder[] = "/tmp/kg-test-cuda-dtypes-XXXXXX";
    CHECK(folder_make(folder));
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        check_architecture(architectures[i], folder);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    if (test_failures == 0 && !has_compiler) {
        printf("there is no NVRTC: nothing was compiled\n");
        return 77;
    }
    return test_failures != 0;
}
