// From outcomes to lessons: what the candidates of one problem say of values, families and
// groupings. Choices are read as text ("rowwise*4: block=4 stream=1; pointwise: vector=8"), so that
// records of any version and any device give lessons.

#include "store/lessons.h"

#include "lang/dtype.h"
#include "store/lesson_tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const kg_pattern_subjects[KG_SUBJECT_COUNT] = {"value", "form", "grouping"};

// ---- Traits

// The most expensive nest of the problem's class; NULL: none has it.
static const struct kg_nest *main_nest(const struct kg_problem *problem)
{
    const struct kg_nest *main = NULL;
    for (int i = 0; i < problem->nest_count; i++) {
        const struct kg_nest *nest = problem->nests[i];
        if (nest->class == problem->class && (!main || nest->iterations > main->iterations))
            main = nest;
    }
    return main;
}

// Of the main nest: the elements that one output is made of; without a reduction, the length of the
// last axis.
static double width_of(const struct kg_nest *main)
{
    double width = 1;
    for (int axis = main ? main->output_axes : 0; main && axis < main->axis_count; axis++)
        width *= (double)main->extent[axis];
    if (main && main->axis_count == main->output_axes && main->output_axes > 0)
        width = (double)main->extent[main->output_axes - 1];
    return width;
}

static double stride_of(const struct kg_problem *problem, const struct kg_access *access, int axis)
{
    const struct kg_layout *layout = &problem->layouts[access->tensor->id];
    double stride = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++)
        stride += (double)access->map[dim].coefficient[axis] * (double)layout->stride[dim];
    return fabs(stride);
}

// Whether neighbours in memory belong to different results, as in the sum of each column: other
// kernels are good there than along rows.
static bool reduces_columns(const struct kg_problem *problem, const struct kg_nest *main)
{
    bool beside = false;
    for (int a = 0; main && main->class == KG_CLASS_REDUCE && a < main->access_count; a++)
        for (int axis = 0; axis < main->axis_count; axis++) {
            bool next = main->extent[axis] > 1 && stride_of(problem, &main->accesses[a], axis) == 1;
            if (next && axis >= main->output_axes)
                return false;
            beside = beside || next;
        }
    return beside;
}

static const char *dtype_of(const struct kg_problem *problem)
{
    const struct kg_op *op = problem->op;
    const struct kg_tensor *largest = NULL;
    for (int i = 0; i < op->tensor_count; i++)
        if (op->tensors[i]->role == KG_ROLE_INPUT &&
            (!largest || problem->layouts[i].bytes > problem->layouts[largest->id].bytes))
            largest = op->tensors[i];
    return largest ? kg_dtypes[largest->type.dtype].name : "none";
}

void kg_traits_of(const struct kg_problem *problem, struct kg_traits *traits)
{
    const struct kg_nest *main = main_nest(problem);
    double bytes = problem->read_bytes + problem->write_bytes, width = width_of(main);
    const char *size = bytes < 1 << 20 ? "small" : bytes < 32 << 20 ? "medium" : "large";
    const char *form = width <= 64 ? "narrow" : width <= 2048 ? "middling" : "wide";
    traits->class =
        reduces_columns(problem, main) ? "reduce columns" : kg_class_names[problem->class];
    traits->dtype = dtype_of(problem);
    snprintf(traits->bucket, sizeof traits->bucket, "%s %s", size, form);
}

enum kg_status kg_store_note_traits(struct kg_store *store, const struct kg_key *key,
                                    const struct kg_traits *traits, struct kg_error *error)
{
    int64_t id;
    kg_arena_free(&store->scratch);
    enum kg_status status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    status = kg_store_add_key(store, key, &id, error);
    if (status == KG_OK) {
        struct kg_query query = kg_query_begin(store, KG_SQL_NOTE_TRAITS);
        kg_query_bind_integer(&query, id);
        kg_query_bind_text(&query, traits->class);
        kg_query_bind_text(&query, traits->dtype);
        kg_query_bind_text(&query, traits->bucket);
        kg_query_step(&query);
        status = kg_query_end(&query, error);
    }
    if (status == KG_OK)
        return kg_store_commit(store, error);
    kg_store_rollback(store);
    return status;
}

