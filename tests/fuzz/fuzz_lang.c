// Fuzzes the language: parse, then instantiate, print and size every op. What prints must parse
// again, and print the same.

#include "fuzz/fuzz.h"
#include "lang/difference.h"
#include "lang/lang.h"

#include <string.h>

static void check_sizes(const struct kg_op *instance)
{
    int64_t sizes[KG_MAX_SIZES];
    for (int i = 0; i < KG_MAX_SIZES; i++)
        sizes[i] = 3 * i + 1;
    int ranks[KG_MAX_TENSORS];
    int64_t shapes[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    struct kg_error error;
    for (int t = 0; t < instance->tensor_count; t++) {
        ranks[t] = instance->tensors[t]->rank;
        for (int d = 0; d < ranks[t]; d++)
            kg_lang_size_value(instance->tensors[t]->dims[d], sizes, &shapes[t][d], &error);
    }
    for (int i = 0; i < KG_MAX_SIZES; i++)
        sizes[i] = -1;
    kg_lang_infer_sizes(instance, ranks, (const int64_t(*)[KG_MAX_RANK])shapes, sizes, &error);
}

static void print_op(struct kg_text *text, const struct kg_op *op)
{
    for (int i = 0; i < op->statement_count; i++) {
        kg_lang_print_statement(text, op->statements[i]);
        kg_text_add(text, "\n");
    }
}

// The op's own text with its statements replaced by what they print as; NULL when a comment may
// hold the braces that are looked for.
static char *reprinted(const struct kg_op *op, const char *statements)
{
    const char *source = op->source;
    while (source[strspn(source, " \t")] == '#')
        source += strcspn(source, "\n") + 1;
    size_t begin = strcspn(source, "{#");
    size_t end = begin + strcspn(source + begin, "}#");
    if (source[begin] != '{' || source[end] != '}')
        return NULL;
    struct kg_text text = {0};
    kg_text_add_bytes(&text, source, begin + 1);
    kg_text_add(&text, statements);
    kg_text_add(&text, source + end);
    return text.data;
}

static void check_print(const struct kg_op *op)
{
    struct kg_text first = {0}, second = {0};
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    print_op(&first, op);
    char *text = reprinted(op, kg_text_string(&first));
    if (text && strlen(text) < (1 << 20)) {
        enum kg_status status = kg_lang_parse(&arena, "printed", text, strlen(text), &file, &error);
        if (status != KG_OK)
            fprintf(stderr, "%s\n%s\n", text, error.text);
        FUZZ_CHECK(status == KG_OK);
        print_op(&second, file->ops[0]);
        FUZZ_CHECK(strcmp(kg_text_string(&first), kg_text_string(&second)) == 0);
    }
    free(text);
    kg_text_free(&first);
    kg_text_free(&second);
    kg_arena_free(&arena);
}

// A text is no different from itself, and differs from others in some way that can be said.
static void check_difference(const struct kg_file *file, const char *text)
{
    static const char other[] = "op f(x: T[P, D], b: T[D]) -> (y: T[P, D]) where T in f16 f32\n"
                                "param eps = 1e-5 { m[p] = max(d) x[p, d]\n"
                                "y[p, d] = x[p, d] - m[p] + b[d] * eps }\n";
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *again, *another;
    struct kg_file_difference difference;
    FUZZ_CHECK(kg_lang_parse(&arena, "again", text, strlen(text), &again, &error) == KG_OK);
    FUZZ_CHECK(kg_lang_compare(&arena, file, again, &difference, &error) == KG_OK);
    FUZZ_CHECK(difference.op_count == file->op_count);
    for (int i = 0; i < difference.op_count; i++) {
        FUZZ_CHECK(!kg_difference_has_meaning(&difference.ops[i]));
        FUZZ_CHECK(!difference.ops[i].differences[KG_DIFFERENCE_TEXT]);
    }
    FUZZ_CHECK(kg_lang_parse(&arena, "other", other, strlen(other), &another, &error) == KG_OK);
    FUZZ_CHECK(kg_lang_compare(&arena, file, another, &difference, &error) == KG_OK);
    FUZZ_CHECK(kg_lang_compare(&arena, another, file, &difference, &error) == KG_OK);
    kg_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_file *file;
    enum kg_status status =
        kg_lang_parse(&arena, "fuzz.kg", (const char *)data, size, &file, &error);
    FUZZ_CHECK((status == KG_OK) == (file != NULL));
    FUZZ_CHECK(status == KG_OK || error.text[0]);
    for (int i = 0; status == KG_OK && i < file->op_count; i++) {
        struct kg_bindings bindings;
        struct kg_op *instance;
        kg_lang_default_bindings(file->ops[i], &bindings);
        FUZZ_CHECK(kg_lang_instantiate(&arena, file->ops[i], &bindings, &instance, &error) ==
                   KG_OK);
        check_sizes(instance);
        check_print(file->ops[i]);
        struct kg_text text = {0};
        print_op(&text, instance);
        kg_text_free(&text);
    }
    if (status == KG_OK && memchr(data, 0, size) == NULL) {
        char *text = malloc(size + 1);
        memcpy(text, data, size);
        text[size] = '\0';
        check_difference(file, text);
        free(text);
    }
    kg_arena_free(&arena);
    return 0;
}
