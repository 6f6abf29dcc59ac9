// What stands behind kg_assembly.

#ifndef KG_API_ASSEMBLY_HANDLE_H
#define KG_API_ASSEMBLY_HANDLE_H

#include "api/context.h"
#include "report/assembly.h"

struct kg_assembly {
    struct kg_context *context;
    struct kg_arena arena;
    struct kg_assembly_subject subject;
};

// `launch` may be NULL.
enum kg_status kg_api_appraise(const struct kg_assembly *assembly, int index,
                               const struct kg_assembly_launch *launch,
                               struct kg_appraisal *appraisal);

#endif
