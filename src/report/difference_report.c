// See difference_report.h.

#include "report/difference_report.h"

#include "base/json.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

struct fate {
    const char *key, *label, *remark;
};

static const struct fate fates[KG_FATE_COUNT] = {
    [KG_FATE_REGENERATE] = {"regenerate", "regenerate", ""},
    [KG_FATE_OPTIONAL] = {"optional", "optional", " (only comments or names in them differ)"},
    [KG_FATE_KEEP] = {"keep", "keep", ""},
    [KG_FATE_REMOVE] = {"remove", "remove", ""},
};

bool kg_difference_is_named(const struct kg_op_difference *op, const char *name)
{
    return !name || (op->before && strcmp(op->before->name, name) == 0) ||
           (op->after && strcmp(op->after->name, name) == 0);
}

static bool is_same(const struct kg_op_difference *op)
{
    return !kg_difference_has_meaning(op) && !op->differences[KG_DIFFERENCE_TEXT];
}

// Interface, formula and params are compiled into kernels; goals are not.
static bool changes_kernel(const struct kg_op_difference *op)
{
    return !op->before || !op->after || op->differences[KG_DIFFERENCE_INTERFACE] ||
           op->differences[KG_DIFFERENCE_FORMULA] || op->differences[KG_DIFFERENCE_PARAMETER];
}

static const char *state_of(const struct kg_op_difference *op)
{
    if (!op->before)
        return "added";
    if (!op->after)
        return "removed";
    if (strcmp(op->before->name, op->after->name) != 0)
        return "renamed";
    return is_same(op) ? "same" : kg_difference_has_meaning(op) ? "changed" : "reworded";
}

// ---- Text

static void add_side(const char *file, const struct kg_difference_side *side, int width,
                     struct kg_text *text)
{
    struct kg_text place = {0};
    kg_text_add_printable(&place, file);
    if (side->span.line && side->text)
        kg_text_format(&place, ":%d:%d", side->span.line, side->span.column);
    kg_text_format(text, "    %-*s  ", width, kg_text_string(&place));
    if (side->text)
        kg_text_add_printable(text, side->text);
    else
        kg_text_add(text, "-");
    kg_text_add(text, "\n");
    text->failed |= place.failed;
    kg_text_free(&place);
}

static int width_of(const char *file, const struct kg_difference_side *side)
{
    struct kg_text place = {0};
    kg_text_add_printable(&place, file);
    int width = (int)place.length;
    kg_text_free(&place);
    return width +
           (side->text ? snprintf(NULL, 0, ":%d:%d", side->span.line, side->span.column) : 0);
}

static void add_difference(const struct kg_file *before, const struct kg_file *after,
                           enum kg_difference_kind kind, const struct kg_difference *difference,
                           struct kg_text *text)
{
    int one = width_of(before->name, &difference->before);
    int other = width_of(after->name, &difference->after);
    int width = one > other ? one : other;
    kg_text_format(text, "  %-11s %s\n", kg_difference_names[kind], difference->what);
    add_side(before->name, &difference->before, width, text);
    add_side(after->name, &difference->after, width, text);
}

static void add_heading(const struct kg_op_difference *op, struct kg_text *text)
{
    const char *state = state_of(op);
    const char *separator = ": ";
    kg_text_add(text, op->after ? op->after->name : op->before->name);
    if (!op->before || !op->after || !kg_difference_has_meaning(op)) {
        kg_text_format(text, ": %s\n",
                       op->before && op->after ? "the same, written otherwise" : state);
        return;
    }
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        if (op->differences[kind]) {
            kg_text_format(text, "%s%s", separator, kg_difference_names[kind]);
            separator = ", ";
        }
    kg_text_add(text, "\n");
}

static void add_files(const struct kg_difference_effects *effects, struct kg_text *text)
{
    for (int fate = 0; fate < KG_FATE_COUNT; fate++) {
        bool any = false;
        for (int i = 0; i < effects->file_count; i++) {
            if ((int)effects->files[i].fate != fate)
                continue;
            kg_text_format(text, any ? ", %s%s" : "  %-11s %s%s",
                           any ? effects->files[i].op : fates[fate].label,
                           any ? effects->files[i].suffix : effects->files[i].op,
                           effects->files[i].suffix);
            any = true;
        }
        kg_text_format(text, "%s%s", any ? fates[fate].remark : "", any ? "\n" : "");
    }
    if (effects->unknown)
        kg_text_format(text,
                       "  %-11s all files count as changed, as they could not be compared: %s\n",
                       "note", effects->unknown);
}

