// What CUDA files say of their launches: terms over sizes, shapes, arguments, and what PTX says of
// the functions.

#include "gen/cuda/declared.h"
#include "gen/cuda/terms.h"
#include "support/sample_problem.h"
#include "test.h"

#include <inttypes.h>

static struct made made;
static struct kg_error error;

static void open_sample(void)
{
    made = make("op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])\nparam G = 16, eps = 0.5\n"
                "{ y[p, d] = x[p, d] * s[p / G] + eps }\n",
                "P=33 D=7");
    CHECK_STATUS(made.status, KG_OK, &made.error);
}

static void close_sample(void)
{
    unmake(&made);
}

static int64_t value_of(const char *text, const char *rest)
{
    int64_t value;
    const char *end;
    CHECK_STATUS(kg_terms_value(text, made.op, made.problem->sizes, &value, &end, &error), KG_OK,
                 &error);
    CHECK_TEXT(end, rest);
    return value;
}

static void refuses(const char *text, enum kg_status wanted, const char *why)
{
    int64_t value = 5;
    const char *end;
    CHECK_STATUS(kg_terms_value(text, made.op, made.problem->sizes, &value, &end, &error), wanted,
                 &error);
    CHECK(value == 0 && strstr(error.text, why) != NULL);
}

static void terms_have_values(void)
{
    CHECK(value_of("P * D + 2", "") == 33 * 7 + 2);
    CHECK(value_of("2 - 3 - 4", "") == -5);
    CHECK(value_of("P / 4", "") == 8 && value_of("(0 - P) / 4", "") == -9);
    CHECK(value_of("(0 - P) % 4", "") == 3);
    CHECK(value_of("ceil(P / 4)", "") == 9 && value_of("ceil(P * D / 256) * 2", "") == 2);
    CHECK(value_of("ceil((P / 4) / 3)", "") == 3); // rounds up once
    CHECK(value_of("ceil((0 - P) / 4)", "") == -8);
    CHECK(value_of("min(P, max(G, 3)) blocks", "blocks") == 16);
    CHECK(value_of("D % 8 == 0 && 1", "") == 0 && value_of("D < P && 0 < D", "") == 1);
    CHECK(value_of("512 x 4", "x 4") == 512);
    refuses("Q + 1", KG_ERROR_ARGUMENT, "'Q' is no size of scale");
    refuses("eps", KG_ERROR_ARGUMENT, "'eps' is no size");
    refuses("P +", KG_ERROR_ARGUMENT, "expected a number or a size");
    refuses("(P", KG_ERROR_ARGUMENT, "expected ')'");
    refuses("ceil(P / 4, 3)", KG_ERROR_ARGUMENT, "expected ')'");
    refuses("99999999999999999999", KG_ERROR_ARGUMENT, "64 bits");
    refuses("P / (D - 7)", KG_ERROR_SHAPE, "zero");
    refuses("9223372036854775807 + P", KG_ERROR_SHAPE, "64 bits");
    char deep[1000];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    refuses(deep, KG_ERROR_ARGUMENT, "too deeply");
}

static struct kg_declared read_file(const char *text)
{
    struct kg_declared declared;
    CHECK_STATUS(kg_declared_read(made.op, "f.cu", text, &declared, &error), KG_OK, &error);
    return declared;
}

static void launches_are_read(void)
{
    struct kg_declared file =
        read_file("// Launch:  first, ceil(P / 4) x D blocks of 32 x 4 threads, 4 * D bytes of "
                  "dynamic shared memory, clusters of 2, where D % 2 == 1\n"
                  "// anything\r\n"
                  "  //  Launch: second, 1 blocks of 64 threads\n"
                  "//          with y, D = 512, stride 0 of x, scratch, G\n"
                  "//          scratch: P * 8 bytes\n"
                  "// Launch:  third, P - 1 blocks of 1 threads\n"
                  "extern \"C\" __global__ void first() {}\n");
    struct kg_grid grid;
    size_t scratch;
    CHECK(file.count == 3 && !file.choice);
    CHECK_STATUS(kg_declared_grid(&file, 0, made.problem->sizes, &grid, &error), KG_OK, &error);
    CHECK(grid.blocks[0] == 9 && grid.blocks[1] == 7 && grid.blocks[2] == 1);
    CHECK(grid.threads[0] == 32 && grid.threads[1] == 4 && grid.threads[2] == 1);
    CHECK(grid.shared == 28 && grid.cluster == 2);
    int64_t even[KG_MAX_SIZES];
    memcpy(even, made.problem->sizes, sizeof even);
    even[1] = 8;
    CHECK_STATUS(kg_declared_grid(&file, 0, even, &grid, &error), KG_OK, &error);
    CHECK(grid.blocks[0] == 0); // its condition does not hold
    CHECK_STATUS(kg_declared_scratch(&file, even, &scratch, &error), KG_OK, &error);
    CHECK(scratch == 33 * 8);
    for (int i = 0; i < 2; i++) { // both launches above the line
        const struct kg_declared_launch *launch = &file.launches[i];
        CHECK(launch->argument_count == 5);
        CHECK(launch->arguments[0].kind == KG_ARGUMENT_TENSOR && launch->arguments[0].id == 2);
        CHECK(launch->arguments[1].kind == KG_ARGUMENT_SIZE && launch->arguments[1].id == 1);
        CHECK(launch->arguments[2].kind == KG_ARGUMENT_STRIDE && launch->arguments[2].dim == 0);
        CHECK(launch->arguments[3].kind == KG_ARGUMENT_SCRATCH);
        CHECK(launch->arguments[4].kind == KG_ARGUMENT_SIZE);
    }
    CHECK(file.launches[2].argument_count == 5); // x, s, y, P, D
    CHECK_TEXT(file.launches[2].function, "third");
    kg_declared_free(&file);
}

