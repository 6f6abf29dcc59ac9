// What the files of the log share. As in the definition document, every sentence is written once,
// with both languages in one call. Texts from the records are untrusted: they get into the log
// through the functions below only.

#ifndef KG_REPORT_LOG_PARTS_H
#define KG_REPORT_LOG_PARTS_H

#include "analyze/bottleneck.h"
#include "report/log.h"
#include "report/view.h"

struct kg_log {
    struct kg_text *text;
    enum kg_language language;
    struct kg_store *store;
    // Of the problem that is written about.
    const struct kg_view *view;
    struct kg_cost cost;
    double
        target; // times the baseline's speed; 0: the op has no goal, or its text is not on record
};

// A number as it is shown.
struct kg_log_figure {
    char text[32];
};

// Appends the sentence in the log's language. Both formats take the same arguments in the same
// order.
void kg_log_say(struct kg_log *log, const char *english, const char *chinese, ...)
    __attribute__((format(printf, 2, 4), format(printf, 3, 4)));
// The same as the next cell of a table's row.
void kg_log_say_cell(struct kg_log *log, const char *english, const char *chinese);

// Words from a record inside a paragraph, or as the next cell of a row: neither can end it, and
// neither can be read as HTML, a link or an image.
void kg_log_words(struct kg_log *log, const char *words);
void kg_log_cell(struct kg_log *log, const char *words);
// A choice as code inside a paragraph.
void kg_log_choice(struct kg_log *log, const char *choice);
// A diff as a block of code, without the end of a very long one, and says so.
void kg_log_diff(struct kg_log *log, const char *diff);

// "12.5 us"; "-" if it is not known.
struct kg_log_figure kg_log_seconds(struct kg_log *log, double seconds);
// One time over another: "1.60" or "43%"; "-" if either is not known.
struct kg_log_figure kg_log_ratio(double over, double under);
struct kg_log_figure kg_log_share(double part, double whole);
void kg_log_seconds_cell(struct kg_log *log, double seconds);

// The least possible time of the problem; 0: not known.
double kg_log_roofline(const struct kg_log *log);
// Whether the round's choice took the place of the one that it started from.
bool kg_log_is_kept(const struct kg_round *round);
// The name of a kind of change, "" if the record has none; NULL if the key is not known.
const char *kg_log_change(const char *kind, enum kg_language language);
// The first round of a build is its first version, timed against the baseline: what was judged for
// somebody has no time, or the time of another version beside its own.
bool kg_log_begins_build(const struct kg_round *round);

void kg_log_summary(struct kg_log *log);                                  // log_summary.c
void kg_log_builds(struct kg_log *log);                                   // log_rounds.c
enum kg_status kg_log_tables(struct kg_log *log, struct kg_error *error); // log_tables.c

#endif
