// The family of windows that move along a row: pooling, depthwise convolution, filters. One read
// goes along the last dimension of its tensor with the last output axis and with the last reduced
// axis.
//
// The row that neighbouring outputs see through the window is copied to a buffer first: widened to
// f32, with its padding, and, where the window moves by S elements, in S parts, each with every
// S-th element. For each place of the window, neighbouring outputs then read neighbours in the
// buffer, and no element is converted or compared with the edges more than once for each of the
// window's rows. All else is as in the direct family, whose loops over several outputs at once
// these are.

#include "gen/host/direct.h"

#include "gen/families.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"
#include "gen/skeleton.h"

enum { BLOCK, LANES, PARAMETERS };

// The value does not depend on sizes: it is the same for every problem that the kernel is run on.
static bool has_fixed_factors(const struct kg_expr *expr, bool factor)
{
    if (expr->kind == KG_EXPR_SIZE)
        return !factor;
    factor |=
        expr->kind == KG_EXPR_CALL && expr->function != KG_FN_ADD && expr->function != KG_FN_SUB;
    for (int i = 0; i < expr->argument_count; i++)
        if (!has_fixed_factors(expr->arguments[i], factor))
            return false;
    return true;
}

// Does the read go along its last dimension with both axes, and with no other one?
static bool is_window(const struct kg_nest *nest, const struct kg_access *access)
{
    const int along = nest->output_axes - 1, place = nest->axis_count - 1;
    const int last = access->tensor->rank - 1;
    const struct kg_expr *pad = access->read->pad;
    if (last < 0 || access->read->type != KG_TYPE_F32 || !access->map[last].is_affine ||
        !has_fixed_factors(access->map[last].subscript, false) ||
        (pad && (kg_expr_uses(pad, along, true) || kg_expr_uses(pad, place, true))))
        return false;
    for (int axis = 0; axis < nest->axis_count; axis++) {
        int64_t coefficient = access->map[last].coefficient[axis];
        if (axis == along || axis == place ? coefficient <= 0 : coefficient != 0)
            return false;
    }
    for (int dim = 0; dim < last; dim++)
        if (access->map[dim].is_gather || kg_expr_uses(access->map[dim].subscript, along, true) ||
            kg_expr_uses(access->map[dim].subscript, place, true))
            return false;
    return true;
}

static const void *match_window(const struct kg_group *group, const struct kg_device_facts *facts,
                                struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    const struct kg_nest *nest = kg_group_nest(group, 0);
    struct kg_window *window = NULL;
    int found = 0;
    if (group->count > 1) {
        kg_text_add(reason, "it takes one nest at a time");
        return NULL;
    }
    if (!nest->has_reduce || nest->output_axes == 0 || kg_direct_has_relation(nest) ||
        !group->problem->contiguous || kg_direct_is_packed(nest->output)) {
        kg_text_add(reason, "it reduces windows of contiguous tensors");
        return NULL;
    }
    window = KG_NEW(arena, struct kg_window);
    for (int i = 0; window && i < nest->access_count; i++)
        if (is_window(nest, &nest->accesses[i]) && found++ == 0) {
            const struct kg_access *access = &nest->accesses[i];
            const struct kg_affine *map = &access->map[access->tensor->rank - 1];
            *window = (struct kg_window){.nest = nest,
                                         .access = access,
                                         .stride = map->coefficient[nest->output_axes - 1],
                                         .dilation = map->coefficient[nest->axis_count - 1]};
        }
    if (found == 1)
        return window;
    kg_text_add(reason, "it takes one read of f32 or less that goes along its last dimension with "
                        "the last output axis and the last reduced axis");
    return NULL;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    static const int64_t blocks[] = {256, 1024};
    static const int64_t lanes[] = {64, 32, 128};
    (void)match;
    *space = (struct kg_space){0};
    kg_space_add(space, "block", KG_CHANGE_BLOCK, 2, blocks);
    kg_space_add(space, "lanes", KG_CHANGE_ACCESS, 3, lanes);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    (void)match, (void)config, (void)reason;
    return true;
}

static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_window *window = match->analysis;
    int64_t length = window->nest->extent[window->nest->output_axes - 1];
    *config = (struct kg_config){{256, length <= 32 ? 32 : length < 128 ? 64 : 128}};
}

// The number of places of the window along the row: "(V - 0)".
static void print_places(struct kg_text *text, const struct kg_nest *nest)
{
    const struct kg_index *axis = nest->axes[nest->axis_count - 1];
    kg_text_add(text, "(");
    kg_emit_axis_end(text, axis);
    kg_text_add(text, " - ");
    kg_emit_axis_begin(text, axis);
    kg_text_add(text, ")");
}

