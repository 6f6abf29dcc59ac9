// See ranking.h.

#include "base/json.h"
#include "base/printable.h"
#include "report/ranking.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST_NAME 32     // columns; longer names push their own line to the right
#define LONGEST_REASON 160 // bytes of a reason in the text
#define CELL 12

static const char *const state_names[] = {
    [KG_CONTESTANT_RANKED] = "ranked",
    [KG_CONTESTANT_FAILED] = "failed",
    [KG_CONTESTANT_SKIPPED] = "skipped",
    [KG_CONTESTANT_UNRUN] = "not run",
};

static const char *name_of(const struct kg_contest *contest, int contestant)
{
    return contestant == KG_PLACED_REFERENCE  ? "(generated)"
           : contestant == KG_PLACED_BASELINE ? "(baseline)"
                                              : contest->list[contestant].name;
}

// NULL: nothing is known of the baseline's code.
static const struct kg_asm_gist *gist_of(const struct kg_contest *contest, int contestant)
{
    return contestant == KG_PLACED_REFERENCE  ? &contest->gist
           : contestant == KG_PLACED_BASELINE ? NULL
                                              : &contest->list[contestant].gist;
}

// The fastest file, if it is faster than the generated kernel by more than noise; -1: there is
// none.
static int winner_of(const struct kg_placed *placed, int count)
{
    for (int i = 0; i < count && placed[i].standing > 0; i++)
        if (placed[i].contestant >= 0)
            return i;
    return -1;
}

// Text.

// Columns of a name as it is shown in `text`.
static int width_of(struct kg_text *text, const char *name)
{
    struct kg_text shown = {0};
    int width = 0;
    kg_text_add_printable(&shown, name);
    for (size_t i = 0; i < shown.length; i++)
        width += ((unsigned char)shown.data[i] & 0xC0) != 0x80;
    text->failed |= shown.failed;
    kg_text_free(&shown);
    return width;
}

static int widest_of(struct kg_text *text, const struct kg_contest *contest)
{
    int widest = (int)strlen("(generated)");
    for (int i = 0; i < contest->count; i++) {
        int width = width_of(text, contest->list[i].name);
        widest = width > widest ? width : widest;
    }
    return widest < WIDEST_NAME ? widest : WIDEST_NAME;
}

static void add_name(struct kg_text *text, const char *name, int width)
{
    int own = width_of(text, name);
    kg_text_add_printable(text, name);
    kg_text_format(text, "%*s", own < width ? width - own : 0, "");
}

static void add_seconds(struct kg_text *text, double seconds)
{
    size_t start = text->length;
    kg_text_seconds(text, seconds);
    size_t length = text->length - start;
    kg_text_format(text, "%*s", length < CELL ? (int)(CELL - length) : 0, "");
}

// How many times as fast as something that takes `ratio` times as long as this.
static void add_factor(struct kg_text *text, double ratio, int width)
{
    kg_text_format(text, "%-*.2f", width, ratio > 0 ? 1 / ratio : 0);
}

static double share_of(const struct kg_contest *contest, double seconds)
{
    return seconds > 0 ? contest->bound / seconds : 0;
}

// Why nothing was measured for it.
static void add_origin(const struct kg_contestant *contestant, struct kg_text *text)
{
    if (contestant->same_as) {
        kg_text_add(text, " (the same file as ");
        kg_text_add_printable(text, contestant->same_as);
        kg_text_add(text, ")");
    } else if (contestant->is_remembered) {
        kg_text_add(text, " (on record)");
    }
}

static void add_row(const struct kg_contest *contest, const struct kg_placed *placed, int place,
                    int width, struct kg_text *text)
{
    static const char *const standings[] = {"slower", "tied", "faster"};
    const struct kg_asm_gist *gist = gist_of(contest, placed->contestant);
    bool is_file = placed->contestant >= 0;
    kg_text_format(text, "%5d  ", place);
    add_name(text, name_of(contest, placed->contestant), width);
    kg_text_add(text, "  ");
    add_seconds(text, placed->seconds);
    add_seconds(text, placed->spread);
    add_factor(text, placed->ratio, 14);
    add_factor(text, placed->baseline_ratio, 13);
    kg_text_format(text, "%7.0f%%  ", 100 * share_of(contest, placed->seconds));
    kg_text_format(text, "%-8s", is_file ? standings[placed->standing + 1] : "");
    if (gist)
        kg_asm_gist_print(gist, text);
    if (is_file)
        add_origin(&contest->list[placed->contestant], text);
    while (text->length > 0 && text->data[text->length - 1] == ' ')
        kg_text_cut(text, text->length - 1);
    kg_text_add(text, "\n");
}

static void add_ranking(const struct kg_contest *contest, const struct kg_placed *placed, int count,
                        int width, struct kg_text *text)
{
    if (count == 0) {
        kg_text_add(text, "no file was timed\n");
        return;
    }
    kg_text_format(text,
                   "place  %-*s  %-*s%-*svs generated  vs baseline  roofline  against  "
                   "code\n",
                   width, "candidate", CELL, "time", CELL, "spread");
    for (int i = 0; i < count; i++)
        add_row(contest, &placed[i], i + 1, width, text);
}

