// See image.h.

#include "verify/image.h"

#include "base/hash.h"
#include "verify/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAST_BAND 512                // bytes beside a tensor that are checked
#define GUARD_BYTES ((size_t)4 << 20) // between rooms that pages guard
#define FAR_BAND ((size_t)128 << 10)  // on both sides of a tensor where no pages can guard it
#define ALIGNMENT 512                 // of tensors there
#define MOST_KEPT ((size_t)4 << 20)   // bytes of outputs

const unsigned char kg_image_fills[2] = {0xff, 0x5a};

static int tensor_count(const struct kg_problem *problem)
{
    return problem->op->input_count + problem->op->output_count;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static size_t element_size(const struct kg_problem *problem, int tensor)
{
    return (size_t)kg_dtypes[problem->op->tensors[tensor]->type.dtype].bits / 8;
}

// The first address behind a multiple of ALIGNMENT that is aligned as kernels must expect.
static size_t least_aligned(const struct kg_problem *problem, int tensor, size_t alignment)
{
    size_t element = element_size(problem, tensor);
    return alignment > 0 ? alignment : element > 0 ? element : 1;
}

void kg_image_plan(const struct kg_problem *problem, bool is_guarded, enum kg_placement placement,
                   size_t alignment, struct kg_image_plan *plan)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), at = is_guarded ? GUARD_BYTES : 0;
    bool at_begin = placement == KG_PLACED_AT_BEGIN;
    *plan = (struct kg_image_plan){.is_guarded = is_guarded};
    for (int i = 0; i < tensor_count(problem); i++) {
        size_t bytes = problem->layouts[i].bytes;
        size_t behind = at_begin ? 0 : least_aligned(problem, i, alignment);
        size_t room = is_guarded ? round_up(bytes + LEAST_BAND, page)
                                 : round_up(behind + bytes, ALIGNMENT) + 2 * FAR_BAND;
        plan->low[i] = at;
        plan->high[i] = at + room;
        plan->offset[i] = !is_guarded ? at + FAR_BAND + behind : at_begin ? at : at + room - bytes;
        plan->room += room;
        at += room + (is_guarded ? GUARD_BYTES : 0);
    }
    plan->bytes = at;
}

// Memory.

enum kg_status kg_image_memory_make(struct kg_image_memory *memory, bool is_guarded, size_t bytes,
                                    struct kg_error *error)
{
    *memory = (struct kg_image_memory){.bytes = bytes, .is_guarded = is_guarded};
    if (is_guarded) {
        memory->at =
            mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory->at = memory->at == MAP_FAILED ? NULL : memory->at;
    } else {
        memory->at = malloc(bytes ? bytes : 1);
    }
    return memory->at ? KG_OK : kg_error_memory(error, "the gate's images");
}

void kg_image_memory_free(struct kg_image_memory *memory)
{
    if (memory->at && memory->is_guarded)
        munmap(memory->at, memory->bytes);
    else
        free(memory->at);
    memory->at = NULL;
}

static bool same_rooms(const struct kg_image_plan *a, const struct kg_image_plan *b)
{
    return memcmp(a->low, b->low, sizeof a->low) == 0 &&
           memcmp(a->high, b->high, sizeof a->high) == 0;
}

