// A unified diff by Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations",
// 1986): for each number of edits, how far each diagonal of the grid of lines can be followed. Once
// the edits reach a limit, the longest path so far is taken and the lines after it are replaced.

#include "base/line_diff.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/printable.h"

#include <string.h>

#define CONTEXT 3
#define MAX_EDITS 1500      // the search keeps a number for each pair of edits: 9 MB
#define MAX_COMPARISONS 1e8 // a diagonal may be as long as both texts
#define UNREACHABLE (-1)

struct line {
    const char *text;
    size_t length; // with its line end, which the last line may lack
    uint64_t hash;
};

struct side {
    struct line *lines;
    ptrdiff_t count;
    bool *differs; // by line: it is removed, or added
    char sign;
};

// A run of edits with its context: [from, to) of each side.
struct hunk {
    ptrdiff_t from[2], to[2];
};

struct search {
    const struct line *lines[2]; // what is left without the common ends
    ptrdiff_t count[2];
    bool *differs[2];
    // Of e edits, e + 1 diagonals: the lines of the first side that are behind, or UNREACHABLE.
    // On diagonal i there are 2i - e lines fewer of the second side behind than of the first.
    ptrdiff_t **reached;
};

static size_t line_length(const char *text)
{
    size_t length = strcspn(text, "\n");
    return length + (text[length] == '\n');
}

static bool split(const char *text, char sign, struct side *side, struct kg_arena *arena)
{
    ptrdiff_t count = 0;
    for (const char *at = text; *at; at += line_length(at))
        count++;
    *side = (struct side){.lines = KG_NEW_ARRAY(arena, count, struct line),
                          .count = count,
                          .differs = KG_NEW_ARRAY(arena, count, bool),
                          .sign = sign};
    if (arena->failed)
        return false;
    for (struct line *line = side->lines; *text; text += line++->length) {
        size_t length = line_length(text);
        *line = (struct line){text, length, kg_hash_bytes(text, length).low};
    }
    return true;
}

