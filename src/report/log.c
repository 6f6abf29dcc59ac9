// The frame of the log, and what its parts are written with.

#include "report/log_parts.h"

#include "base/printable.h"
#include "lang/lang.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_DIFF 12000 // bytes of a diff that are shown: about 300 lines

void kg_log_say(struct kg_log *log, const char *english, const char *chinese, ...)
{
    va_list arguments;
    va_start(arguments, chinese);
    kg_text_vformat(log->text, log->language == KG_CHINESE ? chinese : english, arguments);
    va_end(arguments);
}

void kg_log_say_cell(struct kg_log *log, const char *english, const char *chinese)
{
    kg_text_format(log->text, " %s |", log->language == KG_CHINESE ? chinese : english);
}

// Whether Markdown would take the character at `at` for more than itself: the end of a cell, code,
// a tag, the address of a link, or a backslash that escapes what follows.
static bool needs_escape(const char *at, char last)
{
    switch (*at) {
    case '|':
    case '`':
        return true;
    case '(':
        return last == ']';
    case '<':
        return isalpha((unsigned char)at[1]) || strchr("/!?", at[1]);
    case '\\':
        return ispunct((unsigned char)at[1]);
    default:
        return false;
    }
}

// Words on one line.
static void add_line(struct kg_log *log, const char *words, bool escaped)
{
    struct kg_text line = {0};
    for (char last = ' '; *words; last = *words++) {
        if (escaped && needs_escape(words, last))
            kg_text_add(&line, "\\");
        kg_text_add_bytes(&line, *words == '\n' || *words == '\r' ? " " : words, 1);
    }
    kg_text_add_printable(log->text, kg_text_string(&line));
    log->text->failed |= line.failed;
    kg_text_free(&line);
}

void kg_log_words(struct kg_log *log, const char *words)
{
    add_line(log, words, true);
}

void kg_log_cell(struct kg_log *log, const char *words)
{
    kg_text_add(log->text, " ");
    kg_log_words(log, words);
    kg_text_add(log->text, " |");
}

// The marks around code are longer than any run of them inside.
static void add_marks(struct kg_text *text, const char *code, size_t least)
{
    size_t longest = 0, run = 0;
    for (; *code; code++) {
        run = *code == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest || i < least; i++)
        kg_text_add(text, "`");
}

void kg_log_choice(struct kg_log *log, const char *choice)
{
    const char *space = strchr(choice, '`') ? " " : "";
    add_marks(log->text, choice, 1);
    kg_text_add(log->text, space);
    add_line(log, choice, false);
    kg_text_add(log->text, space);
    add_marks(log->text, choice, 1);
}

// Whole lines, unless the first one alone is too long.
static size_t shown_length(const char *diff)
{
    size_t length = strnlen(diff, MAX_DIFF + 1);
    if (length <= MAX_DIFF)
        return length;
    for (length = MAX_DIFF; length > 0 && diff[length - 1] != '\n'; length--)
        ;
    return length ? length : MAX_DIFF;
}

void kg_log_diff(struct kg_log *log, const char *diff)
{
    struct kg_text shown = {0};
    size_t length = shown_length(diff);
    kg_text_add_bytes(&shown, diff, length);
    if (shown.data && !shown.failed)
        kg_printable_text(shown.data, shown.length);
    const char *code = kg_text_string(&shown);
    add_marks(log->text, code, 3);
    kg_text_format(log->text, "diff\n%s%s", code,
                   shown.length > 0 && code[shown.length - 1] == '\n' ? "" : "\n");
    add_marks(log->text, code, 3);
    kg_text_add(log->text, "\n");
    if (diff[length])
        kg_log_say(log, "\nThe diff goes on: only its beginning is shown here.\n",
                   "\n差异过长，此处仅列出开头部分。\n");
    log->text->failed |= shown.failed;
    kg_text_free(&shown);
}

struct kg_log_figure kg_log_seconds(struct kg_log *log, double seconds)
{
    struct kg_log_figure figure = {"-"};
    struct kg_text text = {0};
    if (kg_view_known(seconds)) {
        kg_text_seconds(&text, seconds);
        snprintf(figure.text, sizeof figure.text, "%s", kg_text_string(&text));
    }
    log->text->failed |= text.failed;
    kg_text_free(&text);
    return figure;
}

struct kg_log_figure kg_log_ratio(double over, double under)
{
    struct kg_log_figure figure = {"-"};
    double ratio = over / under;
    if (!kg_view_known(over) || !kg_view_known(under) || !kg_view_known(ratio))
        return figure;
    if (ratio < 0.0995)
        snprintf(figure.text, sizeof figure.text, "%.2g", ratio);
    else
        snprintf(figure.text, sizeof figure.text, "%.*f",
                 ratio < 9.995   ? 2
                 : ratio < 99.95 ? 1
                                 : 0,
                 ratio);
    return figure;
}

struct kg_log_figure kg_log_share(double part, double whole)
{
    struct kg_log_figure figure = {"-"};
    double share = 100 * part / whole;
    if (kg_view_known(part) && kg_view_known(whole) && kg_view_known(share))
        snprintf(figure.text, sizeof figure.text, share < 9.95 ? "%.1f%%" : "%.0f%%", share);
    return figure;
}

void kg_log_seconds_cell(struct kg_log *log, double seconds)
{
    kg_text_format(log->text, " %s |", kg_log_seconds(log, seconds).text);
}

