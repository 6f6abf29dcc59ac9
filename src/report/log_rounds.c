// The rounds of each build as a story: the version that a round started from, what limited it, what
// was changed and why, what that promised and gave, and what is learned from it.

#include "report/log_parts.h"

#include <string.h>

#define MAX_BUILDS 5 // the latest ones; the table has the rounds of all

// A build: rounds [first, end) of the view, without those that judged a kernel for somebody.
struct build {
    int first, end;
};

static bool is_of_build(const struct kg_round *round)
{
    return round->number > 0 || kg_log_begins_build(round);
}

static enum kg_bottleneck_on place_of(const struct kg_log *log)
{
    return strncmp(log->view->key->isa, "sm_", 3) == 0 ? KG_BOTTLENECK_ON_GPU
                                                       : KG_BOTTLENECK_ON_HOST;
}

// NULL: the record names none, or one that is not known.
static const struct kg_bottleneck_row *bottleneck_of(const struct kg_round *round)
{
    for (int i = 0; i < KG_BOTTLENECK_COUNT; i++)
        if (strcmp(round->bottleneck, kg_bottlenecks[i].key) == 0)
            return &kg_bottlenecks[i];
    return NULL;
}

// The version that a round starts from. Records of earlier versions lack it: it is then what the
// rounds before have kept.
static const char *base_of(const struct kg_round *round, const struct kg_round *last_kept)
{
    return round->base[0] ? round->base : last_kept ? last_kept->choice : "";
}

// The rest of a text that begins with the name of what it is about: the name is said already.
static const char *without_name(const char *text, const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || strncmp(text, name, length) != 0)
        return text;
    const char *rest = text + length;
    return *rest == ':' || *rest == '\0' ? rest + strspn(rest, ": ") : text;
}

// What a time is of the baseline's and of the least possible one, as far as that is known.
static void say_standing(struct kg_log *log, double seconds, double baseline)
{
    double roofline = kg_log_roofline(log);
    if (kg_view_known(seconds) && kg_view_known(baseline))
        kg_log_say(log, ", %s times as fast as the baseline", "，速度为基准的 %s 倍",
                   kg_log_ratio(baseline, seconds).text);
    if (kg_view_known(seconds) && kg_view_known(roofline))
        kg_log_say(log, ", %s of the roofline", "，达到 Roofline 的 %s",
                   kg_log_share(roofline, seconds).text);
    kg_log_say(log, ".", "。");
}

static void say_current(struct kg_log *log, const struct kg_round *round, const char *base)
{
    bool first = kg_log_begins_build(round);
    double seconds = first ? round->after : round->before;
    kg_log_say(log, "\n**Current version.** ", "\n**当前版本**：");
    if (base[0] || first) {
        kg_log_choice(log, first ? round->choice : base);
        kg_log_say(log, ": ", "：");
    }
    kg_text_add(log->text, kg_log_seconds(log, seconds).text);
    say_standing(log, seconds, round->baseline);
    kg_text_add(log->text, "\n");
}

static void say_bottleneck(struct kg_log *log, const struct kg_round *round)
{
    const struct kg_bottleneck_row *row = bottleneck_of(round);
    const struct kg_cost *cost = &log->cost;
    kg_log_say(log, "\n**Bottleneck analysis.**", "\n**性能瓶颈分析**：");
    if (row && row->symptom[place_of(log)][log->language])
        kg_log_say(log, " %s: %s.", "%s：%s。", row->name[log->language],
                   row->symptom[place_of(log)][log->language]);
    if (round->diagnosis[0]) {
        kg_log_say(log, " Evidence: ", "诊断依据：");
        kg_log_words(log, without_name(round->diagnosis, row ? row->name[KG_ENGLISH] : ""));
        kg_log_say(log, ".", "。");
    }
    if (kg_view_known(cost->memory_seconds) && kg_view_known(cost->compute_seconds) &&
        kg_view_known(round->before))
        kg_log_say(log, " Compulsory bytes at %s of the bandwidth, operations at %s of the peak.",
                   "必需数据的带宽利用率 %s，峰值算力利用率 %s。",
                   kg_log_share(cost->memory_seconds, round->before).text,
                   kg_log_share(cost->compute_seconds, round->before).text);
    kg_text_add(log->text, "\n");
}