static bool is_equal(const struct line *a, const struct line *b)
{
    return a->hash == b->hash && a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

// The common lines at both ends of two sides are no part of the search.
static struct search begin(struct side sides[2])
{
    ptrdiff_t head = 0, tail = 0;
    ptrdiff_t least = sides[0].count < sides[1].count ? sides[0].count : sides[1].count;
    while (head < least && is_equal(&sides[0].lines[head], &sides[1].lines[head]))
        head++;
    while (tail < least - head && is_equal(&sides[0].lines[sides[0].count - 1 - tail],
                                           &sides[1].lines[sides[1].count - 1 - tail]))
        tail++;
    struct search search = {0};
    for (int s = 0; s < 2; s++) {
        search.lines[s] = sides[s].lines + head;
        search.differs[s] = sides[s].differs + head;
        search.count[s] = sides[s].count - head - tail;
    }
    return search;
}

static ptrdiff_t max_edits(const struct search *search)
{
    double total = (double)search->count[0] + (double)search->count[1];
    double edits = total > 0 ? MAX_COMPARISONS / total : 0;
    edits = edits < MAX_EDITS ? edits : MAX_EDITS;
    return (ptrdiff_t)(edits < total ? edits : total);
}

// Where diagonal i begins after one more edit: behind a removed line, or before an added one.
static ptrdiff_t step(const struct search *search, ptrdiff_t edits, ptrdiff_t i, bool *removes)
{
    const ptrdiff_t *last = search->reached[edits - 1];
    ptrdiff_t removed = UNREACHABLE, added = UNREACHABLE;
    if (i > 0 && last[i - 1] != UNREACHABLE && last[i - 1] < search->count[0])
        removed = last[i - 1] + 1;
    if (i < edits && last[i] != UNREACHABLE && last[i] - (2 * i - edits) <= search->count[1])
        added = last[i];
    *removes = removed > added;
    return *removes ? removed : added;
}

// Marks what the path to diagonal i edits, and everything behind its end.
static void mark(struct search *search, ptrdiff_t edits, ptrdiff_t i)
{
    ptrdiff_t x = search->reached[edits][i], y = x - (2 * i - edits);
    for (; x < search->count[0]; x++)
        search->differs[0][x] = true;
    for (; y < search->count[1]; y++)
        search->differs[1][y] = true;
    for (; edits > 0; edits--) {
        bool removes;
        x = step(search, edits, i, &removes);
        y = x - (2 * i - edits);
        if (removes)
            search->differs[0][x - 1] = true;
        else
            search->differs[1][y - 1] = true;
        i -= removes;
    }
}

static void find_edits(struct search *search, struct kg_arena *arena)
{
    ptrdiff_t limit = max_edits(search);
    search->reached = KG_NEW_ARRAY(arena, limit + 1, ptrdiff_t *);
    for (ptrdiff_t edits = 0; search->reached && edits <= limit; edits++) {
        ptrdiff_t *row = search->reached[edits] = KG_NEW_ARRAY(arena, edits + 1, ptrdiff_t);
        ptrdiff_t best = 0, farthest = UNREACHABLE;
        for (ptrdiff_t i = 0; row && i <= edits; i++) {
            bool removes;
            ptrdiff_t x = edits ? step(search, edits, i, &removes) : 0, y = x - (2 * i - edits);
            while (x != UNREACHABLE && x < search->count[0] && y < search->count[1] &&
                   is_equal(&search->lines[0][x], &search->lines[1][y]))
                x++, y++;
            row[i] = x;
            if (x != UNREACHABLE && x + y > farthest) {
                farthest = x + y;
                best = i;
            }
        }
        if (!row)
            return;
        if (edits == limit || farthest == search->count[0] + search->count[1]) {
            mark(search, edits, best);
            return;
        }
    }
}

// The next hunk from the places `at`, which are on lines that are equal or edited on both sides;
// false if nothing is edited behind them.
static bool next_hunk(const struct side sides[2], ptrdiff_t at[2], struct hunk *hunk)
{
    ptrdiff_t equal = 0; // lines since the last edit
    bool any = false;
    while (at[0] < sides[0].count || at[1] < sides[1].count) {
        bool edited = false;
        for (int s = 0; s < 2; s++)
            edited |= at[s] < sides[s].count && sides[s].differs[at[s]];
        if (edited && !any) {
            ptrdiff_t before = equal < CONTEXT ? equal : CONTEXT;
            for (int s = 0; s < 2; s++)
                hunk->from[s] = at[s] - before;
            any = true;
        }
        if (!edited && any && equal == 2 * CONTEXT)
            break;
        equal = edited ? 0 : equal + 1;
        for (int s = 0; s < 2; s++)
            at[s] += !edited || (at[s] < sides[s].count && sides[s].differs[at[s]]);
    }
    ptrdiff_t surplus = equal > CONTEXT ? equal - CONTEXT : 0;
    for (int s = 0; any && s < 2; s++) {
        at[s] -= surplus; // may be context of the next hunk
        hunk->to[s] = at[s];
    }
    return any;
}

// "-3,7"; a range of no lines is named by the line before it.
static void add_range(struct kg_text *diff, char sign, ptrdiff_t from, ptrdiff_t to)
{
    kg_text_format(diff, "%c%td", sign, to > from ? from + 1 : from);
    if (to - from != 1)
        kg_text_format(diff, ",%td", to - from);
}

static void add_line(struct kg_text *diff, char sign, const struct line *line)
{
    kg_text_add_bytes(diff, &sign, 1);
    kg_text_add_bytes(diff, line->text, line->length);
    if (line->text[line->length - 1] != '\n')
        kg_text_add(diff, "\n\\ No newline at end of file\n");
}

static void add_hunk(struct kg_text *diff, const struct side sides[2], const struct hunk *hunk)
{
    kg_text_add(diff, "@@ ");
    for (int s = 0; s < 2; s++) {
        add_range(diff, sides[s].sign, hunk->from[s], hunk->to[s]);
        kg_text_add(diff, s == 0 ? " " : " @@\n");
    }
    ptrdiff_t at[2] = {hunk->from[0], hunk->from[1]};
    while (at[0] < hunk->to[0] || at[1] < hunk->to[1]) {
        bool edited = false;
        for (int s = 0; s < 2; s++)
            for (; at[s] < hunk->to[s] && sides[s].differs[at[s]]; at[s]++) {
                add_line(diff, sides[s].sign, &sides[s].lines[at[s]]);
                edited = true;
            }
        if (edited)
            continue;
        add_line(diff, ' ', &sides[0].lines[at[0]]);
        at[0]++, at[1]++;
    }
}

void kg_line_diff(const char *before, const char *after, const char *name_before,
                  const char *name_after, struct kg_text *diff)
{
    struct kg_arena arena = {0};
    struct side sides[2];
    if (split(before, '-', &sides[0], &arena) && split(after, '+', &sides[1], &arena)) {
        struct search search = begin(sides);
        find_edits(&search, &arena);
    }
    if (arena.failed) {
        diff->failed = true;
        kg_arena_free(&arena);
        return;
    }
    ptrdiff_t at[2] = {0, 0};
    struct hunk hunk;
    for (bool first = true; next_hunk(sides, at, &hunk); first = false) {
        if (first) {
            kg_text_add(diff, "--- ");
            kg_text_add_printable(diff, name_before);
            kg_text_add(diff, "\n+++ ");
            kg_text_add_printable(diff, name_after);
            kg_text_add(diff, "\n");
        }
        add_hunk(diff, sides, &hunk);
    }
    kg_arena_free(&arena);
}
