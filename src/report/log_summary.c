// What the builds of a problem reached: the first version of the latest one, what its plain search
// found, what its other rounds made of it, and the best version that is known now.

#include "report/log_parts.h"

#include <string.h>

#define NOISE 1.01 // a goal missed by less is met within the noise, as in a build

// A version with the times of one race.
struct version {
    const char *choice; // NULL: there is none
    double seconds, baseline;
};

struct reached {
    struct version first, search, rounds;
};

static struct version version_of(const struct kg_round *round)
{
    return (struct version){round->choice, round->after, round->baseline};
}

// Of the latest build. `rounds` stays empty if no round followed the search, or if the search's
// version took its place again.
static struct reached follow(const struct kg_view *view)
{
    struct reached reached = {0};
    struct version now = {0};
    for (int i = 0; i < view->round_count; i++) {
        const struct kg_round *round = &view->rounds[i];
        if (kg_log_begins_build(round)) {
            reached = (struct reached){.first = version_of(round)};
            now = reached.first;
        }
        if (round->number == 0 || !reached.first.choice)
            continue;
        if (kg_log_is_kept(round))
            now = version_of(round);
        if (strcmp(round->kind, KG_ROUND_SEARCH) == 0) {
            reached.search = now;
            reached.rounds = (struct version){0};
        } else {
            reached.rounds = now;
        }
    }
    return reached;
}

static void say_version(struct kg_log *log, const char *english, const char *chinese,
                        const struct version *version, const struct version *first)
{
    if (!version->choice)
        return;
    kg_text_add(log->text, "|");
    kg_log_say_cell(log, english, chinese);
    kg_log_seconds_cell(log, version->seconds);
    kg_text_format(log->text, " %s | %s | %s |",
                   kg_log_ratio(first->seconds, version->seconds).text,
                   kg_log_ratio(version->baseline, version->seconds).text,
                   kg_log_share(kg_log_roofline(log), version->seconds).text);
    kg_log_cell(log, version->choice);
    kg_text_add(log->text, "\n");
}

static void say_target(struct kg_log *log, double seconds, double baseline)
{
    bool compared = kg_view_known(seconds) && kg_view_known(baseline);
    double speedup = compared ? baseline / seconds : 0;
    if (log->target <= 0)
        return;
    kg_log_say(log,
               "\nTarget: %g times as fast as the baseline: ", "\n目标：速度达到基准的 %g 倍：",
               log->target);
    if (!compared)
        kg_log_say(log, "not compared.\n", "未与基准比较。\n");
    else if (speedup >= log->target)
        kg_log_say(log, "met.\n", "已达到。\n");
    else if (speedup * NOISE >= log->target)
        kg_log_say(log, "met within the noise.\n", "在噪声范围内达到。\n");
    else
        kg_log_say(log, "missed.\n", "未达到。\n");
}

static void say_bounds(struct kg_log *log)
{
    const struct kg_cost *cost = &log->cost;
    if (!kg_view_known(cost->memory_seconds) || !kg_view_known(cost->compute_seconds))
        return;
    kg_log_say(log,
               "\nAt the bandwidth of this device the compulsory bytes take %s, at its peak rate "
               "the operations take %s.\n",
               "\n按该设备的带宽，必需数据的传输至少需要 %s；按其峰值算力，运算至少需要 %s。\n",
               kg_log_seconds(log, cost->memory_seconds).text,
               kg_log_seconds(log, cost->compute_seconds).text);
}

void kg_log_summary(struct kg_log *log)
{
    const struct kg_view *view = log->view;
    struct reached reached = follow(view);
    struct version best = {view->choice, view->seconds, view->baseline};
    if (view->accuracy == KG_VIEW_REFUSED)
        kg_log_say(log, "\nThe best known version was refused by the accuracy gate.\n",
                   "\n已知最佳版本未通过精度验证。\n");
    if (!best.choice)
        return;
    kg_log_say(log,
               "\n### Summary\n\n"
               "| version | time | times the first one | times the baseline | of the roofline "
               "| choice |\n|---|---|---|---|---|---|\n",
               "\n### 概要\n\n"
               "| 版本 | 时间 | 相对初始版本（倍） | 相对基准（倍） | 占 Roofline | 方案 |\n"
               "|---|---|---|---|---|---|\n");
    say_version(log, "first version, by rule", "初始版本（按规则）", &reached.first,
                &reached.first);
    say_version(log, "after the plain search", "普通搜索之后", &reached.search, &reached.first);
    say_version(log, "after the rounds", "各轮优化之后", &reached.rounds, &reached.first);
    say_version(log, "best known", "已知最佳", &best, &reached.first);
    say_target(log, best.seconds, best.baseline);
    say_bounds(log);
}
