// Groupings: which ones are listed, which one is chosen, and that no other grouping is expected to
// be faster than the one that claims so. Families and their times are made up; the definition is
// not: two products with a formula between them.

#include "hopper_unit.h"

#include "gen/families.h"
#include "gen/grouping.h"
#include "support/sample_problem.h"
#include "test.h"

#include <math.h>

static const char layers[] =
    "op layers(x: f32[M, K], w: f32[K, N], v: f32[N, L]) -> (y: f32[M, L])\n"
    "{ h[m, n] = sum(k) x[m, k] * w[k, n]\n"
    "  g[m, n] = relu(h[m, n])\n"
    "  y[m, l] = sum(n) g[m, n] * v[n, l] }\n";

enum { NESTS = 3, FORMS = 2, ALL_FORMS = 4 };

// What a made-up family makes of the nests [first, first + count).
static struct row {
    bool fits, advised;
    double seconds; // 0: not known
} table[ALL_FORMS][NESTS][NESTS + 1];

static struct row *row_of(const struct kg_family *family, const struct kg_group *group);

static const void *match_row(const struct kg_family *family, const struct kg_group *group,
                             struct kg_text *reason)
{
    if (row_of(family, group)->fits)
        return group;
    kg_text_format(reason, "not %d of them", group->count);
    return NULL;
}

static bool is_advised(const struct kg_match *match, struct kg_text *reason)
{
    if (row_of(match->family, &match->group)->advised)
        return true;
    kg_text_add(reason, "not by rule");
    return false;
}

static void space_of(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    *space = (struct kg_space){0};
}

static bool is_valid(const struct kg_match *match, const struct kg_config *config,
                     struct kg_text *reason)
{
    (void)match, (void)config, (void)reason;
    return true;
}

static void guess_of(const struct kg_match *match, struct kg_config *config)
{
    (void)match;
    *config = (struct kg_config){0};
}

static double expected_of(const struct kg_match *match, const struct kg_config *config)
{
    (void)config;
    return row_of(match->family, &match->group)->seconds;
}

#define FAMILY(NAME, IS_FITTED)                                                                    \
    static const void *match_##NAME(const struct kg_group *group,                                  \
                                    const struct kg_device_facts *facts, struct kg_arena *arena,   \
                                    struct kg_text *reason);                                       \
    static const struct kg_family NAME = {.name = #NAME,                                           \
                                          .match = match_##NAME,                                   \
                                          .advised = is_advised,                                   \
                                          .space = space_of,                                       \
                                          .valid = is_valid,                                       \
                                          .guess = guess_of,                                       \
                                          .bound = expected_of,                                    \
                                          .expected = expected_of,                                 \
                                          .is_fitted = IS_FITTED};                                 \
    static const void *match_##NAME(const struct kg_group *group,                                  \
                                    const struct kg_device_facts *facts, struct kg_arena *arena,   \
                                    struct kg_text *reason)                                        \
    {                                                                                              \
        (void)facts, (void)arena;                                                                  \
        return match_row(&NAME, group, reason);                                                    \
    }
FAMILY(fused, false)
FAMILY(loops, false) // the plain one: takes any single nest
FAMILY(tiles, true)
FAMILY(lanes, true)

static struct row *row_of(const struct kg_family *family, const struct kg_group *group)
{
    int form = family == &lanes ? 3 : family == &tiles ? 2 : family == &loops;
    return &table[form][group->first][group->count];
}

static const struct kg_family *const families[] = {&fused, &tiles, &lanes, &loops, NULL};
static const struct kg_target target = {.name = "made up", .families = families, .plain = &loops};
static const struct kg_device_facts facts = {.units = 4};

// Plain loops of a second a nest, and a family that takes nothing yet.
static void clear(void)
{
    memset(table, 0, sizeof table);
    for (int first = 0; first < NESTS; first++)
        table[1][first][1] = (struct row){true, true, 1.0};
}

static void fuse(int first, int count, bool advised, double seconds)
{
    table[0][first][count] = (struct row){true, advised, seconds};
}

static const struct kg_grouping_option *option_of(const struct kg_groupings *groupings,
                                                  enum kg_grouping_kind kind)
{
    for (int i = 0; i < groupings->count; i++)
        if (groupings->options[i].kind == kind)
            return &groupings->options[i];
    return NULL;
}

// "fused*2 loops", of an option; "none" where it is not listed.
static void check_option(const struct kg_groupings *groupings, enum kg_grouping_kind kind,
                         const char *wanted, double expected)
{
    const struct kg_grouping_option *option = option_of(groupings, kind);
    struct kg_text text = {0};
    for (int i = 0; option && i < option->choice.count; i++) {
        const struct kg_match *match = option->choice.matches[i];
        kg_text_format(&text, "%s%s", i ? " " : "", match->family->name);
        if (match->group.count > 1)
            kg_text_format(&text, "*%d", match->group.count);
    }
    CHECK_TEXT(option ? kg_text_string(&text) : "none", wanted);
    CHECK(!option || fabs(option->expected - expected) < 1e-9);
    kg_text_free(&text);
}

