// Runs passes. The plan divides each into independent tasks: blocks of lanes, single output
// elements, or rows of a scan. Threads take tasks from a counter.

#include "verify/program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

// Starting a thread costs about as much as this many nanoseconds of work.
#define THREAD_WORTH 2e5

struct job {
    struct kg_program *program;
    const struct kg_pass *pass;
    const volatile int *cancel;
    int64_t tasks;
    int64_t lane_points; // product of the lane axes
    atomic_llong next;
    atomic_int status;
};

static int64_t product(const struct kg_pass *pass, int from, int to)
{
    int64_t result = 1;
    for (int a = from; a < to; a++)
        result *= pass->axes[a].extent;
    return result;
}

// Sets axes [from, to) to the `number`-th point of their box, counted in row-major order.
static void set_axes(struct kg_frame *frame, int from, int to, int64_t number)
{
    for (int a = to - 1; a >= from; a--) {
        const struct kg_axis *axis = &frame->pass->axes[a];
        frame->axis[a] = axis->first + number % axis->extent;
        number /= axis->extent;
    }
}

// Moves axes [from, to) to the next point; false when it was the last one.
static bool advance(struct kg_frame *frame, int from, int to)
{
    for (int a = to - 1; a >= from; a--) {
        const struct kg_axis *axis = &frame->pass->axes[a];
        if (++frame->axis[a] < axis->first + axis->extent)
            return true;
        frame->axis[a] = axis->first;
    }
    return false;
}

// Sets the lanes to points [start, start + lanes) of the lane axes.
static void set_lanes(struct kg_frame *frame, int64_t start, int lanes)
{
    const struct kg_pass *pass = frame->pass;
    int first = pass->lane_axis, end = pass->lane_end;
    // Then all blocks have the same form, and differ only in where they start.
    bool single = end - first <= 1;
    if (single && end > first)
        frame->axis[first] = pass->axes[first].first + start;
    int64_t place = single ? 0 : start;
    if (frame->lanes == lanes && frame->lanes_start == place)
        return;
    frame->lanes = lanes;
    frame->lanes_start = place;
    for (int a = first; a < end && !single; a++)
        frame->axis[a] = 0;
    for (int i = 0; i < lanes; i++) {
        int64_t number = place + i;
        for (int a = end - 1; a >= first; a--) {
            const struct kg_axis *axis = &pass->axes[a];
            frame->lane[a][i] = single ? i : axis->first + number % axis->extent;
            number /= axis->extent;
        }
    }
    kg_views_update(frame);
}

static void store(const struct job *job, const struct kg_frame *frame, int64_t at, int lanes)
{
    const struct kg_field *field = &job->program->fields[job->pass->field];
    int value = job->pass->value;
    for (int i = 0; i < lanes; i++) {
        if (field->is_real)
            field->real[at + i] = frame->real[value][i];
        else
            field->integer[at + i] = frame->integer[value][i];
        if (field->has_slack)
            field->slack[at + i] = frame->slack[value][i];
    }
}

static void finish(const struct job *job, const struct kg_total *total, int64_t at)
{
    const struct kg_field *field = &job->program->fields[job->pass->field];
    kg_total_finish(job->pass, total, field->is_real ? &field->real[at] : NULL,
                    field->is_real ? NULL : &field->integer[at],
                    field->has_slack ? &field->slack[at] : NULL);
}

// The totals of a block of lanes.
struct running {
    bool is_plain;
    double plain[KG_LANES];
    struct kg_total full[KG_LANES];
};

static void start_totals(const struct job *job, int lanes, struct running *running)
{
    running->is_plain = kg_plain_totals_fit(job->program, job->pass);
    if (running->is_plain)
        kg_plain_totals_start(job->pass, running->plain);
    for (int i = 0; i < lanes && !running->is_plain; i++)
        kg_total_start(job->pass, &running->full[i]);
}

static void add_totals(const struct job *job, const struct kg_frame *frame, struct running *running)
{
    if (running->is_plain)
        kg_plain_totals_add(job->pass, frame, running->plain);
    else
        kg_totals_add(job->pass, frame, 0, frame->lanes, 1, running->full);
}

static void merge_totals(const struct job *job, int lanes, struct running *running)
{
    if (running->is_plain)
        running->plain[0] = kg_plain_totals_merge(job->pass, running->plain, lanes);
    for (int i = 1; i < lanes && !running->is_plain; i++)
        kg_total_merge(job->pass, &running->full[i], &running->full[0]);
}