// The name of its kind of change; `otherwise` if the record has none.
static void say_kind(struct kg_log *log, const struct kg_round *round, const char *otherwise)
{
    const char *change = kg_log_change(round->kind, log->language);
    if (!change)
        kg_log_words(log, round->kind);
    else
        kg_text_add(log->text, change[0] ? change : otherwise);
}

static void say_change(struct kg_log *log, const struct kg_round *round, bool same)
{
    const struct kg_bottleneck_row *row = bottleneck_of(round);
    const char *english = kg_log_change(round->kind, KG_ENGLISH);
    const char *change = without_name(round->change, english ? english : "");
    kg_log_say(log, "\n**Change and why.** ", "\n**修改方案与原因**：");
    say_kind(log, round, "");
    if (round->kind[0] && change[0])
        kg_log_say(log, ": ", "：");
    kg_log_words(log, change);
    kg_log_say(log, ".", "。");
    if (row && row->advice[place_of(log)][log->language])
        kg_log_say(log, " What helps against it: %s.", "针对该瓶颈的思路：%s。",
                   row->advice[place_of(log)][log->language]);
    if (round->tried > 0)
        kg_log_say(log, " Candidates tried: %d.", "尝试的候选数：%d。", round->tried);
    if (!same) {
        kg_log_say(log, " The fastest one: ", "其中最快的方案：");
        kg_log_choice(log, round->choice);
        kg_log_say(log, ".", "。");
    }
    kg_text_add(log->text, "\n");
}

// What was predicted is of the race before: its ratio to a time of this one would mean little.
static void say_prediction(struct kg_log *log, const struct kg_round *round)
{
    if (!kg_view_known(round->predicted))
        return;
    kg_log_say(log, "\n**Predicted and reached.** At best %s", "\n**预期与实测**：预期最好 %s",
               kg_log_seconds(log, round->predicted).text);
    if (kg_view_known(round->after))
        kg_log_say(log, "; reached %s, %s times as fast", "；实测 %s，速度为当前版本的 %s 倍",
                   kg_log_seconds(log, round->after).text,
                   kg_log_ratio(round->before, round->after).text);
    kg_log_say(log, ".\n", "。\n");
}

static void say_code(struct kg_log *log, const struct kg_round *round)
{
    if (!round->difference[0])
        return;
    kg_log_say(log, "\n**Code before and after.**\n\n", "\n**修改前后代码**：\n\n");
    kg_log_diff(log, round->difference);
}

static void say_result(struct kg_log *log, const struct kg_round *round, bool same)
{
    kg_log_say(log, "\n**Result.** ", "\n**测试结果**：");
    if (kg_log_is_kept(round))
        kg_log_say(log, "Kept.", "保留。");
    else
        kg_log_say(log, "The current version stays.", "仍用当前版本。");
    if (kg_view_known(round->after) && !same) {
        kg_log_say(log, " %s against %s in the same race, %s times as fast as that",
                   "同一轮对比中 %s，当前版本 %s，速度为其 %s 倍",
                   kg_log_seconds(log, round->after).text, kg_log_seconds(log, round->before).text,
                   kg_log_ratio(round->before, round->after).text);
        say_standing(log, round->after, round->baseline);
    }
    if (round->result[0] && strcmp(round->result, "kept") != 0) {
        kg_log_say(log, " On record: ", "记录：");
        kg_log_words(log, round->result);
        kg_log_say(log, ".", "。");
    }
    kg_text_add(log->text, "\n");
}

static void say_lesson(struct kg_log *log, const struct kg_round *round, bool same)
{
    struct kg_log_figure ratio = kg_log_ratio(round->before, round->after);
    bool is_kind = round->kind[0] && strcmp(round->kind, KG_ROUND_SEARCH) != 0; // of change
    kg_log_say(log, "\n**Lesson.** ", "\n**经验总结**：");
    say_kind(log, round, log->language == KG_CHINESE ? "本次修改" : "this change");
    if (!kg_view_known(round->after))
        kg_log_say(log, ": nothing was measured, so nothing is known of it.\n",
                   "：没有测得时间，无法判断其效果。\n");
    else if (same)
        kg_log_say(log, ": no candidate is faster than the current version.\n",
                   "：没有候选快于当前版本。\n");
    else if (kg_log_is_kept(round))
        kg_log_say(log, ": %s times as fast as the version before.\n",
                   "：速度达到修改前的 %s 倍。\n", ratio.text);
    else if (is_kind)
        kg_log_say(log,
                   ": gave nothing from here (%s times as fast); it is not tried again from this "
                   "version.\n",
                   "：从当前版本出发没有收益（速度为其 %s 倍），不再从该版本重试。\n", ratio.text);
    else
        kg_log_say(log, ": %s times as fast, which is no gain.\n",
                   "：速度为当前版本的 %s 倍，没有收益。\n", ratio.text);
}

