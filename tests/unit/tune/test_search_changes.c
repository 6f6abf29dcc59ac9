// Searches for one kind of change: what they try, and that they leave everything else as it was.

#include "support/made_up_search.h"

#include <math.h>

static struct kg_choice from;

static struct kg_search new_change(enum kg_change change, const char *text)
{
    struct kg_search search = new_search(KG_RIGOR_MEASURE);
    CHECK(kg_choice_read(search.problem, &search.device->facts, search.target, text, &from));
    search.change = change;
    search.from = &from;
    return search;
}

static bool is_config(const struct kg_choice *choice, int64_t a, int64_t b, int64_t c)
{
    const int64_t *value = choice->configs[0].value;
    return value[0] == a && value[1] == b && value[2] == c;
}

// The best is a=8 b=4 c=2.
static void only_its_parameters_change(void)
{
    static const struct {
        enum kg_change change;
        const char *untouched[2]; // in all that was tried
        int others;
        int64_t found[3];
    } cases[] = {
        {KG_CHANGE_REUSE, {"b=3", "c=1"}, 4, {16, 3, 1}},
        {KG_CHANGE_ACCESS, {"a=4", "c=1"}, 5, {4, 6, 1}},
        {KG_CHANGE_STAGES, {"a=4", "b=3"}, 2, {4, 3, 2}},
        {KG_CHANGE_BLOCK, {"a=4 b=3", "c=1"}, 0, {4, 3, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kg_search search = new_change(cases[i].change, "a=4 b=3 c=1");
        struct kg_prospect prospect;
        struct kg_found found;
        kg_search_prospect(&search, &prospect);
        CHECK(prospect.candidates == cases[i].others && prospect.ratio == 0);
        CHECK(seen.count == 0); // nothing was tried for it
        CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
        double least = INFINITY;
        for (int k = 0; k < seen.count; k++) {
            CHECK(strstr(seen.texts[k], cases[i].untouched[0]));
            CHECK(strstr(seen.texts[k], cases[i].untouched[1]));
        }
        for (int a = 0; a < 5; a++)
            for (int b = 0; b < 6; b++)
                for (int c = 0; c < 3; c++) {
                    int64_t value[] = {choices_a[a], choices_b[b], choices_c[c]};
                    bool is_there = (value[0] == 4 || cases[i].change == KG_CHANGE_REUSE) &&
                                    (value[1] == 3 || cases[i].change == KG_CHANGE_ACCESS) &&
                                    (value[2] == 1 || cases[i].change == KG_CHANGE_STAGES);
                    if (is_there)
                        least = fmin(least, seconds_of(value));
                }
        CHECK(found.fresh == cases[i].others + 1 && found.fresh_failed == 0);
        CHECK(fabs(seconds_of(found.choice.configs[0].value) - least) < 1e-9);
    }
}

static void expectations_are_a_prospect(void)
{
    struct kg_search search = new_change(KG_CHANGE_REUSE, "a=4 b=3 c=1");
    struct kg_prospect prospect;
    world.expected = true;
    double least = INFINITY;
    for (int a = 0; a < 5; a++)
        least = fmin(least, seconds_of((int64_t[]){choices_a[a], 3, world.best[2]}));
    kg_search_prospect(&search, &prospect);
    CHECK(fabs(prospect.ratio - least / seconds_of((int64_t[]){4, 3, world.best[2]})) < 1e-6);
    world.expected = false;
}

static void the_best_stays(void)
{
    struct kg_search search = new_change(KG_CHANGE_STAGES, "a=8 b=4 c=2");
    struct kg_found found;
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    CHECK(is_config(&found.choice, 8, 4, 2) && found.fresh == 3);
}

static void other_groupings_are_tuned(void)
{
    struct kg_search search = new_change(KG_CHANGE_GROUPING, "a=4 b=3 c=1");
    struct kg_prospect prospect;
    struct kg_found found;
    world.groups = 2;
    world.rival_groups = 1;
    from.count = 2;
    from.matches[1] = from.matches[0];
    from.configs[1] = from.configs[0];
    kg_search_prospect(&search, &prospect);
    CHECK(prospect.candidates == 1);
    CHECK_STATUS(kg_search_run(&search, &found, &error), KG_OK, &error);
    // One group takes half as long as two, and is tuned in turn.
    CHECK(found.choice.count == 1 && found.seconds < seconds_of((int64_t[]){4, 3, 1}));
    world.groups = from.count = 1;
    world.rival_groups = 0;
    kg_search_prospect(&search, &prospect);
    CHECK(prospect.candidates == 0);
}

static void forms_need_another_family(void)
{
    struct kg_search search = new_change(KG_CHANGE_FORM, "a=4 b=3 c=1");
    struct kg_prospect prospect;
    kg_search_prospect(&search, &prospect);
    CHECK(prospect.candidates == 0);
}

TEST_MAIN(make_sample, only_its_parameters_change, expectations_are_a_prospect, the_best_stays,
          other_groupings_are_tuned, forms_need_another_family)
