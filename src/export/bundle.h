// The bundle of an op: four Python files with one function, and what is common to them.

#ifndef KG_EXPORT_BUNDLE_H
#define KG_EXPORT_BUNDLE_H

#include "analyze/problem.h"
#include "base/error.h"
#include "base/text.h"

enum kg_bundle_role {
    KG_BUNDLE_TRITON,
    KG_BUNDLE_BASELINE,
    KG_BUNDLE_ACCURACY,
    KG_BUNDLE_PERFORMANCE,
    KG_BUNDLE_COUNT
};

struct kg_bundle_role_info {
    const char *name;   // "triton"
    const char *suffix; // of the file behind the op's name: "_triton.py"
};
extern const struct kg_bundle_role_info kg_bundle_roles[KG_BUNDLE_COUNT];

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

// The texts of the files. `triton` is that of the first. Free them even after a failure.
enum kg_status kg_bundle_emit(const struct kg_problem *problem, const char *triton,
                              struct kg_text texts[KG_BUNDLE_COUNT], struct kg_error *error);

// Writes the files to a folder, which is made if necessary; each appears whole. `triton` is the
// text of the first. `names` receives their paths, a line each.
enum kg_status kg_bundle_write(const struct kg_problem *problem, const char *triton,
                               const char *folder, struct kg_text *names, struct kg_error *error);

#endif