enum kg_status kg_image_memory_open(struct kg_image_memory *memory,
                                    const struct kg_image_plan *plan, struct kg_error *error)
{
    if (!memory->is_guarded || same_rooms(&memory->opened, plan))
        return KG_OK;
    // A new mapping in place of the old one gives its pages back.
    void *again = mmap(memory->at, memory->bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    bool failed = again == MAP_FAILED;
    for (int i = 0; i < KG_MAX_TENSORS && !failed; i++)
        failed = plan->high[i] > plan->low[i] &&
                 mprotect(memory->at + plan->low[i], plan->high[i] - plan->low[i],
                          PROT_READ | PROT_WRITE) != 0;
    memory->opened = failed ? (struct kg_image_plan){.bytes = 0} : *plan;
    return failed ? kg_error_memory(error, "the gate's images") : KG_OK;
}

enum kg_status kg_image_memory_seal(const struct kg_image_memory *memory,
                                    const struct kg_image_plan *plan, int input_count, bool sealed,
                                    struct kg_error *error)
{
    bool failed = false;
    for (int i = 0; i < input_count && memory->is_guarded && !failed; i++)
        failed = mprotect(memory->at + plan->low[i], plan->high[i] - plan->low[i],
                          sealed ? PROT_READ : PROT_READ | PROT_WRITE) != 0;
    return failed ? kg_error_memory(error, "the gate's images") : KG_OK;
}

// Elements.

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

// 4-bit tensors have no gaps.
static bool has_gaps(const struct kg_problem *problem, int tensor)
{
    return !problem->layouts[tensor].contiguous && element_size(problem, tensor) > 0;
}

// Copies the elements of a tensor, but not its gaps.
static void copy_elements(const struct kg_problem *problem, int tensor, unsigned char *to,
                          const unsigned char *from)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    size_t size = element_size(problem, tensor);
    if (!has_gaps(problem, tensor)) {
        memcpy(to, from, layout->bytes);
        return;
    }
    int64_t place[KG_MAX_RANK] = {0}, at = 0;
    for (int64_t i = 0; i < layout->elements; i++) {
        memcpy(to + (size_t)at * size, from + (size_t)at * size, size);
        at += step(layout, problem->op->tensors[tensor]->rank, place);
    }
}

void kg_image_compose(const struct kg_case *item, unsigned char fill, unsigned char *image)
{
    const struct kg_image_plan *plan = &item->image;
    for (int i = 0; i < tensor_count(item->problem); i++) {
        bool is_input = i < item->problem->op->input_count;
        size_t end = plan->offset[i] + item->problem->layouts[i].bytes;
        if (is_input && !has_gaps(item->problem, i)) {
            memset(image + plan->low[i], fill, plan->offset[i] - plan->low[i]);
            memset(image + end, fill, plan->high[i] - end);
        } else {
            memset(image + plan->low[i], fill, plan->high[i] - plan->low[i]);
        }
        if (is_input && image != item->own.at)
            copy_elements(item->problem, i, image + plan->offset[i], item->inputs[i]);
    }
}

// Checks.