static void choices_come_first(void)
{
    struct kg_declared file = read_file("// Choice:  a: b=1\n// Choice:  c*2: d=3\n"
                                        "// Launch:  whatever this says\n");
    CHECK_TEXT(file.choice, "a: b=1; c*2: d=3");
    CHECK(file.count == 0);
    kg_declared_free(&file);
    file = read_file("extern \"C\" __global__ void f() {} // Launch: not a line of its own\n");
    CHECK(file.count == 0 && !file.choice && !file.scratch);
    kg_declared_free(&file);
}

static void files_are_refused(void)
{
    static const struct {
        const char *text, *why;
    } files[] = {
        {"\n// Launch: f 3 blocks of 2 threads", "f.cu:2: expected 'Launch: FUNCTION"},
        {"// Launch: f, blocks of 2 threads", "'blocks' is no size"},
        {"// Launch: f, P x x 3 blocks of 2 threads", "'x' is no size"},
        {"// Launch: f, P block of 2 threads", "expected 'blocks of' at 'block of 2"},
        {"// Launch: f, P blocks of 2 threads and more", "expected ','"},
        {"// Launch: f, P blocks of 2 threads, 5", "bytes of dynamic shared memory"},
        {"// Launch: f, P blocks of 2 threads, where", "expected a number"},
        {"// Launch: f, P blocks of 2 threads\n// with x, z", "f.cu:2: 'z' is no input"},
        {"// Launch: f, P blocks of 2 threads\n// with stride 2 of x", "'stride 2 of x' is no"},
        {"// Launch: f, P blocks of 2 threads\n// with x,, y", "'' is no input"},
        {"// Launch: f, P blocks of 2 threads\n// with eps", "'eps' is no input"},
        {"// Launch: f, P blocks of 2 threads\n// scratch: P", "expected 'bytes'"},
        {"// Choice:", "an empty choice"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct kg_declared declared;
        CHECK_STATUS(kg_declared_read(made.op, "f.cu", files[i].text, &declared, &error),
                     KG_ERROR_ARGUMENT, &error);
        if (!strstr(error.text, files[i].why))
            CHECK_TEXT(error.text, files[i].why);
    }
    struct kg_declared declared;
    struct kg_text many = {0};
    for (int i = 0; i <= KG_MOST_DECLARED; i++)
        kg_text_add(&many, "// Launch: f, 1 blocks of 1 threads\n");
    CHECK_STATUS(kg_declared_read(made.op, "f.cu", many.data, &declared, &error), KG_ERROR_ARGUMENT,
                 &error);
    kg_text_free(&many);
    // Sizes that do not work are known when they come.
    CHECK_STATUS(kg_declared_read(made.op, "f.cu", "// Launch: f, P / (D - 1) blocks of 1 threads",
                                  &declared, &error),
                 KG_OK, &error);
    int64_t ones[KG_MAX_SIZES] = {1, 1};
    struct kg_grid grid;
    CHECK_STATUS(kg_declared_grid(&declared, 0, ones, &grid, &error), KG_ERROR_SHAPE, &error);
    kg_declared_free(&declared);
}

static const char ptx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    "// .entry not_this(.param .u64 a)\n"
    ".visible .entry one(\n\t.param .u64 .ptr .align 1 one_param_0, // of floats\n"
    "\t.param .u32 one_param_1,\n\t.param .s64 one_param_2\n)\n{ ret; }\n"
    ".entry none()\n{ ret; }\n/* .entry nor_this( */\n"
    ".visible .entry odd(.param .f32 a, .param .align 8 .b8 b[16], .param .u32 c)\n{ ret; }\n";

static enum kg_status check(const char *function, const char *kinds, int *widths)
{
    struct kg_argument arguments[8] = {{0}};
    int count = (int)strlen(kinds);
    for (int i = 0; i < count; i++)
        arguments[i].kind = kinds[i] == 't' ? KG_ARGUMENT_TENSOR : KG_ARGUMENT_SIZE;
    return kg_declared_check(ptx, function, made.op, arguments, count, widths, &error);
}

static void parameters_are_checked(void)
{
    int widths[8] = {0};
    CHECK_STATUS(check("one", "tss", widths), KG_OK, &error);
    CHECK(widths[0] == 8 && widths[1] == 4 && widths[2] == 8);
    CHECK_STATUS(check("none", "", NULL), KG_OK, &error);
    CHECK_STATUS(check("one", "ts", NULL), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "takes 3 parameters, and is given 2") != NULL);
    CHECK_STATUS(check("one", "tts", NULL), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "parameter 2 of one is a number of 4 bytes") != NULL);
    CHECK_STATUS(check("odd", "sss", NULL), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "parameter 1 of odd is no integer") != NULL);
    CHECK_STATUS(check("not_this", "t", NULL), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "no kernel called not_this, but one, none, odd") != NULL);
    for (size_t length = 0; length < sizeof ptx; length++) { // cut anywhere: an answer, no crash
        char *cut = strndup(ptx, length);
        struct kg_argument argument = {KG_ARGUMENT_TENSOR, 0, 0};
        kg_declared_check(cut, "odd", made.op, &argument, 1, widths, &error);
        free(cut);
    }
}

TEST_MAIN(open_sample, terms_have_values, launches_are_read, choices_come_first, files_are_refused,
          parameters_are_checked, close_sample)