// Of a new problem, since readings are kept with it.
static struct kg_groupings list(struct made *made, struct kg_text *trace)
{
    struct kg_groupings groupings;
    *made = make(layers, "M=8 N=16 K=32 L=64");
    CHECK_STATUS(made->status, KG_OK, &made->error);
    CHECK(made->problem->nest_count == NESTS);
    CHECK(kg_groupings_list(made->problem, &facts, &target, &groupings, trace));
    return groupings;
}

static void several_are_listed(void)
{
    struct made made;
    struct kg_text trace = {0};
    clear();
    fuse(0, 2, true, 1.2); // by rule the first product takes the formula along
    fuse(1, 2, false, 0.9);
    fuse(2, 1, false, 0.8);
    fuse(0, 1, false, 0.7);
    struct kg_groupings groupings = list(&made, &trace);
    CHECK(groupings.count == 4 && groupings.options[0].kind == KG_GROUPING_RULE);
    check_option(&groupings, KG_GROUPING_RULE, "fused*2 loops", 2.2);
    check_option(&groupings, KG_GROUPING_EXPECTED, "fused fused*2", 1.6);
    check_option(&groupings, KG_GROUPING_PRODUCTS, "fused loops fused", 2.5);
    check_option(&groupings, KG_GROUPING_SINGLE, "none", 0); // the same
    check_option(&groupings, KG_GROUPING_PLAIN, "loops loops loops", 3);
    CHECK(groupings.options[groupings.chosen].kind == KG_GROUPING_EXPECTED);
    CHECK(strstr(kg_text_string(&trace), "h..y: not fused: not 3 of them\n") != NULL);
    CHECK(strstr(kg_text_string(&trace), "y: not fused: not by rule\n") != NULL);
    kg_text_free(&trace);
    unmake(&made);
}

// The rule may merge what is no product, and keep products apart.
static void products_stand_apart(void)
{
    struct made made;
    clear();
    fuse(0, 3, true, 0.1);
    fuse(0, 1, false, 0.9);
    struct kg_groupings groupings = list(&made, NULL);
    check_option(&groupings, KG_GROUPING_RULE, "fused*3", 0.1);
    check_option(&groupings, KG_GROUPING_PRODUCTS, "fused loops loops", 2.9);
    CHECK(groupings.chosen == 0);
    unmake(&made);
}

static void what_is_not_known_is_left_to_the_rule(void)
{
    struct made made;
    clear();
    fuse(0, 2, true, 0); // the rule's is not known: nothing can be compared
    fuse(1, 2, false, 0.01);
    struct kg_groupings groupings = list(&made, NULL);
    check_option(&groupings, KG_GROUPING_RULE, "fused*2 loops", 0);
    check_option(&groupings, KG_GROUPING_EXPECTED, "loops fused*2", 1.01);
    CHECK(groupings.chosen == 0);
    struct kg_choice choice;
    kg_choice_guess(made.problem, &facts, &target, &choice);
    CHECK(choice.count == 2 && choice.matches[0]->group.count == 2);
    unmake(&made);

    clear();
    table[1][1][1].seconds = 0; // of the formula nobody says, nor of what it could be part of
    fuse(0, 1, true, 0.5);
    groupings = list(&made, NULL);
    CHECK(groupings.chosen == 0 && groupings.count == 2);
    check_option(&groupings, KG_GROUPING_RULE, "fused loops loops", 0);
    check_option(&groupings, KG_GROUPING_EXPECTED, "none", 0);
    check_option(&groupings, KG_GROUPING_PLAIN, "loops loops loops", 0);
    unmake(&made);
}

// An eighth is less than times are known to; a quarter is not.
static void little_is_no_gain(void)
{
    static const struct {
        double seconds;
        bool gains;
    } cases[] = {{1.99, false}, {1.6, false}, {1.2, true}};
    for (int i = 0; i < 3; i++) {
        struct made made;
        clear();
        fuse(0, 2, true, 2);
        fuse(1, 2, false, cases[i].seconds);
        struct kg_groupings groupings = list(&made, NULL);
        check_option(&groupings, KG_GROUPING_EXPECTED, "loops fused*2", 1 + cases[i].seconds);
        CHECK((groupings.chosen > 0) == cases[i].gains);
        unmake(&made);
    }
}

