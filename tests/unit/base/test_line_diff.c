// Diffs of known texts, and of random ones: applied to the first text they give the second, and
// they are no longer than the shortest.

#include "base/line_diff.h"
#include "test.h"
#include "verify/random.h"

#include <stdlib.h>

static struct kg_text diff_of(const char *before, const char *after)
{
    struct kg_text diff = {0};
    kg_line_diff(before, after, "old", "new", &diff);
    CHECK(!diff.failed);
    return diff;
}

static void check_diff(const char *before, const char *after, const char *expected)
{
    struct kg_text diff = diff_of(before, after);
    CHECK_TEXT(kg_text_string(&diff), expected);
    kg_text_free(&diff);
}

static void test_equal(void)
{
    check_diff("", "", "");
    check_diff("a\nb\n", "a\nb\n", "");
    check_diff("a\nb", "a\nb", "");
}

static void test_empty(void)
{
    check_diff("", "a\nb\n", "--- old\n+++ new\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    check_diff("a\n", "", "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n");
    check_diff("\n", "", "--- old\n+++ new\n@@ -1 +0,0 @@\n-\n");
}

static void test_no_final_line_end(void)
{
    check_diff("a\nb", "a\nb\n",
               "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    check_diff("a\nb\n", "a\nc",
               "--- old\n+++ new\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n");
    check_diff("a\nb", "c\nb",
               "--- old\n+++ new\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n");
}

// Six equal lines between two edits are the context of one hunk, seven that of two.
static void test_hunks(void)
{
    check_diff("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "0\n1\n2\n3\nx\n5\n6\n7\n8\n9\n10\ny\n",
               "--- old\n+++ new\n@@ -2,11 +2,11 @@\n 1\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n 8\n 9\n 10\n"
               "-11\n+y\n");
    check_diff("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n0\n1\n2\n3\n4\n5\n6\n8\n9\n",
               "--- old\n+++ new\n@@ -1,3 +1,4 @@\n+x\n 0\n 1\n 2\n@@ -5,6 +6,5 @@\n 4\n 5\n 6\n"
               "-7\n 8\n 9\n");
}

// A name cannot end its line.
static void test_names(void)
{
    struct kg_text diff = {0};
    kg_line_diff("a\n", "b\n", "one\ntwo", "\x1b[1m", &diff);
    CHECK_TEXT(kg_text_string(&diff), "--- one?two\n+++ ?[1m\n@@ -1 +1 @@\n-a\n+b\n");
    kg_text_free(&diff);
}

static const char *end_of_line(const char *at)
{
    at += strcspn(at, "\n");
    return at + (*at == '\n');
}

// One line of a hunk, without its sign, to `out`; what stands in `text` must be the same.
static void apply_line(const char **diff, const char **text, struct kg_text *out)
{
    char sign = **diff;
    const char *line = *diff + 1, *end = end_of_line(line);
    size_t length = (size_t)(end - line);
    *diff = end;
    if (*end == '\\') {
        length--;
        *diff = end_of_line(end);
    }
    if (sign != '+') {
        CHECK(strncmp(*text, line, length) == 0);
        *text = end_of_line(*text);
    }
    if (sign != '-')
        kg_text_add_bytes(out, line, length);
}

static const char *read_range(const char *at, char sign, long *first, long *count)
{
    CHECK(*at == sign);
    char *end;
    *first = strtol(at + 1, &end, 10);
    *count = *end == ',' ? strtol(end + 1, &end, 10) : 1;
    return end + 1;
}

// What patch does, strictly: places and counts must be right. `*edits` counts lines.
static void apply(const char *diff, const char *text, struct kg_text *out, long *edits)
{
    long lines[2] = {0, 0}; // that are behind
    *edits = 0;
    for (int i = 0; i < 2 && *diff; i++)
        diff = end_of_line(diff);
    while (strncmp(diff, "@@ ", 3) == 0) {
        long first[2], count[2];
        const char *signs = "-+";
        diff += 3;
        for (int s = 0; s < 2; s++) {
            diff = read_range(diff, signs[s], &first[s], &count[s]);
            first[s] += count[s] == 0;
        }
        diff = end_of_line(diff);
        for (; lines[0] + 1 < first[0]; lines[0]++, lines[1]++) {
            const char *end = end_of_line(text);
            kg_text_add_bytes(out, text, (size_t)(end - text));
            text = end;
        }
        CHECK(lines[1] + 1 == first[1]);
        while (*diff == ' ' || *diff == '-' || *diff == '+') {
            char sign = *diff;
            *edits += sign != ' ';
            for (int s = 0; s < 2; s++) {
                lines[s] += sign == ' ' || sign == signs[s];
                count[s] -= sign == ' ' || sign == signs[s];
            }
            apply_line(&diff, &text, out);
        }
        CHECK(count[0] == 0 && count[1] == 0);
    }
    CHECK(*diff == '\0');
    kg_text_add(out, text);
}

static long check_round_trip(const char *before, const char *after)
{
    struct kg_text diff = diff_of(before, after), made = {0};
    long edits;
    apply(kg_text_string(&diff), before, &made, &edits);
    CHECK_TEXT(kg_text_string(&made), after);
    kg_text_free(&made);
    kg_text_free(&diff);
    return edits;
}

// Lines of one letter or none, so that many are equal.
#define MOST_LINES 24
static void draw(struct kg_random *random, struct kg_text *text)
{
    kg_text_cut(text, 0);
    kg_text_add(text, "");
    uint64_t count = kg_random_below(random, MOST_LINES), letters = 1 + kg_random_below(random, 4);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t letter = kg_random_below(random, letters + 1);
        if (letter)
            kg_text_format(text, "%c", (int)('a' + letter));
        kg_text_add(text, "\n");
    }
    if (kg_random_below(random, 4) == 0)
        kg_text_add(text, "z");
}

