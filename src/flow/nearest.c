// See nearest.h. Wisdom of other shapes may come from an untrusted file: its texts are parsed
// strictly, and sizes and strides must make a valid problem before they are compared.

#include "flow/nearest.h"

#include "gen/built.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SHAPES 4096    // that are made into problems, per lookup
#define CLOSE 1.0          // in powers of two, for every size
#define ALIGNMENT_BITS 128 // of the widest access to rows
#define MIN_LEAD 1.01      // of the known time over that of the rules' choice

// A number of at most 18 digits at `*text`, which moves past it.
static bool read_number(const char **text, int64_t *number)
{
    int digits = 0;
    for (*number = 0; isdigit((unsigned char)**text) && digits < 18; digits++)
        *number = *number * 10 + (*(*text)++ - '0');
    return digits > 0 && !isdigit((unsigned char)**text);
}

static bool read_word(const char **text, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

// "P=4096 D=1000", as kg_session_print_sizes writes it; params are those of the problem.
static bool read_sizes(const struct kg_problem *problem, const char *text,
                       int64_t sizes[KG_MAX_SIZES])
{
    const struct kg_op *op = problem->op;
    const char *between = "";
    memcpy(sizes, problem->sizes, sizeof problem->sizes);
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        if (!read_word(&text, between) || !read_word(&text, op->sizes[i]->name) ||
            !read_word(&text, "=") || !read_number(&text, &sizes[i]))
            return false;
        between = " ";
    }
    return *text == '\0';
}

// "x:1000,1 y:1000,1", for every input and output.
static bool read_strides(const struct kg_problem *problem, const char *text,
                         int64_t strides[][KG_MAX_RANK])
{
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        if (!read_word(&text, i ? " " : "") || !read_word(&text, tensor->name) ||
            !read_word(&text, ":"))
            return false;
        for (int d = 0; d < tensor->rank; d++)
            if (!read_word(&text, d ? "," : "") || !read_number(&text, &strides[i][d]))
                return false;
    }
    return *text == '\0';
}

// The distance of two shapes: of the logarithms of their sizes, and the largest single one. Returns
// false if one of them has no elements.
static bool compare_sizes(const struct kg_op *op, const int64_t *here, const int64_t *there,
                          double *distance, double *widest)
{
    double sum = 0;
    *widest = 0;
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        if (here[i] < 1 || there[i] < 1)
            return false;
        double apart = fabs(log2((double)here[i]) - log2((double)there[i]));
        sum += apart * apart;
        *widest = fmax(*widest, apart);
    }
    *distance = sqrt(sum);
    return true;
}

// The alignment of all rows in elements, as far as wide accesses are concerned.
static int64_t row_alignment(const struct kg_layout *layout, const struct kg_tensor *tensor)
{
    int64_t alignment = ALIGNMENT_BITS / kg_dtypes[tensor->type.dtype].bits;
    for (int d = 0; d < tensor->rank; d++)
        while (layout->shape[d] > 1 && layout->stride[d] > 1 && layout->stride[d] % alignment)
            alignment /= 2;
    return alignment;
}

// Kernels distinguish strides 0, 1 and all others.
static bool lie_alike(const struct kg_layout *a, const struct kg_layout *b, int rank)
{
    for (int d = 0; d < rank; d++)
        if ((a->stride[d] > 1 ? 2 : a->stride[d]) != (b->stride[d] > 1 ? 2 : b->stride[d]))
            return false;
    return true;
}

static bool is_alike(const struct kg_problem *here, const struct kg_problem *there)
{
    if (here->contiguous != there->contiguous)
        return false;
    for (int i = 0; i < here->op->input_count + here->op->output_count; i++) {
        const struct kg_tensor *tensor = here->tensors[i];
        const struct kg_layout *a = &here->layouts[i], *b = &there->layouts[i];
        if (row_alignment(a, tensor) != row_alignment(b, tensor) ||
            (!here->contiguous && !lie_alike(a, b, tensor->rank)))
            return false;
    }
    return true;
}

// The state of a lookup.
struct look {
    const struct kg_problem *problem;
    const struct kg_device *device;
    bool in_file;
    int shapes;      // made so far
    double distance; // of the nearest
    char *layout;    // of the nearest
    double seconds;  // of its choice, at that shape
    struct kg_nearest *nearest;
    bool lacks_memory;
};

