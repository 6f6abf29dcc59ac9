// Compares two files, kernel by kernel.

#include "report/assembly_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAGES 3 // pairs shown in full
#define NAME_WIDTH 40
#define VALUE_WIDTH 14

struct side {
    const struct kg_asm_kernel *kernel;
    struct kg_appraisal appraisal;
    struct kg_figures figures;
};

struct comparison {
    const struct kg_assembly_subject *subjects[2];
    const struct kg_assembly_launch *launch;
    struct kg_text *text;
    int (*pairs)[2]; // indices of kernels
    int pair_count;
    bool *other_paired;
};

static int find_kernel(const struct kg_asm_file *file, const char *name)
{
    const struct kg_asm_kernel *kernel = kg_asm_find(file, name);
    return kernel ? (int)(kernel - file->kernels) : -1;
}

static void pair_up(struct comparison *comparison, const int wanted[2])
{
    const struct kg_asm_file *file = &comparison->subjects[0]->file;
    const struct kg_asm_file *other = &comparison->subjects[1]->file;
    if (wanted[0] >= 0 || (file->kernel_count == 1 && other->kernel_count == 1)) {
        comparison->pairs[0][0] = wanted[0] >= 0 ? wanted[0] : 0;
        comparison->pairs[0][1] = wanted[0] >= 0 ? wanted[1] : 0;
        comparison->pair_count = 1;
        return;
    }
    for (int k = 0; k < file->kernel_count; k++) {
        int same = find_kernel(other, file->kernels[k].name);
        if (same < 0 || comparison->other_paired[same])
            continue;
        comparison->other_paired[same] = true;
        comparison->pairs[comparison->pair_count][0] = k;
        comparison->pairs[comparison->pair_count++][1] = same;
    }
}

static enum kg_status open_sides(const struct comparison *comparison, const int pair[2],
                                 struct side sides[2], struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int s = 0; s < 2 && status == KG_OK; s++) {
        const struct kg_asm_file *file = &comparison->subjects[s]->file;
        sides[s].kernel = &file->kernels[pair[s]];
        status = kg_asm_appraise(sides[s].kernel, file->format, comparison->launch,
                                 &comparison->subjects[s]->fitted, &sides[s].appraisal, error);
        if (status == KG_OK)
            kg_figures_of(sides[s].kernel, file->format, &sides[s].appraisal, &sides[s].figures);
        else
            kg_error_prefix(error, "%s", comparison->subjects[s]->name);
    }
    return status;
}

static bool differ(const struct kg_figure *a, const struct kg_figure *b)
{
    return isnan(a->value) != isnan(b->value) || (!isnan(a->value) && a->value != b->value);
}

static double ratio_of(const struct kg_figure *a, const struct kg_figure *b)
{
    return a->value != 0 ? b->value / a->value : (double)NAN;
}

// ---- Text

static bool is_worth_a_row(const struct kg_figure *a, const struct kg_figure *b)
{
    bool nothing = !(a->value != 0) && !(b->value != 0);
    bool unknown = isnan(a->value) && isnan(b->value);
    // Only classes of instructions that occur.
    return !unknown && !(nothing && strncmp(a->key, "main_loop.", 10) == 0);
}

static void add_row(const struct kg_figure *a, const struct kg_figure *b, struct kg_text *text)
{
    char left[32], right[32];
    kg_figure_print(a, left);
    kg_figure_print(b, right);
    bool class = strncmp(a->key, "main_loop.", 10) == 0 && !strchr(a->label, ':');
    kg_text_format(text, "%c %s%-*s %*s %*s", differ(a, b) ? '*' : ' ', class ? "  " : "",
                   class ? 28 : 30, a->label, VALUE_WIDTH, left, VALUE_WIDTH, right);
    double ratio = ratio_of(a, b);
    if (differ(a, b) && isfinite(ratio))
        kg_text_format(text, " %9.3g", ratio);
    kg_text_add(text, "\n");
}

static int advice_count(const struct side *side)
{
    return side->kernel->advice_count + side->appraisal.note_count;
}

static bool has_advice(const struct side *side, const char *code)
{
    for (int a = 0; a < advice_count(side); a++)
        if (strcmp(kg_advice_at(side->kernel, &side->appraisal, a).code, code) == 0)
            return true;
    return false;
}

