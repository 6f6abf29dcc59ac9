// See emitted.h.

#include "api/emitted.h"

#include "gen/choice.h"
#include "gen/target.h"

enum kg_status kg_api_emit(const struct kg_problem *problem, const char *target,
                           struct kg_text *text, struct kg_error *error)
{
    static const struct kg_device_facts unknown; // programs that run the source know their device
    struct kg_choice choice;
    const struct kg_target *found = kg_target_find(target);
    if (!found || !found->only_emits)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            found ? "\"%s\" is the target of a device: use kg_problem_source"
                                  : "there is no target \"%s\"",
                            target);
    kg_choice_guess(problem, &unknown, found, &choice);
    if (!found->standalone(problem, &choice, &unknown, text))
        return kg_error_memory(error, "the source of a problem");
    return KG_OK;
}
