// What all families of Triton have in common: block sizes are chosen by shape when the emitted
// function is called, so that there is nothing to search here.

#include "gen/triton/triton_plain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct kg_text launches = {0};
    kg_triton_host_begin(&host, match->group.problem, &arena);
    struct kg_triton_unit unit = {&host, &match->group, entry, plan->what, source, &launches, NULL};
    plan->write(plan, &unit);
    source->failed |= launches.failed;
    kg_text_free(&launches);
    source->failed |= arena.failed;
    kg_arena_free(&arena);
    return !source->failed;
}

struct kg_triton_kernel *kg_triton_unit_begin(struct kg_triton_unit *unit, const char *suffix)
{
    struct kg_triton_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        unit->kernels->failed = true;
        return NULL;
    }
    size_t stem = strlen(unit->entry);
    bool ends = stem > 7 && strcmp(unit->entry + stem - 7, "_kernel") == 0;
    struct kg_text entry = {0};
    kg_text_add_bytes(&entry, unit->entry, ends ? stem - 7 : stem);
    kg_text_format(&entry, "%s%s", suffix, ends ? "_kernel" : "");
    kg_triton_kernel_begin(kernel, unit->group, kg_text_string(&entry));
    unit->kernels->failed |= entry.failed;
    kg_text_free(&entry);
    return kernel;
}

void kg_triton_unit_end(struct kg_triton_unit *unit, struct kg_triton_kernel *kernel)
{
    kg_text_add(unit->kernels, "\n\n");
    kg_triton_kernel_text(kernel, unit->comment, unit->kernels);
    unit->kernels->failed |= kg_triton_kernel_failed(kernel);
    kg_triton_kernel_free(kernel);
    free(kernel);
}
