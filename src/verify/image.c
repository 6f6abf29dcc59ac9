// The memory of a case: its contents before a kernel runs, and the check that only outputs changed.

#include "verify/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const unsigned char kg_image_fills[2] = {0xff, 0x5a};

static int tensor_count(const struct kg_problem *problem)
{
    return problem->op->input_count + problem->op->output_count;
}

void kg_image_plan(struct kg_case *item)
{
    size_t at = KG_GUARD_BYTES;
    for (int i = 0; i < tensor_count(item->problem); i++) {
        item->offsets[i] = at;
        size_t bytes = item->problem->layouts[i].bytes;
        at += (bytes + KG_GUARD_BYTES - 1) / KG_GUARD_BYTES * KG_GUARD_BYTES + KG_GUARD_BYTES;
    }
    item->image_bytes = at;
}

int64_t kg_layout_offset(const struct kg_layout *layout, int rank, int64_t number)
{
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; d--) {
        at += number % layout->shape[d] * layout->stride[d];
        number /= layout->shape[d];
    }
    return at;
}

// Moves to the next element in row-major order; returns the difference of the offsets.
static int64_t step(const struct kg_layout *layout, int rank, int64_t *place)
{
    int64_t moved = 0;
    for (int d = rank - 1; d >= 0; d--) {
        moved += layout->stride[d];
        if (++place[d] < layout->shape[d])
            break;
        moved -= layout->shape[d] * layout->stride[d];
        place[d] = 0;
    }
    return moved;
}

// Copies the elements of a tensor, but not its gaps.
static void copy_elements(const struct kg_problem *problem, int tensor, unsigned char *to,
                          const unsigned char *from)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    const struct kg_tensor *info = problem->op->tensors[tensor];
    size_t size = (size_t)kg_dtypes[info->type.dtype].bits / 8;
    if (layout->contiguous || size == 0) { // 4-bit tensors have no gaps
        memcpy(to, from, layout->bytes);
        return;
    }
    int64_t place[KG_MAX_RANK] = {0}, at = 0;
    for (int64_t i = 0; i < layout->elements; i++) {
        memcpy(to + (size_t)at * size, from + (size_t)at * size, size);
        at += step(layout, info->rank, place);
    }
}

void kg_image_compose(const struct kg_case *item, unsigned char fill, unsigned char *image)
{
    memset(image, fill, item->image_bytes);
    for (int i = 0; i < item->problem->op->input_count; i++)
        copy_elements(item->problem, i, image + item->offsets[i], item->inputs[i]);
}

void kg_case_element(const struct kg_problem *problem, int tensor, const int64_t *index, char *text,
                     size_t room)
{
    const struct kg_tensor *info = problem->op->tensors[tensor];
    int used = snprintf(text, room, "%s[", info->name);
    for (int d = 0; d < info->rank && used >= 0 && (size_t)used < room; d++)
        used += snprintf(text + used, room - (size_t)used, "%s%" PRId64, d ? ", " : "", index[d]);
    if (used >= 0 && (size_t)used < room)
        snprintf(text + used, room - (size_t)used, "]");
}

// Describes the first byte that differs, by the nearest tensor.
static void name_damage(const struct kg_case *item, size_t at, char *reason, size_t room)
{
    const struct kg_problem *problem = item->problem;
    for (int i = 0; i < tensor_count(problem); i++) {
        const char *name = problem->op->tensors[i]->name;
        size_t begin = item->offsets[i], end = begin + problem->layouts[i].bytes;
        bool is_last = i == tensor_count(problem) - 1;
        size_t next = is_last ? item->image_bytes : item->offsets[i + 1];
        bool is_input = i < problem->op->input_count;
        if (at < begin) {
            snprintf(reason, room, "wrote %zu bytes before %s", begin - at, name);
            return;
        }
        if (at < end) {
            snprintf(reason, room,
                     is_input ? "changed input %s, at byte %zu"
                              : "wrote between the elements of output %s, at byte %zu",
                     name, at - begin);
            return;
        }
        if (is_last || (at < next && at - end < next - at)) {
            snprintf(reason, room, "wrote %zu bytes past the end of %s", at - end, name);
            return;
        }
    }
}

bool kg_image_intact(const struct kg_case *item, unsigned char fill, const unsigned char *image,
                     unsigned char *scratch, char *reason, size_t room)
{
    const struct kg_problem *problem = item->problem;
    kg_image_compose(item, fill, scratch);
    for (int i = problem->op->input_count; i < tensor_count(problem); i++)
        copy_elements(problem, i, scratch + item->offsets[i], image + item->offsets[i]);
    if (memcmp(scratch, image, item->image_bytes) == 0)
        return true;
    size_t at = 0;
    while (scratch[at] == image[at])
        at++;
    name_damage(item, at, reason, room);
    return false;
}

bool kg_image_same(const struct kg_case *item, const unsigned char *first,
                   const unsigned char *second, char *reason, size_t room)
{
    const struct kg_problem *problem = item->problem;
    for (int i = problem->op->input_count; i < tensor_count(problem); i++) {
        const struct kg_layout *layout = &problem->layouts[i];
        const struct kg_tensor *info = problem->op->tensors[i];
        const unsigned char *a = first + item->offsets[i], *b = second + item->offsets[i];
        size_t size = (size_t)kg_dtypes[info->type.dtype].bits / 8;
        if (layout->contiguous && size > 0 && memcmp(a, b, layout->bytes) == 0)
            continue;
        int64_t place[KG_MAX_RANK] = {0}, at = 0;
        for (int64_t n = 0; n < layout->elements; n++) {
            bool same = size == 0 ? kg_dtype_load_integer(info->type.dtype, a, (size_t)at) ==
                                        kg_dtype_load_integer(info->type.dtype, b, (size_t)at)
                                  : memcmp(a + (size_t)at * size, b + (size_t)at * size, size) == 0;
            if (!same) {
                char element[128];
                kg_case_element(problem, i, place, element, sizeof element);
                snprintf(reason, room,
                         "two runs differ in %s: %.9g and %.9g (or it was never written)", element,
                         kg_dtype_load(info->type.dtype, a, (size_t)at),
                         kg_dtype_load(info->type.dtype, b, (size_t)at));
                return false;
            }
            at += step(layout, info->rank, place);
        }
    }
    return true;
}
