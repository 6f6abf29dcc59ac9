// Listing groupings: see grouping.h.
//
// Expected times of groups add up, since kernels run one after the other: so the best grouping of
// the nests from i on is the best first group plus the best grouping of what follows it, and going
// backward over the nests finds it without listing all 2^(n-1).

#include "gen/grouping.h"

#include "gen/shared/contract_operands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const kg_grouping_names[KG_GROUPING_COUNT] = {
    [KG_GROUPING_RULE] = "by rule",
    [KG_GROUPING_EXPECTED] = "least expected",
    [KG_GROUPING_FITTED] = "least expected of fitted families",
    [KG_GROUPING_PRODUCTS] = "products apart",
    [KG_GROUPING_SINGLE] = "nest by nest",
    [KG_GROUPING_PLAIN] = "plain loops",
};

// A grouping replaces the rule's only if its expected time is shorter by this margin. The smaller
// margin holds if plain loops are expected to be faster than the rule's grouping, so that no plan
// is slower than they are. Expected times are not accurate enough for less: on two cores of Zen 5
// beside other builds, splits of four row operators in bf16 were expected to gain 12 to 57 % and
// took 12 to 170 % longer. Families whose expected times are fitted need less: of 148 products
// drawn by seeds, what was expected to be the fastest had 0.98 of the speed of the fastest
// (docs/model.md).
#define MIN_GAIN 0.25
#define MIN_GAIN_OVER_PLAIN 0.05
#define MIN_GAIN_OF_FITTED 0.06

struct lister {
    const struct kg_problem *problem;
    const struct kg_device_facts *facts;
    const struct kg_target *target;
    struct kg_text *trace;
    // By first nest and count - 1; NULL: no family has an expected time.
    struct {
        const struct kg_match *match;
        struct kg_config config;
        double seconds;
    } best[KG_MAX_NESTS];
};

static double expected_of(const struct kg_match *match, const struct kg_config *config)
{
    return match->family->expected ? match->family->expected(match, config) : 0;
}

// Whether the family's guess is valid, so that it may be taken.
static bool guess_of(const struct kg_match *match, struct kg_config *config)
{
    struct kg_text ignored = {0};
    match->family->guess(match, config);
    bool valid = match->family->valid(match, config, &ignored);
    kg_text_free(&ignored);
    return valid;
}

// ---- By rule ----

// The last line of the trace: forms of a family that refuse a group for the same reason share it.
struct refusal {
    const char *form;
    struct kg_text reason;
    size_t line; // where it begins
};

static bool is_same_refusal(const struct refusal *last, const char *form, const char *reason)
{
    const char *slash = strchr(form, '/');
    return slash && last->form && strncmp(last->form, form, (size_t)(slash - form) + 1) == 0 &&
           strcmp(kg_text_string(&last->reason), reason) == 0;
}

static void trace_refusal(const struct lister *lister, const struct kg_group *group,
                          const char *form, const char *reason, struct refusal *last)
{
    const struct kg_nest *const *nests = &group->problem->nests[group->first];
    int length = (int)strlen(form);
    if (is_same_refusal(last, form, reason)) {
        kg_text_cut(lister->trace, last->line);
        length = (int)strcspn(form, "/");
    }
    last->form = form;
    last->line = lister->trace->length;
    kg_text_cut(&last->reason, 0);
    kg_text_add(&last->reason, reason);
    kg_text_format(lister->trace, "%s", nests[0]->output->name);
    if (group->count > 1)
        kg_text_format(lister->trace, "..%s", nests[group->count - 1]->output->name);
    kg_text_format(lister->trace, ": not %.*s: %s\n", length, form, reason);
}

static const struct kg_match *find_advised(const struct lister *lister,
                                           const struct kg_group *group)
{
    struct refusal last = {.form = NULL};
    const struct kg_match *match = NULL;
    for (const struct kg_family *const *family = lister->target->families; *family && !match;
         family++) {
        struct kg_text reason = {0};
        match = kg_match_find(*family, group, lister->facts, lister->trace ? &reason : NULL);
        if (match && !kg_match_is_advised(match, &reason))
            match = NULL;
        if (!match && lister->trace)
            trace_refusal(lister, group, (*family)->name, kg_text_string(&reason), &last);
        kg_text_free(&reason);
    }
    kg_text_free(&last.reason);
    return match;
}

// Takes, from the first nest on, the longest group that some family is advised to take; families in
// the order of the target's table.
static bool choose_by_rule(const struct lister *lister, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    for (int first = 0; first < lister->problem->nest_count;) {
        struct kg_group group = {lister->problem, first, lister->problem->nest_count - first};
        const struct kg_match *match = find_advised(lister, &group);
        while (!match && group.count > 1) {
            group.count--;
            match = find_advised(lister, &group);
        }
        if (!match)
            return false;
        match->family->guess(match, &choice->configs[choice->count]);
        choice->matches[choice->count++] = match;
        first += group.count;
    }
    return true;
}