static bool is_filled(const unsigned char *bytes, size_t count, unsigned char fill)
{
    return count == 0 || (bytes[0] == fill && memcmp(bytes, bytes + 1, count - 1) == 0);
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

// The bytes before and behind a tensor. The write that is furthest from it is told.
static bool is_surrounded(const struct kg_case *item, int tensor, unsigned char fill,
                          const unsigned char *image, char *reason, size_t room)
{
    const struct kg_image_plan *plan = &item->image;
    const char *name = item->problem->op->tensors[tensor]->name;
    size_t low = plan->low[tensor], begin = plan->offset[tensor];
    size_t end = begin + item->problem->layouts[tensor].bytes, high = plan->high[tensor];
    if (!is_filled(image + low, begin - low, fill)) {
        while (image[low] == fill)
            low++;
        snprintf(reason, room, "wrote %zu bytes before %s", begin - low, name);
        return false;
    }
    if (is_filled(image + end, high - end, fill))
        return true;
    while (image[high - 1] == fill)
        high--;
    snprintf(reason, room, "wrote %zu bytes past the end of %s", high - end, name);
    return false;
}

// Of a large case, whose inputs have no copy.
static bool has_its_inputs(const struct kg_case *item, const unsigned char *image, char *reason,
                           size_t room)
{
    for (int i = 0; i < item->problem->op->input_count; i++) {
        size_t bytes = item->problem->layouts[i].bytes;
        if (kg_hash_bytes(image + item->image.offset[i], bytes).low == item->input_sums[i])
            continue;
        snprintf(reason, room, "changed input %s", item->problem->op->tensors[i]->name);
        return false;
    }
    return true;
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t count)
{
    size_t at = 0;
    while (at < count && a[at] == b[at])
        at++;
    return at;
}

// Are an input's elements and all gaps as they were? `should` is what the tensor must contain, or
// NULL if all its bytes are elements of an output.
static bool is_unchanged(const struct kg_case *item, int tensor, const unsigned char *is,
                         const unsigned char *should, char *reason, size_t room)
{
    size_t bytes = item->problem->layouts[tensor].bytes;
    if (!should || memcmp(is, should, bytes) == 0)
        return true;
    bool is_input = tensor < item->problem->op->input_count;
    snprintf(reason, room,
             is_input ? "changed input %s, at byte %zu"
                      : "wrote between the elements of output %s, at byte %zu",
             item->problem->op->tensors[tensor]->name, first_difference(is, should, bytes));
    return false;
}

static enum kg_status is_tensor_intact(const struct kg_case *item, int tensor, unsigned char fill,
                                       const unsigned char *image, bool *intact, char *reason,
                                       size_t room, struct kg_error *error)
{
    const struct kg_problem *problem = item->problem;
    const unsigned char *is = image + item->image.offset[tensor];
    bool is_input = tensor < problem->op->input_count;
    const unsigned char *should = is_input && !item->own.at ? item->inputs[tensor] : NULL;
    unsigned char *with_gaps = NULL;
    if (has_gaps(problem, tensor)) {
        should = with_gaps = malloc(problem->layouts[tensor].bytes + 1);
        if (!with_gaps)
            return kg_error_memory(error, "the gate's images");
        memset(with_gaps, fill, problem->layouts[tensor].bytes);
        copy_elements(problem, tensor, with_gaps, is_input ? item->inputs[tensor] : is);
    }
    *intact = is_surrounded(item, tensor, fill, image, reason, room) &&
              is_unchanged(item, tensor, is, should, reason, room);
    free(with_gaps);
    return KG_OK;
}

enum kg_status kg_image_intact(const struct kg_case *item, unsigned char fill,
                               const unsigned char *image, bool *intact, char *reason, size_t room,
                               struct kg_error *error)
{
    enum kg_status status = KG_OK;
    *intact = !item->own.at || has_its_inputs(item, image, reason, room);
    for (int i = 0; i < tensor_count(item->problem) && *intact && !status; i++)
        status = is_tensor_intact(item, i, fill, image, intact, reason, room, error);
    return status;
}

// The outputs of two runs.

static size_t output_bytes(const struct kg_problem *problem)
{
    size_t bytes = 0;
    for (int i = problem->op->input_count; i < tensor_count(problem); i++)
        bytes += problem->layouts[i].bytes;
    return bytes;
}

// Elements without the gaps between them, some at a time.
static struct kg_hash add_elements(struct kg_hash sum, const struct kg_problem *problem, int tensor,
                                   const unsigned char *data)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    size_t size = element_size(problem, tensor), used = 0;
    unsigned char some[4096];
    int64_t place[KG_MAX_RANK] = {0}, at = 0;
    for (int64_t n = 0; n < layout->elements; n++) {
        if (used + size > sizeof some) {
            sum = kg_hash_chain(sum, some, used);
            used = 0;
        }
        memcpy(some + used, data + (size_t)at * size, size);
        used += size;
        at += step(layout, problem->op->tensors[tensor]->rank, place);
    }
    return kg_hash_chain(sum, some, used);
}

static struct kg_hash add_tensor(struct kg_hash sum, const struct kg_problem *problem, int tensor,
                                 const unsigned char *data)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    if (has_gaps(problem, tensor))
        return add_elements(sum, problem, tensor, data);
    // Nothing is said of the other half of the byte in which an odd number of 4-bit elements ends.
    bool odd = element_size(problem, tensor) == 0 && layout->elements % 2 == 1;
    sum = kg_hash_chain(sum, data, layout->bytes - odd);
    unsigned char last = odd ? data[layout->bytes - 1] & 0xf : 0;
    return odd ? kg_hash_chain(sum, &last, 1) : sum;
}

