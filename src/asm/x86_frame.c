// Spilled registers, found by accesses to the stack frame: a register stored at a constant offset
// that is read again. An array that the compiler addresses by constants looks the same, and costs
// the same.

#include "asm/x86.h"

#include <stdlib.h>

#define SAVED 7 // callee-saved registers are numbered from 1

struct frame {
    int64_t size;
    bool has_pointer;
};

static struct frame find_frame(const struct kg_x86_step *steps, int32_t count)
{
    struct frame frame = {0};
    for (int32_t i = 0; i < count; i++) {
        if (steps[i].frame > 0 && steps[i].frame < INT32_MAX && frame.size < INT32_MAX)
            frame.size += steps[i].frame;
        frame.has_pointer |= steps[i].sets_pointer;
    }
    return frame;
}

// Inside the frame, not in the caller's: the return address follows the frame.
static bool in_frame(const struct frame *frame, const struct kg_x86_step *step)
{
    if (!step->on_stack)
        return false;
    if (step->slot.by_pointer)
        return frame->has_pointer && step->slot.offset < 0;
    return step->slot.offset < frame->size;
}

static int compare(const void *left, const void *right)
{
    const struct kg_x86_slot *a = left, *b = right;
    if (a->by_pointer != b->by_pointer)
        return a->by_pointer ? 1 : -1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

struct slots {
    struct kg_x86_slot *of;
    size_t count;
};

static bool has_slot(const struct slots *slots, const struct kg_x86_slot *slot)
{
    return slots->count && bsearch(slot, slots->of, slots->count, sizeof *slot, compare);
}

// Stores of registers that the function has not changed yet preserve them for the caller; stores of
// the stack protector's value are for its check.
static void collect(struct kg_x86_step *steps, int32_t count, const struct frame *frame,
                    struct slots *stored, struct slots *loaded, struct slots *kept)
{
    bool changed[SAVED] = {false};
    unsigned guard = X86_REG_INVALID; // the register that holds the stack protector's value
    for (int32_t i = 0; i < count; i++) {
        const struct kg_x86_step *step = &steps[i];
        if (in_frame(frame, step)) {
            bool keeps = step->stores && step->saved && !changed[step->saved];
            bool guards = step->stores && guard && step->moved == guard;
            if (keeps || guards)
                kept->of[kept->count++] = step->slot;
            else if (step->stores && step->register_move)
                stored->of[stored->count++] = step->slot;
            else if (step->loads)
                loaded->of[loaded->count++] = step->slot;
        }
        changed[step->overwrites] = true;
        if (step->loads && step->saved)
            changed[step->saved] = true;
        if (step->guard)
            guard = step->moved;
        else if (step->kind != KG_STEP_NEXT || step->moved == guard)
            guard = X86_REG_INVALID;
    }
    qsort(stored->of, stored->count, sizeof *stored->of, compare);
    qsort(loaded->of, loaded->count, sizeof *loaded->of, compare);
    qsort(kept->of, kept->count, sizeof *kept->of, compare);
}

static void mark(struct kg_x86_step *step, const struct slots *stored, const struct slots *loaded,
                 const struct slots *kept)
{
    if (has_slot(kept, &step->slot) || !has_slot(stored, &step->slot) ||
        !has_slot(loaded, &step->slot))
        return;
    if (step->stores && !step->register_move)
        return;
    step->spill = true;
    if (step->work == KG_WORK_STORE_GLOBAL)
        step->work = KG_WORK_STORE_LOCAL;
    if (step->work == KG_WORK_LOAD_GLOBAL)
        step->work = KG_WORK_LOAD_LOCAL;
}

int64_t kg_x86_find_spills(struct kg_x86_step *steps, int32_t count)
{
    struct frame frame = find_frame(steps, count);
    struct kg_x86_slot *room = calloc((size_t)count * 3 + 1, sizeof *room);
    if (!room)
        return -1;
    struct slots stored = {room, 0}, loaded = {room + count, 0}, kept = {room + 2 * count, 0};
    collect(steps, count, &frame, &stored, &loaded, &kept);
    for (int32_t i = 0; i < count; i++)
        if (in_frame(&frame, &steps[i]))
            mark(&steps[i], &stored, &loaded, &kept);
    free(room);
    return frame.size;
}