// ---- Rows

enum kg_status kg_store_add_lesson(struct kg_store *store, const struct kg_lesson *lesson,
                                   struct kg_error *error)
{
    const char *texts[] = {lesson->problem, kg_pattern_subjects[lesson->subject], lesson->family,
                           lesson->parameter};
    const char *about[] = {lesson->op,     lesson->class, lesson->dtype,
                           lesson->bucket, lesson->isa,   lesson->date};
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_LESSON);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        kg_query_bind_text(&query, texts[i]);
    kg_query_bind_integer(&query, lesson->value);
    for (size_t i = 0; i < sizeof about / sizeof about[0]; i++)
        kg_query_bind_text(&query, about[i]);
    kg_query_bind_integer(&query, lesson->tried);
    kg_query_bind_integer(&query, lesson->failed);
    kg_query_bind_integer(&query, lesson->competed);
    kg_query_bind_number(&query, lesson->ratio);
    kg_query_bind_integer(&query, lesson->fitted);
    kg_query_bind_number(&query, lesson->effect);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

bool kg_store_next_lesson(struct kg_query *query, struct kg_lesson *lesson)
{
    while (kg_query_step(query)) {
        *lesson = (struct kg_lesson){.problem = kg_query_text(query)};
        const char *subject = kg_query_text(query);
        while (lesson->subject < KG_SUBJECT_COUNT &&
               strcmp(subject, kg_pattern_subjects[lesson->subject]) != 0)
            lesson->subject++;
        lesson->family = kg_query_text(query);
        lesson->parameter = kg_query_text(query);
        lesson->value = kg_query_integer(query);
        lesson->op = kg_query_text(query);
        lesson->class = kg_query_text(query);
        lesson->dtype = kg_query_text(query);
        lesson->bucket = kg_query_text(query);
        lesson->isa = kg_query_text(query);
        lesson->date = kg_query_text(query);
        lesson->tried = (int)kg_query_integer(query);
        lesson->failed = (int)kg_query_integer(query);
        lesson->competed = kg_query_integer(query) != 0;
        lesson->ratio = kg_query_number(query);
        lesson->fitted = kg_query_integer(query) != 0;
        lesson->effect = kg_query_number(query);
        bool sound = lesson->subject < KG_SUBJECT_COUNT && lesson->tried >= 0 &&
                     lesson->failed >= 0 && lesson->failed <= lesson->tried &&
                     isfinite(lesson->ratio) && isfinite(lesson->effect);
        if (sound)
            return true;
    }
    return false;
}

// ---- Mining

struct unmined {
    int64_t id, newest;
    struct kg_key key;
    struct kg_lesson about; // what all lessons of the key have in common
};

static const char *keep(struct kg_arena *arena, const char *text)
{
    return kg_arena_copy(arena, text, strlen(text));
}

