// The facts that files of a bundle must agree on: a row each.

#ifndef KG_EXPORT_CHECK_BUNDLE_AGREE_H
#define KG_EXPORT_CHECK_BUNDLE_AGREE_H

#include "export/check/bundle_facts.h"
#include "lang/difference.h"

struct kg_bundle_fact_info {
    const char *name;     // for programs
    const char *words;    // for people; "%s" is the subject
    unsigned needed;      // roles that must state it, as bits
    uint32_t silenced_by; // facts that, where they are odd, make this one odd in the same file
    enum kg_difference_kind change; // of the definition, where the files differ from it here
    const char *advice;
};
extern const struct kg_bundle_fact_info kg_bundle_facts_info[KG_FACT_COUNT];

#endif