static bool has_like_shape(struct look *look, const int64_t *sizes, const char *layout)
{
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    bool contiguous = strcmp(layout, "contiguous") == 0;
    if (look->shapes++ >= MAX_SHAPES ||
        (!contiguous && !read_strides(look->problem, layout, strides)))
        return false;
    struct kg_problem *there;
    const int64_t(*lie)[KG_MAX_RANK] = contiguous ? NULL : (const int64_t(*)[KG_MAX_RANK])strides;
    enum kg_status status = kg_problem_make(look->problem->op, sizes, lie, &there, NULL);
    look->lacks_memory |= status == KG_ERROR_MEMORY;
    bool alike = status == KG_OK && is_alike(look->problem, there);
    kg_problem_free(there);
    return alike;
}

static void take(struct look *look, const struct kg_key *key, const struct kg_wisdom *wisdom,
                 double distance, double widest)
{
    struct kg_nearest *nearest = look->nearest;
    kg_nearest_free(nearest);
    free(look->layout);
    nearest->choice = strdup(wisdom->choice);
    nearest->sizes = strdup(key->sizes);
    nearest->from_file = look->in_file;
    nearest->is_close = widest <= CLOSE;
    look->layout = strdup(key->layout);
    look->distance = distance;
    look->seconds = wisdom->seconds;
    look->lacks_memory |= !nearest->choice || !nearest->sizes || !look->layout;
}

static void look_at(void *user, const struct kg_key *key, const struct kg_wisdom *wisdom)
{
    struct look *look = user;
    const struct kg_problem *problem = look->problem;
    int64_t sizes[KG_MAX_SIZES];
    double distance, widest;
    if (look->lacks_memory || !read_sizes(problem, key->sizes, sizes) ||
        !compare_sizes(problem->op, problem->sizes, sizes, &distance, &widest) ||
        distance >= look->distance)
        return;
    struct kg_choice choice;
    if (has_like_shape(look, sizes, key->layout) &&
        kg_choice_read(problem, &look->device->facts, kg_target_of(look->device), wisdom->choice,
                       &choice))
        take(look, key, wisdom, distance, widest);
}

// Whether the rules' choice for this problem was measured at the nearest shape, and was slower.
static enum kg_status compare_with_rules(struct look *look, const struct kg_key *key,
                                         struct kg_store *store, struct kg_error *error)
{
    struct kg_choice guess;
    struct kg_text text = {0};
    struct kg_key near = *key;
    struct kg_outcome outcome;
    bool found = false;
    near.sizes = look->nearest->sizes;
    near.layout = look->layout;
    kg_choice_guess(look->problem, &look->device->facts, kg_target_of(look->device), &guess);
    kg_choice_print(&guess, &text);
    enum kg_status status =
        text.failed ? kg_error_memory(error, "the nearest shape")
                    : kg_store_find(store, &near, kg_text_string(&text), &outcome, &found, error);
    look->nearest->beat_rules = found && outcome.kind == KG_OUTCOME_MEASURED &&
                                outcome.timing.median > MIN_LEAD * look->seconds &&
                                strcmp(kg_text_string(&text), look->nearest->choice) != 0;
    kg_text_free(&text);
    return status;
}

enum kg_status kg_nearest_find(const struct kg_request *request, struct kg_store *file,
                               const struct kg_key *key, struct kg_nearest *nearest,
                               struct kg_error *error)
{
    *nearest = (struct kg_nearest){0};
    struct look look = {.problem = request->problem,
                        .device = request->device,
                        .distance = INFINITY,
                        .nearest = nearest};
    struct kg_store *store = request->session->store;
    enum kg_status status = kg_store_near(store, key, look_at, &look, error);
    look.in_file = true;
    if (status == KG_OK && file)
        status = kg_store_near(file, key, look_at, &look, error);
    if (status == KG_OK && look.lacks_memory)
        status = kg_error_memory(error, "the nearest shape");
    if (status == KG_OK && nearest->choice)
        status = compare_with_rules(&look, key, store, error);
    free(look.layout);
    if (status != KG_OK)
        kg_nearest_free(nearest);
    return status;
}

void kg_nearest_free(struct kg_nearest *nearest)
{
    free(nearest->choice);
    free(nearest->sizes);
    *nearest = (struct kg_nearest){0};
}

bool kg_nearest_may_stand(const struct kg_nearest *nearest, const struct kg_problem *problem,
                          const struct kg_device *device, bool asked)
{
    struct kg_choice near, guess;
    const struct kg_target *target = kg_target_of(device);
    if (!nearest->choice || !nearest->is_close || !(asked || nearest->beat_rules) ||
        !kg_choice_read(problem, &device->facts, target, nearest->choice, &near))
        return false;
    kg_choice_guess(problem, &device->facts, target, &guess);
    return kg_choice_bound(&near) <= kg_choice_bound(&guess);
}
