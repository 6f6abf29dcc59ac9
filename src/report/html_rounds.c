// The rounds of a problem as a story: what limited the kernel, what was changed, what was predicted
// and reached, and whether it was kept. Rounds of versions without keys for these tell it by their
// texts alone.

#include "report/html.h"

#include "analyze/bottleneck.h"

#include <string.h>

#define SAME 1.01

static const char *bottleneck_name(const char *key)
{
    for (int i = 0; i < KG_BOTTLENECK_COUNT; i++)
        if (strcmp(kg_bottlenecks[i].key, key) == 0)
            return kg_bottlenecks[i].name[0];
    return key; // of a later version
}

static const char *change_name(const char *key)
{
    for (int i = 0; i < KG_CHANGE_COUNT; i++)
        if (strcmp(kg_change_keys[i], key) == 0)
            return kg_change_names[i][0];
    return key;
}

// What a text says after "NAME: ", or after the name alone; all of it if it begins otherwise.
static const char *after_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(text, name, length) != 0 || (text[length] && text[length] != ':'))
        return text;
    text += length + (text[length] == ':');
    return text + strspn(text, " ");
}

// "Limited by latency: 0.4 of the bandwidth."
static void add_limit(struct kg_text *page, const struct kg_round *round)
{
    const char *said = round->diagnosis;
    if (!round->bottleneck[0]) {
        if (said[0]) {
            kg_text_add(page, "Diagnosis: ");
            kg_html_text(page, said);
            kg_text_add(page, ". ");
        }
        return;
    }
    const char *name = bottleneck_name(round->bottleneck);
    said = after_name(said, name);
    kg_text_add(page, "Limited by <b>");
    kg_html_text(page, name);
    kg_text_add(page, "</b>");
    if (said[0]) {
        kg_text_add(page, ": ");
        kg_html_text(page, said);
    }
    kg_text_add(page, ". ");
}

static void add_change(struct kg_text *page, const struct kg_round *round)
{
    if (strcmp(round->kind, KG_ROUND_SEARCH) == 0) {
        kg_text_add(page, "Made <b>");
        kg_html_text(page, round->change);
        kg_text_add(page, "</b>. ");
    } else if (round->kind[0]) {
        const char *name = change_name(round->kind);
        kg_text_add(page, "Changed <b>");
        kg_html_text(page, name);
        kg_text_add(page, "</b>");
        const char *more = after_name(round->change, name);
        if (more[0]) {
            kg_text_add(page, ": ");
            kg_html_text(page, more);
        }
        kg_text_add(page, ". ");
    } else {
        kg_text_add(page, "Change: ");
        kg_html_text(page, round->change);
        kg_text_add(page, ". ");
    }
    if (round->tried > 0)
        kg_text_format(page, "%d candidate%s tried. ", round->tried, round->tried == 1 ? "" : "s");
}

static void add_time(struct kg_text *page, const char *words, double seconds)
{
    kg_text_add(page, words);
    kg_text_add(page, "<b>");
    kg_html_seconds(page, seconds);
    kg_text_add(page, "</b>");
}

static void add_times(struct kg_text *page, const struct kg_round *round)
{
    if (!kg_view_known(round->after)) {
        kg_text_add(page, "Nothing was timed. ");
        return;
    }
    if (kg_view_known(round->predicted)) {
        add_time(page, "Predicted at best ", round->predicted);
        add_time(page, ", reached ", round->after);
    } else {
        add_time(page, "Reached ", round->after);
    }
    if (kg_view_known(round->before))
        add_time(page, ", from ", round->before);
    if (kg_view_known(round->baseline))
        add_time(page, "; the baseline took ", round->baseline);
    kg_text_add(page, ". ");
}

static void add_round(struct kg_text *page, const struct kg_round *round)
{
    const char *verdict = !round->kind[0] ? "" : round->kept ? "kept" : "not kept";
    kg_text_format(page, "<li%s><b>Round %d</b>", round->kept ? " class=\"kept\"" : "",
                   round->number);
    if (verdict[0])
        kg_text_format(page, ", <span class=\"%s\">%s</span>", round->kept ? "gain" : "soft",
                       verdict);
    kg_text_add(page, " <small>");
    kg_html_text(page, round->date);
    kg_text_add(page, "</small><br>\n");
    add_limit(page, round);
    add_change(page, round);
    add_times(page, round);
    if (round->result[0] && strcmp(round->result, verdict) != 0) {
        kg_text_add(page, "Result: ");
        kg_html_text(page, round->result);
        kg_text_add(page, ".");
    }
    kg_text_add(page, "\n<br><code>");
    kg_html_text(page, round->choice);
    kg_text_add(page, "</code></li>\n");
}

static void add_comparison(struct kg_text *page, const struct kg_view *view)
{
    struct kg_loop loop;
    if (!kg_view_loop(view, &loop))
        return;
    kg_text_format(page,
                   "<p class=\"versus\">After the search over everything, round %d, the best took ",
                   loop.search->number);
    kg_html_seconds(page, loop.searched);
    if (!loop.end) {
        kg_text_add(page, "; no later round was kept.</p>\n");
        return;
    }
    double ratio = loop.searched / loop.ended;
    kg_text_add(page, "; the loop ended at <b>");
    kg_html_seconds(page, loop.ended);
    kg_text_add(page, "</b>, ");
    if (ratio > SAME)
        kg_text_format(page, "<span class=\"gain\">%.2f times as fast</span>.</p>\n", ratio);
    else if (ratio < 1 / SAME)
        kg_text_format(page, "<span class=\"loss\">%.2f times as slow</span>.</p>\n", 1 / ratio);
    else
        kg_text_add(page, "as fast.</p>\n");
}

void kg_html_story(struct kg_text *page, const struct kg_view *view)
{
    if (view->round_count == 0)
        return;
    add_comparison(page, view);
    kg_text_format(page, "<details><summary>%d round%s</summary>\n<ol class=\"story\">\n",
                   view->round_count, view->round_count == 1 ? "" : "s");
    for (int i = 0; i < view->round_count; i++)
        add_round(page, &view->rounds[i]);
    kg_text_add(page, "</ol></details>\n");
}