static void finish_total(const struct job *job, const struct running *running, int lane, int64_t at)
{
    if (running->is_plain)
        job->program->fields[job->pass->field].real[at] =
            kg_plain_totals_finish(job->pass, running->plain[lane]);
    else
        finish(job, &running->full[lane], at);
}

// One block of output elements.
static void run_outputs(const struct job *job, struct kg_frame *frame, int64_t task)
{
    const struct kg_pass *pass = job->pass;
    int64_t blocks = (job->lane_points + KG_LANES - 1) / KG_LANES;
    int64_t start = task % blocks * KG_LANES, left = job->lane_points - start;
    int lanes = left < KG_LANES ? (int)left : KG_LANES;
    int64_t at = task / blocks * job->lane_points + start;
    set_axes(frame, 0, pass->lane_axis, task / blocks);
    set_lanes(frame, start, lanes);
    kg_steps_run(frame, 0, pass->before);
    if (!pass->has_reduce) {
        store(job, frame, at, lanes);
        return;
    }
    struct running running;
    start_totals(job, lanes, &running);
    bool more = product(pass, pass->output_axes, pass->axis_count) > 0;
    for (set_axes(frame, pass->output_axes, more ? pass->axis_count : 0, 0); more;
         more = advance(frame, pass->output_axes, pass->axis_count)) {
        kg_steps_run(frame, pass->before, pass->step_count);
        add_totals(job, frame, &running);
    }
    for (int i = 0; i < lanes; i++)
        finish_total(job, &running, i, at + i);
}

// One output element; its reduction is distributed over the lanes.
static void run_points(const struct job *job, struct kg_frame *frame, int64_t task)
{
    const struct kg_pass *pass = job->pass;
    struct running running;
    int64_t leading = product(pass, pass->output_axes, pass->lane_axis);
    int used = job->lane_points < KG_LANES ? (int)job->lane_points : KG_LANES;
    set_axes(frame, 0, pass->output_axes, task);
    start_totals(job, used ? used : 1, &running);
    kg_steps_run(frame, 0, pass->before);
    for (int64_t outer = 0; outer < leading && used > 0; outer++) {
        set_axes(frame, pass->output_axes, pass->lane_axis, outer);
        for (int64_t start = 0; start < job->lane_points; start += KG_LANES) {
            int64_t left = job->lane_points - start;
            set_lanes(frame, start, left < KG_LANES ? (int)left : KG_LANES);
            kg_steps_run(frame, pass->before, pass->step_count);
            add_totals(job, frame, &running);
        }
    }
    merge_totals(job, used ? used : 1, &running);
    finish_total(job, &running, 0, task);
}

// The running total of one row of a scan. Blocks of the body are evaluated when they are reached.
struct sweep {
    int64_t next;  // next point to add
    int64_t block; // first point of the block in the lanes
    struct kg_total total;
};

static void add_point(const struct job *job, struct kg_frame *frame, struct sweep *sweep)
{
    const struct kg_axis *axis = &job->pass->axes[job->pass->output_axes];
    int64_t number = sweep->next - axis->first, block = number / KG_LANES * KG_LANES;
    if (block != sweep->block) {
        int64_t left = axis->extent - block;
        sweep->block = block;
        set_lanes(frame, block, left < KG_LANES ? (int)left : KG_LANES);
        kg_steps_run(frame, job->pass->before, job->pass->step_count);
    }
    int lane = (int)(number - block);
    kg_totals_add(job->pass, frame, lane, lane + 1, 0, &sweep->total);
}

static void run_scan(const struct job *job, struct kg_frame *frame, int64_t task)
{
    const struct kg_pass *pass = job->pass;
    const struct kg_field *field = &job->program->fields[pass->field];
    const struct kg_axis *outer = &pass->axes[pass->scan_axis];
    const struct kg_axis *inner = &pass->axes[pass->output_axes];
    int64_t at = 0;
    for (int a = pass->output_axes - 1; a >= 0; a--) {
        frame->axis[a] = pass->axes[a].first;
        if (a == pass->scan_axis)
            continue;
        frame->axis[a] += task % pass->axes[a].extent;
        at += task % pass->axes[a].extent * field->stride[a];
        task /= pass->axes[a].extent;
    }
    kg_steps_run(frame, 0, pass->before);
    bool forward = pass->relation == KG_RELATION_LE || pass->relation == KG_RELATION_LT;
    int64_t shift = pass->relation == KG_RELATION_LT   ? -1
                    : pass->relation == KG_RELATION_GT ? 1
                                                       : 0;
    struct sweep sweep = {.block = -1};
    int64_t end = inner->first + inner->extent;
    sweep.next = forward ? inner->first : end - 1;
    kg_total_start(pass, &sweep.total);
    for (int64_t i = 0; i < outer->extent; i++) {
        int64_t place = forward ? i : outer->extent - 1 - i;
        int64_t limit = outer->first + place + pass->scan_offset + shift;
        if (forward)
            for (; sweep.next < end && sweep.next <= limit; sweep.next++)
                add_point(job, frame, &sweep);
        else
            for (; sweep.next >= inner->first && sweep.next >= limit; sweep.next--)
                add_point(job, frame, &sweep);
        finish(job, &sweep.total, at + place * field->stride[pass->scan_axis]);
    }
}

