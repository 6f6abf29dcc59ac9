// Runs steps: one function call per step and block of lanes, so that all lanes share the cost of
// dispatch.

#include "verify/program.h"

#include <math.h>
#include <stdlib.h>

static const double zeros[KG_LANES];

enum kg_status kg_frame_make(const struct kg_program *program, const struct kg_pass *pass,
                             struct kg_frame **frame, struct kg_error *error)
{
    *frame = NULL;
    size_t count = (size_t)pass->register_count;
    struct kg_frame *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return kg_error_memory(error, "registers of the reference");
    fresh->program = program;
    fresh->pass = pass;
    fresh->lanes_start = -1;
    fresh->views = calloc((size_t)pass->read_count + 1, sizeof *fresh->views);
    fresh->real = calloc(count, sizeof *fresh->real);
    fresh->integer = calloc(count, sizeof *fresh->integer);
    fresh->slack = calloc(count, sizeof *fresh->slack);
    double *memory = calloc(2 * count * KG_LANES, sizeof *memory);
    fresh->memory = memory;
    if (!fresh->views || !fresh->real || !fresh->integer || !fresh->slack || !memory) {
        kg_frame_free(fresh);
        return kg_error_memory(error, "registers of the reference");
    }
    for (size_t r = 0; r < count; r++, memory += (size_t)2 * KG_LANES) {
        if (pass->registers[r].is_real)
            fresh->real[r] = memory;
        else
            fresh->integer[r] = (int64_t *)(void *)memory;
        bool has_slack = pass->registers[r].has_slack;
        fresh->slack[r] = has_slack ? memory + KG_LANES : (double *)zeros; // read only
    }
    *frame = fresh;
    return KG_OK;
}

void kg_frame_free(struct kg_frame *frame)
{
    if (!frame)
        return;
    free(frame->views);
    free(frame->real);
    free(frame->integer);
    free(frame->slack);
    free(frame->memory);
    free(frame);
}

static void fill_constant(struct kg_frame *frame, const struct kg_step *step, double *slack)
{
    if (frame->real[step->result]) {
        frame->real[step->result][0] = step->real;
        if (slack)
            slack[0] = fabs(step->real - (double)(float)step->real);
    } else {
        frame->integer[step->result][0] = step->integer;
    }
}

static void fill_axis(struct kg_frame *frame, const struct kg_step *step, int lanes)
{
    int64_t *result = frame->integer[step->result], start = frame->axis[step->axis];
    for (int i = 0; i < lanes; i++)
        result[i] = start + (step->varying ? frame->lane[step->axis][i] : 0);
}

static void to_real(const struct kg_step *step, const int64_t *argument, const double *undecided,
                    double *result, double *slack, int lanes)
{
    bool narrow = step->precision == &kg_precisions[KG_TYPE_F32] ||
                  step->precision == &kg_precisions_stored[KG_TYPE_F32];
    for (int i = 0; i < lanes; i++) {
        result[i] = (double)argument[i];
        double rounded = narrow ? (double)(float)argument[i] : result[i];
        // Beyond 2^53 the f64 itself is rounded: by up to half the distance to the next value.
        double lost = fabs(result[i]) > 0x1p53 ? 0x1p-53 * fabs(result[i]) : 0;
        if (slack)
            slack[i] = undecided[i] + fabs(rounded - result[i]) + lost;
    }
}

static void narrow(const struct kg_step *step, const double *argument, const double *uncertain,
                   double *result, double *slack, int lanes)
{
    const struct kg_precision *p = step->precision;
    for (int i = 0; i < lanes; i++)
        result[i] = argument[i];
    for (int i = 0; slack && i < lanes; i++) {
        double magnitude = fabs(argument[i]);
        slack[i] =
            isfinite(magnitude) ? uncertain[i] + p->unit * magnitude + p->tiny : uncertain[i];
        if (magnitude > p->limit && isfinite(magnitude))
            slack[i] = INFINITY;
    }
}

