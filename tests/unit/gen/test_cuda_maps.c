// Functions that take tensor maps: how they are declared, that this is what compilers understand,
// and what is made of it where the PTX comes from outside.

#include "device/device.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/cuda/declared.h"
#include "gen/skeleton.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

static char folder[] = "/tmp/kg-test-cuda-maps-XXXXXX";
static struct kg_error error;
static bool has_compiler = true;

// A user may call a tensor as maps are called.
static const char definition[] = "op f(map_0: f32[P]) -> (y: f32[P]) { y[p] = map_0[p] }";

// ENTRY_0 has no maps, ENTRY_1 has two.
static void emit(const struct kg_group *group, struct kg_text *source)
{
    struct kg_code code = {source, 0};
    kg_text_add(source, kg_skeleton_find("cuda/prelude.cuh"));
    kg_text_add(source, kg_skeleton_find("cuda/tensor_map.cuh"));
    kg_cuda_open_function(&code, group, "k", 0, 128, 0);
    kg_code_close(&code);
    kg_cuda_open_function_with_maps(&code, group, "k", 1, 128, 0, 2);
    kg_code_line(&code, "static_assert(sizeof map_1 == 128 && alignof(kg_tensor_map) == 64);");
    kg_code_line(&code, "asm volatile(\"prefetch.tensormap [%%0];\" :: \"l\"(&map_1) : "
                        "\"memory\");");
    kg_code_line(&code, "y[0] = map_0_[0];");
    kg_code_close(&code);
}

static void compile(const struct kg_text *text, struct kg_binary *binary)
{
    struct kg_device *device;
    CHECK_STATUS(kg_device_open("sm_90a", folder, 0, &device, &error), KG_OK, &error);
    const struct kg_source source = {.text = text->data, .entry = "k", .options = ""};
    enum kg_status status = device->backend->compile(device, &source, 300, binary, &error);
    has_compiler = status != KG_ERROR_MISSING;
    if (has_compiler)
        CHECK_STATUS(status, KG_OK, &error);
    kg_device_close(device);
}

static enum kg_status check(const char *ptx, const char *function, const struct kg_group *group,
                            int maps)
{
    struct kg_argument arguments[KG_MAX_ARGUMENTS];
    int count = kg_group_arguments_and_maps(group, maps, arguments);
    return kg_declared_check(ptx, function, group->problem->op, arguments, count, NULL, &error);
}

static void functions_take_maps(void)
{
    struct made made = make(definition, NULL);
    struct kg_group group = {made.problem, 0, 1};
    struct kg_text text = {0};
    struct kg_binary binary = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    emit(&group, &text);
    const char *first = strstr(text.data, "k_0("), *second = strstr(text.data, "k_1(");
    const char *map = strstr(text.data, "char *__restrict__ scratch,\n    const __grid_constant__ "
                                        "struct kg_tensor_map map_0,\n    const __grid_constant__ "
                                        "struct kg_tensor_map map_1)\n{");
    CHECK(first && second > first && map > second);
    compile(&text, &binary);
    if (has_compiler && binary.ptx) {
        CHECK_STATUS(check(binary.ptx, "k_1", &group, 2), KG_OK, &error);
        CHECK_STATUS(check(binary.ptx, "k_0", &group, 2), KG_OK, &error); // leaves them out
        CHECK_STATUS(check(binary.ptx, "k_1", &group, 1), KG_ERROR_ARGUMENT, &error);
        CHECK(strstr(error.text, "k_1 takes 6 parameters, and is given 5"));
    }
    kg_binary_free(&binary);
    kg_text_free(&text);
    unmake(&made);
}

static void other_parameters_are_no_maps(void)
{
    struct made made = make(definition, NULL);
    struct kg_group group = {made.problem, 0, 1};
    CHECK_STATUS(check(".entry k_0(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,\n"
                       ".param .align 64 .b8 e[64]) { ret; }",
                       "k_0", &group, 1),
                 KG_ERROR_ARGUMENT, &error);
    CHECK_TEXT(error.text, "parameter 5 of k_0 is no integer or pointer, but of 64 bytes, and is "
                           "given the tensor map map_0, of 128 bytes");
    unmake(&made);
}

int main(void)
{
    CHECK(folder_make(folder));
    functions_take_maps();
    other_parameters_are_no_maps();
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    if (test_failures == 0 && !has_compiler) {
        printf("there is no NVRTC: nothing was compiled\n");
        return 77;
    }
    return test_failures != 0;
}
