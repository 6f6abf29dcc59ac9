// The tables of the log: every round, outcomes by kind, the fastest candidates, the failed ones.

#include "report/log_parts.h"

#include <string.h>

struct table {
    struct kg_log *log;
    const char *heading[2]; // by language, with the head of the table
    void (*add)(struct kg_log *log, const struct kg_log_row *row);
    bool begun;
};

static void add_rounds(struct kg_log *log)
{
    const struct kg_view *view = log->view;
    if (view->round_count == 0)
        return;
    kg_log_say(log,
               "\n### Rounds\n\n| date | round | diagnosis | change | choice | before | after "
               "| baseline | result |\n|---|---|---|---|---|---|---|---|---|\n",
               "\n### 各轮一览\n\n| 日期 | 轮次 | 诊断 | 修改 | 方案 | 修改前 | 修改后 | 基准 "
               "| 结果 |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        kg_text_add(log->text, "|");
        kg_log_cell(log, round->date);
        kg_text_format(log->text, " %d |", round->number);
        kg_log_cell(log, round->diagnosis);
        kg_log_cell(log, round->change);
        kg_log_cell(log, round->choice);
        kg_log_seconds_cell(log, round->before);
        kg_log_seconds_cell(log, round->after);
        kg_log_seconds_cell(log, round->baseline);
        kg_log_cell(log, round->result);
        kg_text_add(log->text, "\n");
    }
}

// The name of a kind of outcome. A record may hold others.
static void add_outcome(struct kg_log *log, const char *outcome)
{
    static const char *const chinese[KG_OUTCOME_COUNT] = {
        [KG_OUTCOME_MEASURED] = "已测量", [KG_OUTCOME_INVALID] = "无效",
        [KG_OUTCOME_PRUNED] = "已剪枝",   [KG_OUTCOME_COMPILE] = "编译失败",
        [KG_OUTCOME_WRONG] = "结果错误",  [KG_OUTCOME_FAULT] = "运行出错",
        [KG_OUTCOME_TIMEOUT] = "超时",
    };
    for (int i = 0; i < KG_OUTCOME_COUNT && log->language == KG_CHINESE; i++)
        if (chinese[i] && strcmp(outcome, kg_outcome_names[i]) == 0) {
            kg_log_cell(log, chinese[i]);
            return;
        }
    kg_log_cell(log, outcome);
}

static void add_count(struct kg_log *log, const struct kg_log_row *row)
{
    add_outcome(log, row->outcome);
    kg_text_format(log->text, " %lld |", (long long)row->count);
    kg_log_cell(log, row->first);
    kg_log_cell(log, row->last);
}

static void add_fastest(struct kg_log *log, const struct kg_log_row *row)
{
    kg_log_cell(log, row->choice);
    kg_log_seconds_cell(log, row->median);
    kg_log_seconds_cell(log, row->spread);
    kg_text_format(log->text, " %lld |", (long long)row->count);
    kg_log_seconds_cell(log, row->bound);
    kg_log_cell(log, row->last);
}

static void add_failed(struct kg_log *log, const struct kg_log_row *row)
{
    kg_log_cell(log, row->choice);
    add_outcome(log, row->outcome);
    kg_log_cell(log, row->reason);
    kg_log_cell(log, row->last);
}

static void add_row(void *user, const struct kg_log_row *row)
{
    struct table *table = user;
    if (!table->begun)
        kg_text_add(table->log->text, table->heading[table->log->language]);
    table->begun = true;
    kg_text_add(table->log->text, "|");
    table->add(table->log, row);
    kg_text_add(table->log->text, "\n");
}

enum kg_status kg_log_tables(struct kg_log *log, struct kg_error *error)
{
    struct table tables[KG_LOG_TABLE_COUNT] = {
        [KG_LOG_COUNTS] = {.add = add_count,
                           .heading = {"\n### Outcomes\n\n| outcome | candidates | first | last |\n"
                                       "|---|---|---|---|\n",
                                       "\n### 测试结果统计\n\n| 结果 | 候选数 | 最早 | 最近 |\n"
                                       "|---|---|---|---|\n"}},
        [KG_LOG_FASTEST] = {.add = add_fastest,
                            .heading = {"\n### Fastest\n\n"
                                        "| choice | median | spread | samples | bound | date |\n"
                                        "|---|---|---|---|---|---|\n",
                                        "\n### 最快的候选\n\n"
                                        "| 方案 | 中位数 | 离散度 | 样本数 | 下限 | 日期 |\n"
                                        "|---|---|---|---|---|---|\n"}},
        [KG_LOG_FAILED] = {.add = add_failed,
                           .heading = {"\n### Failed\n\n| choice | outcome | reason | date |\n"
                                       "|---|---|---|---|\n",
                                       "\n### 失败的候选\n\n| 方案 | 结果 | 原因 | 日期 |\n"
                                       "|---|---|---|---|\n"}},
    };
    enum kg_status status = KG_OK;
    add_rounds(log);
    for (int i = 0; i < KG_LOG_TABLE_COUNT && status == KG_OK; i++) {
        tables[i].log = log;
        status = kg_store_log_rows(log->store, log->view->key, (enum kg_log_table)i, add_row,
                                   &tables[i], error);
    }
    return status;
}