// Of several lines the first that speaks of an error: compilers say where they are before.
static void add_reason(struct kg_text *text, const char *reason)
{
    const char *error = strstr(reason, "error: "), *line = reason;
    for (const char *c = reason; error && c < error; c++)
        if (*c == '\n')
            line = c + 1;
    size_t length = strcspn(line, "\n");
    bool is_long = length > LONGEST_REASON;
    struct kg_text shown = {0};
    kg_text_add_bytes(&shown, line, is_long ? LONGEST_REASON : length);
    kg_text_add_printable(text, kg_text_string(&shown));
    kg_text_add(text, is_long ? "..." : "");
    text->failed |= shown.failed;
    kg_text_free(&shown);
}

// Those that failed, or those that were not judged.
static void add_rest(const struct kg_contest *contest, bool failed, int width, struct kg_text *text)
{
    bool any = false;
    for (int i = 0; i < contest->count; i++) {
        const struct kg_contestant *contestant = &contest->list[i];
        if (contestant->state == KG_CONTESTANT_RANKED ||
            (contestant->state == KG_CONTESTANT_FAILED) != failed)
            continue;
        if (!any)
            kg_text_add(text, failed ? "\nfailed\n" : "\nnot judged\n");
        any = true;
        kg_text_add(text, "       ");
        add_name(text, contestant->name, width);
        kg_text_format(text, "  %-9s",
                       failed ? kg_outcome_names[contestant->kind]
                              : state_names[contestant->state]);
        add_reason(text, contestant->reason ? contestant->reason : "");
        if (contestant->state == KG_CONTESTANT_UNRUN) {
            kg_text_add(text, ": ");
            kg_asm_gist_print(&contestant->gist, text);
        }
        add_origin(contestant, text);
        kg_text_add(text, "\n");
    }
}

static void add_winner(const struct kg_contest *contest, const struct kg_placed *placed, int count,
                       struct kg_text *text)
{
    int winner = winner_of(placed, count);
    if (count == 0)
        return;
    if (winner < 0) {
        kg_text_add(text, "\nwinner     the generated kernel: no file is faster by more than "
                          "noise\n");
        return;
    }
    const struct kg_contestant *contestant = &contest->list[placed[winner].contestant];
    kg_text_add(text, "\nwinner     ");
    kg_text_add_printable(text, contestant->name);
    kg_text_format(text, ": %.2f times as fast as the generated kernel, more than noise; ",
                   1 / placed[winner].ratio);
    size_t start = text->length;
    kg_asm_gist_compare(&contestant->gist, &contest->gist, text);
    if (text->length == start)
        kg_text_add(text, contestant->gist.known && contest->gist.known
                              ? "what is read of its code is the same"
                              : "nothing is known of its code");
    kg_text_add(text, "\n");
}

static void add_text(const struct kg_contest *contest, const struct kg_placed *placed, int count,
                     struct kg_text *text)
{
    int width = widest_of(text, contest);
    kg_text_format(text, "problem    %s%s%s%s%s on %s\n", contest->op, contest->sizes[0] ? " " : "",
                   contest->sizes, contest->dtypes[0] ? " " : "", contest->dtypes, contest->device);
    kg_text_format(text, "generated  %s\n", contest->choice);
    kg_text_add(text, "folder     ");
    kg_text_add_printable(text, contest->folder);
    kg_text_format(text, ": %d file%s", contest->count, contest->count == 1 ? "" : "s");
    if (contest->left_out)
        kg_text_format(text, "; %d more, the last by name, are left out", contest->left_out);
    if (contest->others)
        kg_text_format(text, "; %d other%s", contest->others,
                       contest->others == 1 ? ", not a kernel by its name"
                                            : "s, not kernels by their names");
    kg_text_add(text, "\n\n");
    add_ranking(contest, placed, count, width, text);
    add_rest(contest, true, width, text);
    add_rest(contest, false, width, text);
    add_winner(contest, placed, count, text);
}

// JSON.

static void add_gist_json(struct kg_json *json, const struct kg_asm_gist *gist)
{
    kg_json_begin_object(json, "code");
    if (gist->registers > 0)
        kg_json_integer(json, "registers", gist->registers);
    if (gist->spill_bytes >= 0)
        kg_json_integer(json, "spill_bytes", gist->spill_bytes);
    if (gist->loop_spill_bytes >= 0)
        kg_json_integer(json, "loop_spill_bytes", gist->loop_spill_bytes);
    kg_json_number(json, "load_bytes", gist->load_bytes);
    kg_json_number(json, "flops_an_instruction", gist->step_flops);
    kg_json_boolean(json, "matrix_instructions", gist->tensor);
    kg_json_end_object(json);
}