static void add_advice(const struct side sides[2], struct kg_text *text)
{
    for (int s = 0; s < 2; s++)
        for (int a = 0; a < advice_count(&sides[s]); a++) {
            struct kg_advice advice = kg_advice_at(sides[s].kernel, &sides[s].appraisal, a);
            bool alone = !has_advice(&sides[!s], advice.code);
            kg_text_format(text, "%c %c %c ", alone ? '*' : ' ', "AB"[s],
                           advice.level == KG_ADVICE_WARNING ? '!' : '-');
            kg_assembly_wrap(text, 6, 6, advice.text);
            kg_text_add(text, "\n");
        }
}

static void add_page(const struct side sides[2], struct kg_text *text)
{
    const struct kg_figures *a = &sides[0].figures, *b = &sides[1].figures;
    bool renamed = strcmp(sides[0].kernel->name, sides[1].kernel->name) != 0;
    kg_text_add(text, "\n");
    kg_assembly_wrap(text, 0, 0, sides[0].kernel->name);
    if (renamed) {
        kg_text_add(text, "  and  ");
        kg_assembly_wrap(text, 0, 0, sides[1].kernel->name);
    }
    kg_text_format(text, "\n  %-30s %*s %*s %9s\n", "", VALUE_WIDTH, "A", VALUE_WIDTH, "B", "B/A");
    bool moved = strcmp(sides[0].kernel->arch, sides[1].kernel->arch) != 0;
    kg_text_format(text, "%c %-30s %*s %*s\n", moved ? '*' : ' ', "architecture", VALUE_WIDTH,
                   sides[0].kernel->arch, VALUE_WIDTH, sides[1].kernel->arch);
    for (int f = 0; f < a->count; f++)
        if (is_worth_a_row(&a->list[f], &b->list[f]))
            add_row(&a->list[f], &b->list[f], text);
    add_advice(sides, text);
}

// One line with the differences of a pair, for long lists.
static void add_line(const struct side sides[2], struct kg_text *text)
{
    static const char *const keys[] = {
        "registers", "shared_bytes",     "spill_store_bytes", "spill_load_bytes",
        "occupancy", "estimate_seconds", "instructions",      "main_loop.instructions"};
    struct kg_text line = {0};
    bool any = false;
    for (int f = 0; f < sides[0].figures.count; f++)
        any |= differ(&sides[0].figures.list[f], &sides[1].figures.list[f]);
    for (int f = 0; f < sides[0].figures.count && any; f++)
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            const struct kg_figure *a = &sides[0].figures.list[f];
            const struct kg_figure *b = &sides[1].figures.list[f];
            char left[32], right[32];
            if (strcmp(a->key, keys[k]) != 0 || !differ(a, b))
                continue;
            kg_figure_print(a, left);
            kg_figure_print(b, right);
            kg_text_format(&line, "%s%s %s -> %s", line.length ? ", " : "", a->label, left, right);
        }
    if (line.length == 0)
        kg_text_add(&line, any ? "differs in its instructions only" : "no difference");
    kg_text_add(text, any ? "* " : "  ");
    kg_assembly_name(text, sides[0].kernel->name, NAME_WIDTH);
    kg_text_add(text, " ");
    kg_assembly_wrap(text, NAME_WIDTH + 3, NAME_WIDTH + 3, kg_text_string(&line));
    kg_text_add(text, "\n");
    text->failed |= line.failed;
    kg_text_free(&line);
}

static void add_unpaired(const struct kg_asm_kernel *kernel, char side, struct kg_text *text)
{
    kg_text_add(text, "* ");
    kg_assembly_name(text, kernel->name, NAME_WIDTH);
    kg_text_format(text, " only in %c\n", side);
}

static bool is_paired(const struct comparison *comparison, int side, int k)
{
    for (int p = 0; p < comparison->pair_count && side == 0; p++)
        if (comparison->pairs[p][0] == k)
            return true;
    return side == 1 && comparison->other_paired[k];
}