static void emit_declarations(const struct kg_direct *direct)
{
    const struct kg_window *window = direct->window;
    struct kg_text places = {0};
    print_places(&places, direct->nest);
    kg_emit_line(direct->text, 1, "enum { STRIDE = %lld, DILATION = %lld };",
                 (long long)window->stride, (long long)window->dilation);
    kg_emit_line(direct->text, 1,
                 "const int64_t reach = STRIDE * (LANES - 1) + DILATION * kg_max_i64(%s, 1) + 1;",
                 kg_text_string(&places));
    kg_emit_line(direct->text, 1, "const int64_t part = reach / STRIDE + 1;");
    direct->text->failed |= places.failed;
    kg_text_free(&places);
}

void kg_window_emit_bytes(const struct kg_direct *direct)
{
    kg_emit_line(direct->text, 1, "if (kind == KG_HOST_SCRATCH) {");
    emit_declarations(direct);
    kg_emit_line(direct->text, 2, "return (reach + STRIDE * part) * (int64_t)sizeof(float);");
    kg_emit_line(direct->text, 1, "}");
}

void kg_window_emit_buffers(const struct kg_direct *direct)
{
    emit_declarations(direct);
    kg_emit_line(direct->text, 1, "float *restrict const parts = (float *)call->scratch;");
    if (direct->window->stride > 1)
        kg_emit_line(direct->text, 1, "float *restrict const row = parts + STRIDE * part;");
    else
        kg_emit_line(direct->text, 1, "float *restrict const row = parts;");
}

// Axes at the first of the outputs and at the first place of the window.
static void print_corner(void *user, struct kg_text *text, int axis)
{
    const struct kg_nest *nest = user;
    if (axis == nest->output_axes - 1)
        kg_text_add(text, "start");
    else if (axis == nest->axis_count - 1)
        kg_emit_axis_begin(text, nest->axes[axis]);
    else
        kg_text_format(text, "i%d", axis);
}

// "kg_inside(i2 + i4 - 1, H)" of all dimensions but the last.
static void print_inside(struct kg_text *text, const struct kg_nest *nest,
                         const struct kg_access *access, const struct kg_emit_names *names)
{
    for (int dim = 0; dim + 1 < access->tensor->rank; dim++) {
        kg_text_add(text, dim > 0 ? " && kg_inside(" : "kg_inside(");
        kg_emit_subscript(text, nest, access, dim, names);
        kg_text_add(text, ", ");
        kg_emit_size(text, access->tensor->dims[dim]);
        kg_text_add(text, ")");
    }
    if (access->tensor->rank == 1)
        kg_text_add(text, "true");
}

// Which elements of the row are in the tensor: [low, high). Without a place nothing is read.
static void emit_limits(struct kg_direct *direct, const struct kg_access *access,
                        const struct kg_emit_names *names)
{
    struct kg_text inside = {0}, size = {0}, pad = {0};
    const char *edge = "for (int64_t j = %s; j < %s; j++)";
    if (!access->read->pad) {
        struct kg_text places = {0};
        print_places(&places, direct->nest);
        kg_emit_line(direct->text, direct->level,
                     "const int64_t low = 0, high = %s > 0 ? span : 0; // the row may be empty",
                     kg_text_string(&places));
        direct->text->failed |= places.failed;
        kg_text_free(&places);
        return;
    }
    print_inside(&inside, direct->nest, access, names);
    kg_emit_size(&size, access->tensor->dims[access->tensor->rank - 1]);
    kg_emit_value(&pad, direct->nest, access->read->pad, KG_TYPE_F32, names);
    kg_emit_line(direct->text, direct->level, "const bool inside = %s;", kg_text_string(&inside));
    kg_emit_line(direct->text, direct->level,
                 "const int64_t low = inside ? kg_min_i64(kg_max_i64(-origin, 0), span) : span;");
    kg_emit_line(direct->text, direct->level,
                 "const int64_t high = kg_max_i64(low, kg_min_i64(%s - origin, span));",
                 kg_text_string(&size));
    kg_emit_line(direct->text, direct->level, edge, "0", "low");
    kg_emit_line(direct->text, direct->level + 1, "row[j] = %s;", kg_text_string(&pad));
    kg_emit_line(direct->text, direct->level, edge, "high", "span");
    kg_emit_line(direct->text, direct->level + 1, "row[j] = %s;", kg_text_string(&pad));
    direct->text->failed |= inside.failed | size.failed | pad.failed;
    kg_text_free(&inside);
    kg_text_free(&size);
    kg_text_free(&pad);
}

