// Diagnostics of the language: one error, with the line it is on, a caret and what to do. The
// first error ends the job: kg_lang_fail jumps back to kg_lang_run. Everything a job makes lives
// in its arena, so that nothing needs cleaning up on the way.

#ifndef KG_LANG_DIAGNOSTICS_H
#define KG_LANG_DIAGNOSTICS_H

#include "lang/op.h"

#include <setjmp.h>

// A text to show lines of: a whole file, or the text of one op out of its file.
struct kg_source {
    const char *name;
    const char *text;
    size_t length;
    const struct kg_piece *pieces; // in the order of their places in the file, which are distinct
    int piece_count;
};

struct kg_source kg_lang_source_of(const struct kg_op *op);

struct kg_lang_job {
    struct kg_arena *arena;
    struct kg_source source;
    struct kg_error *error;
    const char *remark; // ends every message: under which bindings, "" for the defaults
    enum kg_status status;
    jmp_buf bail;
};

// Runs `work` until it returns or fails; gives job->status.
enum kg_status kg_lang_run(struct kg_lang_job *job, void (*work)(struct kg_lang_job *, void *),
                           void *user);

// Reports and ends the job. `advice` is what stands below the caret ("expected ...", "help: ...");
// NULL: nothing.
_Noreturn void kg_lang_fail(struct kg_lang_job *job, struct kg_span span, const char *advice,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));
// An error that belongs to no place in the text.
_Noreturn void kg_lang_fail_plain(struct kg_lang_job *job, enum kg_status status,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

// Zeroed memory of the job's arena; ends the job when there is none.
void *kg_lang_alloc(struct kg_lang_job *job, size_t count, size_t size);
char *kg_lang_copy(struct kg_lang_job *job, const char *text, size_t length);
char *kg_lang_format(struct kg_lang_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define KG_LANG_NEW(job, type) ((type *)kg_lang_alloc((job), 1, sizeof(type)))
#define KG_LANG_NEW_ARRAY(job, count, type)                                                        \
    ((type *)kg_lang_alloc((job), (size_t)(count), sizeof(type)))

// `help: did you mean "bias"?` with the nearest of `names`, else `otherwise` (may be NULL).
const char *kg_lang_suggest(struct kg_lang_job *job, const char *name, const char *const *names,
                            size_t count, const char *otherwise);

// The text under a span, NULL if it is not on one line of the source.
const char *kg_lang_slice(struct kg_lang_job *job, struct kg_span span);

// From the start of `a` to the end of `b`; `a` alone when they are on different lines.
struct kg_span kg_lang_join(struct kg_span a, struct kg_span b);

// Bytes of the UTF-8 character at `text`; 0 when it is malformed or a control character other than
// tab and line ends, which no text may hold.
size_t kg_lang_character(const char *text, size_t left);

// A line of `source` with carets under the span, each with a newline.
struct kg_text;
void kg_lang_show_line(struct kg_text *text, const struct kg_source *source, struct kg_span span);

#endif
