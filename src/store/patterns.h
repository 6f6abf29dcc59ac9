// Patterns: what tends to win for a class of problem on a class of device, learned from the records
// (docs/patterns.md). Two steps:
//
//   lesson    what one problem's outcomes say of one subject: a value of a family's parameter, a
//   family
//             ("form"), or a way to group statements. The best time with it over the best without
//             it, and how many candidates with it failed. Kept in a table, made again when the
//             problem has new outcomes; lessons of other machines are imported into the same table.
//   pattern   the lessons of many problems of one class, dtype, bucket of sizes and device, or
//   without
//             regard to dtype, or to dtype and bucket.

#ifndef KG_STORE_PATTERNS_H
#define KG_STORE_PATTERNS_H

#include "store/store.h"

// What problems have in common if what is learned from one may hold for the other.
struct kg_traits {
    const char *class; // of the problem: "reduce", or "reduce columns" if not along rows
    const char *dtype; // of its largest input
    char bucket[24];   // "large wide": bytes, and the length of what one output needs
};
void kg_traits_of(const struct kg_problem *problem, struct kg_traits *traits);

// Says what traits the problem of a key has. Only problems of which this is known give lessons.
enum kg_status kg_store_note_traits(struct kg_store *store, const struct kg_key *key,
                                    const struct kg_traits *traits, struct kg_error *error);

enum kg_pattern_subject {
    KG_SUBJECT_VALUE,
    KG_SUBJECT_FORM,
    KG_SUBJECT_GROUPING,
    KG_SUBJECT_COUNT
};
extern const char *const kg_pattern_subjects[KG_SUBJECT_COUNT];

enum kg_pattern_state {
    KG_PATTERN_OPEN,    // too few problems, or no clear result
    KG_PATTERN_WINS,    // used
    KG_PATTERN_LOSES,   // used
    KG_PATTERN_FAILS,   // used: candidates with it are refused, crash, hang or spill
    KG_PATTERN_DEMOTED, // it won once, and lost in the latest problems; not used
    KG_PATTERN_STATE_COUNT
};
extern const char *const kg_pattern_state_names[KG_PATTERN_STATE_COUNT];

struct kg_pattern {
    const char *class, *dtype, *bucket, *isa; // "": any
    enum kg_pattern_subject subject;
    const char *family, *parameter; // "" where the subject has none
    int64_t value;
    int problems;      // in which it was measured beside something else
    int wins, losses;  // of these, by more than a hundredth
    int tried, failed; // candidates with it; those that were refused, crashed, hung or spilled
    double mean;       // of the logarithm of the best time with it over the best without it
    int fitted;        // problems whose times were expected by families, as far as it is in them
    double effect;     // logarithm of the factor of expected times that they agree on; 0: none
    double confidence; // of the state: see docs/patterns.md
    enum kg_pattern_state state;
};

struct kg_patterns {
    struct kg_arena arena;
    int count, capacity;
    struct kg_pattern *list;
};

// All patterns of a class and an ISA (NULL: of all), after the records were mined for new lessons.
// Lessons of op `without` are left out (NULL: none). kg_patterns_free frees them, also after
// failure.
enum kg_status kg_patterns_load(struct kg_store *store, const char *class, const char *isa,
                                const char *without, struct kg_patterns *patterns,
                                struct kg_error *error);
void kg_patterns_free(struct kg_patterns *patterns);
// By what factor, as a logarithm, a value (or, with a NULL parameter, a family) changes the time,
// as far as is known; 0: nothing is known. The patterns are of one class and ISA.
double kg_patterns_prior(const struct kg_patterns *patterns, const struct kg_traits *traits,
                         const char *family, const char *parameter, int64_t value);
// The same beyond what families expect of the time: where they do, most of what wins is known.
double kg_patterns_effect(const struct kg_patterns *patterns, const struct kg_traits *traits,
                          const char *family, const char *parameter, int64_t value);

// A table for people, or JSON.
enum kg_status kg_store_list_patterns(struct kg_store *store, bool json, struct kg_text *text,
                                      struct kg_error *error);
// Lessons as JSON lines; importing them twice changes nothing. All or nothing. `*notice`: what was
// imported.
enum kg_status kg_store_export_lessons(struct kg_store *store, struct kg_text *lines,
                                       struct kg_error *error);
enum kg_status kg_store_import_lessons(struct kg_store *store, const char *lines, size_t length,
                                       struct kg_text *notice, struct kg_error *error);

#endif