static enum kg_status write_text(const struct comparison *comparison, bool all,
                                 struct kg_error *error)
{
    struct kg_text *text = comparison->text;
    for (int s = 0; s < 2; s++) {
        kg_text_format(text, "%c  ", "AB"[s]);
        kg_assembly_file_text(comparison->subjects[s], text);
    }
    bool pages = comparison->pair_count <= MAX_PAGES;
    if (!pages)
        kg_text_add(text, "\n");
    enum kg_status status = KG_OK;
    for (int p = 0; p < comparison->pair_count && status == KG_OK; p++) {
        struct side sides[2];
        status = open_sides(comparison, comparison->pairs[p], sides, error);
        if (status == KG_OK)
            (pages ? add_page : add_line)(sides, text);
    }
    for (int s = 0; s < 2 && all; s++)
        for (int k = 0; k < comparison->subjects[s]->file.kernel_count; k++)
            if (!is_paired(comparison, s, k))
                add_unpaired(&comparison->subjects[s]->file.kernels[k], "AB"[s], text);
    if (!pages)
        kg_text_add(text, "\n--kernel NAME compares one in full.\n");
    return status;
}

// ---- JSON

static void add_differences(struct kg_json *json, const struct side sides[2])
{
    kg_json_begin_array(json, "differences");
    for (int f = 0; f < sides[0].figures.count; f++) {
        const struct kg_figure *a = &sides[0].figures.list[f], *b = &sides[1].figures.list[f];
        if (!differ(a, b))
            continue;
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "figure", a->key);
        kg_json_number(json, "a", a->value);
        kg_json_number(json, "b", b->value);
        kg_json_number(json, "ratio", ratio_of(a, b));
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
}

static enum kg_status write_json(const struct comparison *comparison, bool all,
                                 struct kg_error *error)
{
    static const char *const keys[] = {"a", "b"}, *const lonely[] = {"only_a", "only_b"};
    struct kg_json json = {.text = comparison->text};
    enum kg_status status = KG_OK;
    kg_json_begin_object(&json, NULL);
    kg_json_integer(&json, "schema", KG_ASSEMBLY_SCHEMA);
    for (int s = 0; s < 2; s++) {
        kg_json_begin_object(&json, keys[s]);
        kg_assembly_file_json(&json, comparison->subjects[s]);
        kg_json_end_object(&json);
    }
    kg_json_begin_array(&json, "pairs");
    for (int p = 0; p < comparison->pair_count && status == KG_OK; p++) {
        struct side sides[2];
        status = open_sides(comparison, comparison->pairs[p], sides, error);
        if (status != KG_OK)
            break;
        kg_json_begin_object(&json, NULL);
        for (int s = 0; s < 2; s++)
            kg_assembly_kernel_json(&json, keys[s], comparison->subjects[s], sides[s].kernel,
                                    comparison->launch, &sides[s].appraisal);
        add_differences(&json, sides);
        kg_json_end_object(&json);
    }
    kg_json_end_array(&json);
    for (int s = 0; s < 2; s++) {
        const struct kg_asm_file *file = &comparison->subjects[s]->file;
        kg_json_begin_array(&json, lonely[s]);
        for (int k = 0; k < file->kernel_count && all; k++)
            if (!is_paired(comparison, s, k))
                kg_json_text(&json, NULL, file->kernels[k].name);
        kg_json_end_array(&json);
    }
    kg_json_end_object(&json);
    kg_text_add(comparison->text, "\n");
    return status;
}

enum kg_status kg_report_comparison(const struct kg_assembly_subject *subject, int index,
                                    const struct kg_assembly_subject *other, int other_index,
                                    const struct kg_assembly_launch *launch, bool json,
                                    struct kg_text *text, struct kg_error *error)
{
    struct comparison comparison = {{subject, other}, launch, text, NULL, 0, NULL};
    comparison.pairs = calloc((size_t)subject->file.kernel_count + 1, sizeof *comparison.pairs);
    comparison.other_paired =
        calloc((size_t)other->file.kernel_count + 1, sizeof *comparison.other_paired);
    enum kg_status status = KG_OK;
    if (!comparison.pairs || !comparison.other_paired)
        status = kg_error_memory(error, "a comparison");
    if (status == KG_OK)
        pair_up(&comparison, (const int[2]){index, other_index});
    if (status == KG_OK && comparison.pair_count == 0)
        status = kg_error_set(error, KG_ERROR_ARGUMENT,
                              "%s and %s have no kernel of one name; name the two that are to "
                              "be compared",
                              subject->name, other->name);
    // Pairs chosen by position or by the user leave no kernel unpaired.
    bool all = index < 0 && (subject->file.kernel_count > 1 || other->file.kernel_count > 1);
    if (status == KG_OK)
        status = json ? write_json(&comparison, all, error) : write_text(&comparison, all, error);
    free(comparison.pairs);
    free(comparison.other_paired);
    return status;
}
