// Whether the four files of a bundle belong together: as texts, or as files of a folder.

#ifndef KG_EXPORT_CHECK_BUNDLE_CHECK_H
#define KG_EXPORT_CHECK_BUNDLE_CHECK_H

#include "base/error.h"
#include "base/text.h"
#include "export/check/bundle_facts.h"

#define KG_BUNDLE_FILE_LIMIT (512 << 10)

struct kg_bundle_text {
    const char *path; // as shown; NULL: there is no such file
    const char *text;
    size_t length;
};

// What the definition would be emitted as, and where it stands.
struct kg_bundle_expected {
    const char *op;
    struct kg_bundle_text definition;   // of the .kg file
    size_t at;                          // of the op in it
    int lines_before;                   // in the file, before the text
    const char *texts[KG_BUNDLE_COUNT]; // that of the Triton module is not needed
};

// Everything lives in the arena; texts are borrowed. The definition may be NULL.
enum kg_status kg_bundle_check_texts(struct kg_arena *arena, const char *op,
                                     const struct kg_bundle_text texts[KG_BUNDLE_COUNT],
                                     const struct kg_bundle_expected *expected,
                                     struct kg_bundle_facts *facts, struct kg_error *error);

// Appends the findings, each with its line and what the other file has.
void kg_bundle_add_findings(const struct kg_bundle_facts *facts, struct kg_text *text);

// Of each bundle in a folder. `findings` receives their number, `text` what there is to say: one
// JSON object, or lines. KG_ERROR_ARGUMENT: there is no bundle.
enum kg_status kg_bundle_check_folder(const char *folder, const struct kg_bundle_expected *expected,
                                      bool json, int *findings, struct kg_text *text,
                                      struct kg_error *error);

#endif
