// "Nothing is recorded of ..."

#include "report/recorded.h"

#include "base/names.h"

#include <stdlib.h>
#include <string.h>

struct names {
    const char **list;
    size_t count;
    struct kg_arena arena;
    bool failed;
};

// Keys come by op: equal names are neighbours.
static void collect_name(void *user, const struct kg_key *key)
{
    struct names *names = user;
    if (names->failed || names->arena.failed ||
        (names->count > 0 && strcmp(names->list[names->count - 1], key->op) == 0))
        return;
    const char **list = realloc(names->list, (names->count + 1) * sizeof *list);
    names->failed = !list;
    if (!list)
        return;
    names->list = list;
    list[names->count++] = kg_arena_copy(&names->arena, key->op, strlen(key->op));
}

static enum kg_status name_known(const struct names *names, const char *op, struct kg_error *error)
{
    if (names->count == 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "nothing is recorded of \"%.100s\", nor of any other op: "
                            "'kernelgen build OP.kg' records what it measures",
                            op);
    struct kg_text list = {0};
    for (size_t i = 0; i < names->count; i++)
        kg_text_format(&list, "%s%s", i ? ", " : "", names->list[i]);
    const char *nearest = kg_names_nearest(op, names->list, names->count);
    enum kg_status status =
        nearest ? kg_error_set(error, KG_ERROR_ARGUMENT,
                               "nothing is recorded of \"%.100s\"; did you mean \"%.100s\"? "
                               "On record: %.2000s",
                               op, nearest, kg_text_string(&list))
                : kg_error_set(error, KG_ERROR_ARGUMENT,
                               "nothing is recorded of \"%.100s\"; on record: %.2000s", op,
                               kg_text_string(&list));
    if (list.failed)
        status = kg_error_memory(error, "a list of ops");
    kg_text_free(&list);
    return status;
}

static enum kg_status collect_names(struct kg_store *store, const char *op, struct names *names,
                                    struct kg_error *error)
{
    enum kg_status status = kg_store_keys(store, op, collect_name, names, error);
    if (status == KG_OK && (names->failed || names->arena.failed))
        status = kg_error_memory(error, "a list of ops");
    return status;
}

enum kg_status kg_recorded_require(struct kg_store *store, const char *op, struct kg_error *error)
{
    struct names names = {0};
    enum kg_status status = collect_names(store, op, &names, error);
    if (status == KG_OK && op && names.count == 0) {
        status = collect_names(store, NULL, &names, error);
        if (status == KG_OK)
            status = name_known(&names, op, error);
    }
    free(names.list);
    kg_arena_free(&names.arena);
    return status;
}
