// What stands behind kg_assembly.

#ifndef KG_API_ASSEMBLY_HANDLE_H
#define KG_API_ASSEMBLY_HANDLE_H

#include "api/sized.h"
#include "report/assembly.h"

struct kg_assembly {
    struct kg_context *context;
    struct kg_arena arena;
    struct kg_assembly_subject subject;
};

// The context of an assembly; NULL where there is none.
struct kg_context *kg_api_assembly_context(const struct kg_assembly *assembly);
// What the caller says of a launch, which may be NULL: zeros.
enum kg_status kg_api_take_launch(const struct kg_assembly *assembly,
                                  const struct kg_assembly_launch *theirs,
                                  struct kg_assembly_launch *launch);
enum kg_status kg_api_appraise(const struct kg_assembly *assembly, int index,
                               const struct kg_assembly_launch *launch,
                               struct kg_appraisal *appraisal);

#endif