// The keys with new outcomes; the caller frees the list. Texts are the arena's.
static enum kg_status list_unmined(struct kg_store *store, struct kg_arena *arena,
                                   struct unmined **list, int *count, struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_UNMINED);
    int capacity = 0;
    bool failed = false;
    *list = NULL;
    *count = 0;
    while (!failed && kg_query_step(&query)) {
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct unmined *larger = realloc(*list, (size_t)capacity * sizeof *larger);
            failed = !larger;
            if (failed)
                break;
            *list = larger;
        }
        struct unmined *one = &(*list)[(*count)++];
        *one = (struct unmined){.id = kg_query_integer(&query)};
        kg_query_key(&query, &one->key);
        const char **texts[] = {&one->key.op,     &one->key.dtypes,   &one->key.sizes,
                                &one->key.layout, &one->key.device,   &one->key.isa,
                                &one->key.driver, &one->key.compiler, &one->key.protocol};
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            *texts[i] = keep(arena, *texts[i]);
        one->about.class = keep(arena, kg_query_text(&query));
        one->about.dtype = keep(arena, kg_query_text(&query));
        one->about.bucket = keep(arena, kg_query_text(&query));
        one->newest = kg_query_integer(&query);
        one->about.date = keep(arena, kg_query_text(&query));
        one->about.op = one->key.op;
        one->about.isa = one->key.isa;
    }
    enum kg_status status = kg_query_end(&query, error);
    return status == KG_OK && (failed || arena->failed) ? kg_error_memory(error, "lessons")
                                                        : status;
}

static enum kg_status run_with_id(struct kg_store *store, enum kg_sql which, int64_t first,
                                  int64_t second, struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, which);
    kg_query_bind_integer(&query, first);
    kg_query_bind_integer(&query, second);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

// A subject without rivals says nothing, unless it failed.
static enum kg_status add_lessons(struct kg_store *store, const struct unmined *unmined,
                                  const struct kg_lesson_tallies *tallies, struct kg_error *error)
{
    char problem[KG_HASH_TEXT];
    kg_hash_format(kg_store_hash_key(&unmined->key, ""), problem);
    enum kg_status status = KG_OK;
    for (int i = 0; i < tallies->count && status == KG_OK; i++) {
        const struct kg_lesson_tally *tally = &tallies->list[i];
        struct kg_lesson lesson = unmined->about;
        lesson.problem = problem;
        lesson.subject = tally->subject.kind;
        lesson.family = tally->subject.family;
        lesson.parameter = tally->subject.parameter;
        lesson.value = tally->subject.value;
        lesson.tried = tally->tried;
        lesson.failed = tally->failed;
        lesson.competed = kg_lesson_tally_ratio(tally, &lesson.ratio);
        lesson.fitted = tally->fitted;
        lesson.effect = tally->effect;
        if (lesson.competed || lesson.failed > 0)
            status = kg_store_add_lesson(store, &lesson, error);
    }
    return status;
}

static void tally_first(void *user, const struct kg_outcome *outcome)
{
    kg_lesson_tally_add(user, outcome, false);
}

static void tally_again(void *user, const struct kg_outcome *outcome)
{
    kg_lesson_tally_add(user, outcome, true);
}

static enum kg_status mine_key(struct kg_store *store, const struct unmined *unmined,
                               struct kg_error *error)
{
    struct kg_lesson_tallies tallies = {0};
    enum kg_status status = kg_store_each(store, &unmined->key, tally_first, &tallies, error);
    if (status == KG_OK)
        status = kg_store_each(store, &unmined->key, tally_again, &tallies, error);
    if (status == KG_OK && tallies.failed)
        status = kg_error_memory(error, "lessons");
    if (status == KG_OK) {
        kg_lesson_tally_finish(&tallies);
        status = add_lessons(store, unmined, &tallies, error);
    }
    kg_lesson_tally_free(&tallies);
    return status == KG_OK
               ? run_with_id(store, KG_SQL_SET_MINED, unmined->newest, unmined->id, error)
               : status;
}

enum kg_status kg_store_mine(struct kg_store *store, struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct unmined *list;
    int count;
    kg_arena_free(&store->scratch);
    enum kg_status status = list_unmined(store, &arena, &list, &count, error);
    if (status == KG_OK && count > 0)
        status = kg_store_begin(store, error);
    for (int i = 0; i < count && status == KG_OK; i++)
        status = mine_key(store, &list[i], error);
    if (status == KG_OK && count > 0)
        status = kg_store_commit(store, error);
    else if (count > 0)
        kg_store_rollback(store);
    free(list);
    kg_arena_free(&arena);
    return status;
}
