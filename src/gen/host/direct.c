// The family that takes any nest as it stands: loops over the output, reductions inside. It is what
// the other families are measured against, and what does the operations nobody wrote a family for.
//
// Items are blocks of the last output axis times all other output axes. A reduction runs for one
// output element at a time, or (`lanes`) for several neighbours at once, which lets the compiler
// use vectors across outputs. A scan whose body does not depend on the scanned axis carries its
// value along it; any other is computed anew for each element. Sums and products of f32 are
// carried in f64.

#include "gen/host/direct.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"

#include <string.h>

enum { BLOCK, LANES, PARAMETERS };

// Whether the reduced range is the same for every element of the last output axis.
static bool is_uniform(const struct kg_nest *nest)
{
    for (int i = nest->output_axes; i < nest->axis_count; i++)
        if (nest->axes[i]->bound && kg_expr_uses(nest->axes[i]->bound, nest->output_axes - 1, true))
            return false;
    return true;
}

static const void *match_nest(const struct kg_group *group, const struct kg_device_facts *facts,
                              struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts, (void)arena;
    if (group->count == 1)
        return kg_group_nest(group, 0);
    kg_text_add(reason, "it takes one nest at a time");
    return NULL;
}

static bool can_use_lanes(const struct kg_nest *nest)
{
    return nest->has_reduce && nest->output_axes > 0 && kg_direct_scanned_axis(nest) < 0 &&
           is_uniform(nest);
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    static const int64_t blocks[] = {256, 64, 1024, 4096, 16384};
    static const int64_t lanes[] = {1, 16, 32, 64};
    *space = (struct kg_space){0};
    kg_space_add(space, "block", KG_CHANGE_BLOCK, 5, blocks);
    kg_space_add(space, "lanes", KG_CHANGE_ACCESS, can_use_lanes(match->analysis) ? 4 : 1, lanes);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_nest *nest = match->analysis;
    if (config->value[LANES] > config->value[BLOCK]) {
        kg_text_add(reason, "more lanes than a block has elements");
        return false;
    }
    int64_t length = nest->output_axes > 0 ? nest->extent[nest->output_axes - 1] : 1;
    if (config->value[BLOCK] > 256 && config->value[BLOCK] / 4 > length) {
        kg_text_add(reason, "the block is longer than the last axis");
        return false;
    }
    return true;
}

// Does some read walk along the last output axis with unit stride? Then lanes read vectors.
static bool reads_rows(const struct kg_nest *nest)
{
    int last = nest->output_axes - 1;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        int rank = access->tensor->rank;
        if (rank > 0 && access->map[rank - 1].is_affine &&
            access->map[rank - 1].coefficient[last] != 0)
            return true;
    }
    return false;
}

// Do some reads go along the last output axis in steps of several elements, and all others stand
// still, of f32 or more and without a pad? With vectors of 32 bytes these lanes are gathered one by
// one: max_pool3d took two AVX2 cores 0.72 ms by lanes, and 0.47 ms one output after the other.
static bool gathers_rows(const struct kg_nest *nest)
{
    const int along = nest->output_axes - 1;
    for (int i = 0; i < nest->access_count; i++) {
        const struct kg_access *access = &nest->accesses[i];
        const int last = access->tensor->rank - 1;
        if (last < 0)
            continue;
        const int64_t step = access->map[last].is_affine ? access->map[last].coefficient[along] : 1;
        if (step == 1 || step == -1 || access->read->pad ||
            kg_dtype_is_narrow_float(kg_emit_tensor_dtype(access->tensor)))
            return false;
    }
    return true;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_nest *nest = match->analysis;
    *config = (struct kg_config){{256, 1}};
    if (match->facts->vector_bytes == 32 && can_use_lanes(nest) && gathers_rows(nest))
        return;
    if (can_use_lanes(nest) && reads_rows(nest) && nest->extent[nest->output_axes - 1] >= 8)
        config->value[LANES] = 32;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    const struct kg_nest *nest = match->analysis;
    struct kg_space values;
    space(match, &values);
    struct kg_direct direct = {
        .text = source,
        .group = group,
        .nest = nest,
        .entry = entry,
        .block = config->value[BLOCK],
        .lanes = config->value[LANES],
        .scanned = kg_direct_scanned_axis(nest),
        .inner = -1,
    };
    if (direct.scanned < 0)
        direct.inner = nest->output_axes - 1;
    kg_emit_host_opening(source, group, "direct", config, &values);
    if (kg_group_is_private(group, nest->output)) // nobody reads it
        kg_emit_host_nothing(source, entry);
    else
        kg_direct_emit(&direct);
    return !source->failed;
}

const struct kg_family kg_host_direct = {
    .name = "direct",
    .summary = "loops over the output, reductions inside; takes any statement",
    .match = match_nest,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_direct,
    .emit = emit,
};
