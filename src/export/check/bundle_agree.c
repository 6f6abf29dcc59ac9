// Compares what the files of a bundle state. Of one fact the definition is right where it is
// given; else what most files say, and among as many the baseline, which people read as the
// interface. What differs from that is a finding, and so is what a file must say and does not.

#include "export/check/bundle_agree.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROLE(name) (1u << KG_BUNDLE_##name)
#define FACT(name) (1u << KG_FACT_##name)
#define BOTH (ROLE(TRITON) | ROLE(BASELINE))
#define THREE (BOTH | ROLE(ACCURACY))
#define ALL (THREE | ROLE(PERFORMANCE))
#define SIGNATURE (FACT(POSITIONAL_COUNT) | FACT(POSITIONAL) | FACT(KEYWORD_COUNT) | FACT(KEYWORD))

// Facts follow one another so that what silences stands before what it silences.
const struct kg_bundle_fact_info kg_bundle_facts_info[KG_FACT_COUNT] = {
    [KG_FACT_NAME] = {"name", "the op's name", ALL, FACT(NAME), KG_DIFFERENCE_INTERFACE,
                      "name the function and NAME like the files"},
    [KG_FACT_FORMULA] = {"formula", "the formula", ALL, 0, KG_DIFFERENCE_FORMULA,
                         "emit the bundle again from the definition that is meant"},
    [KG_FACT_POSITIONAL_COUNT] = {"inputs", "the number of inputs", THREE, 0,
                                  KG_DIFFERENCE_INTERFACE, "give all files the same parameters"},
    [KG_FACT_POSITIONAL] = {"input", "input %s", THREE, FACT(POSITIONAL_COUNT),
                            KG_DIFFERENCE_INTERFACE,
                            "give the inputs the same names in the same order"},
    [KG_FACT_KEYWORD_COUNT] = {"keywords", "the number of keyword parameters of type %s", THREE,
                               FACT(POSITIONAL_COUNT), KG_DIFFERENCE_INTERFACE,
                               "give all files the same parameters behind the \"*\""},
    [KG_FACT_KEYWORD] = {"keyword", "keyword parameter %s", THREE, FACT(KEYWORD_COUNT),
                         KG_DIFFERENCE_INTERFACE,
                         "give the keywords the same names in the same order"},
    [KG_FACT_ANNOTATION] = {"annotation", "the type of parameter %s", BOTH, SIGNATURE,
                            KG_DIFFERENCE_INTERFACE, "annotate it alike"},
    [KG_FACT_DEFAULT] = {"default", "the default of parameter %s", BOTH, SIGNATURE,
                         KG_DIFFERENCE_INTERFACE, "give it one default"},
    [KG_FACT_RESULT] = {"result", "the type of the result", BOTH, 0, KG_DIFFERENCE_INTERFACE,
                        "torch.Tensor for one output, tuple[torch.Tensor, ...] for several"},
    [KG_FACT_CONSTANT] = {"constant", "the constant %s", THREE, 0, KG_DIFFERENCE_PARAMETER,
                          "set it to one value in all files"},
    [KG_FACT_RANK] = {"rank", "the rank of %s", THREE, SIGNATURE, KG_DIFFERENCE_INTERFACE,
                      "check the same number of dimensions"},
    [KG_FACT_DTYPE] = {"dtype", "the dtype of %s", THREE, SIGNATURE, KG_DIFFERENCE_INTERFACE,
                       "accept the same dtypes"},
    [KG_FACT_PACKED] = {"packing", "the packing of %s", THREE, SIGNATURE, KG_DIFFERENCE_INTERFACE,
                        "two elements a byte, or one, in all files"},
    [KG_FACT_EXTENT] = {"extent", "the extent of %s", 0, SIGNATURE | FACT(CONSTANT) | FACT(RANK),
                        KG_DIFFERENCE_INTERFACE, "require the same sizes to be equal"},
    [KG_FACT_OUTPUT_COUNT] = {"outputs", "the number of outputs", ROLE(ACCURACY), 0,
                              KG_DIFFERENCE_INTERFACE, "return the same outputs"},
    [KG_FACT_OUTPUT_DTYPE] = {"output dtype", "the dtype of output %s", ROLE(ACCURACY),
                              SIGNATURE | FACT(OUTPUT_COUNT), KG_DIFFERENCE_INTERFACE,
                              "give the output one dtype"},
    [KG_FACT_OUTPUT_SHAPE] = {"output shape", "the shape of output %s", ROLE(ACCURACY),
                              SIGNATURE | FACT(CONSTANT) | FACT(OUTPUT_COUNT) | FACT(RANK) |
                                  FACT(EXTENT),
                              KG_DIFFERENCE_INTERFACE, "give the output one shape"},
    [KG_FACT_SIZES] = {"sizes", "the list of sizes", ROLE(ACCURACY), 0, KG_DIFFERENCE_INTERFACE,
                       "name the same sizes in SIZES, in the functions and in every row"},
    [KG_FACT_GOAL] = {"goal", "%s", 0, 0, KG_DIFFERENCE_GOAL, "take it from the definition"},
};