static void emit_row(struct kg_direct *direct)
{
    const struct kg_window *window = direct->window;
    const struct kg_access *access = window->access;
    const int last = access->tensor->rank - 1;
    struct kg_text places = {0}, origin = {0}, above = {0}, name = {0}, load = {0};
    struct kg_emit_names names = {
        .user = (void *)direct->nest, .contiguous = true, .axis = print_corner};
    print_places(&places, direct->nest);
    kg_emit_subscript(&origin, direct->nest, access, last, &names);
    kg_emit_offset_part(&above, direct->nest, access, (1u << last) - 1, &names);
    kg_emit_name(&name, access->tensor->name);
    kg_emit_load_at(&load, access->tensor, kg_text_string(&name), "from + j");
    kg_emit_line(direct->text, direct->level, "const int64_t origin = %s;",
                 kg_text_string(&origin));
    kg_emit_line(direct->text, direct->level,
                 "const int64_t span = STRIDE * (lanes - 1) + DILATION * (%s - 1) + 1;",
                 kg_text_string(&places));
    emit_limits(direct, access, &names);
    kg_emit_line(direct->text, direct->level, "const int64_t from = %s + origin;",
                 kg_text_string(&above));
    if (kg_emit_tensor_dtype(access->tensor) == KG_F16) {
        kg_emit_line(direct->text, direct->level, "if (low < high)");
        kg_emit_line(direct->text, direct->level + 1,
                     "kg_window_f16(%s + (from + low), row + low, high - low);",
                     kg_text_string(&name));
    } else {
        kg_emit_line(direct->text, direct->level, "for (int64_t j = low; j < high; j++)");
        kg_emit_line(direct->text, direct->level + 1, "row[j] = %s;", kg_text_string(&load));
    }
    for (int64_t i = 0; window->stride > 1 && i < window->stride; i++) {
        kg_emit_line(direct->text, direct->level,
                     "for (int64_t j = 0; j * STRIDE + %lld < span; j++)", (long long)i);
        kg_emit_line(direct->text, direct->level + 1,
                     "parts[%lld * part + j] = row[j * STRIDE + %lld];", (long long)i,
                     (long long)i);
    }
    direct->text->failed |=
        places.failed | origin.failed | above.failed | name.failed | load.failed;
    kg_text_free(&places);
    kg_text_free(&origin);
    kg_text_free(&above);
    kg_text_free(&name);
    kg_text_free(&load);
}

static bool read_row(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_direct *direct = user;
    const struct kg_window *window = direct->window;
    const int place = direct->nest->axis_count - 1;
    struct kg_text at = {0};
    if (access != window->access)
        return false;
    kg_text_format(&at, "DILATION * (i%d - ", place);
    kg_emit_axis_begin(&at, direct->nest->axes[place]);
    kg_text_add(&at, ")");
    const char *shift = kg_text_string(&at);
    if (window->stride > 1)
        kg_text_format(text, "parts[%s %% STRIDE * part + %s / STRIDE + lane]", shift, shift);
    else
        kg_text_format(text, "parts[%s + lane]", shift);
    text->failed |= at.failed;
    kg_text_free(&at);
    return true;
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    const struct kg_group *group = &match->group;
    const struct kg_window *window = match->analysis;
    struct kg_space values;
    space(match, &values);
    struct kg_direct direct = {
        .text = source,
        .group = group,
        .nest = window->nest,
        .entry = entry,
        .block = config->value[BLOCK],
        .lanes = config->value[LANES],
        .scanned = -1,
        .inner = window->nest->output_axes - 1,
        .window = window,
        .fill = emit_row,
        .read = read_row,
    };
    kg_emit_host_opening(source, group, "window", config, &values);
    kg_text_add(source, kg_skeleton_find("host/window.h"));
    kg_text_add(source, "\n");
    if (kg_group_is_private(group, window->nest->output)) // nobody reads it
        kg_emit_host_nothing(source, entry);
    else
        kg_direct_emit(&direct);
    return !source->failed;
}

const struct kg_family kg_host_window = {
    .name = "window",
    .summary = "windows that move along rows, which are widened and padded once",
    .match = match_window,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = kg_group_bound,
    .expected = kg_host_expect_window,
    .emit = emit,
};
