// The ranking of foreign kernels: places by the ratio of each race, ties, and what is said.

#include "report/ranking.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

#define MOST 8

static struct kg_error error;

static struct kg_contestant raced(const char *name, double own, double generated, double baseline,
                                  int standing)
{
    return (struct kg_contestant){.name = name,
                                  .state = KG_CONTESTANT_RANKED,
                                  .kind = KG_OUTCOME_MEASURED,
                                  .cases = 79,
                                  .seed = 7,
                                  .timing = {.samples = 9, .median = own, .spread = own / 100},
                                  .reference = {.samples = 9, .median = generated},
                                  .baseline = {.samples = 9, .median = baseline},
                                  .standing = standing};
}

static struct kg_contestant failed(const char *name, enum kg_outcome_kind kind, const char *reason)
{
    return (struct kg_contestant){
        .name = name, .state = KG_CONTESTANT_FAILED, .kind = kind, .reason = reason};
}

static struct kg_contest contest_of(struct kg_contestant *list, int count)
{
    return (struct kg_contest){.folder = "drafts",
                               .op = "scale",
                               .sizes = "P=4 D=5",
                               .dtypes = "T=f32",
                               .device = "Some CPU",
                               .choice = "pointwise: block=64",
                               .bound = 1e-6,
                               .list = list,
                               .count = count};
}

// "b a * - c": files by the first letter of their name, * generated, - baseline.
static void check_order(const struct kg_contest *contest, const char *expected)
{
    struct kg_placed placed[MOST + 2];
    char order[MOST + 3] = "";
    int count = kg_contest_rank(contest, placed);
    for (int i = 0; i < count; i++)
        order[i] = placed[i].contestant == KG_PLACED_REFERENCE ? '*'
                   : placed[i].contestant == KG_PLACED_BASELINE
                       ? '-'
                       : contest->list[placed[i].contestant].name[0];
    CHECK_TEXT(order, expected);
}

// The machine was half as fast during the second race: its times are longer, and its file is
// faster.
static void places_go_by_the_ratio_in_a_race(void)
{
    struct kg_contestant list[] = {raced("a", 8e-6, 10e-6, 40e-6, 1),
                                   raced("b", 12e-6, 20e-6, 80e-6, 1),
                                   raced("c", 11e-6, 10e-6, 40e-6, -1)};
    struct kg_contest contest = contest_of(list, 3);
    struct kg_placed placed[MOST];
    check_order(&contest, "ba*c-");
    CHECK(kg_contest_rank(&contest, placed) == 5);
    CHECK(placed[0].seconds == 12e-6 && fabs(placed[0].ratio - 0.6) < 1e-12);
    CHECK(fabs(placed[0].baseline_ratio - 0.15) < 1e-12);
    // The medians over the races.
    CHECK(placed[2].seconds == 10e-6 && placed[4].seconds == 40e-6);
    CHECK(fabs(placed[4].ratio - 4) < 1e-12);
}

// A tie is the generated kernel's; among files the name decides.
static void ties_keep_the_order_of_names(void)
{
    struct kg_contestant list[] = {
        raced("a", 10.1e-6, 10e-6, 40e-6, 0), raced("b", 9.9e-6, 10e-6, 40e-6, 0),
        raced("c", 10.5e-6, 10e-6, 40e-6, -1), raced("d", 10.5e-6, 10e-6, 40e-6, -1)};
    struct kg_contest contest = contest_of(list, 4);
    check_order(&contest, "*abcd-");
}

// The generated kernel may be the baseline itself.
static void a_baseline_may_tie_or_lead(void)
{
    struct kg_contestant tied[] = {raced("a", 20e-6, 10e-6, 10.05e-6, -1)};
    struct kg_contest contest = contest_of(tied, 1);
    check_order(&contest, "*-a");
    struct kg_contestant led[] = {raced("a", 20e-6, 10e-6, 5e-6, -1)};
    contest = contest_of(led, 1);
    check_order(&contest, "-*a");
}

static void only_what_was_timed_has_a_place(void)
{
    struct kg_contestant list[] = {failed("a", KG_OUTCOME_WRONG, "y[3]"),
                                   raced("b", 20e-6, 10e-6, 40e-6, -1)};
    struct kg_contest contest = contest_of(list, 2);
    check_order(&contest, "*b-");
    contest.count = 1;
    check_order(&contest, "");
}

static void check_says(const struct kg_contest *contest, bool json, const char *const *lines)
{
    struct kg_text text = {0};
    CHECK_STATUS(kg_report_contest(contest, json, &text, &error), KG_OK, &error);
    for (; *lines; lines++) {
        CHECK(strstr(kg_text_string(&text), *lines));
        if (!strstr(kg_text_string(&text), *lines))
            fprintf(stderr, "not there: %s\n%s", *lines, kg_text_string(&text));
    }
    CHECK(!strchr(kg_text_string(&text), '\033'));
    kg_text_free(&text);
}

static void a_winner_is_named_with_what_is_different(void)
{
    struct kg_contestant list[] = {raced("fast.c", 5e-6, 10e-6, 40e-6, 1)};
    struct kg_contest contest = contest_of(list, 1);
    list[0].gist = (struct kg_asm_gist){.known = true, .load_bytes = 64};
    contest.gist = (struct kg_asm_gist){.known = true, .load_bytes = 4, .spill_bytes = 164};
    check_says(
        &contest, false,
        (const char *const[]){"winner     fast.c: 2.00 times as fast as the generated "
                              "kernel, more than noise; loads of 64 B, not 4; no spills, not "
                              "164 B of spills\n",
                              "\n    1  fast.c       5.00 us     50.0 ns     2.00          "
                              "8.00              20%  faster  loads of 64 B, no spills\n",
                              NULL});
    check_says(&contest, true,
               (const char *const[]){"\"winner\": \"fast.c\"", "\"vs_generated\": 2, ",
                                     "\"vs_baseline\": 8, ", "\"against_generated\": \"faster\"",
                                     NULL});
    list[0].standing = 0;
    check_says(&contest, false, (const char *const[]){"winner     the generated kernel: ", NULL});
    check_says(&contest, true, (const char *const[]){"\"winner\": null", NULL});
}

// Names and compilers' messages come from elsewhere.
static void what_is_shown_is_printable_and_short(void)
{
    struct kg_contestant list[] = {
        failed("a\033[31m\n.c", KG_OUTCOME_COMPILE,
               "the compiler refused it:\nfrom here\nb.c:3: error: no \033[2J such thing\nmore"),
        failed("b.c", KG_OUTCOME_FAULT, "crashed with SIGSEGV")};
    struct kg_contest contest = contest_of(list, 2);
    contest.left_out = 3;
    contest.others = 1;
    check_says(&contest, false,
               (const char *const[]){"no file was timed\n",
                                     "       a?[31m?.c    compile  b.c:3: error: no ?[2J such "
                                     "thing\n",
                                     "       b.c          fault    crashed with SIGSEGV\n",
                                     "2 files; 3 more, the last by name, are left out; 1 other, ",
                                     NULL});
    check_says(&contest, true,
               (const char *const[]){"\"left_out\": 3, \"other_files\": 1}\n",
                                     "\"outcome\": \"compile\"", NULL});
}

TEST_MAIN(places_go_by_the_ratio_in_a_race, ties_keep_the_order_of_names,
          a_baseline_may_tie_or_lead, only_what_was_timed_has_a_place,
          a_winner_is_named_with_what_is_different, what_is_shown_is_printable_and_short)