// Plain loops that are expected to take least of all keep their name, and their margin.
static void plain_loops_need_gain_little(void)
{
    struct made made;
    clear();
    fuse(0, 1, true, 1.3);
    struct kg_groupings groupings = list(&made, NULL);
    check_option(&groupings, KG_GROUPING_RULE, "fused loops loops", 3.3);
    check_option(&groupings, KG_GROUPING_PLAIN, "loops loops loops", 3);
    CHECK(groupings.count == 2 && groupings.chosen == 1);
    unmake(&made);
}

// Families whose times are fitted replace each other for a small gain, even if another one, whose
// times are not, promises more; that one needs the usual margin.
static void fitted_ones_need_gain_little(void)
{
    static const struct {
        double lanes, fused;
        int chosen; // the group's form
    } cases[] = {{0.93, 2, 3}, {0.96, 2, 2}, {0.93, 0.9, 3}, {0.96, 0.8, 2}, {0.96, 0.7, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made made;
        clear();
        for (int first = 0; first < NESTS; first++) {
            table[1][first][1].seconds = 9;
            table[2][first][1] = (struct row){true, true, 1};
            table[3][first][1] = (struct row){true, false, cases[i].lanes};
            fuse(first, 1, false, cases[i].fused);
        }
        struct kg_groupings groupings = list(&made, NULL);
        check_option(&groupings, KG_GROUPING_RULE, "tiles tiles tiles", 3);
        const struct kg_choice *choice = &groupings.options[groupings.chosen].choice;
        static const struct kg_family *const forms[] = {&fused, &loops, &tiles, &lanes};
        const struct kg_family *wanted = forms[cases[i].chosen];
        CHECK(choice->matches[0]->family == wanted);
        unmake(&made);
    }
}

static void equal_ones_are_listed_once(void)
{
    struct made made;
    clear();
    struct kg_groupings groupings = list(&made, NULL);
    CHECK(groupings.count == 1 && groupings.chosen == 0);
    check_option(&groupings, KG_GROUPING_RULE, "loops loops loops", 3);
    unmake(&made);
    clear();
    fuse(1, 1, false, 0.5);
    groupings = list(&made, NULL);
    CHECK(groupings.count == 2);
    check_option(&groupings, KG_GROUPING_EXPECTED, "loops fused loops", 2.5);
    unmake(&made);
}

// ---- Against all groupings there are ----

static uint64_t state = 88172645463325252u;

static int draw(int below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)below);
}

// Of the better family; INFINITY where none says.
static double seconds_of(int first, int count)
{
    double least = INFINITY;
    for (int form = 0; form < FORMS; form++) {
        const struct row *row = &table[form][first][count];
        least = row->fits && row->seconds > 0 ? fmin(least, row->seconds) : least;
    }
    return least;
}

// The least seconds of all ways to cut: bit i of `cuts` cuts behind nest i. Products are 0 and 2.
static double least_of_all(enum kg_grouping_kind kind)
{
    double least = INFINITY;
    for (int cuts = 0; cuts < 1 << (NESTS - 1); cuts++) {
        double sum = 0;
        for (int first = 0, count; first < NESTS; first += count) {
            for (count = 1; first + count < NESTS && !(cuts >> (first + count - 1) & 1); count++)
                continue;
            bool allowed = kind == KG_GROUPING_EXPECTED || count == 1;
            sum += allowed ? seconds_of(first, count) : INFINITY;
        }
        least = fmin(least, sum);
    }
    return least;
}

static void draw_table(void)
{
    clear();
    for (int first = 0; first < NESTS; first++) {
        table[1][first][1].seconds = draw(8) == 0 ? 0 : 0.1 * (1 + draw(30));
        for (int count = 1; first + count <= NESTS; count++)
            table[0][first][count] =
                (struct row){.fits = draw(3) > 0,
                             .advised = draw(2) == 0,
                             .seconds = draw(6) == 0 ? 0 : 0.1 * (1 + draw(60))};
    }
}

static void check_drawn(const struct kg_groupings *groupings)
{
    const struct kg_grouping_option *chosen = &groupings->options[groupings->chosen];
    const double rule = groupings->options[0].expected, best = least_of_all(KG_GROUPING_EXPECTED);
    bool has_best = isinf(best), has_single = isinf(least_of_all(KG_GROUPING_SINGLE));
    CHECK(groupings->options[0].kind == KG_GROUPING_RULE);
    for (int i = 0; i < groupings->count; i++) {
        const struct kg_grouping_option *option = &groupings->options[i];
        CHECK(fabs(option->expected - kg_choice_expected(&option->choice)) < 1e-9);
        CHECK(option->expected == 0 || option->expected > best - 1e-9);
        has_best |= fabs(option->expected - best) < 1e-9;
        has_single |= fabs(option->expected - least_of_all(KG_GROUPING_SINGLE)) < 1e-9;
        int nests = 0;
        for (int g = 0; g < option->choice.count; g++) {
            CHECK(option->choice.matches[g]->group.first == nests);
            nests += option->choice.matches[g]->group.count;
        }
        CHECK(nests == NESTS);
        for (int k = 0; k < i; k++) { // each once
            const struct kg_choice *a = &option->choice, *b = &groupings->options[k].choice;
            CHECK(a->count != b->count ||
                  memcmp(a->matches, b->matches, (size_t)a->count * sizeof *a->matches) != 0);
        }
    }
    CHECK(has_best && has_single);
    // The rule's, or something that is expected to be faster.
    CHECK(rule > 0 ? chosen->expected > 0 && chosen->expected <= rule : chosen->expected == 0);
    CHECK(!(rule > 0) || chosen->expected <= best / 0.75 + 1e-9);
}

