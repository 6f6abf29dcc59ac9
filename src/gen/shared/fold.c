// Reductions in generated host code: see fold.h.

#include "gen/shared/fold.h"

#include "gen/shared/emit.h"

#include <stdio.h>
#include <string.h>

struct kg_fold kg_fold_of(const struct kg_nest *nest)
{
    struct kg_fold fold = {.reduce = nest->reduce, .search = nest->reduce};
    enum kg_type value = kg_emit_nest_type(nest);
    fold.result = value;
    fold.is_argument = kg_reduces[nest->reduce].is_argument;
    fold.is_sum = nest->reduce == KG_REDUCE_SUM || nest->reduce == KG_REDUCE_MEAN;
    if (fold.is_argument) {
        fold.search = nest->reduce == KG_REDUCE_ARGMAX ? KG_REDUCE_MAX : KG_REDUCE_MIN;
        value = nest->body->type == KG_TYPE_BOOL ? KG_TYPE_I64 : nest->body->type;
    }
    bool is_float = value == KG_TYPE_F32 || value == KG_TYPE_F64;
    fold.is_float_sum = fold.is_sum && is_float;
    fold.lane = value;
    fold.total = value;
    // Integer sums of few values fit a narrow type; products soon overflow it.
    if (value == KG_TYPE_F32 && (fold.is_sum || nest->reduce == KG_REDUCE_PROD))
        fold.total = KG_TYPE_F64;
    if (value == KG_TYPE_F32 && nest->reduce == KG_REDUCE_PROD)
        fold.lane = KG_TYPE_F64;
    return fold;
}

const char *kg_fold_type(enum kg_type type)
{
    return type == KG_TYPE_BOOL ? "int32_t" : kg_emit_type(type);
}

void kg_fold_neutral(struct kg_text *text, const struct kg_fold *fold, enum kg_type type)
{
    kg_emit_neutral(text, fold->search, type);
}

void kg_fold_combine(struct kg_text *text, const struct kg_fold *fold, enum kg_type type,
                     const char *a, const char *b)
{
    if (type == KG_TYPE_BOOL)
        kg_text_format(text, fold->reduce == KG_REDUCE_ANY ? "%s | %s" : "%s & %s", a, b);
    else
        kg_emit_combine(text, fold->search, type, a, b);
}

void kg_fold_declare_total(struct kg_code *code, const struct kg_fold *fold, int k)
{
    kg_code_begin(code);
    kg_text_format(code->text, "%s t%d = ", kg_fold_type(fold->total), k);
    kg_fold_neutral(code->text, fold, fold->total);
    if (fold->is_float_sum)
        kg_text_format(code->text, ", lost%d = 0.0", k);
    kg_text_add(code->text, ";");
    kg_code_end(code);
    if (fold->is_argument)
        kg_code_line(code, "int64_t where%d = -1;", k);
}

const char *kg_fold_at_type(const struct kg_fold *fold)
{
    return fold->lane == KG_TYPE_F32 && !fold->counts_far ? "int32_t" : "int64_t";
}

void kg_fold_declare_lanes(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    kg_code_line(code, "%s acc%d[%d];", kg_fold_type(fold->lane), k, lanes);
    if (fold->is_argument)
        kg_code_line(code, "%s at%d[%d];", kg_fold_at_type(fold), k, lanes);
}

void kg_fold_reset_lanes(struct kg_code *code, const struct kg_fold *fold, int k, int lanes)
{
    struct kg_text neutral = {0};
    kg_fold_neutral(&neutral, fold, fold->lane);
    kg_code_line(code, "for (int lane = 0; lane < %d; lane++)", lanes);
    kg_code_indent(code);
    kg_code_line(code, "acc%d[lane] = %s;", k, kg_text_string(&neutral));
    kg_code_outdent(code);
    if (fold->is_argument) {
        kg_code_line(code, "for (int lane = 0; lane < %d; lane++)", lanes);
        kg_code_indent(code);
        kg_code_line(code, "at%d[lane] = 0;", k);
        kg_code_outdent(code);
    }
    code->text->failed |= neutral.failed;
    kg_text_free(&neutral);
}

void kg_fold_step(struct kg_code *code, const struct kg_fold *fold, int k)
{
    if (fold->is_argument) {
        kg_code_line(code, "const bool take%d = kg_beats_%s_%s(v%d, acc%d[lane]);", k,
                     kg_reduces[fold->search].name, kg_emit_suffix(fold->lane), k, k);
        kg_code_line(code, "acc%d[lane] = take%d ? v%d : acc%d[lane];", k, k, k, k);
        kg_code_line(code, "at%d[lane] = take%d ? (%s)step : at%d[lane];", k, k,
                     kg_fold_at_type(fold), k);
        return;
    }
    char acc[32], value[32];
    snprintf(acc, sizeof acc, "acc%d[lane]", k);
    snprintf(value, sizeof value, "v%d", k);
    kg_code_begin(code);
    kg_text_format(code->text, "%s = ", acc);
    kg_fold_combine(code->text, fold, fold->lane, value, acc);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

void kg_fold_flush(struct kg_code *code, const struct kg_fold *fold, int k, int lanes,
                   const char *count, const char *first)
{
    const char *suffix = kg_emit_suffix(fold->lane);
    char folded[64], total[32];
    if (fold->is_argument) {
        kg_code_line(code, "kg_fold_arg%s_%s(&t%d, &where%d, acc%d, at%d, %d, %s, %s);",
                     kg_reduces[fold->search].name, suffix, k, k, k, k, lanes, count, first);
        return;
    }
    snprintf(total, sizeof total, "t%d", k);
    const char *name = fold->is_sum ? "sum" : kg_reduces[fold->reduce].name;
    if (strcmp(count, "0") == 0)
        snprintf(folded, sizeof folded, "kg_fold_%s_%s(acc%d, %d)", name, suffix, k, lanes);
    else
        snprintf(folded, sizeof folded, "kg_fold_few_%s_%s(acc%d, %d, %s)", name, suffix, k, lanes,
                 count);
    if (fold->is_float_sum) {
        kg_code_line(code, "kg_two_sum(&t%d, &lost%d, %s);", k, k, folded);
        return;
    }
    kg_code_begin(code);
    kg_text_format(code->text, "t%d = ", k);
    kg_fold_combine(code->text, fold, fold->total, total, folded);
    kg_text_add(code->text, ";");
    kg_code_end(code);
}

void kg_fold_result(struct kg_text *text, const struct kg_fold *fold, int k, const char *count)
{
    const char *narrow = fold->result == KG_TYPE_F32 ? "(float)" : "";
    if (fold->is_argument)
        kg_text_format(text, "where%d", k);
    else if (fold->reduce == KG_REDUCE_MEAN)
        kg_text_format(text, "%s(kg_two_value(t%d, lost%d) / (double)(%s))", narrow, k, k, count);
    else if (fold->is_float_sum)
        kg_text_format(text, "%skg_two_value(t%d, lost%d)", narrow, k, k);
    else if (fold->result == KG_TYPE_BOOL)
        kg_text_format(text, "t%d != 0", k);
    else
        kg_text_format(text, "%st%d", fold->total == KG_TYPE_F64 ? narrow : "", k);
}
