// Fourth section of the definition document: what to examine and to change if the goal is missed.

#include "analyze/document.h"

// Fraction of the roofline that a good memory-bound kernel reaches at least.
#define GOOD_SHARE 0.6

static void say_row(struct kg_document *document, const char *english, const char *chinese)
{
    kg_document_say(document, "| %s |\n", "| %s |\n",
                    document->language == KG_CHINESE ? chinese : english);
}

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

static void say_diagnoses(struct kg_document *document)
{
    enum kg_class class = document->problem->class;
    bool host = kg_document_is_of_host(document);
    kg_document_say(document, "### 4.1 Diagnosis\n\n", "### 4.1 问题诊断框架\n\n");
    say_share(document);
    kg_document_say(document, "| Symptom | Cause | Change |\n|---|---|---|\n",
                    "| 表现 | 原因 | 修改 |\n|---|---|---|\n");
    if (host)
        say_row(document,
                "compulsory bytes / time well below the bandwidth | narrow or unaligned accesses, "
                "too few loads under way | wider vectors, several rows at a time, prefetching",
                "必需字节数 / 时间 远低于内存带宽 | 访问过窄或未对齐，在途加载不足 | 加宽向量访问，"
                "同时处理多行，预取数据");
    else
        say_row(document,
                "compulsory bytes / time well below the bandwidth | narrow or unaligned accesses, "
                "too few loads under way | wider vectors, more rows a program, more stages",
                "必需字节数 / 时间 远低于内存带宽 | 访问过窄或未对齐，在途加载不足 | 加宽向量访问，"
                "增加每块行数，增加流水级数");
    if (document->problem->nest_count > 1)
        say_row(document,
                "bytes moved well above the compulsory ones | intermediates pass through memory | "
                "fuse the statements into one kernel",
                "实际传输量远大于必需数据量 | 中间张量写入内存 | 将各语句融合为一个内核");
    if (has_reuse(document) && host)
        say_row(document,
                "many misses of the last cache | tiles computed one after the other share too "
                "little | larger tiles, another order of loops",
                "末级缓存命中率低 | 先后计算的分块共享的数据过少 | 增大分块，调整循环次序");
    else if (has_reuse(document))
        say_row(document,
                "many misses of the last cache | tiles of neighbouring programs share too little | "
                "larger tiles, programs ordered in groups",
                "末级缓存命中率低 | 相邻程序块共享的数据过少 | 增大分块，按组重排程序块次序");
    if (host)
        say_row(document,
                "cores without work, or waiting for the last one | too little parallelism | "
                "smaller blocks, or a split reduction",
                "有核心空闲，或等待最后一个核心 | 并行度不足 | 减小块大小，或切分归约维");
    else
        say_row(document,
                "fewer programs than units, or a last wave nearly empty | too little parallelism | "
                "smaller blocks, or a split reduction",
                "程序块少于计算单元，或末尾波次很空 | 并行度不足 | 减小块大小，或切分归约维");
    if (host)
        say_row(document,
                "spills in the main loop | too many values live at once | smaller tiles, less "
                "unrolling",
                "主循环中出现寄存器溢出 | 同时存活的值过多 | 减小分块，减少展开");
    else
        say_row(document,
                "spills in the assembly, low occupancy | too many values live at once | smaller "
                "tiles, less unrolling, another register limit",
                "汇编中出现寄存器溢出，占用率低 | 同时存活的值过多 | 减小分块，减少展开，调整寄存器"
                "上限");
    bool multiplies = class == KG_CLASS_CONTRACT || class == KG_CLASS_WINDOW;
    if (multiplies && host)
        say_row(
            document,
            "few multiply-adds of full vectors in the main loop | the tile leaves lanes idle, "
            "or operands are not adjacent | tiles of whole vectors, packed operands",
            "主循环中整向量乘加指令过少 | 分块使部分通道空闲，或操作数不连续 | 分块取整数个向量，"
            "打包操作数");
    else if (multiplies)
        say_row(document,
                "no matrix or async-copy instructions in the assembly | tile shape or dtype does "
                "not fit the matrix unit | tile sizes that are multiples of 16, staged operands",
                "汇编中没有矩阵指令或异步拷贝指令 | 分块形状或数据类型不满足矩阵单元要求 | 分块取 "
                "16 的倍数，操作数经共享内存分级加载");
    if (document->problem->transcendentals > 0 && host)
        say_row(document,
                "arithmetic busy, memory idle | transcendental calls | fewer calls by algebra, "
                "rows kept in a cache so that none is repeated",
                "运算繁忙而内存空闲 | 超越函数调用过多 | 通过代数变换减少调用，行数据留在缓存中避免"
                "重复计算");
    else if (document->problem->transcendentals > 0)
        say_row(document,
                "arithmetic units busy, memory idle | transcendental calls | fewer calls by "
                "algebra, rows kept on chip so that none is repeated",
                "计算单元繁忙而内存空闲 | 超越函数调用过多 | 通过代数变换减少调用，行数据留在片上"
                "避免重复计算");
    if (host)
        say_row(document,
                "time does not shrink with the shape | waking threads for every kernel | fewer "
                "kernels, fewer threads",
                "形状变小而时间不变 | 每个内核都要唤醒线程 | 减少内核数量，减少线程数");
    else
        say_row(document,
                "time does not shrink with the shape | start-up of kernels | fewer kernels, replay "
                "as a graph",
                "形状变小而时间不变 | 内核启动开销 | 减少内核数量，以图方式重放");
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
