// Exported kernels called through their plain signature, and foreign functions made into kernels.

#include "gen/standalone.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"
#include "verify/gate.h"

static char folder[] = "/tmp/kg-signature-XXXXXX";
static struct kg_device *device;

static void open_device(void)
{
    struct kg_error error = {0};
    if (!folder_make(folder) || kg_device_open("host", folder, 1, &device, &error) != KG_OK) {
        fprintf(stderr, "no host device: %s\n", error.text);
        exit(1);
    }
}

// Compiles a kernel called `entry`, runs it on random inputs and judges what it wrote.
static bool is_right(const struct kg_problem *problem, const char *text, const char *entry)
{
    const struct kg_op *op = problem->op;
    struct kg_source source = {.text = text, .entry = entry, .options = "-O1 -Wall -Werror"};
    struct kg_binary binary = {0};
    struct kg_kernel *kernel = NULL;
    struct kg_error error = {0};
    struct kg_verdict verdict = {0};
    void *tensors[KG_MAX_TENSORS] = {0};
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    if (binary.path)
        CHECK_STATUS(device->backend->load(device, &binary, entry, &kernel, &error), KG_OK, &error);
    kg_binary_free(&binary);
    if (!kernel)
        return false;
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        size_t bytes = problem->layouts[i].bytes;
        CHECK_STATUS(device->backend->allocate(device, bytes + 1, &tensors[i], &error), KG_OK,
                     &error);
        memset(tensors[i], 0xA5, bytes);
        if (i < op->input_count)
            kg_verify_fill(problem, i, 7, tensors[i]);
    }
    struct kg_launch launch = {.tensors = tensors, .sizes = problem->sizes};
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    CHECK_STATUS(kg_verify_outputs(problem, (const void *const *)tensors,
                                   (const void *const *)(tensors + op->input_count), &verdict,
                                   &error),
                 KG_OK, &error);
    for (int i = 0; i < op->input_count + op->output_count; i++)
        device->backend->release(device, tensors[i]);
    device->backend->unload(kernel);
    return verdict.passed;
}

// Several groups with a value in memory between them, and a dtype of each kind.
static const char several[] =
    "op several(x: f16[P, D], b: bool[D], w: u4[D], i: i32[P]) -> (y: f32[P, D], n: i64[])\n"
    "param G = 3\n"
    "{ v[p, d] = exp(x[p, d])\n"
    "  y[p, d] = pad(v[p, d - 1], 0) + w[d]\n"
    "  n[] = sum(p, d) where(b[d], i[p], G) }\n";

static void test_standalone(void)
{
    struct made made = make(several, "P=7 D=33");
    struct kg_choice choice;
    struct kg_text text = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &device->facts, &kg_target_host, &choice);
    CHECK(choice.count > 1);
    CHECK(kg_gen_standalone_host(made.problem, &choice, &device->facts, &text));
    CHECK(strstr(kg_text_string(&text),
                 "int several(const uint16_t *x, const bool *b, const uint8_t *w, "
                 "const int32_t *i_, float *y, int64_t *n, int64_t P, int64_t D);") != NULL ||
          strstr(kg_text_string(&text),
                 "int several(const uint16_t *x, const bool *b, const uint8_t *w, "
                 "const int32_t *i, float *y, int64_t *n, int64_t P, int64_t D);") != NULL);
    // Served to the runtime through its plain entry.
    kg_text_add(&text, "int64_t t_items(const struct kg_host_call *call, int phase)\n"
                       "{ (void)call; return phase == 0 ? 1 : -1; }\n"
                       "int64_t t_bytes(const struct kg_host_call *call, int kind)\n"
                       "{ (void)call; return kind == KG_HOST_GRAIN; }\n"
                       "void t_run(const struct kg_host_call *call, int phase, int64_t begin, "
                       "int64_t end)\n"
                       "{ (void)phase, (void)begin, (void)end;\n"
                       "  void *const *t = call->tensor;\n"
                       "  several(t[0], t[1], t[2], t[3], t[4], t[5], call->size[0], "
                       "call->size[1]); }\n");
    CHECK(is_right(made.problem, kg_text_string(&text), "t"));
    kg_text_free(&text);
    unmake(&made);
}

// Tensors and sizes may be called what headers call their macros.
static void test_names_of_macros(void)
{
    struct made made = make("op named(M_PI: f32[UINT8_MAX], HUGE_VALF: f32[UINT8_MAX]) -> "
                            "(errno: f32[UINT8_MAX], math_errhandling: f32[UINT8_MAX])\n"
                            "{ errno[i] = M_PI[i] + HUGE_VALF[i]\n"
                            "  math_errhandling[k] = sum(i) M_PI[i] * HUGE_VALF[k] }\n",
                            "UINT8_MAX=33");
    struct kg_choice choice;
    struct kg_text source = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status)
        return;
    kg_choice_guess(made.problem, &device->facts, &kg_target_host, &choice);
    for (int i = 0; i < choice.count; i++) {
        struct kg_binary binary = {0};
        struct kg_error error = {0};
        CHECK(kg_choice_source(&choice, i, "entry", &source));
        struct kg_source text = {
            .text = kg_text_string(&source), .entry = "entry", .options = "-O1 -Wall -Werror"};
        CHECK_STATUS(device->backend->compile(device, &text, 60, &binary, &error), KG_OK, &error);
        kg_binary_free(&binary);
        kg_text_free(&source);
    }
    unmake(&made);
}

static void check_foreign(const char *code, bool right)
{
    struct made made = make("op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])\n"
                            "{ y[p, d] = x[p, d] * s[p] }\n",
                            "P=5 D=9");
    struct kg_text text = {0};
    CHECK(kg_gen_foreign(made.op, "mine \"quoted\".c", code, "kernel", &text));
    CHECK(is_right(made.problem, kg_text_string(&text), "kernel") == right);
    kg_text_free(&text);
    unmake(&made);
}

static void test_foreign(void)
{
    check_foreign("void scale(const float *x, const float *s, float *y, int64_t P, int64_t D)\n"
                  "{ for (int64_t i = 0; i < P * D; i++) y[i] = x[i] * s[i / D]; }\n",
                  true);
    check_foreign("int scale(const float *x, const float *s, float *y, int64_t P, int64_t D)\n"
                  "{ for (int64_t i = 0; i < P * D; i++) y[i] = x[i] * s[i % P]; return 0; }\n",
                  false);
}

static void close_device(void)
{
    kg_device_close(device);
    folder_remove(folder);
}

TEST_MAIN(open_device, test_standalone, test_names_of_macros, test_foreign, close_device)
