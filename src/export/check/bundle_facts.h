// What the files of a bundle state of their function: who says what, and where. Readers add
// statements; bundle_agree.c compares them.

#ifndef KG_EXPORT_CHECK_BUNDLE_FACTS_H
#define KG_EXPORT_CHECK_BUNDLE_FACTS_H

#include "export/bundle_roles.h"
#include "export/check/python_lines.h"

#include <stdint.h>

// Roles of kg_bundle_role, and one more: the definition, where there is one to compare with.
#define KG_BUNDLE_DEFINITION KG_BUNDLE_COUNT
#define KG_BUNDLE_SOURCES (KG_BUNDLE_COUNT + 1)

enum kg_bundle_fact {
    KG_FACT_NAME,
    KG_FACT_FORMULA,
    KG_FACT_POSITIONAL_COUNT,
    KG_FACT_POSITIONAL, // subject: the place, from 1
    KG_FACT_KEYWORD_COUNT,
    KG_FACT_KEYWORD,
    KG_FACT_ANNOTATION, // subject: the parameter
    KG_FACT_DEFAULT,
    KG_FACT_RESULT,
    KG_FACT_CONSTANT, // subject: its name
    KG_FACT_RANK,     // subject: the input
    KG_FACT_DTYPE,
    KG_FACT_PACKED,
    KG_FACT_EXTENT, // subject: "x, dimension 0"
    KG_FACT_OUTPUT_COUNT,
    KG_FACT_OUTPUT_DTYPE, // subject: the output's place, from 1
    KG_FACT_OUTPUT_SHAPE,
    KG_FACT_SIZES,
    KG_FACT_GOAL, // subject: the goal's part
    KG_FACT_COUNT
};

struct kg_bundle_source {
    const char *path; // as shown
    const char *text;
    size_t length;
    int lines_before; // in the file, where the text is not all of it
    bool given;
    struct kg_python_lines lines;
};

struct kg_bundle_statement {
    enum kg_bundle_fact fact;
    const char *subject;
    const char *value; // equal texts mean the same
    const char *shown; // as written
    int role;
    bool is_code; // and not words of a docstring
    struct kg_python_place place;
};

struct kg_bundle_finding {
    int role; // of the file
    struct kg_python_place place;
    const char *message;
    const char *advice;
    int other_role; // -1: none
    struct kg_python_place other_place;
    bool is_definition; // the files agree, and the definition says something else
    enum kg_bundle_fact fact;
};

// One comparison, with everything in one arena, whose `failed` is checked at the end.
struct kg_bundle_facts {
    struct kg_arena *arena;
    struct kg_bundle_source sources[KG_BUNDLE_SOURCES];
    const char *op;     // its name, from the files'
    const char *called; // the function's
    int statement_count, statement_capacity;
    struct kg_bundle_statement *statements;
    int finding_count, finding_capacity;
    struct kg_bundle_finding *findings;
    uint32_t odd[KG_BUNDLE_SOURCES]; // facts that a file states otherwise than others, as bits
};

// A file that cannot state the fact states nothing; what it states with a NULL value it states in a
// way that is not understood: it counts as stated, and agrees with everything.
void kg_bundle_state(struct kg_bundle_facts *facts, struct kg_bundle_statement statement);
void kg_bundle_find(struct kg_bundle_facts *facts, struct kg_bundle_finding finding);

// The text of a place, on one line and not too long.
const char *kg_bundle_shown(struct kg_bundle_facts *facts, const struct kg_bundle_source *source,
                            struct kg_python_place place);
const char *kg_bundle_shown_range(struct kg_bundle_facts *facts,
                                  const struct kg_bundle_source *source,
                                  struct kg_python_range range);

// Readers of files, which state things in the name of a role: the definition is read as files, too.
void kg_bundle_read_function(struct kg_bundle_facts *facts, int role,
                             const struct kg_bundle_source *source);
void kg_bundle_read_accuracy(struct kg_bundle_facts *facts, int role,
                             const struct kg_bundle_source *source);
void kg_bundle_read_performance(struct kg_bundle_facts *facts, int role,
                                const struct kg_bundle_source *source);
// The formula in a module's docstring.
void kg_bundle_read_formula(struct kg_bundle_facts *facts, int role,
                            const struct kg_bundle_source *source);
// NAME = number, in the module.
void kg_bundle_read_constants(struct kg_bundle_facts *facts, int role,
                              const struct kg_bundle_source *source);

// Compares all statements, and adds what does not agree to the findings.
void kg_bundle_agree(struct kg_bundle_facts *facts);

#endif
