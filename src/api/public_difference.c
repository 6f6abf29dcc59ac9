// Two versions of a text: what differs, and which files of a bundle change with it. The files are
// emitted for both and compared, so that what is said of them needs no rules.

#include "api/chosen_sizes.h"
#include "api/emitted.h"
#include "api/sized.h"
#include "export/bundle.h"
#include "report/difference_report.h"

#include <string.h>

struct version {
    struct kg_arena arena;
    struct kg_text texts[KG_BUNDLE_COUNT];
};

static void free_version(struct version *version)
{
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        kg_text_free(&version->texts[role]);
    kg_arena_free(&version->arena);
}

// The texts of the bundle with default dtypes and params. Without `comments` as if there were none
// above the op.
static enum kg_status emit_version(const struct kg_op *op, bool comments, struct version *version,
                                   struct kg_error *error)
{
    struct kg_bindings bindings;
    struct kg_op *instance;
    struct kg_problem *problem = NULL;
    int64_t sizes[KG_MAX_SIZES];
    kg_lang_default_bindings(op, &bindings);
    enum kg_status status = kg_lang_instantiate(&version->arena, op, &bindings, &instance, error);
    if (status != KG_OK)
        return status;
    if (!comments)
        instance->description = "";
    for (int i = 0; i < KG_MAX_SIZES; i++)
        sizes[i] = -1;
    for (int i = 0; i < op->size_count; i++)
        if (op->sizes[i]->is_param)
            sizes[i] = bindings.values[i];
    kg_take_goal_sizes(op, sizes);
    status = kg_choose_sizes(instance, sizes, error);
    if (status == KG_OK)
        status = kg_problem_make(instance, sizes, NULL, &problem, error);
    if (status == KG_OK)
        status = kg_api_emit(problem, "triton", &version->texts[KG_BUNDLE_TRITON], error);
    if (status == KG_OK)
        status = kg_bundle_emit(problem, version->texts, error);
    kg_problem_free(problem);
    return status;
}

// Which files differ, a bit each.
static enum kg_status compare_files(const struct kg_op_difference *op, bool comments,
                                    unsigned *differ, struct kg_error *error)
{
    struct version before = {0}, after = {0};
    enum kg_status status = emit_version(op->before, comments, &before, error);
    if (status == KG_OK)
        status = emit_version(op->after, comments, &after, error);
    *differ = 0;
    for (int role = 0; role < KG_BUNDLE_COUNT && status == KG_OK; role++)
        if (strcmp(kg_text_string(&before.texts[role]), kg_text_string(&after.texts[role])) != 0)
            *differ |= 1u << role;
    free_version(&before);
    free_version(&after);
    return status;
}

static void add_files(struct kg_difference_effects *effects, const struct kg_op *op,
                      const enum kg_file_fate fates[KG_BUNDLE_COUNT])
{
    for (int role = 0; role < KG_BUNDLE_COUNT; role++) {
        effects->files[effects->file_count].op = op->name;
        effects->files[effects->file_count].suffix = kg_bundle_roles[role].suffix;
        effects->files[effects->file_count++].fate = fates[role];
    }
}

static void add_all_files(struct kg_difference_effects *effects, const struct kg_op *op,
                          enum kg_file_fate fate)
{
    enum kg_file_fate all[KG_BUNDLE_COUNT];
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        all[role] = fate;
    add_files(effects, op, all);
}

