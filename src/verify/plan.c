// Decides what has to be computed, and how a pass iterates over it.
//
// Demand propagates backwards: from the requested box of an output to the boxes of everything it
// reads, by interval arithmetic on affine subscripts. Each pass then chooses its lanes: output
// elements or points of the reduction, whichever loads more of its operands contiguously.

#include "verify/program.h"

// The range of a subscript's values, clamped to the field.
static bool subscript_range(const struct kg_pass *pass, const struct kg_subscript *subscript,
                            int64_t shape, bool padded, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = shape - 1;
    if (shape == 0 || subscript->reg >= 0)
        return shape > 0;
    __int128 least = subscript->constant, max = subscript->constant;
    for (int t = 0; t < subscript->term_count; t++) {
        const struct kg_axis *axis = &pass->axes[subscript->terms[t].axis];
        __int128 first = (__int128)subscript->terms[t].coefficient * axis->first;
        __int128 last =
            (__int128)subscript->terms[t].coefficient * (axis->first + axis->extent - 1);
        least += first < last ? first : last;
        max += first < last ? last : first;
    }
    if (padded && (max < 0 || least >= shape))
        return false; // only padding is read
    if (least > 0)
        *low = least < shape ? (int64_t)least : shape - 1;
    if (max < shape - 1)
        *high = max < 0 ? 0 : (int64_t)max;
    return true;
}

// Extends the box of `field` to contain [low, high].
static void demand(struct kg_field *field, const int64_t *low, const int64_t *high)
{
    for (int d = 0; d < field->rank; d++) {
        int64_t end = field->low[d] + field->extent[d];
        int64_t first = !field->wanted || low[d] < field->low[d] ? low[d] : field->low[d];
        int64_t last = !field->wanted || high[d] >= end ? high[d] : end - 1;
        field->low[d] = first;
        field->extent[d] = last - first + 1;
    }
    field->wanted = true;
}

static void demand_reads(struct kg_program *program, const struct kg_pass *pass)
{
    for (int a = 0; a < pass->axis_count; a++)
        if (pass->axes[a].extent == 0)
            return; // nothing is computed or reduced
    for (int r = 0; r < pass->read_count; r++) {
        const struct kg_read *read = pass->reads[r];
        struct kg_field *field = &program->fields[read->field];
        int64_t low[KG_MAX_INDICES], high[KG_MAX_INDICES];
        bool any = true;
        for (int d = 0; d < read->rank; d++)
            any &= subscript_range(pass, &read->subscripts[d], field->shape[d], read->pad >= 0,
                                   &low[d], &high[d]);
        if (any)
            demand(field, low, high);
    }
}

static void lay_out(struct kg_field *field)
{
    field->count = field->wanted ? 1 : 0;
    for (int d = field->rank - 1; d >= 0; d--) {
        field->stride[d] = field->count;
        field->count *= field->extent[d];
    }
}

static int64_t product(const struct kg_pass *pass, int from, int to)
{
    int64_t result = 1;
    for (int a = from; a < to; a++)
        result *= pass->axes[a].extent;
    return result;
}

#define PRODUCT_COST 0.08 // nanoseconds for a multiplication and an addition

// The first of the trailing axes of [from, to) that together fill the lanes.
static int trailing(const struct kg_pass *pass, int from, int to)
{
    int first = to;
    for (int64_t lanes = 1; first > from && lanes < KG_LANES; first--)
        lanes *= pass->axes[first - 1].extent;
    return first;
}

// The cost of a read per lane when lanes run along axes [from, to).
static double read_cost(const struct kg_program *program, const struct kg_pass *pass,
                        const struct kg_read *read, int from, int to)
{
    const struct kg_field *field = &program->fields[read->field];
    int axis = to - 1;
    while (axis > from && pass->axes[axis].extent == 1)
        axis--;
    if (axis < from)
        return 0.1; // a single lane
    int64_t step = 0;
    for (int d = 0; d < read->rank; d++) {
        const struct kg_subscript *subscript = &read->subscripts[d];
        if (subscript->reg >= 0 &&
            pass->steps[pass->registers[subscript->reg].step].axes >> axis & 1)
            return 4;
        for (int t = 0; t < subscript->term_count; t++)
            if (subscript->terms[t].axis == axis)
                step += subscript->terms[t].coefficient * field->stride[d];
    }
    return step == 0 ? 0.1 : step == 1 ? 0.3 : 2;
}

