// Shows the facts of an assembly file as text and as JSON; docs/asm.md describes both.

#ifndef KG_REPORT_ASSEMBLY_H
#define KG_REPORT_ASSEMBLY_H

#include "asm/appraisal.h"

// The version of the JSON. New members do not change it; other changes do.
#define KG_ASSEMBLY_SCHEMA 1

struct kg_assembly_subject {
    const char *name;   // of the file
    const char *notice; // of the whole file; NULL: none
    struct kg_asm_file file;
    struct kg_fitted_list fitted; // coefficients; empty: the prior
};

// Kernel `index`, or all (-1).
enum kg_status kg_report_assembly(const struct kg_assembly_subject *subject, int index,
                                  const struct kg_assembly_launch *launch, bool json,
                                  struct kg_text *text, struct kg_error *error);
// Pairs kernels by name; or `index` with `other_index`, if they are not -1; or the only kernels of
// both files.
enum kg_status kg_report_comparison(const struct kg_assembly_subject *subject, int index,
                                    const struct kg_assembly_subject *other, int other_index,
                                    const struct kg_assembly_launch *launch, bool json,
                                    struct kg_text *text, struct kg_error *error);

#endif