// Of an op that both versions have. What cannot be emitted counts as changed.
static enum kg_status find_changed_files(struct kg_arena *arena, const struct kg_op_difference *op,
                                         struct kg_difference_effects *effects,
                                         struct kg_error *error)
{
    unsigned code = 0, texts = 0;
    bool meaning = kg_difference_has_meaning(op);
    enum kg_file_fate fates[KG_BUNDLE_COUNT];
    struct kg_error why = {0};
    enum kg_status status = compare_files(op, false, &code, &why);
    if (status == KG_OK && strcmp(op->before->description, op->after->description) != 0)
        status = compare_files(op, true, &texts, &why);
    if (status == KG_ERROR_MEMORY)
        return kg_error_memory(error, "a comparison");
    if (status != KG_OK) {
        size_t length = strcspn(why.text, "\n");
        effects->unknown = kg_arena_copy(arena, why.text, length);
        code = ~0u;
    }
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        fates[role] = code & 1u << role && meaning  ? KG_FATE_REGENERATE
                      : (code | texts) & 1u << role ? KG_FATE_OPTIONAL
                                                    : KG_FATE_KEEP;
    add_files(effects, op->after, fates);
    return KG_OK;
}

static enum kg_status find_effects(struct kg_arena *arena, const struct kg_op_difference *op,
                                   struct kg_difference_effects *effects, struct kg_error *error)
{
    if (!op->before || !op->after) {
        add_all_files(effects, op->before ? op->before : op->after,
                      op->before ? KG_FATE_REMOVE : KG_FATE_REGENERATE);
        return KG_OK;
    }
    struct kg_hash before = kg_session_definition(op->before);
    struct kg_hash after = kg_session_definition(op->after);
    bool renamed = strcmp(op->before->name, op->after->name) != 0;
    effects->keeps_records = !renamed && before.high == after.high && before.low == after.low;
    if (strcmp(op->before->source, op->after->source) == 0) {
        add_all_files(effects, op->after, KG_FATE_KEEP);
        return KG_OK;
    }
    if (!renamed)
        return find_changed_files(arena, op, effects, error);
    add_all_files(effects, op->after, KG_FATE_REGENERATE);
    add_all_files(effects, op->before, KG_FATE_REMOVE);
    return KG_OK;
}

static enum kg_status compare(struct kg_arena *arena, const struct kg_file *before,
                              const struct kg_file *after, const char *name, bool json,
                              bool *differs, struct kg_text *text, struct kg_error *error)
{
    struct kg_file_difference difference;
    enum kg_status status = kg_lang_compare(arena, before, after, &difference, error);
    if (status != KG_OK)
        return status;
    struct kg_difference_effects *effects =
        KG_NEW_ARRAY(arena, difference.op_count, struct kg_difference_effects);
    if (!effects)
        return kg_error_memory(error, "a comparison");
    bool found = false;
    for (int i = 0; i < difference.op_count && status == KG_OK; i++) {
        const struct kg_op_difference *op = &difference.ops[i];
        if (!kg_difference_is_named(op, name))
            continue;
        found = true;
        *differs |= kg_difference_has_meaning(op);
        status = find_effects(arena, op, &effects[i], error);
    }
    struct kg_op *unused;
    if (status == KG_OK && !found)
        return kg_lang_select(after, name, &unused, error);
    if (status == KG_OK)
        kg_difference_report(before, after, &difference, effects, name, json, text);
    return status;
}

enum kg_status kg_definitions_compare(struct kg_context *context,
                                      const struct kg_definitions *before,
                                      const struct kg_definitions *after, const char *name,
                                      bool json, bool *differs, char **text)
{
    enum kg_status status = KG_API_NEEDS(context, context, before, after, differs, text);
    if (status != KG_OK)
        return status;
    *differs = false;
    *text = NULL;
    status = KG_API_NEEDS(context, before->file, before->text, after->file, after->text);
    if (status != KG_OK)
        return status;
    struct kg_arena arena = {0};
    struct kg_file *old, *new;
    struct kg_text written = {0};
    bool found = false;
    status =
        kg_lang_parse(&arena, before->file, before->text, before->length, &old, &context->error);
    if (status == KG_OK)
        status =
            kg_lang_parse(&arena, after->file, after->text, after->length, &new, &context->error);
    if (status == KG_OK)
        status = compare(&arena, old, new, name, json, &found, &written, &context->error);
    kg_arena_free(&arena);
    *differs = status == KG_OK && found;
    return kg_api_give(context, status, &written, text);
}
