// The bundle of an op: four Python files with one function, and what is common to them.

#ifndef KG_EXPORT_BUNDLE_H
#define KG_EXPORT_BUNDLE_H

#include "analyze/problem.h"
#include "base/error.h"
#include "base/text.h"
#include "export/bundle_roles.h"

// What is written of: a problem, and its op before dtypes were bound.
struct kg_bundle {
    const struct kg_problem *problem;
    const struct kg_op *instance; // the problem's
    const struct kg_op *generic;
    struct kg_arena arena;
};
// `bundle` refers to the problem. Free it even after a failure.
enum kg_status kg_bundle_open(const struct kg_problem *problem, struct kg_bundle *bundle,
                              struct kg_error *error);
void kg_bundle_close(struct kg_bundle *bundle);

enum kg_status kg_bundle_baseline(const struct kg_bundle *bundle, struct kg_text *text,
                                  struct kg_error *error);
enum kg_status kg_bundle_accuracy(const struct kg_bundle *bundle, struct kg_text *text,
                                  struct kg_error *error);
enum kg_status kg_bundle_performance(const struct kg_bundle *bundle, struct kg_text *text,
                                     struct kg_error *error);

// The texts of all files but the first. Free them even after a failure.
enum kg_status kg_bundle_emit(const struct kg_problem *problem,
                              struct kg_text texts[KG_BUNDLE_COUNT], struct kg_error *error);

// Whether the bundles in a folder are consistent, or with a problem whether the one of its op is,
// and says what the problem's definition does. `findings` receives the number of what is wrong,
// `text` the findings as lines or as JSON.
enum kg_status kg_bundle_check(const char *folder, const struct kg_problem *problem, bool json,
                               int *findings, struct kg_text *text, struct kg_error *error);

// Writes the files to a folder, which is made if necessary; each appears whole. `triton` is the
// text of the first. `names` receives their paths, a line each. Files that do not agree are not
// written: that is a fault of this library.
enum kg_status kg_bundle_write(const struct kg_problem *problem, const char *triton,
                               const char *folder, struct kg_text *names, struct kg_error *error);

#endif
