// What all families of Triton have in common: block sizes are chosen by shape when the emitted
// function is called, so that there is nothing to search here.

#include "gen/triton/triton_plain.h"

void kg_triton_space(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){0};
}

bool kg_triton_valid(const struct kg_match *match, const struct kg_config *config,
                     struct kg_text *reason)
{
    (void)match, (void)config, (void)reason;
    return true;
}

void kg_triton_guess(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = (struct kg_config){0};
}

bool kg_triton_emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                    struct kg_text *source)
{
    (void)config;
    const struct kg_triton_plan *plan = match->analysis;
    struct kg_arena arena = {0};
    struct kg_triton_host host;
    struct kg_triton_kernel *kernel = KG_NEW(&arena, struct kg_triton_kernel);
    if (kernel) {
        kg_triton_host_begin(&host, match->group.problem, &arena);
        kg_triton_kernel_begin(kernel, &match->group, entry);
        plan->write(plan, &host, kernel);
        kg_triton_kernel_text(kernel, plan->what, source);
        source->failed |= kg_triton_kernel_failed(kernel);
        kg_triton_kernel_free(kernel);
    }
    source->failed |= !kernel || arena.failed;
    kg_arena_free(&arena);
    return !source->failed;
}