static const int authority[KG_BUNDLE_SOURCES] = {KG_BUNDLE_DEFINITION, KG_BUNDLE_BASELINE,
                                                 KG_BUNDLE_ACCURACY, KG_BUNDLE_TRITON,
                                                 KG_BUNDLE_PERFORMANCE};

// Statements of one fact of one subject.
struct group {
    struct kg_bundle_facts *facts;
    const struct kg_bundle_statement *const *statements;
    int count;
};

static const struct kg_bundle_fact_info *info_of(const struct group *group)
{
    return &kg_bundle_facts_info[group->statements[0]->fact];
}

static bool is_silent(const struct group *group, int role)
{
    return group->facts->odd[role] & info_of(group)->silenced_by;
}

static const char *subject_words(const struct group *group)
{
    char words[128];
    const struct kg_bundle_statement *first = group->statements[0];
    snprintf(words, sizeof words, info_of(group)->words, first->subject);
    char *copy = kg_arena_copy(group->facts->arena, words, strlen(words));
    return copy ? copy : "";
}

static bool are_equal(const char *a, const char *b)
{
    return !a || !b || strcmp(a, b) == 0;
}

// Which files say so, as bits.
static unsigned who_says(const struct group *group, const char *value)
{
    unsigned roles = 0;
    for (int i = 0; i < group->count; i++)
        if (group->statements[i]->value && strcmp(group->statements[i]->value, value) == 0)
            roles |= 1u << group->statements[i]->role;
    return roles;
}

static int weight_of(unsigned roles)
{
    int weight = 16 * __builtin_popcount(roles);
    if (roles & 1u << KG_BUNDLE_DEFINITION)
        weight += 1 << 10;
    for (int i = 0; i < KG_BUNDLE_SOURCES; i++)
        if (roles & 1u << authority[i])
            return weight + KG_BUNDLE_SOURCES - i;
    return weight;
}

// The value that counts; NULL: nobody states one that is understood.
static const char *choose(const struct group *group)
{
    const char *best = NULL, *last = NULL;
    int weight = -1;
    for (int i = 0; i < group->count; i++) {
        const char *value = group->statements[i]->value;
        if (!value || is_silent(group, group->statements[i]->role) ||
            (last && strcmp(value, last) == 0))
            continue;
        int found = weight_of(who_says(group, value));
        last = value;
        if (found > weight) {
            best = value;
            weight = found;
        }
    }
    return best;
}

// The statement that others are measured by.
static const struct kg_bundle_statement *witness(const struct group *group, const char *value)
{
    const struct kg_bundle_statement *words = NULL;
    for (int a = 0; a < KG_BUNDLE_SOURCES; a++)
        for (int i = 0; i < group->count; i++) {
            const struct kg_bundle_statement *one = group->statements[i];
            if (one->role != authority[a] || !one->value || strcmp(one->value, value) != 0)
                continue;
            if (one->is_code)
                return one;
            words = words ? words : one;
        }
    return words;
}

static void add_finding(const struct group *group, int role, struct kg_python_place place,
                        const struct kg_bundle_statement *other, const char *message)
{
    enum kg_bundle_fact fact = group->statements[0]->fact;
    group->facts->odd[role] |= 1u << fact;
    kg_bundle_find(group->facts, (struct kg_bundle_finding){
                                     .role = role,
                                     .place = place,
                                     .message = message ? message : "",
                                     .advice = info_of(group)->advice,
                                     .other_role = other->role,
                                     .other_place = other->place,
                                     .fact = fact,
                                 });
}

static void report(const struct group *group, const struct kg_bundle_statement *odd,
                   const struct kg_bundle_statement *right)
{
    const char *path = group->facts->sources[right->role].path;
    add_finding(group, odd->role, odd->place, right,
                kg_arena_format(group->facts->arena, "%s is %s here, and %s in %s",
                                subject_words(group), odd->shown, right->shown, path));
}

// Files agree among themselves, and the definition says something else: it has moved on, or they
// were all edited. Said once.
static bool report_definition(const struct group *group, const struct kg_bundle_statement *right)
{
    const char *value = NULL;
    const struct kg_bundle_statement *odd = NULL;
    if (right->role != KG_BUNDLE_DEFINITION)
        return false;
    for (int i = 0; i < group->count; i++) {
        const struct kg_bundle_statement *one = group->statements[i];
        if (one->role == KG_BUNDLE_DEFINITION || !one->value)
            continue;
        if (value && strcmp(value, one->value) != 0)
            return false;
        value = one->value;
        odd = !odd || (one->role == KG_BUNDLE_BASELINE && odd->role != one->role) ? one : odd;
    }
    if (!odd || strcmp(value, right->value) == 0)
        return false;
    report(group, odd, right);
    struct kg_bundle_facts *facts = group->facts;
    if (facts->finding_count)
        facts->findings[facts->finding_count - 1].is_definition = true;
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        facts->odd[role] |= 1u << odd->fact;
    return true;
}

