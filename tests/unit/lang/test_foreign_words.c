// Advice about functions of other languages is itself right: it parses in the place of the call.

#include "lang/lang.h"

#include "test.h"

#define BEGIN "op f(x: f32[P, D], z: f32[P, D]) -> (y: f32[P, D]) {\n"

static enum kg_status parse(const char *body, struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_text text = {0};
    struct kg_file *file;
    kg_text_format(&text, BEGIN "%s }", body);
    enum kg_status status =
        kg_lang_parse(&arena, "t.kg", kg_text_string(&text), text.length, &file, error);
    kg_text_free(&text);
    kg_arena_free(&arena);
    return status;
}

// Parses `y[p, d] = CALL`, which is refused, and then what the advice says.
static void check_call(const char *call)
{
    static const char out[] = "help: write it out:\n", inline_form[] = "help: write ";
    struct kg_error error = {0}, second = {0};
    char body[1024];
    snprintf(body, sizeof body, "y[p, d] = %s", call);
    CHECK(parse(body, &error) == KG_ERROR_DEFINITION);
    const char *statements = strstr(error.text, out), *value = strstr(error.text, inline_form);
    if (statements)
        snprintf(body, sizeof body, "%s", statements + strlen(out));
    else if (value)
        snprintf(body, sizeof body, "y[p, d] = %s", value + strlen(inline_form));
    if (!value || parse(body, &second) != KG_OK)
        fprintf(stderr, "%s\n%s\n%s\n", call, error.text, second.text);
    CHECK(value != NULL && second.status == KG_OK);
}

static void test_calls(void)
{
    static const char *const calls[] = {
        "clamp(x[p, d], 0, 1)",
        "clip(x[p, d] + 1, -1, z[p, d])",
        "clamp_min(x[p, d], 0)",
        "maximum(x[p, d], z[p, d])",
        "fmin(x[p, d], 2)",
        "log10(x[p, d])",
        "exp10(x[p, d])",
        "tan(x[p, d])",
        "sinh(x[p, d] - 1)",
        "cosh(x[p, d])",
        "erfc(x[p, d])",
        "fabs(x[p, d])",
        "square(x[p, d] + 1)",
        "cbrt(x[p, d])",
        "power(x[p, d], 3)",
        "reciprocal(x[p, d] + 1)",
        "fma(x[p, d], z[p, d], 1)",
        "fmod(x[p, d], 3)",
        "floordiv(x[p, d], 3)",
        "trunc(x[p, d])",
        "select(x[p, d] > 0, 1, 0)",
        "swish(x[p, d])",
        "mish(x[p, d])",
        "relu6(x[p, d])",
        "leaky_relu(x[p, d])",
        "elu(x[p, d])",
        "hardswish(x[p, d])",
        "hard_sigmoid(x[p, d])",
        "softmax(x)",
        "softmax(x[p, d] * 2)",
        "log_softmax(x[p, d] + z[p, d])",
        "layer_norm(x)",
        "rms_norm(x[p, d])",
        "float32(x[p, d] > 0)",
        "half(x[p, d])",
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        check_call(calls[i]);
}

TEST_MAIN(test_calls)