static void to_truth(const double *argument, const double *uncertain, int64_t *result,
                     double *slack, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        result[i] = argument[i] != 0;
        if (slack)
            slack[i] = uncertain[i] > 0 && !(fabs(argument[i]) > uncertain[i]) ? INFINITY : 0;
    }
}

static void wrap(const struct kg_step *step, const int64_t *argument, const double *undecided,
                 int64_t *result, double *slack, int lanes)
{
    for (int i = 0; i < lanes; i++) {
        result[i] = kg_integers_wrap(step->dtype, argument[i]);
        if (slack)
            slack[i] = undecided[i];
    }
}

// The operands of a step, as registers of the frame.
struct operands {
    const double *real[3];
    const int64_t *integer[3];
    const double *slack[3];
};

static struct operands operands_of(const struct kg_frame *frame, const struct kg_step *step)
{
    struct operands operands = {{NULL}, {NULL}, {NULL}};
    for (int i = 0; i < 3 && step->argument_count > 0; i++) {
        // A missing argument is replaced by the first one, so that callers need not count.
        int reg = step->arguments[i < step->argument_count ? i : 0];
        operands.real[i] = frame->real[reg];
        operands.integer[i] = frame->integer[reg];
        operands.slack[i] = frame->slack[reg];
    }
    return operands;
}

static void run_step(struct kg_frame *frame, const struct kg_step *step, int lanes)
{
    struct operands o = operands_of(frame, step);
    double *real = frame->real[step->result];
    int64_t *integer = frame->integer[step->result];
    double *slack =
        frame->pass->registers[step->result].has_slack ? frame->slack[step->result] : NULL;
    switch (step->kind) {
    case KG_STEP_CONSTANT:
        fill_constant(frame, step, slack);
        break;
    case KG_STEP_AXIS:
        fill_axis(frame, step, lanes);
        break;
    case KG_STEP_READ:
        kg_view_read(frame, step, lanes);
        break;
    case KG_STEP_REAL:
        kg_reals_apply(step, real, slack, o.real, o.slack, lanes);
        break;
    case KG_STEP_COMPARE:
        kg_reals_compare(step->function, integer, slack, o.real, o.slack, lanes);
        break;
    case KG_STEP_INTEGER:
        kg_integers_apply(step->function, integer, slack, o.integer, o.slack, lanes);
        break;
    case KG_STEP_CHOOSE:
        kg_reals_choose(real, slack, o.integer[0], o.slack[0], o.real + 1, o.slack + 1, lanes);
        break;
    case KG_STEP_TO_REAL:
        to_real(step, o.integer[0], o.slack[0], real, slack, lanes);
        break;
    case KG_STEP_TO_INTEGER:
        kg_reals_truncate(integer, slack, o.real[0], o.slack[0], lanes);
        break;
    case KG_STEP_WRAP:
        wrap(step, o.integer[0], o.slack[0], integer, slack, lanes);
        break;
    case KG_STEP_TO_TRUTH:
        to_truth(o.real[0], o.slack[0], integer, slack, lanes);
        break;
    case KG_STEP_NARROW:
        narrow(step, o.real[0], o.slack[0], real, slack, lanes);
        break;
    case KG_STEP_ROUND:
        kg_reals_round(step->dtype, real, slack, o.real[0], o.slack[0], lanes);
        break;
    }
}

// Copies to all lanes, not only those in use, because the next block may have more.
static void spread(struct kg_frame *frame, const struct kg_step *step)
{
    double *real = frame->real[step->result], *slack = frame->slack[step->result];
    int64_t *integer = frame->integer[step->result];
    for (int i = 1; real && i < KG_LANES; i++)
        real[i] = real[0];
    for (int i = 1; integer && i < KG_LANES; i++)
        integer[i] = integer[0];
    for (int i = 1; slack != zeros && i < KG_LANES; i++)
        slack[i] = slack[0];
}

void kg_steps_run(struct kg_frame *frame, int from, int to)
{
    for (int s = from; s < to; s++) {
        const struct kg_step *step = &frame->pass->steps[s];
        run_step(frame, step, step->varying ? frame->lanes : 1);
        if (step->spread)
            spread(frame, step);
    }
}
