// Finds sizes by descent: how much every dimension of a tensor lacks to have one element is summed
// up, and the change of one size that lessens the sum most is made. Reads outside of tensors, which
// no sum describes, are left by random changes.

#include "verify/case_sizes.h"

#include <string.h>

#define MAX_STEPS 80
#define MAX_LACK 1e9

// What all dimensions lack to have one element. Outputs must not be empty; other tensors may not
// have a negative dimension.
static double lack_of(const struct kg_op *op, const int64_t *sizes)
{
    double lack = 0;
    for (int t = 0; t < op->tensor_count; t++) {
        const struct kg_tensor *tensor = op->tensors[t];
        int64_t least = tensor->role == KG_ROLE_OUTPUT ? 1 : 0;
        for (int d = 0; d < tensor->rank; d++) {
            int64_t value;
            if (kg_lang_size_signed(tensor->dims[d], sizes, &value, NULL) != KG_OK)
                lack += MAX_LACK; // a division by zero
            else if (value < least)
                lack += (double)least - (double)value;
        }
    }
    return lack;
}

static bool is_allowed(const struct kg_op *op, const int64_t *sizes)
{
    struct kg_problem *problem;
    if (kg_problem_make(op, sizes, NULL, &problem, NULL) != KG_OK)
        return false;
    kg_problem_free(problem);
    return true;
}

// The values to try for a size, the smallest changes first.
static int changes_of(int64_t size, double lack, int64_t values[8])
{
    int64_t missing = lack < 1e6 ? (int64_t)lack : 1000000, count = 0;
    const int64_t wanted[] = {size + 1, size - 1, size + missing,    size - missing, 2 * size,
                              size / 2, 1,        2 * size + missing};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (wanted[i] >= 1 && wanted[i] != size && wanted[i] < 1000000)
            values[count++] = wanted[i];
    return (int)count;
}

static bool may_change(const struct kg_op *op, int size, uint32_t kept)
{
    return !op->sizes[size]->is_param && !(kept >> size & 1);
}

// The change of one size that leaves the least lack. False if none lessens it.
static bool descend(const struct kg_op *op, int64_t *sizes, uint32_t kept, double *lack)
{
    int best = -1;
    int64_t best_value = 0;
    double least = *lack;
    for (int i = 0; i < op->size_count; i++) {
        int64_t values[8], size = sizes[i];
        int count = may_change(op, i, kept) ? changes_of(size, *lack, values) : 0;
        for (int v = 0; v < count; v++) {
            sizes[i] = values[v];
            double left = lack_of(op, sizes);
            if (left < least) {
                least = left;
                best = i;
                best_value = values[v];
            }
        }
        sizes[i] = size;
    }
    if (best < 0)
        return false;
    sizes[best] = best_value;
    *lack = least;
    return true;
}

// Changes one size, small ones more than large ones.
static void wander(const struct kg_op *op, int64_t *sizes, uint32_t kept, struct kg_random *random)
{
    int i = (int)kg_random_below(random, (uint64_t)op->size_count);
    if (!may_change(op, i, kept))
        return;
    sizes[i] =
        kg_random_below(random, 3) == 0 ? 2 * sizes[i] : 1 + (int64_t)kg_random_below(random, 16);
    sizes[i] = sizes[i] > 256 ? 256 : sizes[i];
}

bool kg_sizes_mend(const struct kg_op *instance, int64_t *sizes, uint32_t kept,
                   struct kg_random *random)
{
    int64_t tried[KG_MAX_SIZES];
    memcpy(tried, sizes, sizeof tried);
    double lack = lack_of(instance, tried);
    for (int step = 0; step < MAX_STEPS; step++) {
        if (lack == 0 && is_allowed(instance, tried)) {
            memcpy(sizes, tried, sizeof tried);
            return true;
        }
        if (lack == 0 || !descend(instance, tried, kept, &lack)) {
            wander(instance, tried, kept, random);
            lack = lack_of(instance, tried);
        }
    }
    return false;
}
