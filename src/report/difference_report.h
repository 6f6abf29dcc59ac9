// What differs between two versions of a file of definitions, and what follows from it: as text or
// JSON.

#ifndef KG_REPORT_DIFFERENCE_REPORT_H
#define KG_REPORT_DIFFERENCE_REPORT_H

#include "lang/difference.h"

#define KG_EFFECT_FILES 8

enum kg_file_fate {
    KG_FATE_REGENERATE, // its code differs
    KG_FATE_OPTIONAL,   // it differs in comments or names alone
    KG_FATE_KEEP,       // it is the same
    KG_FATE_REMOVE,     // its op is gone, or has another name
    KG_FATE_COUNT
};

// What a difference of one op changes.
struct kg_difference_effects {
    int file_count;
    struct {
        const char *op;     // the name it begins with
        const char *suffix; // "_triton.py"
        enum kg_file_fate fate;
    } files[KG_EFFECT_FILES];
    const char *unknown; // why the files could not be compared, so that all are made again; or NULL
    bool keeps_records;  // what was measured and judged before is found for the new version
};

// `effects` are by the ops of `difference`. `name`: only this op; NULL: all.
void kg_difference_report(const struct kg_file *before, const struct kg_file *after,
                          const struct kg_file_difference *difference,
                          const struct kg_difference_effects *effects, const char *name, bool json,
                          struct kg_text *text);
// Whether an op has this name, before or after; true of NULL.
bool kg_difference_is_named(const struct kg_op_difference *op, const char *name);

#endif
