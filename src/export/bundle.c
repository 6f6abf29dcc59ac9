// The files of a bundle, from a problem to a folder.

#include "export/bundle.h"

#include "base/files.h"
#include "export/check/bundle_check.h"

#include <string.h>

enum kg_status kg_bundle_open(const struct kg_problem *problem, struct kg_bundle *bundle,
                              struct kg_error *error)
{
    struct kg_file *file;
    struct kg_op *generic;
    const struct kg_op *instance = problem->op;
    *bundle = (struct kg_bundle){.problem = problem, .instance = instance};
    enum kg_status status = kg_lang_parse(&bundle->arena, instance->file, instance->source,
                                          strlen(instance->source), &file, error);
    if (status == KG_OK)
        status = kg_lang_select(file, instance->name, &generic, error);
    if (status == KG_OK) {
        generic->description = instance->description;
        bundle->generic = generic;
    }
    return status;
}

void kg_bundle_close(struct kg_bundle *bundle)
{
    kg_arena_free(&bundle->arena);
    *bundle = (struct kg_bundle){0};
}

static enum kg_status publish(const struct kg_bundle *bundle, enum kg_bundle_role role,
                              const char *folder, const struct kg_text *text, struct kg_text *names,
                              struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", folder, bundle->instance->name, kg_bundle_roles[role].suffix);
    enum kg_status status =
        path.failed
            ? kg_error_memory(error, "a path")
            : kg_files_publish(kg_text_string(&path), kg_text_string(text), text->length, error);
    if (status == KG_OK)
        kg_text_format(names, "%s\n", kg_text_string(&path));
    kg_text_free(&path);
    return status;
}

// All but the first.
static enum kg_status emit_texts(const struct kg_bundle *bundle, struct kg_text *texts,
                                 struct kg_error *error)
{
    enum kg_status status = kg_bundle_baseline(bundle, &texts[KG_BUNDLE_BASELINE], error);
    if (status == KG_OK)
        status = kg_bundle_accuracy(bundle, &texts[KG_BUNDLE_ACCURACY], error);
    if (status == KG_OK)
        status = kg_bundle_performance(bundle, &texts[KG_BUNDLE_PERFORMANCE], error);
    return status;
}

enum kg_status kg_bundle_emit(const struct kg_problem *problem,
                              struct kg_text texts[KG_BUNDLE_COUNT], struct kg_error *error)
{
    struct kg_bundle bundle;
    enum kg_status status = kg_bundle_open(problem, &bundle, error);
    if (status == KG_OK)
        status = emit_texts(&bundle, texts, error);
    kg_bundle_close(&bundle);
    return status;
}

static void free_texts(struct kg_text *texts)
{
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        kg_text_free(&texts[role]);
}

// Before anything is written.
static enum kg_status check_texts(const struct kg_bundle *bundle, const struct kg_text *texts,
                                  struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_bundle_text files[KG_BUNDLE_COUNT] = {0};
    struct kg_bundle_facts facts;
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        files[role] =
            (struct kg_bundle_text){.path = kg_arena_format(&arena, "%s%s", bundle->instance->name,
                                                            kg_bundle_roles[role].suffix),
                                    .text = kg_text_string(&texts[role]),
                                    .length = texts[role].length};
    enum kg_status status = arena.failed ? kg_error_memory(error, "the files of a bundle")
                                         : kg_bundle_check_texts(&arena, bundle->instance->name,
                                                                 files, NULL, &facts, error);
    if (status == KG_OK && facts.finding_count > 0) {
        struct kg_text text = {0};
        kg_bundle_add_findings(&facts, &text);
        status = kg_error_set(error, KG_ERROR_UNSUPPORTED,
                              "an error in KernelGen, please report it: the files of this bundle "
                              "do not agree, and none is written\n%s",
                              kg_text_string(&text));
        kg_text_free(&text);
    }
    kg_arena_free(&arena);
    return status;
}

enum kg_status kg_bundle_write(const struct kg_problem *problem, const char *triton,
                               const char *folder, struct kg_text *names, struct kg_error *error)
{
    struct kg_bundle bundle;
    struct kg_text texts[KG_BUNDLE_COUNT] = {0};
    enum kg_status status = kg_bundle_open(problem, &bundle, error);
    kg_text_add(&texts[KG_BUNDLE_TRITON], triton ? triton : "");
    if (status == KG_OK)
        status = emit_texts(&bundle, texts, error);
    if (status == KG_OK)
        status = check_texts(&bundle, texts, error);
    if (status == KG_OK)
        status = kg_files_make_folder(folder, error);
    for (int role = 0; role < KG_BUNDLE_COUNT && status == KG_OK; role++)
        status = publish(&bundle, role, folder, &texts[role], names, error);
    free_texts(texts);
    kg_bundle_close(&bundle);
    return status;
}

// ---- Bundles that are there

// Where "op NAME" stands in the op's own source.
static size_t find_op(const struct kg_op *op)
{
    size_t length = strlen(op->name);
    for (const char *line = op->source; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *name = line + 2 + strspn(line + (strncmp(line, "op", 2) == 0 ? 2 : 0), " \t");
        if (strncmp(line, "op", 2) == 0 && name > line + 2 &&
            strncmp(name, op->name, length) == 0 && strcspn(name + length, " \t(\n") == 0)
            return (size_t)(line - op->source);
    }
    return 0;
}

static struct kg_bundle_expected expect(const struct kg_bundle *bundle, const struct kg_text *texts)
{
    const struct kg_op *op = bundle->generic;
    struct kg_bundle_expected expected = {
        .op = op->name,
        .definition = {bundle->instance->file, op->source, strlen(op->source)},
        .at = find_op(op),
    };
    int lines = 1;
    for (size_t i = 0; i < expected.at; i++)
        lines += op->source[i] == '\n';
    expected.lines_before = bundle->instance->span.line - lines;
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        if (texts[role].length)
            expected.texts[role] = kg_text_string(&texts[role]);
    return expected;
}

enum kg_status kg_bundle_check(const char *folder, const struct kg_problem *problem, bool json,
                               int *findings, struct kg_text *text, struct kg_error *error)
{
    if (!problem)
        return kg_bundle_check_folder(folder, NULL, json, findings, text, error);
    struct kg_bundle bundle;
    struct kg_text texts[KG_BUNDLE_COUNT] = {0};
    enum kg_status status = kg_bundle_open(problem, &bundle, error);
    if (status == KG_OK)
        status = emit_texts(&bundle, texts, error);
    if (status == KG_OK) {
        struct kg_bundle_expected expected = expect(&bundle, texts);
        status = kg_bundle_check_folder(folder, &expected, json, findings, text, error);
    }
    free_texts(texts);
    kg_bundle_close(&bundle);
    return status;
}