double kg_log_roofline(const struct kg_log *log)
{
    double least = fmax(log->cost.memory_seconds, log->cost.compute_seconds);
    return kg_view_known(log->view->roofline) ? log->view->roofline
           : kg_view_known(least)             ? least
                                              : 0;
}

// Rounds of versions that recorded no base say it in words.
bool kg_log_is_kept(const struct kg_round *round)
{
    return round->kept || (!round->base[0] && strcmp(round->result, "kept") == 0);
}

const char *kg_log_change(const char *kind, enum kg_language language)
{
    static const char *const search[] = {"search", "搜索"};
    if (!kind[0])
        return "";
    if (strcmp(kind, KG_ROUND_SEARCH) == 0)
        return search[language];
    for (int i = 0; i < KG_CHANGE_COUNT; i++)
        if (strcmp(kind, kg_change_keys[i]) == 0)
            return kg_change_names[i][language];
    return NULL;
}

bool kg_log_begins_build(const struct kg_round *round)
{
    return round->number == 0 && !kg_view_known(round->before) && kg_view_known(round->after);
}

static void say_heading(struct kg_log *log, const struct kg_key *key)
{
    struct kg_text line = {0};
    char definition[KG_HASH_TEXT];
    kg_hash_format(key->definition, definition);
    kg_text_format(&line, "%s%s%s%s%s", key->op, key->dtypes[0] ? " " : "", key->dtypes,
                   key->sizes[0] ? ", " : "", key->sizes);
    kg_text_add(log->text, "\n## ");
    kg_log_words(log, kg_text_string(&line));
    kg_text_cut(&line, 0);
    kg_text_format(&line, "%s, %s, ", key->device, key->isa);
    kg_log_say(log, "\n\nOn ", "\n\n设备 ");
    kg_log_words(log, kg_text_string(&line));
    kg_log_say(log, "%d units. Driver ", "%d 个计算单元。驱动 ", key->units);
    kg_log_words(log, key->driver[0] ? key->driver : "none");
    kg_log_say(log, ", compiler ", "，编译器 ");
    kg_log_words(log, key->compiler[0] ? key->compiler : "none");
    kg_log_say(log, ", ", "，计时协议 ");
    kg_log_words(log, key->protocol);
    kg_log_say(log, ", layout ", "，内存布局 ");
    kg_log_words(log, key->layout[0] ? key->layout : "contiguous");
    kg_log_say(log, ".\nDefinition %.8s.\n", "。\n定义 %.8s。\n", definition);
    log->text->failed |= line.failed;
    kg_text_free(&line);
}

// The goal stands in the op's text. A text that does not parse any more has none.
static enum kg_status find_target(struct kg_log *log, struct kg_error *error)
{
    const struct kg_key *key = log->view->key;
    const char *text;
    struct kg_arena arena = {0};
    struct kg_file *file;
    struct kg_op *op;
    log->target = 0;
    enum kg_status status = kg_store_text(log->store, key->op, key->definition, &text, error);
    if (status != KG_OK || !text[0])
        return status;
    enum kg_status parsed = kg_lang_parse(&arena, key->op, text, strlen(text), &file, NULL);
    if (parsed == KG_OK)
        parsed = kg_lang_select(file, key->op, &op, NULL);
    if (parsed == KG_OK && op->goal.given)
        log->target = op->goal.speedup;
    if (parsed == KG_ERROR_MEMORY)
        status = kg_error_memory(error, "the text of an op");
    kg_arena_free(&arena);
    return status;
}

static void say_title(struct kg_log *log, const char *op)
{
    bool chinese = log->language == KG_CHINESE;
    kg_text_add(log->text, chinese ? "# " : op ? "# Optimisation log of " : "# Optimisation log");
    if (op)
        kg_log_words(log, op);
    kg_text_add(log->text, !chinese ? "\n" : op ? " 优化日志\n" : "优化日志\n");
}

struct writing {
    struct kg_log log;
    bool any;
    enum kg_status status; // of the first problem that could not be read
    struct kg_error *error;
};

static void add_problem(void *user, const struct kg_key *key)
{
    struct writing *writing = user;
    struct kg_log *log = &writing->log;
    struct kg_view view;
    if (writing->status != KG_OK)
        return;
    writing->any = true;
    writing->status = kg_view_collect(log->store, key, &view, writing->error);
    if (writing->status != KG_OK)
        return;
    log->view = &view;
    writing->status = kg_store_cost(log->store, key, &log->cost, writing->error);
    if (writing->status == KG_OK)
        writing->status = find_target(log, writing->error);
    if (writing->status == KG_OK) {
        say_heading(log, key);
        kg_log_summary(log);
        kg_log_builds(log);
        writing->status = kg_log_tables(log, writing->error);
    }
    log->view = NULL;
    kg_view_free(&view);
}

enum kg_status kg_report_log(struct kg_store *store, const char *op, enum kg_language language,
                             struct kg_text *markdown, struct kg_error *error)
{
    struct writing writing = {.log = {.text = markdown, .language = language, .store = store},
                              .error = error};
    size_t start = markdown->length;
    say_title(&writing.log, op);
    enum kg_status status = kg_store_keys(store, op, add_problem, &writing, error);
    if (writing.status != KG_OK)
        status = writing.status;
    if (!writing.any)
        kg_log_say(&writing.log, "\nNothing is recorded yet.\n", "\n尚无记录。\n");
    if (status == KG_OK && markdown->failed)
        status = kg_error_memory(error, "the log");
    if (status != KG_OK)
        kg_text_cut(markdown, start);
    return status;
}
