// Points for instructions: a sum over the histogram of a kernel.

#include "asm/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct kg_points_rule baseline_rules[] = {
    // PTX
    {"mma", 10},
    {"wmma.mma", 10},
    {"wgmma.mma_async", 10},
    {"tcgen05.mma", 10},
    {"cp.async", 2},
    {"bar.sync", -30},
    {"bar.cta.sync", -30},
    {"barrier.sync", -30},
    {"barrier.cta.sync", -30},
    {"bra", -5},
    {"ret", -5},
    // SASS
    {"HMMA", 10},
    {"IMMA", 10},
    {"DMMA", 10},
    {"QMMA", 10},
    {"HGMMA", 10},
    {"IGMMA", 10},
    {"QGMMA", 10},
    {"LDGSTS", 2},
    {"UTMALDG", 2},
    {"BAR", -30},
    {"BRA", -5},
    {"RET", -5},
};

const struct kg_points kg_points_baseline = {
    baseline_rules,
    sizeof baseline_rules / sizeof baseline_rules[0],
};

static bool fits(const char *name, const char *rule, size_t length)
{
    return strncmp(name, rule, length) == 0 && (name[length] == '\0' || name[length] == '.');
}

static double points_for(const char *name, const struct kg_points *points)
{
    double best = 0;
    size_t longest = 0;
    for (int r = 0; r < points->count; r++) {
        size_t length = strlen(points->rules[r].name);
        if (length > longest && fits(name, points->rules[r].name, length)) {
            longest = length;
            best = points->rules[r].points;
        }
    }
    return best;
}

double kg_points_of(const struct kg_asm_kernel *kernel, const struct kg_points *points)
{
    double sum = 0;
    for (int o = 0; o < kernel->opcode_count; o++)
        sum += points_for(kernel->opcodes[o].name, points) * (double)kernel->opcodes[o].count;
    return sum;
}

// Reads "name=number" up to a comma or the end. Returns the rest; NULL when it is not a rule.
static const char *parse_rule(const char *at, struct kg_arena *arena, struct kg_points_rule *rule)
{
    size_t length = strcspn(at, "=,");
    if (length == 0 || at[length] != '=')
        return NULL;
    char *end;
    rule->name = kg_arena_copy(arena, at, length);
    rule->points = strtod(at + length + 1, &end);
    if (end == at + length + 1 || !isfinite(rule->points) || (*end != '\0' && *end != ','))
        return NULL;
    return *end == ',' ? end + 1 : end;
}

static bool is_known(const struct kg_points_rule *rules, int count, const char *name)
{
    for (int r = 0; r < count; r++)
        if (strcmp(rules[r].name, name) == 0)
            return true;
    return false;
}

enum kg_status kg_points_parse(const char *text, struct kg_arena *arena, struct kg_points *points,
                               struct kg_error *error)
{
    *points = (struct kg_points){0};
    size_t max = 1;
    for (const char *c = text; *c; c++)
        max += *c == ',';
    struct kg_points_rule *rules = KG_NEW_ARRAY(arena, max, struct kg_points_rule);
    if (!rules)
        return kg_error_memory(error, "rules for points");
    int count = 0;
    for (const char *at = text; *at; count++) {
        const char *next = parse_rule(at, arena, &rules[count]);
        if (arena->failed)
            return kg_error_memory(error, "rules for points");
        if (!next)
            return kg_error_set(error, KG_ERROR_ARGUMENT,
                                "points '%s': expected NAME=NUMBER,... at '%s'", text, at);
        if (is_known(rules, count, rules[count].name))
            return kg_error_set(error, KG_ERROR_ARGUMENT, "points '%s': '%s' is given twice", text,
                                rules[count].name);
        at = next;
    }
    *points = (struct kg_points){rules, count};
    return KG_OK;
}