void kg_choice_plain(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice)
{
    *choice = (struct kg_choice){0};
    for (int first = 0; first < problem->nest_count; first++) {
        const struct kg_group group = {problem, first, 1};
        const struct kg_match *match = kg_match_find(target->plain, &group, facts, NULL);
        if (!match) {
            choice->count = 0;
            return;
        }
        match->family->guess(match, &choice->configs[first]);
        choice->matches[choice->count++] = match;
    }
}

// ---- By expected times ----

// The family with the shortest expected time for the group, of all or of those that are fitted; 0
// seconds if none is known.
static double find_least(const struct lister *lister, const struct kg_group *group, bool of_fitted,
                         const struct kg_match **least, struct kg_config *config)
{
    double seconds = 0;
    *least = NULL;
    for (const struct kg_family *const *family = lister->target->families; *family; family++) {
        bool is_known = (*family)->expected && (!of_fitted || (*family)->is_fitted);
        const struct kg_match *match =
            is_known ? kg_match_find(*family, group, lister->facts, NULL) : NULL;
        struct kg_config guess;
        if (!match || !guess_of(match, &guess))
            continue;
        double expected = expected_of(match, &guess);
        if (expected > 0 && (!*least || expected < seconds)) {
            *least = match;
            *config = guess;
            seconds = expected;
        }
    }
    return seconds;
}

static bool has_product(const struct kg_group *group)
{
    return kg_contract_is_in(group);
}

// How long the group [first, first + count) may be for this kind of grouping.
static bool is_allowed(const struct kg_group *group, enum kg_grouping_kind kind)
{
    if (kind == KG_GROUPING_SINGLE)
        return group->count == 1;
    return kind != KG_GROUPING_PRODUCTS || group->count == 1 || !has_product(group);
}

// Returns false if the time of every such grouping is unknown.
static bool choose_expected(struct lister *lister, enum kg_grouping_kind kind,
                            struct kg_choice *choice)
{
    const int nests = lister->problem->nest_count;
    double from[KG_MAX_NESTS + 1]; // shortest time of all nests from here on
    from[nests] = 0;
    for (int first = nests - 1; first >= 0; first--) {
        from[first] = INFINITY;
        for (int count = nests - first; count > 0; count--) {
            struct kg_group group = {lister->problem, first, count};
            const struct kg_match *match;
            struct kg_config config;
            if (!is_allowed(&group, kind) || isinf(from[first + count]))
                continue;
            double seconds =
                find_least(lister, &group, kind == KG_GROUPING_FITTED, &match, &config);
            if (match && seconds + from[first + count] < from[first]) {
                from[first] = seconds + from[first + count];
                lister->best[first].match = match;
                lister->best[first].config = config;
            }
        }
    }
    *choice = (struct kg_choice){0};
    if (isinf(from[0]))
        return false;
    for (int first = 0; first < nests;) {
        choice->configs[choice->count] = lister->best[first].config;
        choice->matches[choice->count++] = lister->best[first].match;
        first += lister->best[first].match->group.count;
    }
    return true;
}

// ---- The list ----

static bool same_choice(const struct kg_choice *a, const struct kg_choice *b)
{
    if (a->count != b->count)
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->matches[i] != b->matches[i] ||
            memcmp(&a->configs[i], &b->configs[i], sizeof a->configs[i]) != 0)
            return false;
    return true;
}

static void add(struct kg_groupings *groupings, enum kg_grouping_kind kind,
                const struct kg_choice *choice)
{
    for (int i = 0; i < groupings->count; i++) {
        if (!same_choice(&groupings->options[i].choice, choice))
            continue;
        if (i > 0 && kind == KG_GROUPING_PLAIN)
            groupings->options[i].kind = kind;
        return;
    }
    struct kg_grouping_option *option = &groupings->options[groupings->count++];
    option->kind = kind;
    option->choice = *choice;
    option->expected = kg_choice_expected(choice);
}

// Whether the choices differ only in which of the fitted families take the groups.
static bool are_fitted(const struct kg_choice *a, const struct kg_choice *b)
{
    if (!kg_choice_has_same_groups(a, b))
        return false;
    for (int i = 0; i < a->count; i++)
        if (a->matches[i] != b->matches[i] &&
            !(a->matches[i]->family->is_fitted && b->matches[i]->family->is_fitted))
            return false;
    return true;
}

static bool gains(const struct kg_grouping_option *option, const struct kg_grouping_option *rule,
                  double margin)
{
    return option->expected > 0 && option->expected < (1 - margin) * rule->expected;
}

// The shortest expected time wins, by a margin over the rule, which is listed first. If the rule's
// time is unknown it cannot be compared, and is kept.
static int choose(const struct kg_groupings *groupings)
{
    const struct kg_grouping_option *rule = &groupings->options[0], *best = rule;
    double margin = MIN_GAIN;
    for (int i = 1; i < groupings->count; i++)
        if (groupings->options[i].kind == KG_GROUPING_PLAIN &&
            gains(&groupings->options[i], rule, MIN_GAIN_OVER_PLAIN))
            margin = MIN_GAIN_OVER_PLAIN;
    for (int i = 1; i < groupings->count; i++) {
        const struct kg_grouping_option *option = &groupings->options[i];
        bool is_fitted = are_fitted(&option->choice, &rule->choice);
        if (gains(option, rule, is_fitted ? fmin(MIN_GAIN_OF_FITTED, margin) : margin) &&
            option->expected < best->expected)
            best = option;
    }
    return (int)(best - rule);
}

