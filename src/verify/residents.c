// Cases whose images stay in a device's separate memory (see case.h). All candidates run on these
// images, and only outputs that were not seen before are copied.
//
// To restore an image, its outputs are filled again; a checksum then detects any other change.
// After a change the caller judges the case on a fresh image, because an earlier candidate may have
// caused it.

#include "verify/case.h"

#include <math.h>
#include <stdlib.h>

// Limit on all images together: a gate has about fifty cases, most of them small.
#define MAX_BYTES ((size_t)1 << 30)
#define MAX_PASSED 8

// Outputs that were compared with the reference before, with the results.
struct passed {
    uint64_t sum;
    int64_t elements;
    double worst_relative;
    double worst_rms;
};

struct resident {
    void *images[2];   // by run; NULL: not in the device's memory
    uint64_t clean[2]; // checksums of the images
    int passed_count;
    struct passed passed[MAX_PASSED];
};

struct kg_residents {
    struct kg_device *device;
    const struct kg_cases *cases;
    int count;
    struct resident *items; // by case
    size_t bytes;
};

static void drop(struct kg_residents *residents, int index)
{
    struct resident *resident = &residents->items[index];
    for (int run = 0; run < 2; run++) {
        if (!resident->images[run])
            continue;
        residents->device->backend->release(residents->device, resident->images[run]);
        residents->bytes -= residents->cases->items[index]->image.bytes;
        resident->images[run] = NULL;
    }
}

static enum kg_status digest(const struct kg_residents *residents, const struct kg_case *item,
                             const void *image, uint64_t *sum, struct kg_error *error)
{
    struct kg_device *device = residents->device;
    *sum = 0;
    return device->backend->digest(device, image, item->image.bytes, sum, error);
}

static enum kg_status place_image(struct kg_residents *residents, int index, int run,
                                  unsigned char *scratch, struct kg_error *error)
{
    struct kg_device *device = residents->device;
    struct resident *resident = &residents->items[index];
    const struct kg_case *item = residents->cases->items[index];
    enum kg_status status =
        device->backend->allocate(device, item->image.bytes, &resident->images[run], error);
    if (status)
        return status;
    residents->bytes += item->image.bytes;
    kg_image_compose(item, kg_image_fills[run], scratch);
    status =
        device->backend->copy(device, resident->images[run], scratch, item->image.bytes, error);
    return status ? status
                  : digest(residents, item, resident->images[run], &resident->clean[run], error);
}

// Copies the images to the device unless they are there already; `*here` is false if there is no
// room.
static enum kg_status place(struct kg_residents *residents, int index, bool *here,
                            struct kg_error *error)
{
    const struct resident *resident = &residents->items[index];
    const struct kg_case *item = residents->cases->items[index];
    enum kg_status status = KG_OK;
    *here = resident->images[0] && resident->images[1];
    if (*here || item->strided || item->shares_memory ||
        item->image.bytes > (MAX_BYTES - residents->bytes) / 2)
        return KG_OK;
    // A large case has an image in the host's memory already.
    unsigned char *scratch = item->own.at ? item->own.at : malloc(item->image.bytes);
    if (!scratch)
        return kg_error_memory(error, "an image of the gate");
    for (int run = 0; run < 2 && !status; run++)
        status = place_image(residents, index, run, scratch, error);
    if (!item->own.at)
        free(scratch);
    *here = status == KG_OK;
    if (status)
        drop(residents, index);
    return status;
}

static enum kg_status digest_outputs(const struct kg_residents *residents,
                                     const struct kg_case *item, const unsigned char *image,
                                     uint64_t *sum, struct kg_error *error)
{
    const struct kg_problem *problem = item->problem;
    struct kg_device *device = residents->device;
    enum kg_status status = KG_OK;
    *sum = 0;
    for (int i = problem->op->input_count;
         i < problem->op->input_count + problem->op->output_count && !status; i++)
        status = device->backend->digest(device, image + item->image.offset[i],
                                         problem->layouts[i].bytes, sum, error);
    return status;
}

static enum kg_status refill_outputs(const struct kg_residents *residents,
                                     const struct kg_case *item, unsigned char *image, int run,
                                     struct kg_error *error)
{
    const struct kg_problem *problem = item->problem;
    struct kg_device *device = residents->device;
    enum kg_status status = KG_OK;
    for (int i = problem->op->input_count;
         i < problem->op->input_count + problem->op->output_count && !status; i++)
        status = device->backend->fill(device, image + item->image.offset[i], kg_image_fills[run],
                                       problem->layouts[i].bytes, error);
    return status;
}

static const struct passed *find_passed(const struct resident *resident, uint64_t sum)
{
    for (int i = 0; i < resident->passed_count; i++)
        if (resident->passed[i].sum == sum)
            return &resident->passed[i];
    return NULL;
}