// Estimated nanoseconds with lanes along axes [from, to).
static double mode_cost(const struct kg_program *program, const struct kg_pass *pass, int from,
                        int to)
{
    double points = (double)product(pass, 0, pass->axis_count);
    double lanes = (double)product(pass, trailing(pass, from, to), to);
    lanes = lanes < 1 ? 1 : lanes > KG_LANES ? KG_LANES : lanes;
    double each = 2 + 0.5 * pass->step_count;
    for (int r = 0; r < pass->read_count; r++)
        each += read_cost(program, pass, pass->reads[r], from, to);
    return points * each + points / lanes * 20 * pass->step_count;
}

static void choose_lanes(const struct kg_program *program, struct kg_pass *pass)
{
    int outputs = pass->output_axes, all = pass->axis_count;
    double along_outputs = mode_cost(program, pass, 0, outputs);
    double along_points = mode_cost(program, pass, outputs, all);
    pass->mode = KG_MODE_OUTPUTS;
    if (kg_product_fits(program, pass))
        pass->mode = KG_MODE_PRODUCT;
    else if (pass->can_scan)
        pass->mode = KG_MODE_SCAN;
    else if (pass->has_reduce && along_points < along_outputs)
        pass->mode = KG_MODE_POINTS;
    bool by_outputs = pass->mode == KG_MODE_OUTPUTS || pass->mode == KG_MODE_PRODUCT;
    pass->lane_end = by_outputs ? outputs : all;
    pass->lane_axis = pass->mode == KG_MODE_SCAN
                          ? outputs
                          : trailing(pass, by_outputs ? 0 : outputs, pass->lane_end);
    pass->cost = pass->mode == KG_MODE_PRODUCT   ? PRODUCT_COST * (double)product(pass, 0, all)
                 : pass->mode == KG_MODE_OUTPUTS ? along_outputs
                                                 : along_points;
    if (pass->mode == KG_MODE_SCAN && pass->axes[pass->scan_axis].extent > 0)
        pass->cost /= (double)pass->axes[pass->scan_axis].extent;
}

// Moves steps that do not depend on reduced axes to the front, in their order.
static void order_steps(struct kg_pass *pass)
{
    uint32_t reduced = 0;
    for (int a = pass->output_axes; a < pass->axis_count; a++)
        reduced |= 1u << a;
    int placed = 0;
    for (int s = 0; s < pass->step_count; s++) {
        if (pass->steps[s].axes & reduced)
            continue;
        struct kg_step step = pass->steps[s];
        for (int i = s; i > placed; i--)
            pass->steps[i] = pass->steps[i - 1];
        pass->steps[placed++] = step;
    }
    pass->before = placed;
    for (int s = 0; s < pass->step_count; s++)
        pass->registers[pass->steps[s].result].step = s;
}

static void spread(struct kg_pass *pass, int reg)
{
    struct kg_step *step = &pass->steps[pass->registers[reg].step];
    step->spread = !step->varying;
}

static void mark_lanes(struct kg_pass *pass)
{
    uint32_t lanes = 0;
    for (int a = pass->lane_axis; a < pass->lane_end; a++)
        lanes |= 1u << a;
    for (int s = 0; s < pass->step_count; s++)
        pass->steps[s].varying = (pass->steps[s].axes & lanes) != 0;
    for (int s = 0; s < pass->step_count; s++)
        for (int i = 0; pass->steps[s].varying && i < pass->steps[s].argument_count; i++)
            spread(pass, pass->steps[s].arguments[i]);
    spread(pass, pass->value);
    if (pass->mask >= 0)
        spread(pass, pass->mask);
}

static void set_ranges(const struct kg_program *program, struct kg_pass *pass)
{
    const struct kg_field *field = &program->fields[pass->field];
    for (int a = 0; a < pass->axis_count; a++) {
        struct kg_axis *axis = &pass->axes[a];
        bool output = a < pass->output_axes;
        axis->first = output ? axis->begin + field->low[a] : axis->begin;
        axis->extent = output ? field->extent[a] : axis->end - axis->begin;
    }
}

void kg_program_plan(struct kg_program *program)
{
    for (int p = program->pass_count - 1; p >= 0; p--) {
        set_ranges(program, program->passes[p]);
        if (program->fields[program->passes[p]->field].wanted)
            demand_reads(program, program->passes[p]);
    }
    for (int f = 0; f < program->field_count; f++)
        lay_out(&program->fields[f]);
    for (int p = 0; p < program->pass_count; p++) {
        choose_lanes(program, program->passes[p]);
        order_steps(program->passes[p]);
        mark_lanes(program->passes[p]);
    }
}
