// Reads of fields by a block of lanes. The usual case is an affine read that stays inside the field
// for every lane: a base address and either contiguous elements or a precomputed offset per lane.
// Padding, clamping and gathers are processed lane by lane.

#include "verify/decode.h"
#include "verify/program.h"

#include <math.h>
#include <string.h>

#define FAR ((int64_t)1 << 62) // beyond all subscripts inside a tensor

static bool is_lane_axis(const struct kg_pass *pass, int axis)
{
    return axis >= pass->lane_axis && axis < pass->lane_end;
}

static int64_t scaled(int64_t coefficient, int64_t value)
{
    return (int64_t)((uint64_t)coefficient * (uint64_t)value);
}

static int64_t plus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

// The contribution of lane i to a subscript.
static int64_t lane_share(const struct kg_frame *frame, const struct kg_subscript *subscript,
                          int lane)
{
    int64_t share = 0;
    for (int t = 0; t < subscript->term_count; t++) {
        const struct kg_term *term = &subscript->terms[t];
        if (is_lane_axis(frame->pass, term->axis))
            share = plus(share, scaled(term->coefficient, frame->lane[term->axis][lane]));
    }
    return share;
}

// Does every lane have a subscript of its own, from a register?
static bool is_gathered(const struct kg_frame *frame, const struct kg_subscript *subscript)
{
    const struct kg_pass *pass = frame->pass;
    return subscript->reg >= 0 && pass->steps[pass->registers[subscript->reg].step].varying;
}

static void update_dimension(struct kg_frame *frame, const struct kg_read *read, int d,
                             struct kg_view *view)
{
    const struct kg_field *field = &frame->program->fields[read->field];
    const struct kg_subscript *subscript = &read->subscripts[d];
    view->low[d] = view->high[d] = 0;
    memset(view->share[d], 0, sizeof view->share[d]);
    if (subscript->reg >= 0) {
        view->scattered |= is_gathered(frame, subscript);
        return;
    }
    for (int i = 0; i < frame->lanes; i++) {
        int64_t share = lane_share(frame, subscript, i);
        view->share[d][i] = share;
        if (i == 0 || share < view->low[d])
            view->low[d] = share;
        if (i == 0 || share > view->high[d])
            view->high[d] = share;
        view->offset[i] = plus(view->offset[i], scaled(share, field->stride[d]));
    }
}

void kg_views_update(struct kg_frame *frame)
{
    for (int r = 0; r < frame->pass->read_count; r++) {
        const struct kg_read *read = frame->pass->reads[r];
        struct kg_view *view = &frame->views[r];
        memset(view->offset, 0, sizeof view->offset);
        view->scattered = false;
        for (int d = 0; d < read->rank; d++)
            update_dimension(frame, read, d, view);
        view->contiguous = true;
        for (int i = 1; i < frame->lanes; i++)
            view->contiguous &= view->offset[i] == plus(view->offset[0], i);
    }
}

// The subscript without the lanes' contributions.
static int64_t common_part(const struct kg_frame *frame, const struct kg_subscript *subscript)
{
    if (subscript->reg >= 0)
        return frame->integer[subscript->reg][0];
    int64_t value = subscript->constant;
    for (int t = 0; t < subscript->term_count; t++)
        value = plus(
            value, scaled(subscript->terms[t].coefficient, frame->axis[subscript->terms[t].axis]));
    return value;
}

// The base address of the subscripts that are not gathered, if all lanes stay inside the field's
// box there. The view's offsets are those of its lanes.
static bool find_base(const struct kg_frame *frame, const struct kg_read *read,
                      const struct kg_view *view, int64_t *base)
{
    const struct kg_field *field = &frame->program->fields[read->field];
    int64_t address = 0;
    if (field->count == 0)
        return false;
    for (int d = 0; d < read->rank; d++) {
        if (is_gathered(frame, &read->subscripts[d]))
            continue;
        // A register may hold any number.
        int64_t place = plus(common_part(frame, &read->subscripts[d]), -field->low[d]);
        if (place < -FAR || place > FAR || place + view->low[d] < 0 ||
            place + view->high[d] >= field->extent[d])
            return false;
        address += place * field->stride[d];
    }
    *base = address;
    return true;
}

// Adds one subscript of every lane to the addresses. Lanes outside the tensor, which read the pad's
// value, get the address -1 and keep it.
static void add_subscript(const struct kg_frame *frame, const struct kg_read *read, int d,
                          int lanes, int64_t *addresses)
{
    const struct kg_field *field = &frame->program->fields[read->field];
    const struct kg_subscript *subscript = &read->subscripts[d];
    int64_t low = field->low[d], last = low + field->extent[d] - 1, stride = field->stride[d];
    bool gathers = is_gathered(frame, subscript);
    int64_t common = gathers ? 0 : common_part(frame, subscript);
    const int64_t *shares =
        gathers ? frame->integer[subscript->reg] : frame->views[read->slot].share[d];
    for (int i = 0; i < lanes; i++) {
        int64_t place = plus(common, shares[i]);
        bool pads = read->pad >= 0 && (place < 0 || place >= field->shape[d]);
        // Outside without a pad: the nearest element.
        place = place > last ? last : place;
        place = place < low ? low : place;
        int64_t address = addresses[i] + (place - low) * stride;
        addresses[i] = addresses[i] < 0 || pads ? -1 : address;
    }
}