// Compares the outputs of an image with the reference.
static enum kg_status compare(const struct kg_residents *residents, const struct kg_case *item,
                              const unsigned char *image, struct passed *passed, bool *right,
                              struct kg_error *error)
{
    const struct kg_op *op = item->problem->op;
    struct kg_device *device = residents->device;
    void *outputs[KG_MAX_TENSORS] = {0};
    struct kg_verdict verdict = {0};
    enum kg_status status = KG_OK;
    for (int o = 0; o < op->output_count && !status; o++) {
        int tensor = op->input_count + o;
        size_t bytes = item->problem->layouts[tensor].bytes;
        outputs[o] = malloc(bytes ? bytes : 1);
        status = outputs[o]
                     ? device->backend->copy(device, outputs[o], image + item->image.offset[tensor],
                                             bytes, error)
                     : kg_error_memory(error, "the outputs of a case");
    }
    *right = status == KG_OK;
    for (int w = 0; w < item->window_count && *right; w++)
        *right = kg_compare_outputs(item->problem, item->expected[w], (const void *const *)outputs,
                                    &verdict);
    if (*right && item->survey)
        status = kg_survey_judge(item->survey, (const void *const *)item->inputs,
                                 (const void *const *)outputs, &verdict, right, error);
    for (int o = 0; o < op->output_count; o++)
        free(outputs[o]);
    passed->elements = verdict.elements;
    passed->worst_relative = verdict.worst_relative;
    passed->worst_rms = verdict.worst_rms;
    return status;
}

// One run on one image. `*fine`: it ran, changed nothing but its outputs, and these passed before
// or pass now.
static enum kg_status run_once(struct kg_residents *residents, int index, int run,
                               const struct kg_subject *subject, struct passed *passed, bool *fine,
                               struct kg_error *error)
{
    struct resident *resident = &residents->items[index];
    const struct kg_case *item = residents->cases->items[index];
    const struct kg_op *op = item->problem->op;
    unsigned char *image = resident->images[run];
    void *tensors[KG_MAX_TENSORS];
    uint64_t sum = 0, clean = 0;
    for (int i = 0; i < op->input_count + op->output_count; i++)
        tensors[i] = image + item->image.offset[i];
    *fine = subject->run(subject->user, item->problem, tensors, NULL) == KG_OK;
    if (!*fine)
        return KG_OK;
    enum kg_status status = digest_outputs(residents, item, image, &sum, error);
    const struct passed *before = find_passed(resident, sum);
    if (!status && run > 0) {
        *fine = sum == passed->sum;
    } else if (!status && before) {
        *passed = *before;
    } else if (!status) {
        passed->sum = sum;
        status = compare(residents, item, image, passed, fine, error);
    }
    if (!status && *fine)
        status = refill_outputs(residents, item, image, run, error);
    if (!status && *fine)
        status = digest(residents, item, image, &clean, error);
    *fine = *fine && clean == resident->clean[run];
    return status;
}

enum kg_status kg_residents_judge(struct kg_residents *residents, int index,
                                  const struct kg_subject *subject, struct kg_verdict *verdict,
                                  bool *passes, struct kg_error *error)
{
    struct resident *resident = &residents->items[index];
    struct passed passed = {.sum = 0};
    enum kg_status status = place(residents, index, passes, error);
    if (status || !*passes)
        return status;
    for (int run = 0; run < 2 && *passes && !status; run++)
        status = run_once(residents, index, run, subject, &passed, passes, error);
    if (status || !*passes) {
        *passes = false;
        drop(residents, index);
        return status;
    }
    if (!find_passed(resident, passed.sum) && resident->passed_count < MAX_PASSED)
        resident->passed[resident->passed_count++] = passed;
    verdict->elements += passed.elements;
    verdict->worst_relative = fmax(verdict->worst_relative, passed.worst_relative);
    verdict->worst_rms = fmax(verdict->worst_rms, passed.worst_rms);
    return KG_OK;
}

enum kg_status kg_residents_make(struct kg_device *device, const struct kg_cases *cases,
                                 struct kg_residents **out, struct kg_error *error)
{
    struct kg_residents *residents = *out = calloc(1, sizeof *residents);
    if (!residents)
        return kg_error_memory(error, "the gate's images");
    residents->device = device;
    residents->cases = cases;
    residents->count = cases->count;
    residents->items = calloc((size_t)cases->count + 1, sizeof *residents->items);
    return residents->items ? KG_OK : kg_error_memory(error, "the gate's images");
}

void kg_residents_free(struct kg_residents *residents)
{
    if (!residents)
        return;
    for (int i = 0; i < residents->count && residents->items; i++)
        drop(residents, i);
    free(residents->items);
    free(residents);
}