static void say_round(struct kg_log *log, const struct kg_round *round,
                      const struct kg_round *last_kept)
{
    const char *base = base_of(round, last_kept);
    const char *change = kg_log_change(round->kind, log->language);
    bool same = strcmp(round->choice, base) == 0;
    if (kg_log_begins_build(round)) {
        kg_log_say(log, "\n#### First version\n", "\n#### 初始版本\n");
        say_current(log, round, base);
        return;
    }
    kg_log_say(log, "\n#### Round %d", "\n#### 第 %d 轮", round->number);
    if (change && change[0])
        kg_log_say(log, ": %s", "：%s", change);
    kg_text_add(log->text, "\n");
    say_current(log, round, base);
    say_bottleneck(log, round);
    say_change(log, round, same);
    say_prediction(log, round);
    say_code(log, round);
    say_result(log, round, same);
    say_lesson(log, round, same);
}

// Whether a round tried this kind from the version `base`. One that found it by changing parameters
// has measured its neighbours.
static bool was_tried(const struct kg_log *log, const struct build *build, const char *base,
                      enum kg_change change)
{
    bool is_parameters = change != KG_CHANGE_GROUPING && change != KG_CHANGE_FORM;
    for (int i = build->first; i < build->end; i++) {
        const struct kg_round *round = &log->view->rounds[i];
        bool found = is_parameters && round->kept && strcmp(round->choice, base) == 0;
        if (strcmp(round->kind, kg_change_keys[change]) == 0 &&
            (found || strcmp(round->base, base) == 0))
            return true;
    }
    return false;
}

// What helps against the bottleneck of the last round, and was not tried from the version that the
// build ended with.
static void say_next(struct kg_log *log, const struct build *build, const struct kg_round *last,
                     const struct kg_round *last_kept)
{
    const struct kg_bottleneck_row *row = bottleneck_of(last);
    bool any = false;
    if (!row || !last_kept)
        return;
    for (int i = 0; i < KG_MAX_CHANGES; i++) {
        enum kg_change change = row->changes[i];
        if (change == KG_CHANGE_NONE || was_tried(log, build, last_kept->choice, change))
            continue;
        if (any)
            kg_log_say(log, "; ", "；");
        else
            kg_log_say(log, "\n**Not tried from the last version.** ",
                       "\n**后续优化方向（尚未从最终版本尝试）**：");
        kg_text_add(log->text, kg_change_names[change][log->language]);
        any = true;
    }
    if (any)
        kg_log_say(log, ".\n", "。\n");
}

static void say_build(struct kg_log *log, const struct build *build)
{
    const struct kg_round *last = NULL, *last_kept = NULL;
    kg_log_say(log, "\n### The build of ", "\n### 构建 ");
    kg_log_words(log, log->view->rounds[build->first].date);
    kg_text_add(log->text, "\n");
    for (int i = build->first; i < build->end; i++) {
        const struct kg_round *round = &log->view->rounds[i];
        if (!is_of_build(round))
            continue;
        say_round(log, round, last_kept);
        if (kg_log_begins_build(round) || kg_log_is_kept(round))
            last_kept = round;
        last = round;
    }
    if (last)
        say_next(log, build, last, last_kept);
}

// The build after the one that ends at `at`; false: there is none.
static bool next_build(const struct kg_view *view, int at, struct build *build)
{
    while (at < view->round_count && !is_of_build(&view->rounds[at]))
        at++;
    if (at == view->round_count)
        return false;
    *build = (struct build){at, at + 1};
    while (build->end < view->round_count && !kg_log_begins_build(&view->rounds[build->end]))
        build->end++;
    return true;
}

void kg_log_builds(struct kg_log *log)
{
    struct build build;
    int count = 0;
    for (int at = 0; next_build(log->view, at, &build); at = build.end)
        count++;
    if (count > MAX_BUILDS)
        kg_log_say(log, "\nOnly the latest builds are told as a story.\n",
                   "\n仅详述最近的几次构建。\n");
    for (int at = 0; next_build(log->view, at, &build); at = build.end)
        if (count-- <= MAX_BUILDS)
            say_build(log, &build);
}
