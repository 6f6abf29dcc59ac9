// Compares outputs with the reference. Three bounds must hold: every element is within the
// tolerance of its dtype, the error of the whole output is within a small multiple of the
// unavoidable rounding error, and stores do not prefer one side. docs/verification.md explains why.

#include "verify/case.h"
#include "verify/roundings.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// Limit of the whole error, as a multiple of the unavoidable error.
#define RMS_LIMIT 3.0

double kg_compare_unavoidable(enum kg_dtype dtype, double value, double slack)
{
    return kg_rounding_half_step(dtype, value) + slack;
}

// The state of comparing one output.
struct output {
    const struct kg_problem *problem;
    int tensor;
    const struct kg_expected *expected;
    const void *data;
    enum kg_dtype dtype;
    bool exact; // the goal gives no tolerance: what is not computed is rounded correctly
    double relative;
    double absolute;
    double rms_limit;
    // Sums are in units of the largest value, so that squares do not overflow.
    double unit;        // a power of two
    double per_unit;    // 1 / unit, exactly
    double edge;        // numbers from here on overflow the dtype
    double errors;      // sum of squared errors
    double unavoidable; // sum of squared unavoidable errors
    int64_t decided;
    struct kg_roundings roundings;
};

// Sets the tolerances. The default absolute tolerance is meant for values around 1; for smaller
// outputs it is scaled down, or zeros would pass for a wide softmax.
static void set_tolerance(struct output *output)
{
    const struct kg_dtype_info *info = &kg_dtypes[output->dtype];
    const struct kg_tolerance *given = &output->problem->op->goal.tolerance[output->dtype];
    const struct kg_expected *expected = output->expected;
    double squares = 0, largest = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < expected->count; i++) {
        double magnitude = fabs(expected->value[i]);
        if (!(magnitude <= info->largest) || isinf(expected->slack[i]))
            continue;
        // Values above 1 do not raise the scale above 1.
        squares += magnitude < 1 ? magnitude * magnitude : 1;
        largest = magnitude > largest ? magnitude : largest;
        count++;
    }
    output->unit = largest >= DBL_MIN ? kg_rounding_power_below(largest) : 1;
    output->per_unit = 1 / output->unit;
    output->edge = info->largest + kg_rounding_half_step(output->dtype, info->largest);
    double scale = count ? sqrt(squares / (double)count) : 0;
    output->exact = !given->given;
    output->relative = given->given ? given->relative : info->relative;
    output->absolute = given->given ? given->absolute : info->absolute * scale;
    // A coarser relative tolerance in the goal loosens the second bound in proportion.
    double looser = given->given && info->relative > 0 ? given->relative / info->relative : 1;
    output->rms_limit = RMS_LIMIT * fmax(looser, 1);
}

// The position of the comparison: element n of the window.
struct place {
    int64_t n;
    int64_t index[KG_MAX_RANK]; // in the whole output
    int64_t at;                 // offset in memory, in elements
};

static struct place first_place(const struct output *output)
{
    const struct kg_expected *expected = output->expected;
    struct place place = {.n = 0};
    for (int d = 0; d < expected->rank; d++) {
        place.index[d] = expected->low[d];
        place.at += expected->low[d] * output->problem->layouts[output->tensor].stride[d];
    }
    return place;
}

static void next_place(const struct output *output, struct place *place)
{
    const struct kg_expected *expected = output->expected;
    const int64_t *stride = output->problem->layouts[output->tensor].stride;
    place->n++;
    for (int d = expected->rank - 1; d >= 0; d--) {
        place->at += stride[d];
        if (++place->index[d] < expected->low[d] + expected->extent[d])
            return;
        place->at -= expected->extent[d] * stride[d];
        place->index[d] = expected->low[d];
    }
}

static void say_element(const struct output *output, const struct place *place, double expected,
                        double allowed, const char *got, struct kg_verdict *verdict)
{
    char element[160], tolerance[48] = "";
    kg_case_element(output->problem, output->tensor, place->index, element, sizeof element);
    if (allowed > 0)
        snprintf(tolerance, sizeof tolerance, " within %.3g", allowed);
    snprintf(verdict->reason, sizeof verdict->reason, "%s: expected %.9g%s, got %s", element,
             expected, tolerance, got);
}

// Compares a float with the reference's `r`. Returns the error as a fraction of the allowed one; >
// 1 is wrong.
static double judge_real(struct output *output, double r, double slack, double got, double *allowed)
{
    double tolerance = output->relative * fabs(r) + output->absolute;
    double half_step = kg_rounding_half_step(output->dtype, r);
    *allowed = tolerance + half_step + slack;
    const struct kg_dtype_info *info = &kg_dtypes[output->dtype];
    if (isnan(r))
        return isnan(got) ? 0 : INFINITY;
    if (isinf(r))
        return (info->has_infinity ? r == got : isnan(got)) ? 0 : INFINITY;
    double unsure = tolerance + slack;
    if (!isfinite(got)) { // correct if the true value may overflow, infinities on the same side
        double past = info->has_infinity ? (got > 0 ? r : -r) : fabs(r);
        bool overflows = info->has_infinity ? isinf(got) : isnan(got);
        return overflows && past + unsure >= output->edge ? 0 : INFINITY;
    }
    double error = fabs(got - r);
    if (fabs(r) > info->largest)
        return error <= *allowed && fabs(r) - unsure <= output->edge ? 0 : INFINITY;
    double scaled = error * output->per_unit;
    double unavoidable = (half_step + slack) * output->per_unit;
    output->errors += scaled * scaled;
    output->unavoidable += unavoidable * unavoidable;
    output->decided++;
    if (error == 0)
        return 0;
    return *allowed > 0 ? error / *allowed : INFINITY;
}