bool kg_groupings_list(const struct kg_problem *problem, const struct kg_device_facts *facts,
                       const struct kg_target *target, struct kg_groupings *groupings,
                       struct kg_text *trace)
{
    struct lister lister = {.problem = problem, .facts = facts, .target = target, .trace = trace};
    struct kg_choice choice;
    *groupings = (struct kg_groupings){0};
    if (!choose_by_rule(&lister, &choice))
        return false;
    add(groupings, KG_GROUPING_RULE, &choice);
    // One nest has one grouping.
    int last = problem->nest_count > 1 ? KG_GROUPING_SINGLE : KG_GROUPING_FITTED;
    for (int kind = KG_GROUPING_EXPECTED; kind <= last; kind++)
        if (choose_expected(&lister, (enum kg_grouping_kind)kind, &choice))
            add(groupings, (enum kg_grouping_kind)kind, &choice);
    kg_choice_plain(problem, facts, target, &choice);
    if (choice.count == 0)
        return problem->nest_count == 0;
    add(groupings, KG_GROUPING_PLAIN, &choice);
    groupings->chosen = choose(groupings);
    return true;
}

void kg_choice_guess(const struct kg_problem *problem, const struct kg_device_facts *facts,
                     const struct kg_target *target, struct kg_choice *choice)
{
    struct kg_groupings groupings;
    *choice = (struct kg_choice){0};
    if (kg_groupings_list(problem, facts, target, &groupings, NULL))
        *choice = groupings.options[groupings.chosen].choice;
}

// ---- Beside a choice ----

struct regrouping {
    struct lister lister;
    const struct kg_choice *from;
    struct kg_choice *others;
    int count;
};

static void add_other(struct regrouping *regrouping, const struct kg_choice *choice)
{
    if (choice->count == 0 || kg_choice_has_same_groups(choice, regrouping->from) ||
        regrouping->count == KG_MAX_REGROUPINGS)
        return;
    for (int i = 0; i < regrouping->count; i++)
        if (same_choice(&regrouping->others[i], choice))
            return;
    regrouping->others[regrouping->count++] = *choice;
}

static bool append(const struct lister *lister, int first, int count, struct kg_choice *choice)
{
    const struct kg_group group = {lister->problem, first, count};
    const struct kg_match *match;
    struct kg_config config;
    find_least(lister, &group, false, &match, &config);
    if (!match) {
        match = find_advised(lister, &group);
        if (!match || !guess_of(match, &config))
            return false;
    }
    choice->configs[choice->count] = config;
    choice->matches[choice->count++] = match;
    return true;
}

// `from` with groups [at, at + replaced) replaced by one or two groups of nests; `cut`, nests of
// the first of two, is 0 for one.
static void replace_groups(struct regrouping *regrouping, int at, int replaced, int cut)
{
    const struct kg_choice *from = regrouping->from;
    struct kg_choice choice = {.count = at};
    memcpy(choice.matches, from->matches, sizeof choice.matches);
    memcpy(choice.configs, from->configs, sizeof choice.configs);
    int first = from->matches[at]->group.first, nests = 0;
    for (int i = at; i < at + replaced; i++)
        nests += from->matches[i]->group.count;
    bool fits = cut > 0 ? append(&regrouping->lister, first, cut, &choice) &&
                              append(&regrouping->lister, first + cut, nests - cut, &choice)
                        : append(&regrouping->lister, first, nests, &choice);
    for (int i = at + replaced; i < from->count && fits; i++) {
        choice.matches[choice.count] = from->matches[i];
        choice.configs[choice.count++] = from->configs[i];
    }
    if (fits)
        add_other(regrouping, &choice);
}

int kg_groupings_beside(const struct kg_problem *problem, const struct kg_device_facts *facts,
                        const struct kg_target *target, const struct kg_choice *choice,
                        struct kg_choice others[KG_MAX_REGROUPINGS])
{
    struct regrouping regrouping = {
        .lister = {.problem = problem, .facts = facts, .target = target},
        .from = choice,
        .others = others,
    };
    struct kg_groupings *groupings = malloc(sizeof *groupings);
    if (groupings && kg_groupings_list(problem, facts, target, groupings, NULL))
        for (int i = 0; i < groupings->count; i++)
            add_other(&regrouping, &groupings->options[i].choice);
    free(groupings);
    for (int i = 0; i + 1 < choice->count; i++)
        replace_groups(&regrouping, i, 2, 0);
    for (int i = 0; i < choice->count; i++)
        for (int cut = 1; cut < choice->matches[i]->group.count; cut++)
            replace_groups(&regrouping, i, 1, cut);
    return regrouping.count;
}