static uint64_t sum_of(const struct kg_case *item, const unsigned char *image)
{
    struct kg_hash sum = {0, 0};
    for (int i = item->problem->op->input_count; i < tensor_count(item->problem); i++)
        sum = add_tensor(sum, item->problem, i, image + item->image.offset[i]);
    return sum.low;
}

enum kg_status kg_image_keep(const struct kg_case *item, const unsigned char *image,
                             struct kg_kept *kept, struct kg_error *error)
{
    const struct kg_problem *problem = item->problem;
    size_t bytes = output_bytes(problem), at = 0;
    kept->is_there = true;
    if (bytes > MOST_KEPT) {
        kept->sum = sum_of(item, image);
        return KG_OK;
    }
    kept->bytes = malloc(bytes + 1);
    if (!kept->bytes)
        return kg_error_memory(error, "the outputs of a run");
    for (int i = problem->op->input_count; i < tensor_count(problem); i++) {
        memcpy(kept->bytes + at, image + item->image.offset[i], problem->layouts[i].bytes);
        at += problem->layouts[i].bytes;
    }
    return KG_OK;
}

void kg_kept_free(struct kg_kept *kept)
{
    free(kept->bytes);
    *kept = (struct kg_kept){.sum = 0};
}

static bool is_output_same(const struct kg_problem *problem, int tensor, const unsigned char *a,
                           const unsigned char *b, char *reason, size_t room)
{
    const struct kg_layout *layout = &problem->layouts[tensor];
    const struct kg_tensor *info = problem->op->tensors[tensor];
    size_t size = element_size(problem, tensor);
    if (layout->contiguous && size > 0 && memcmp(a, b, layout->bytes) == 0)
        return true;
    int64_t place[KG_MAX_RANK] = {0}, at = 0;
    for (int64_t n = 0; n < layout->elements; n++) {
        bool same = size == 0 ? kg_dtype_load_integer(info->type.dtype, a, (size_t)at) ==
                                    kg_dtype_load_integer(info->type.dtype, b, (size_t)at)
                              : memcmp(a + (size_t)at * size, b + (size_t)at * size, size) == 0;
        if (!same) {
            char element[128];
            kg_case_element(problem, tensor, place, element, sizeof element);
            snprintf(reason, room, "two runs differ in %s: %.9g and %.9g (or it was never written)",
                     element, kg_dtype_load(info->type.dtype, a, (size_t)at),
                     kg_dtype_load(info->type.dtype, b, (size_t)at));
            return false;
        }
        at += step(layout, info->rank, place);
    }
    return true;
}

bool kg_image_same(const struct kg_case *item, const struct kg_kept *kept,
                   const unsigned char *image, char *reason, size_t room)
{
    const struct kg_problem *problem = item->problem;
    if (!kept->bytes && sum_of(item, image) != kept->sum) {
        snprintf(reason, room, "two runs with the same inputs gave different outputs");
        return false;
    }
    const unsigned char *first = kept->bytes;
    for (int i = problem->op->input_count; i < tensor_count(problem) && first; i++) {
        if (!is_output_same(problem, i, first, image + item->image.offset[i], reason, room))
            return false;
        first += problem->layouts[i].bytes;
    }
    return true;
}

bool kg_image_describe(const struct kg_problem *problem, const struct kg_image_plan *plan,
                       size_t at, char *text, size_t room)
{
    for (int i = 0; i < tensor_count(problem); i++) {
        const char *name = problem->op->tensors[i]->name;
        size_t begin = plan->offset[i], end = begin + problem->layouts[i].bytes;
        if (at < begin && begin - at <= GUARD_BYTES / 2) {
            snprintf(text, room, "%zu bytes before %s", begin - at, name);
            return true;
        }
        if (at >= begin && at < end) {
            snprintf(text, room, "%s %s at byte %zu",
                     i < problem->op->input_count ? "input" : "output", name, at - begin);
            return true;
        }
        if (at == end) {
            snprintf(text, room, "the first byte past the end of %s", name);
            return true;
        }
        if (at > end && at - end < GUARD_BYTES / 2) {
            snprintf(text, room, "%zu bytes past the end of %s", at - end, name);
            return true;
        }
    }
    return false;
}