static bool is_uncertain(const struct kg_frame *frame, const struct kg_read *read, int lane)
{
    for (int d = 0; d < read->rank; d++) {
        int reg = read->subscripts[d].reg;
        if (reg < 0)
            continue;
        bool varying = frame->pass->steps[frame->pass->registers[reg].step].varying;
        if (frame->slack[reg][varying ? lane : 0] != 0)
            return true;
    }
    return false;
}

static double real_at(const struct kg_field *field, int64_t address)
{
    return field->raw ? kg_dtype_load(field->tensor->type.dtype, field->raw, (size_t)address)
                      : field->real[address];
}

static int64_t integer_at(const struct kg_field *field, int64_t address)
{
    return field->raw
               ? kg_dtype_load_integer(field->tensor->type.dtype, field->raw, (size_t)address)
               : field->integer[address];
}

static bool are_inside(const int64_t *addresses, int lanes)
{
    int64_t least = 0;
    for (int i = 0; i < lanes; i++)
        least = addresses[i] < least ? addresses[i] : least;
    return least == 0;
}

static void read_scattered(struct kg_frame *frame, const struct kg_step *step, int lanes,
                           double *slack)
{
    const struct kg_read *read = step->read;
    const struct kg_field *field = &frame->program->fields[read->field];
    double *real = frame->real[step->result];
    int64_t *integer = frame->integer[step->result];
    const struct kg_view *view = &frame->views[read->slot];
    int64_t addresses[KG_LANES], base;
    bool inside = find_base(frame, read, view, &base); // but for what is gathered
    for (int i = 0; i < lanes; i++)
        addresses[i] = field->count == 0 ? -1 : inside ? base + view->offset[i] : 0;
    for (int d = 0; d < read->rank; d++)
        if (!inside || is_gathered(frame, &read->subscripts[d]))
            add_subscript(frame, read, d, lanes, addresses);
    if (real && !slack && are_inside(addresses, lanes)) {
        if (field->raw)
            kg_decode_chosen(field->tensor->type.dtype, field->raw, addresses, lanes, real);
        for (int i = 0; i < lanes && !field->raw; i++)
            real[i] = field->real[addresses[i]];
        return;
    }
    for (int i = 0; i < lanes; i++) {
        int64_t address = addresses[i];
        bool outside = address < 0, pads = outside && read->pad >= 0;
        if (real)
            real[i] = pads ? frame->real[read->pad][i] : outside ? 0 : real_at(field, address);
        else
            integer[i] = pads      ? frame->integer[read->pad][i]
                         : outside ? 0
                                   : integer_at(field, address);
        if (!slack)
            continue;
        slack[i] = pads                           ? frame->slack[read->pad][i]
                   : !outside && field->has_slack ? field->slack[address]
                                                  : 0;
        if (read->uncertain && is_uncertain(frame, read, i))
            slack[i] = INFINITY;
    }
}

static void copy_reals(double *to, const double *from, const struct kg_view *view, int lanes)
{
    if (view->contiguous)
        memcpy(to, from + view->offset[0], (size_t)lanes * sizeof *to);
    else
        for (int i = 0; i < lanes; i++)
            to[i] = from[view->offset[i]];
}

static void read_raw(const struct kg_frame *frame, const struct kg_step *step,
                     const struct kg_view *view, int64_t base, int lanes)
{
    const struct kg_field *field = &frame->program->fields[step->read->field];
    double *real = frame->real[step->result];
    enum kg_dtype dtype = field->tensor->type.dtype;
    int64_t at = base + view->offset[0];
    if (field->is_real && view->contiguous) {
        kg_decode_reals(dtype, field->raw, at, 1, lanes, real);
    } else if (view->contiguous) {
        kg_decode_integers(dtype, field->raw, at, 1, lanes, frame->integer[step->result]);
    } else if (field->is_real) {
        int64_t addresses[KG_LANES];
        for (int i = 0; i < lanes; i++)
            addresses[i] = base + view->offset[i];
        kg_decode_chosen(dtype, field->raw, addresses, lanes, real);
    } else {
        for (int i = 0; i < lanes; i++)
            frame->integer[step->result][i] = integer_at(field, base + view->offset[i]);
    }
}

void kg_view_read(struct kg_frame *frame, const struct kg_step *step, int lanes)
{
    const struct kg_read *read = step->read;
    const struct kg_field *field = &frame->program->fields[read->field];
    const struct kg_view *view = &frame->views[read->slot];
    bool has_slack = frame->pass->registers[step->result].has_slack;
    double *slack = has_slack ? frame->slack[step->result] : NULL;
    int64_t base;
    if (read->uncertain || view->scattered || !find_base(frame, read, view, &base)) {
        read_scattered(frame, step, lanes, slack);
        return;
    }
    if (field->raw) {
        read_raw(frame, step, view, base, lanes);
    } else if (field->is_real) {
        copy_reals(frame->real[step->result], field->real + base, view, lanes);
    } else {
        for (int i = 0; i < lanes; i++)
            frame->integer[step->result][i] = field->integer[base + view->offset[i]];
    }
    if (slack && field->has_slack)
        copy_reals(slack, field->slack + base, view, lanes);
    else if (slack)
        memset(slack, 0, (size_t)lanes * sizeof *slack);
}
