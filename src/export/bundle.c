// The files of a bundle, from a problem to a folder.

#include "export/bundle.h"

#include "base/files.h"

#include <string.h>

const struct kg_bundle_role_info kg_bundle_roles[KG_BUNDLE_COUNT] = {
    [KG_BUNDLE_TRITON] = {"triton", "_triton.py"},
    [KG_BUNDLE_BASELINE] = {"baseline", "_baseline.py"},
    [KG_BUNDLE_ACCURACY] = {"accuracy", "_accuracy.py"},
    [KG_BUNDLE_PERFORMANCE] = {"performance", "_performance.py"},
};

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

static enum kg_status publish(const char *op, enum kg_bundle_role role, const char *folder,
                              const struct kg_text *text, struct kg_text *names,
                              struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", folder, op, kg_bundle_roles[role].suffix);
    enum kg_status status =
        path.failed
            ? kg_error_memory(error, "a path")
            : kg_files_publish(kg_text_string(&path), kg_text_string(text), text->length, error);
    if (status == KG_OK)
        kg_text_format(names, "%s\n", kg_text_string(&path));
    kg_text_free(&path);
    return status;
}

enum kg_status kg_bundle_emit(const struct kg_problem *problem, const char *triton,
                              struct kg_text texts[KG_BUNDLE_COUNT], struct kg_error *error)
{
    struct kg_bundle bundle;
    enum kg_status status = kg_bundle_open(problem, &bundle, error);
    kg_text_add(&texts[KG_BUNDLE_TRITON], triton ? triton : "");
    if (status == KG_OK)
        status = kg_bundle_baseline(&bundle, &texts[KG_BUNDLE_BASELINE], error);
    if (status == KG_OK)
        status = kg_bundle_accuracy(&bundle, &texts[KG_BUNDLE_ACCURACY], error);
    if (status == KG_OK)
        status = kg_bundle_performance(&bundle, &texts[KG_BUNDLE_PERFORMANCE], error);
    kg_bundle_close(&bundle);
    return status;
}

enum kg_status kg_bundle_write(const struct kg_problem *problem, const char *triton,
                               const char *folder, struct kg_text *names, struct kg_error *error)
{
    struct kg_text texts[KG_BUNDLE_COUNT] = {0};
    enum kg_status status = kg_bundle_emit(problem, triton, texts, error);
    if (status == KG_OK)
        status = kg_files_make_folder(folder, error);
    for (int role = 0; role < KG_BUNDLE_COUNT && status == KG_OK; role++)
        if (texts[role].length)
            status = publish(problem->op->name, role, folder, &texts[role], names, error);
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        kg_text_free(&texts[role]);
    return status;
}