static void none_is_faster(void)
{
    for (int round = 0; round < 300; round++) {
        struct made made;
        draw_table();
        struct kg_groupings groupings = list(&made, NULL);
        check_drawn(&groupings);
        unmake(&made);
    }
}

// Beside drawn choices: other groupings alone, each once, all merges and cuts that fit among them.
static void others_stand_beside_a_choice(void)
{
    static struct kg_choice others[KG_MAX_REGROUPINGS];
    for (int round = 0; round < 300; round++) {
        struct made made;
        draw_table();
        struct kg_groupings groupings = list(&made, NULL);
        const struct kg_choice *from = &groupings.options[draw(groupings.count)].choice;
        int count = kg_groupings_beside(made.problem, &facts, &target, from, others);
        bool fits[1 << (NESTS - 1)] = {false}; // by cuts
        for (int i = 0; i < count; i++) {
            int nests = 0, cuts = 0;
            for (int g = 0; g < others[i].count; g++) {
                const struct kg_match *match = others[i].matches[g];
                CHECK(match->group.first == nests && row_of(match->family, &match->group)->fits);
                nests += match->group.count;
                cuts |= nests < NESTS ? 1 << (nests - 1) : 0;
            }
            CHECK(nests == NESTS && !kg_choice_has_same_groups(&others[i], from));
            fits[cuts] = true;
            for (int k = 0; k < i; k++)
                CHECK(others[i].count != others[k].count ||
                      memcmp(others[i].matches, others[k].matches,
                             (size_t)others[i].count * sizeof *others[i].matches) != 0);
        }
        int own = 0;
        for (int g = 0, nests = 0; g + 1 < from->count; g++) {
            nests += from->matches[g]->group.count;
            own |= 1 << (nests - 1);
        }
        for (int at = 0; at + 1 < NESTS; at++) { // one cut more or less
            int cuts = own ^ 1 << at;
            bool possible = true;
            for (int first = 0, size; first < NESTS; first += size) {
                for (size = 1; first + size < NESTS && !(cuts >> (first + size - 1) & 1); size++)
                    continue;
                const struct row *row = &table[0][first][size];
                possible &= size == 1 || (row->fits && (row->seconds > 0 || row->advised));
            }
            CHECK(!possible || fits[cuts]);
        }
        unmake(&made);
    }
}

// The library's own families, of a GPU of which products are known.
static void products_of_a_gpu(void)
{
    const struct kg_device_facts gpu = {.isa = "sm_90a",
                                        .units = 132,
                                        .clock = 1.98e9,
                                        .vector_bytes = 16,
                                        .shared_bytes = 227 << 10,
                                        .bandwidth = 3.35e12,
                                        .unit = HOPPER_UNIT,
                                        .flops = {[KG_TYPE_F32] = 67e12},
                                        .matrix_flops = {[KG_F16] = 989e12, [KG_BF16] = 989e12}};
    struct made made = make(layers, "M=512 N=512 K=512 L=512");
    struct kg_groupings groupings;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK(kg_groupings_list(made.problem, &gpu, &kg_target_cuda, &groupings, NULL));
    CHECK(groupings.count >= 2);
    check_option(&groupings, KG_GROUPING_PLAIN, "direct direct direct",
                 option_of(&groupings, KG_GROUPING_PLAIN)->expected);
    const struct kg_grouping_option *chosen = &groupings.options[groupings.chosen];
    CHECK(strncmp(chosen->choice.matches[0]->family->name, "contract/", 9) == 0);
    CHECK(chosen->expected <= groupings.options[0].expected);
    for (int i = 0; i < groupings.count; i++)
        CHECK(kg_grouping_names[groupings.options[i].kind][0] != '\0');
    unmake(&made);
}

TEST_MAIN(several_are_listed, products_stand_apart, what_is_not_known_is_left_to_the_rule,
          little_is_no_gain, plain_loops_need_gain_little, fitted_ones_need_gain_little,
          equal_ones_are_listed_once, none_is_faster, others_stand_beside_a_choice,
          products_of_a_gpu)