static void *work(void *user)
{
    struct job *job = user;
    struct kg_frame *frame;
    enum kg_status status = kg_frame_make(job->program, job->pass, &frame, NULL);
    int64_t task;
    while (status == KG_OK && atomic_load(&job->status) == KG_OK &&
           (task = atomic_fetch_add(&job->next, 1)) < job->tasks) {
        if (job->cancel && *job->cancel)
            status = KG_ERROR_CANCELLED;
        else if (job->pass->mode == KG_MODE_PRODUCT)
            status = kg_product_run(job->program, job->pass, task);
        else if (job->pass->mode == KG_MODE_OUTPUTS)
            run_outputs(job, frame, task);
        else if (job->pass->mode == KG_MODE_POINTS)
            run_points(job, frame, task);
        else
            run_scan(job, frame, task);
    }
    kg_frame_free(frame);
    if (status != KG_OK)
        atomic_store(&job->status, (int)status);
    return NULL;
}

static int64_t count_tasks(const struct job *job)
{
    const struct kg_pass *pass = job->pass;
    int64_t outputs = product(pass, 0, pass->output_axes);
    if (outputs == 0)
        return 0;
    if (pass->mode == KG_MODE_PRODUCT)
        return kg_product_tasks(job->program, pass);
    if (pass->mode == KG_MODE_SCAN)
        return outputs / pass->axes[pass->scan_axis].extent;
    if (pass->mode == KG_MODE_POINTS)
        return outputs;
    int64_t blocks = (job->lane_points + KG_LANES - 1) / KG_LANES;
    return outputs / job->lane_points * blocks;
}

#define MAX_THREADS 64

static enum kg_status run_pass(struct kg_program *program, const struct kg_pass *pass, int threads,
                               const volatile int *cancel)
{
    struct job job = {.program = program, .pass = pass, .cancel = cancel};
    job.lane_points = product(pass, pass->lane_axis, pass->lane_end);
    job.tasks = count_tasks(&job);
    if (job.tasks == 0)
        return KG_OK;
    double worth = pass->cost / THREAD_WORTH;
    pthread_t helpers[MAX_THREADS];
    int started = 0;
    int wanted = threads - 1 < MAX_THREADS ? threads - 1 : MAX_THREADS;
    while (started < wanted && started + 1 < job.tasks && started + 1 < worth &&
           pthread_create(&helpers[started], NULL, work, &job) == 0)
        started++;
    work(&job);
    for (int i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    return (enum kg_status)atomic_load(&job.status);
}

static enum kg_status allocate(struct kg_field *field, struct kg_error *error)
{
    size_t count = (size_t)field->count + 1; // at least one element
    if (count > SIZE_MAX / sizeof(double) / 2)
        return kg_error_memory(error, "the reference");
    if (field->is_real)
        field->real = malloc(count * sizeof *field->real);
    else
        field->integer = malloc(count * sizeof *field->integer);
    if (field->has_slack)
        field->slack = malloc(count * sizeof *field->slack);
    if ((!field->real && !field->integer) || (field->has_slack && !field->slack))
        return kg_error_memory(error, "the reference");
    return KG_OK;
}

enum kg_status kg_program_run(struct kg_program *program, int threads, const volatile int *cancel,
                              struct kg_error *error)
{
    for (int p = 0; p < program->pass_count; p++) {
        struct kg_field *field = &program->fields[program->passes[p]->field];
        enum kg_status status = allocate(field, error);
        if (status != KG_OK)
            return status;
        status = run_pass(program, program->passes[p], threads, cancel);
        if (status != KG_OK)
            return kg_error_set(error, status,
                                status == KG_ERROR_CANCELLED
                                    ? "stopped while computing the reference"
                                    : "out of memory for the reference");
    }
    return KG_OK;
}
