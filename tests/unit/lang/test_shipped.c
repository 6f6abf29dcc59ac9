// Every shipped definition parses, has a description and a goal, and instantiates for every
// combination of its dtypes. The functions and reductions of the language are all used somewhere.

#include "base/files.h"
#include "lang/lang.h"

#include "test.h"

#include <dirent.h>
#include <stdlib.h>

static bool function_used[KG_FUNCTION_COUNT];
static bool reduce_used[KG_REDUCE_COUNT];
static char names[512][64];
static int op_count;

static void note_uses(const struct kg_expr *expr)
{
    if (expr->kind == KG_EXPR_CALL)
        function_used[expr->function] = true;
    if (expr->kind == KG_EXPR_REDUCE)
        reduce_used[expr->reduce] = true;
    for (int i = 0; i < expr->argument_count; i++)
        note_uses(expr->arguments[i]);
    if (expr->pad)
        note_uses(expr->pad);
}

static void check_typed(const struct kg_expr *expr)
{
    CHECK(expr->type != KG_TYPE_NONE);
    CHECK(expr->kind != KG_EXPR_SIZE || !expr->size->is_param);
    for (int i = 0; i < expr->argument_count; i++)
        check_typed(expr->arguments[i]);
    for (int i = 0; i < expr->index_count; i++) {
        CHECK(expr->indices[i]->end != NULL);
        check_typed(expr->indices[i]->end);
    }
}

static void check_instance(const struct kg_op *op, const struct kg_bindings *bindings)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_op *instance;
    enum kg_status status = kg_lang_instantiate(&arena, op, bindings, &instance, &error);
    CHECK_STATUS(status, KG_OK, &error);
    if (status == KG_OK) {
        CHECK(instance->is_instance && instance->tensor_count == op->tensor_count);
        for (int i = 0; i < instance->tensor_count; i++) {
            CHECK(instance->tensors[i]->type.variable == NULL);
            CHECK(instance->tensors[i]->compute != KG_TYPE_NONE);
        }
        for (int i = 0; i < instance->statement_count; i++)
            check_typed(instance->statements[i]->value);
    }
    kg_arena_free(&arena);
}

// All combinations, variable by variable.
static void check_dtypes(const struct kg_op *op, struct kg_bindings *bindings, int variable)
{
    if (variable == op->typevar_count) {
        check_instance(op, bindings);
        return;
    }
    for (int i = 0; i < op->typevars[variable]->count; i++) {
        bindings->dtypes[variable] = op->typevars[variable]->allowed[i];
        check_dtypes(op, bindings, variable + 1);
    }
}

// Every row of the goal gives every dimension a size.
static void check_rows(const struct kg_op *instance, const struct kg_shapes *shapes)
{
    for (int row = 0; row < shapes->row_count; row++) {
        int64_t sizes[KG_MAX_SIZES];
        for (int i = 0; i < KG_MAX_SIZES; i++)
            sizes[i] = -1;
        for (int i = 0; i < shapes->size_count; i++)
            sizes[shapes->sizes[i]->id] = shapes->rows[row * shapes->size_count + i];
        double bytes = 0;
        for (int t = 0; t < instance->input_count + instance->output_count; t++) {
            const struct kg_tensor *tensor = instance->tensors[t];
            double elements = 1;
            for (int d = 0; d < tensor->rank; d++) {
                struct kg_error error = {0};
                int64_t value;
                CHECK_STATUS(kg_lang_size_value(tensor->dims[d], sizes, &value, &error), KG_OK,
                             &error);
                elements *= (double)value;
            }
            bytes += elements * kg_dtypes[tensor->type.dtype].bits / 8;
        }
        if (bytes > 0x1p30)
            fprintf(stderr, "%s: row %d moves %g bytes\n", instance->name, row, bytes);
        CHECK(bytes <= 0x1p30);
    }
}

static void check_goal(const struct kg_op *op)
{
    struct kg_arena arena = {0};
    struct kg_error error = {0};
    struct kg_bindings bindings;
    struct kg_op *instance;
    kg_lang_default_bindings(op, &bindings);
    for (int i = 0; i < op->typevar_count; i++) // the dtypes shipped shapes are meant for
        for (int j = 0; j < op->typevars[i]->count; j++)
            if (op->typevars[i]->allowed[j] == KG_F32)
                bindings.dtypes[i] = KG_F32;
    if (kg_lang_instantiate(&arena, op, &bindings, &instance, &error) == KG_OK &&
        strcmp(op->name, "bias_relu") != 0) { // its shapes are the ones of the demonstration
        check_rows(instance, &instance->goal.verify);
        check_rows(instance, &instance->goal.tune);
    }
    kg_arena_free(&arena);
}

static void check_op(const struct kg_op *op)
{
    for (int i = 0; i < op_count; i++)
        CHECK(strcmp(names[i], op->name) != 0);
    if (op_count < 512)
        snprintf(names[op_count++], sizeof names[0], "%s", op->name);
    CHECK(op->description[0] != '\0');
    CHECK(op->goal.verify.row_count > 0);
    for (int i = 0; i < op->statement_count; i++)
        note_uses(op->statements[i]->value);
    for (int t = 0; t < op->tensor_count; t++)
        for (int d = 0; d < op->tensors[t]->rank; d++)
            note_uses(op->tensors[t]->dims[d]);
    struct kg_bindings bindings;
    kg_lang_default_bindings(op, &bindings);
    check_dtypes(op, &bindings, 0);
    check_goal(op);
}

static void check_file(const char *path)
{
    char *text;
    size_t length;
    struct kg_error error = {0};
    struct kg_arena arena = {0};
    struct kg_file *file;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    enum kg_status status = kg_lang_parse(&arena, path, text, length, &file, &error);
    CHECK_STATUS(status, KG_OK, &error);
    for (int i = 0; status == KG_OK && i < file->op_count; i++)
        check_op(file->ops[i]);
    kg_arena_free(&arena);
    free(text);
}

static void test_shipped(void)
{
    DIR *folder = opendir(KG_SOURCE_DIR "/ops");
    CHECK(folder != NULL);
    if (!folder)
        return;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char path[4096];
        snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, entry->d_name);
        const char *dot = strrchr(entry->d_name, '.');
        if (dot && strcmp(dot, ".kg") == 0)
            check_file(path);
    }
    closedir(folder);
    CHECK(op_count >= 60);
    for (int i = 0; i < KG_FUNCTION_COUNT; i++) {
        if (!function_used[i])
            fprintf(stderr, "no shipped op uses %s\n", kg_functions[i].name);
        CHECK(function_used[i]);
    }
    for (int i = 0; i < KG_REDUCE_COUNT; i++)
        CHECK(reduce_used[i]);
}

TEST_MAIN(test_shipped)
