// See source_identity.h. A source is hashed block by block while it is scanned.

#include "gen/source_identity.h"

#include <ctype.h>
#include <string.h>

#define ENTRY "kg_kernel" // any name, the same for all

// The normalised source on its way into the hash.
struct digest {
    struct kg_hash hash;
    char block[4096];
    size_t filled;
    bool any;          // something has been written
    char gap;          // separates what follows: a blank, a newline, or nothing (0)
    bool starts_line;  // only blanks so far on this line
    bool is_directive; // a preprocessor line: its end counts
};

static void put(struct digest *digest, char c)
{
    digest->block[digest->filled++] = c;
    digest->any = true;
    if (digest->filled < sizeof digest->block)
        return;
    digest->hash = kg_hash_chain(digest->hash, digest->block, digest->filled);
    digest->filled = 0;
}

static void put_word(struct digest *digest, const char *from, const char *to)
{
    if (digest->starts_line && *from == '#') {
        digest->is_directive = true;
        digest->gap = '\n';
    }
    if (digest->gap && digest->any)
        put(digest, digest->gap);
    digest->gap = '\0';
    digest->starts_line = false;
    while (from < to)
        put(digest, *from++);
}

static void put_blank(struct digest *digest, char c)
{
    if (!digest->gap)
        digest->gap = ' ';
    if (c != '\n')
        return;
    if (digest->is_directive)
        digest->gap = '\n';
    digest->starts_line = true;
    digest->is_directive = false;
}

// The end of the comment that begins at `from`, without the end of its last line; `from` if none
// begins there.
static const char *skip_comment(const char *from, const char *end)
{
    if (end - from < 2 || from[0] != '/' || (from[1] != '/' && from[1] != '*'))
        return from;
    if (from[1] == '*') {
        const char *close = memmem(from + 2, (size_t)(end - from - 2), "*/", 2);
        return close ? close + 2 : end;
    }
    while (from < end && (*from != '\n' || from[-1] == '\\'))
        from++;
    return from;
}

// The end of the string or character literal that begins at `from`, or `from` + 1. A quote between
// the digits of a number belongs to the number.
static const char *skip_literal(const char *from, const char *end, char before)
{
    const char quote = *from++;
    if (quote != '"' && (quote != '\'' || isalnum((unsigned char)before)))
        return from;
    while (from < end && *from != quote && *from != '\n')
        from += *from == '\\' && end - from > 1 ? 2 : 1;
    return from < end ? from + 1 : end;
}

struct kg_hash kg_source_hash(const char *source, size_t length)
{
    struct digest digest = {.hash = kg_hash_bytes("", 0), .starts_line = true};
    const char *end = source + length;
    char before = '\n';
    for (const char *at = source; at < end;) {
        const char *next = skip_comment(at, end);
        if (next > at) {
            put_blank(&digest, ' ');
        } else if (*at == '\\' && end - at > 1 && at[1] == '\n') {
            put_blank(&digest, ' ');
            next = at + 2;
        } else if (isspace((unsigned char)*at)) {
            put_blank(&digest, *at);
            next = at + 1;
        } else {
            next = skip_literal(at, end, before);
            put_word(&digest, at, next);
        }
        before = next[-1];
        at = next;
    }
    return kg_hash_chain(digest.hash, digest.block, digest.filled);
}

static struct kg_hash add_grid(struct kg_hash hash, const struct kg_grid *grid)
{
    const int64_t rest[] = {grid->shared, grid->cluster, grid->early};
    hash = kg_hash_chain(hash, grid->blocks, sizeof grid->blocks);
    hash = kg_hash_chain(hash, grid->threads, sizeof grid->threads);
    return kg_hash_chain(hash, rest, sizeof rest);
}

static struct kg_hash add_map(struct kg_hash hash, const struct kg_map *map)
{
    const int64_t rest[] = {map->tensor, (int64_t)map->offset, map->element, map->rank,
                            map->swizzle};
    hash = kg_hash_chain(hash, rest, sizeof rest);
    hash = kg_hash_chain(hash, map->shape, sizeof map->shape);
    hash = kg_hash_chain(hash, map->stride, sizeof map->stride);
    return kg_hash_chain(hash, map->box, sizeof map->box);
}

static struct kg_hash add_launches(struct kg_hash hash, const struct kg_grids *grids)
{
    const int64_t counts[] = {grids->count, grids->alignment, (int64_t)grids->scratch,
                              grids->map_count};
    hash = kg_hash_chain(hash, counts, sizeof counts);
    for (int i = 0; i < grids->count; i++) {
        hash = add_grid(hash, &grids->grids[i]);
        if (grids->alignment)
            hash = add_grid(hash, &grids->unaligned[i]);
    }
    for (int i = 0; i < grids->map_count; i++) {
        hash = add_map(hash, &grids->maps[i]);
        if (grids->alignment)
            hash = add_map(hash, &grids->unaligned_maps[i]);
    }
    return hash;
}

bool kg_choice_hash(const struct kg_choice *choice, struct kg_hash *hash)
{
    bool done = choice->count > 0;
    *hash = kg_hash_bytes("", 0);
    for (int i = 0; i < choice->count && done; i++) {
        const struct kg_match *match = choice->matches[i];
        struct kg_text source = {0};
        struct kg_grids grids = {0};
        done = kg_choice_source(choice, i, ENTRY, &source) && !source.failed;
        struct kg_hash one = done ? kg_source_hash(source.data, source.length) : *hash;
        *hash = kg_hash_chain(*hash, &one, sizeof one);
        if (match->family->grids) {
            match->family->grids(match, &choice->configs[i], &grids);
            *hash = add_launches(*hash, &grids);
        }
        kg_text_free(&source);
    }
    if (!done)
        *hash = (struct kg_hash){0};
    return done;
}
