// Fourth section of the definition document: what to examine and to change if the goal is missed.

#include "analyze/bottleneck.h"
#include "analyze/document.h"

// Fraction of the roofline that a good memory-bound kernel reaches at least.
#define GOOD_SHARE 0.6

static bool has_reuse(const struct kg_document *document)
{
    const struct kg_nest *nest = document->main;
    for (int i = 0; nest && i < nest->access_count; i++)
        if ((double)kg_analyze_footprint(document->problem, nest, &nest->accesses[i]) * 2 <=
            nest->iterations)
            return true;
    return false;
}

static void say_share(struct kg_document *document)
{
    if (!document->facts || document->roofline.seconds <= 0)
        return;
    kg_document_say(
        document,
        "The roofline is %s: a time above %s (%.0f%% of the roofline) leaves room; near it, "
        "a goal that is still missed cannot be met.\n\n",
        "Roofline 时间下限为 %s：实测超过 %s（不足上限的 %.0f%%）说明仍有优化空间；若已接近"
        "下限而仍未达标，则目标本身不可达。\n\n",
        kg_document_seconds(document->roofline.seconds).text,
        kg_document_seconds(document->roofline.seconds / GOOD_SHARE).text, 100 * GOOD_SHARE);
}

// Whether the problem can have this bottleneck at all.
static bool is_possible(const struct kg_document *document, enum kg_bottleneck bottleneck)
{
    const struct kg_problem *problem = document->problem;
    bool multiplies = problem->class == KG_CLASS_CONTRACT || problem->class == KG_CLASS_WINDOW;
    switch (bottleneck) {
    case KG_BOTTLENECK_NONE: // the sentence above the table says it in numbers
        return false;
    case KG_BOTTLENECK_LOCALITY:
        return problem->nest_count > 1 || has_reuse(document);
    case KG_BOTTLENECK_TENSOR:
        return multiplies;
    case KG_BOTTLENECK_SPECIAL:
        return problem->transcendentals > 0;
    case KG_BOTTLENECK_ARITHMETIC:
        return multiplies || (document->facts && !document->roofline.memory_bound);
    default:
        return true;
    }
}

static void say_diagnoses(struct kg_document *document)
{
    int on = kg_document_is_of_host(document) ? KG_BOTTLENECK_ON_HOST : KG_BOTTLENECK_ON_GPU;
    int language = document->language == KG_CHINESE;
    kg_document_say(document, "### 4.1 Diagnosis\n\n", "### 4.1 问题诊断框架\n\n");
    say_share(document);
    kg_document_say(document, "| Symptom | Bottleneck | Change |\n|---|---|---|\n",
                    "| 表现 | 瓶颈 | 修改 |\n|---|---|---|\n");
    for (int i = 0; i < KG_BOTTLENECK_COUNT; i++) {
        const struct kg_bottleneck_row *row = &kg_bottlenecks[i];
        if (!row->symptom[on][language] || !is_possible(document, (enum kg_bottleneck)i))
            continue;
        kg_document_say(document, "| %s | %s | %s |\n", "| %s | %s | %s |\n",
                        row->symptom[on][language], row->name[language], row->advice[on][language]);
    }
}

void kg_document_remedies(struct kg_document *document)
{
    kg_document_say(document, "## 4. When the goal is missed\n\n", "## 4. 未达目标修改方案\n\n");
    say_diagnoses(document);
    static const char *const parameters[2][2] = {
        {"blocks, warps, stages", "块大小、warp、stage"},
        {"blocks, vectors, unrolling", "块大小、向量宽度、展开"},
    };
    bool host = kg_document_is_of_host(document), chinese = document->language == KG_CHINESE;
    kg_document_say(
        document,
        "\n### 4.2 Kinds of change\n\n"
        "| What changes | What has to be generated again |\n|---|---|\n"
        "| parameters (%1$s) | the kernel only (`%2$s%3$s`) |\n"
        "| the interface (tensors, dtypes) | this document and the kernel |\n"
        "| the formula | this document and the kernel |\n\n"
        "### 4.3 Record of a round\n\n"
        "Version · shape · speed-up before and goal · diagnosis with its numbers · kind of change, "
        "before and after, and why · verdict of the accuracy gate · speed-up after · what was "
        "learned.\n",
        "\n### 4.2 具体修改方案\n\n"
        "| 修改类型 | 需要重新生成的文件 |\n|---|---|\n"
        "| 性能参数（%1$s） | 仅内核（`%2$s%3$s`） |\n"
        "| 接口（张量、数据类型） | 本文档与内核 |\n"
        "| 计算公式 | 本文档与内核 |\n\n"
        "### 4.3 记档模板\n\n"
        "版本号 · 测试Shape · 当前加速比与目标 · 瓶颈诊断及数据 · 修改类型、修改前后内容及原因 · "
        "正确性验证结论 · 新加速比 · 经验总结。\n",
        parameters[host][chinese], document->problem->op->name,
        !document->facts ? ".c` or `.cu"
        : host           ? ".c"
                         : ".cu");
}