// Edits of the shortest diff: all lines but twice the longest common subsequence.
static long least_edits(const char *before, const char *after)
{
    int common[MOST_LINES + 2][MOST_LINES + 2] = {0};
    long rows = 0, columns = 0;
    for (const char *a = before; *a; a = end_of_line(a)) {
        rows++;
        columns = 0;
        for (const char *b = after; *b; b = end_of_line(b)) {
            size_t length = (size_t)(end_of_line(a) - a);
            columns++;
            bool equal = length == (size_t)(end_of_line(b) - b) && memcmp(a, b, length) == 0;
            int up = common[rows - 1][columns], left = common[rows][columns - 1];
            int both = common[rows - 1][columns - 1] + equal;
            int most = up > left ? up : left;
            common[rows][columns] = both > most ? both : most;
        }
    }
    columns = 0;
    for (const char *b = after; *b; b = end_of_line(b))
        columns++;
    return rows + columns - 2 * common[rows][columns];
}

static void test_random(void)
{
    struct kg_random random = kg_random_make(11, 11);
    struct kg_text before = {0}, after = {0};
    for (int trial = 0; trial < 3000; trial++) {
        draw(&random, &before);
        draw(&random, &after);
        long edits = check_round_trip(before.data, after.data);
        CHECK(edits == least_edits(before.data, after.data));
    }
    kg_text_free(&before);
    kg_text_free(&after);
}

// Texts that share no line, beyond the limit of the search; and long ones with few differences.
static void test_huge(void)
{
    struct kg_text before = {0}, after = {0}, changed = {0};
    for (int i = 0; i < 100000; i++) {
        kg_text_format(&before, "line %d\n", i);
        kg_text_format(&after, "other %d\n", i);
        kg_text_format(&changed, i % 1000 == 17 ? "changed %d\n" : "line %d\n", i);
    }
    check_round_trip(before.data, after.data);
    CHECK(check_round_trip(before.data, changed.data) == 200);
    kg_text_free(&before);
    kg_text_free(&after);
    kg_text_free(&changed);
}

// Beyond the limit, the equal lines until there are still found.
static void test_limit(void)
{
    struct kg_text before = {0}, after = {0};
    for (int i = 0; i < 4000; i++) {
        kg_text_format(&before, "line %d\n", i);
        kg_text_format(&after, i % 2 ? "line %d\n" : "changed %d\n", i);
    }
    long edits = check_round_trip(before.data, after.data);
    CHECK(edits > 4000 && edits < 7500);
    kg_text_free(&before);
    kg_text_free(&after);
}

TEST_MAIN(test_equal, test_empty, test_no_final_line_end, test_hunks, test_names, test_random,
          test_huge, test_limit)