static void add_op(const struct kg_file *before, const struct kg_file *after,
                   const struct kg_op_difference *op, const struct kg_difference_effects *effects,
                   struct kg_text *text)
{
    add_heading(op, text);
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        for (const struct kg_difference *d = op->differences[kind]; d; d = d->next)
            add_difference(before, after, kind, d, text);
    add_files(effects, text);
    if (op->before && op->after) {
        kg_text_format(text, "  %-11s %s\n", "kernels",
                       changes_kernel(op) ? "other ones: to be built and verified anew"
                                          : "the same formula, interface and params");
        kg_text_format(
            text, "  %-11s %s\n", "records",
            effects->keeps_records
                ? "still found"
                : "not found: measured times and verdicts belong to the text, comments included");
    }
    kg_text_add(text, "\n");
}

static void write_text(const struct kg_file *before, const struct kg_file *after,
                       const struct kg_file_difference *difference,
                       const struct kg_difference_effects *effects, const char *name,
                       struct kg_text *text)
{
    int same = 0, reworded = 0, changed = 0;
    for (int i = 0; i < difference->op_count; i++) {
        const struct kg_op_difference *op = &difference->ops[i];
        if (!kg_difference_is_named(op, name))
            continue;
        same += is_same(op);
        reworded += !is_same(op) && !kg_difference_has_meaning(op);
        changed += kg_difference_has_meaning(op);
        if (!is_same(op))
            add_op(before, after, op, &effects[i], text);
    }
    kg_text_format(text, "%d changed, %d only written otherwise, %d the same\n", changed, reworded,
                   same);
}

// ---- JSON

static void json_side(struct kg_json *json, const char *key, const struct kg_difference_side *side)
{
    if (!side->text) {
        kg_json_text(json, key, NULL);
        return;
    }
    kg_json_begin_object(json, key);
    kg_json_integer(json, "line", side->span.line);
    kg_json_integer(json, "column", side->span.column);
    kg_json_text(json, "text", side->text);
    kg_json_end_object(json);
}

static void json_differences(struct kg_json *json, const struct kg_op_difference *op)
{
    kg_json_begin_array(json, "kinds");
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        if (op->differences[kind])
            kg_json_text(json, NULL, kg_difference_names[kind]);
    kg_json_end_array(json);
    kg_json_begin_array(json, "differences");
    for (int kind = 0; kind < KG_DIFFERENCE_COUNT; kind++)
        for (const struct kg_difference *d = op->differences[kind]; d; d = d->next) {
            kg_json_begin_object(json, NULL);
            kg_json_text(json, "kind", kg_difference_names[kind]);
            kg_json_text(json, "what", d->what);
            json_side(json, "before", &d->before);
            json_side(json, "after", &d->after);
            kg_json_end_object(json);
        }
    kg_json_end_array(json);
}

static void json_files(struct kg_json *json, const struct kg_difference_effects *effects)
{
    struct kg_text name = {0};
    for (int fate = 0; fate < KG_FATE_COUNT; fate++) {
        kg_json_begin_array(json, fates[fate].key);
        for (int i = 0; i < effects->file_count; i++) {
            if ((int)effects->files[i].fate != fate)
                continue;
            kg_text_cut(&name, 0);
            kg_text_format(&name, "%s%s", effects->files[i].op, effects->files[i].suffix);
            kg_json_text(json, NULL, kg_text_string(&name));
        }
        kg_json_end_array(json);
    }
    json->text->failed |= name.failed;
    kg_text_free(&name);
}

static void json_op(struct kg_json *json, const struct kg_op_difference *op,
                    const struct kg_difference_effects *effects)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "before", op->before ? op->before->name : NULL);
    kg_json_text(json, "after", op->after ? op->after->name : NULL);
    kg_json_text(json, "state", state_of(op));
    json_differences(json, op);
    json_files(json, effects);
    kg_json_boolean(json, "kernels_change", changes_kernel(op));
    kg_json_boolean(json, "records_found", effects->keeps_records);
    kg_json_text(json, "note", effects->unknown);
    kg_json_end_object(json);
}

static void write_json(const struct kg_file *before, const struct kg_file *after,
                       const struct kg_file_difference *difference,
                       const struct kg_difference_effects *effects, const char *name,
                       struct kg_text *text)
{
    struct kg_json json = {.text = text};
    bool differs = false;
    for (int i = 0; i < difference->op_count; i++)
        differs |= kg_difference_is_named(&difference->ops[i], name) &&
                   kg_difference_has_meaning(&difference->ops[i]);
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "before", before->name);
    kg_json_text(&json, "after", after->name);
    kg_json_boolean(&json, "differs", differs);
    kg_json_begin_array(&json, "ops");
    for (int i = 0; i < difference->op_count; i++)
        if (kg_difference_is_named(&difference->ops[i], name))
            json_op(&json, &difference->ops[i], &effects[i]);
    kg_json_end_array(&json);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

void kg_difference_report(const struct kg_file *before, const struct kg_file *after,
                          const struct kg_file_difference *difference,
                          const struct kg_difference_effects *effects, const char *name, bool json,
                          struct kg_text *text)
{
    (json ? write_json : write_text)(before, after, difference, effects, name, text);
}