static bool states(const struct group *group, int role)
{
    for (int i = 0; i < group->count; i++)
        if (group->statements[i]->role == role && group->statements[i]->is_code)
            return true;
    return false;
}

static bool is_readable(const struct kg_bundle_facts *facts, int role)
{
    return facts->sources[role].given && facts->sources[role].lines.count > 0;
}

// Where one would look for what is missing: at the function's name, or at the top.
static struct kg_python_place place_of_file(const struct kg_bundle_facts *facts, int role)
{
    for (int i = 0; i < facts->statement_count; i++)
        if (facts->statements[i].fact == KG_FACT_NAME && facts->statements[i].role == role)
            return facts->statements[i].place;
    return (struct kg_python_place){0, 1};
}

static void report_absence(const struct group *group, const struct kg_bundle_statement *right)
{
    struct kg_bundle_facts *facts = group->facts;
    unsigned needed = info_of(group)->needed, stated = 0;
    for (int i = 0; i < group->count; i++)
        stated |= 1u << group->statements[i]->role;
    // What one file has alone is its own affair: a constant of a kernel.
    bool is_shared = __builtin_popcount(stated) > 1 || right->fact != KG_FACT_CONSTANT;
    for (int role = 0; role < KG_BUNDLE_COUNT && is_shared; role++) {
        if (!(needed & 1u << role) || !is_readable(facts, role) || is_silent(group, role) ||
            states(group, role))
            continue;
        add_finding(group, role, place_of_file(facts, role), right,
                    kg_arena_format(facts->arena, "%s is missing here, and is %s in %s",
                                    subject_words(group), right->shown,
                                    facts->sources[right->role].path));
    }
    bool is_removed = facts->sources[KG_BUNDLE_DEFINITION].given && right->fact == KG_FACT_CONSTANT;
    if (is_removed && is_shared && !(stated & 1u << KG_BUNDLE_DEFINITION)) {
        kg_bundle_find(
            facts, (struct kg_bundle_finding){
                       .role = right->role,
                       .place = right->place,
                       .message = kg_arena_format(facts->arena, "the definition no longer has %s",
                                                  subject_words(group)),
                       .advice = info_of(group)->advice,
                       .other_role = -1,
                       .is_definition = true,
                       .fact = right->fact,
                   });
    }
}

static void agree(const struct group *group)
{
    const char *value = choose(group);
    if (!value)
        return;
    const struct kg_bundle_statement *right = witness(group, value);
    if (!report_definition(group, right))
        for (int i = 0; i < group->count; i++) {
            const struct kg_bundle_statement *one = group->statements[i];
            if (!are_equal(one->value, value) && !is_silent(group, one->role))
                report(group, one, right);
        }
    report_absence(group, right);
}

// ---- Groups

static int compare_statements(const void *a, const void *b)
{
    const struct kg_bundle_statement *one = *(const struct kg_bundle_statement *const *)a;
    const struct kg_bundle_statement *other = *(const struct kg_bundle_statement *const *)b;
    if (one->fact != other->fact)
        return one->fact < other->fact ? -1 : 1;
    int order = strcmp(one->subject, other->subject);
    if (order)
        return order;
    order = strcmp(one->value ? one->value : "", other->value ? other->value : "");
    return order ? order : one < other ? -1 : one > other;
}

static int compare_findings(const void *a, const void *b)
{
    const struct kg_bundle_finding *one = a, *other = b;
    if (one->role != other->role)
        return one->role < other->role ? -1 : 1;
    if (one->place.at != other->place.at)
        return one->place.at < other->place.at ? -1 : 1;
    return one->fact < other->fact ? -1 : one->fact > other->fact;
}

void kg_bundle_agree(struct kg_bundle_facts *facts)
{
    int count = facts->statement_count;
    const struct kg_bundle_statement **sorted =
        KG_NEW_ARRAY(facts->arena, count + 1, const struct kg_bundle_statement *);
    if (!sorted)
        return;
    for (int i = 0; i < count; i++)
        sorted[i] = &facts->statements[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare_statements);
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count; end++)
            if (sorted[end]->fact != sorted[first]->fact ||
                strcmp(sorted[end]->subject, sorted[first]->subject) != 0)
                break;
        struct group group = {facts, sorted + first, end - first};
        agree(&group);
    }
    if (facts->finding_count > 0) // else there is no array, and qsort takes no null pointer
        qsort(facts->findings, (size_t)facts->finding_count, sizeof *facts->findings,
              compare_findings);
}