static void add_contestant_json(struct kg_json *json, const struct kg_contestant *contestant)
{
    bool ranked = contestant->state == KG_CONTESTANT_RANKED;
    if (contestant->state != KG_CONTESTANT_SKIPPED)
        kg_json_hash(json, "hash", contestant->hash);
    if (contestant->same_as)
        kg_json_text(json, "same_as", contestant->same_as);
    if (contestant->state == KG_CONTESTANT_RANKED || contestant->state == KG_CONTESTANT_FAILED) {
        kg_json_integer(json, "cases", contestant->cases);
        // As text: numbers of JSON readers have 53 bits.
        char seed[24];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)contestant->seed);
        kg_json_text(json, "seed", seed);
        kg_json_boolean(json, "on_record", contestant->is_remembered);
    }
    if (ranked) {
        kg_json_integer(json, "samples", contestant->timing.samples);
        kg_json_number(json, "generated_seconds", contestant->reference.median);
        kg_json_number(json, "baseline_seconds", contestant->baseline.median);
    }
}

static void add_placed_json(struct kg_json *json, const struct kg_contest *contest,
                            const struct kg_placed *placed, int place)
{
    static const char *const standings[] = {"slower", "tied", "faster"};
    const struct kg_asm_gist *gist = gist_of(contest, placed->contestant);
    bool is_file = placed->contestant >= 0;
    kg_json_begin_object(json, NULL);
    kg_json_integer(json, "place", place);
    kg_json_text(json, "kind",
                 is_file                                     ? "foreign"
                 : placed->contestant == KG_PLACED_REFERENCE ? "generated"
                                                             : "baseline");
    kg_json_text(json, "file", is_file ? contest->list[placed->contestant].name : NULL);
    kg_json_number(json, "seconds", placed->seconds);
    kg_json_number(json, "spread", placed->spread);
    kg_json_number(json, "vs_generated", placed->ratio > 0 ? 1 / placed->ratio : 0);
    kg_json_number(json, "vs_baseline",
                   placed->baseline_ratio > 0 ? 1 / placed->baseline_ratio : 0);
    kg_json_number(json, "roofline", share_of(contest, placed->seconds));
    if (is_file) {
        kg_json_text(json, "against_generated", standings[placed->standing + 1]);
        add_contestant_json(json, &contest->list[placed->contestant]);
    }
    if (gist && gist->known)
        add_gist_json(json, gist);
    kg_json_end_object(json);
}

static void add_rest_json(struct kg_json *json, const struct kg_contest *contest, bool failed)
{
    kg_json_begin_array(json, failed ? "failed" : "not_judged");
    for (int i = 0; i < contest->count; i++) {
        const struct kg_contestant *contestant = &contest->list[i];
        if (contestant->state == KG_CONTESTANT_RANKED ||
            (contestant->state == KG_CONTESTANT_FAILED) != failed)
            continue;
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "file", contestant->name);
        kg_json_text(json, "outcome",
                     failed ? kg_outcome_names[contestant->kind] : state_names[contestant->state]);
        kg_json_text(json, "reason", contestant->reason);
        add_contestant_json(json, contestant);
        if (contestant->gist.known)
            add_gist_json(json, &contestant->gist);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
}

static void add_json(const struct kg_contest *contest, const struct kg_placed *placed, int count,
                     struct kg_text *text)
{
    struct kg_json json = {.text = text};
    int winner = winner_of(placed, count);
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "op", contest->op);
    kg_json_text(&json, "sizes", contest->sizes);
    kg_json_text(&json, "dtypes", contest->dtypes);
    kg_json_text(&json, "device", contest->device);
    kg_json_text(&json, "generated", contest->choice);
    kg_json_text(&json, "folder", contest->folder);
    kg_json_number(&json, "bound_seconds", contest->bound);
    kg_json_text(&json, "winner", winner < 0 ? NULL : name_of(contest, placed[winner].contestant));
    kg_json_begin_array(&json, "ranking");
    for (int i = 0; i < count; i++)
        add_placed_json(&json, contest, &placed[i], i + 1);
    kg_json_end_array(&json);
    add_rest_json(&json, contest, true);
    add_rest_json(&json, contest, false);
    kg_json_integer(&json, "left_out", contest->left_out);
    kg_json_integer(&json, "other_files", contest->others);
    kg_json_end_object(&json);
    kg_text_add(text, "\n");
}

enum kg_status kg_report_contest(const struct kg_contest *contest, bool json, struct kg_text *text,
                                 struct kg_error *error)
{
    struct kg_placed *placed = calloc((size_t)contest->count + 2, sizeof *placed);
    if (!placed)
        return kg_error_memory(error, "a ranking");
    int count = kg_contest_rank(contest, placed);
    if (count >= 0)
        (json ? add_json : add_text)(contest, placed, count, text);
    free(placed);
    return count < 0 || text->failed ? kg_error_memory(error, "a ranking") : KG_OK;
}