// Without slack the reference is exact, and there is one right result.
static bool is_nearest(const struct output *output, double r, double got)
{
    if (got == r)
        return true;
    double nearest = kg_dtype_round(output->dtype, r);
    return got == nearest || (isnan(got) && isnan(nearest));
}

static bool compare_real(struct output *output, const struct place *place,
                         struct kg_verdict *verdict)
{
    double slack = output->expected->slack[place->n], r = output->expected->value[place->n];
    double got = kg_dtype_load(output->dtype, output->data, (size_t)place->at), allowed;
    double part = judge_real(output, r, slack, got, &allowed);
    if (output->exact && slack == 0 && !is_nearest(output, r, got)) {
        part = INFINITY;
        allowed = 0;
        r = kg_dtype_round(output->dtype, r);
    } else if (output->exact && isfinite(r) && isfinite(got)) {
        kg_roundings_note(&output->roundings, output->dtype, r, slack, got);
    }
    if (part > verdict->worst_relative)
        verdict->worst_relative = part;
    if (part <= 1)
        return true;
    char text[48];
    snprintf(text, sizeof text, "%.9g", got);
    say_element(output, place, r, isfinite(r) ? allowed : 0, text, verdict);
    return false;
}

static bool compare_integer(const struct output *output, const struct place *place,
                            struct kg_verdict *verdict)
{
    int64_t wanted = output->expected->integer[place->n];
    // A boolean is compared as a byte: only 0 and 1 are valid.
    enum kg_dtype stored = kg_dtype_is_truth(output->dtype) ? KG_U8 : output->dtype;
    int64_t got = kg_dtype_load_integer(stored, output->data, (size_t)place->at);
    if (got == wanted)
        return true;
    char element[160];
    kg_case_element(output->problem, output->tensor, place->index, element, sizeof element);
    snprintf(verdict->reason, sizeof verdict->reason, "%s: expected %" PRId64 ", got %" PRId64,
             element, wanted, got);
    verdict->worst_relative = INFINITY;
    return false;
}

static bool compare_whole(const struct output *output, struct kg_verdict *verdict)
{
    if (output->decided == 0 || output->errors == 0)
        return true;
    double ratio = sqrt(output->errors / output->unavoidable);
    double part = ratio / output->rms_limit;
    if (ratio > verdict->worst_rms)
        verdict->worst_rms = ratio;
    if (part <= 1)
        return true;
    double count = (double)output->decided;
    snprintf(verdict->reason, sizeof verdict->reason,
             "output %s: every element is within its tolerance, but the error as a whole (rms "
             "%.3g) is %.3g times the unavoidable one (rms %.3g); %.3g times is allowed",
             output->problem->op->tensors[output->tensor]->name,
             output->unit * sqrt(output->errors / count), ratio,
             output->unit * sqrt(output->unavoidable / count), output->rms_limit);
    return false;
}

static bool compare_roundings(const struct output *output, struct kg_verdict *verdict)
{
    double part;
    const char *side;
    kg_roundings_add(&verdict->roundings, &output->roundings);
    bool here = kg_roundings_biased(&output->roundings, &part, &side);
    if (!here && !kg_roundings_biased(&verdict->roundings, &part, &side))
        return true;
    snprintf(verdict->reason, sizeof verdict->reason,
             "output %s: %.0f%% of the elements%s are stored a step too far %s, where the others "
             "are stored as the nearest value",
             output->problem->op->tensors[output->tensor]->name, 100 * fabs(part),
             here ? "" : " of all cases so far", side);
    return false;
}

static bool compare_output(struct output *output, struct kg_verdict *verdict)
{
    const struct kg_expected *expected = output->expected;
    set_tolerance(output);
    struct place place = first_place(output);
    for (; place.n < expected->count; next_place(output, &place)) {
        if (isinf(expected->slack[place.n]))
            continue; // undecidable
        if (!(expected->integer ? compare_integer(output, &place, verdict)
                                : compare_real(output, &place, verdict)))
            return false;
        verdict->elements++;
    }
    if (expected->integer)
        return true;
    return compare_whole(output, verdict) && compare_roundings(output, verdict);
}

bool kg_compare_outputs(const struct kg_problem *problem, const struct kg_expected *expected,
                        const void *const *outputs, struct kg_verdict *verdict)
{
    for (int i = 0; i < problem->op->output_count; i++) {
        int tensor = problem->op->input_count + i;
        struct output output = {.problem = problem,
                                .tensor = tensor,
                                .expected = &expected[i],
                                .data = outputs[i],
                                .dtype = problem->op->tensors[tensor]->type.dtype};
        if (!compare_output(&output, verdict))
            return false;
    }
    return true;
}
