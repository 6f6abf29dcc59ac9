// Section 3.1 of the definition document for CPUs, how the work is divided among cores, and what
// the sections of GPUs and CPUs both ask of a nest.

#include "analyze/document.h"

#include <math.h>

static bool uses(const struct kg_nest *nest, const struct kg_access *access, int first, int last)
{
    bool used[KG_MAX_INDICES] = {false};
    (void)nest;
    kg_analyze_used(access->read, used);
    for (int a = first; a < last; a++)
        if (used[a])
            return true;
    return false;
}

struct kg_document_product kg_document_product_of(const struct kg_nest *nest)
{
    struct kg_document_product sizes = {1, 1, 1};
    for (int a = 0; a < nest->output_axes; a++) {
        bool in_first = false, in_all = true, seen = false;
        for (int i = 0; i < nest->access_count; i++) {
            const struct kg_access *access = &nest->accesses[i];
            if (!uses(nest, access, nest->output_axes, nest->axis_count))
                continue;
            bool here = uses(nest, access, a, a + 1);
            in_first = seen ? in_first : here;
            in_all = in_all && here;
            seen = true;
        }
        *(in_all ? &sizes.batch : in_first ? &sizes.m : &sizes.n) *= (double)nest->extent[a];
    }
    return sizes;
}

bool kg_document_scans(const struct kg_nest *nest, double *rows, double *length)
{
    bool loops[KG_MAX_INDICES];
    *rows = *length = 1;
    kg_analyze_loops(nest, loops);
    for (int a = 0; a < nest->output_axes; a++)
        *(loops[a] ? rows : length) *= (double)nest->extent[a];
    return *length != 1;
}

bool kg_document_has_broadcast(const struct kg_document *document)
{
    const struct kg_nest *nest = document->main;
    double rows = kg_document_rows(nest);
    for (int i = 0; i < nest->access_count; i++)
        if ((double)kg_analyze_footprint(document->problem, nest, &nest->accesses[i]) * 2 <= rows &&
            nest->accesses[i].tensor->rank > 0)
            return true;
    return false;
}

static void say_rows(struct kg_document *document)
{
    double rows = kg_document_rows(document->main), columns = kg_document_columns(document->main);
    int count = document->facts->units;
    kg_document_say(document, "%s independent results, each of %s elements. ",
                    "共 %s 个相互独立的结果，每个由 %s 个元素归约得到。",
                    kg_document_count(rows).text, kg_document_count(columns).text);
    if (rows < 4.0 * count)
        kg_document_say(
            document,
            "That is too few for %d cores: split each reduction into about %.0f parts and "
            "combine them in a second step.\n\n",
            "不足以占满 %d 个核心：应将每个归约切分为约 %.0f 段，再用第二步合并。\n\n", count,
            ceil(4.0 * count / fmax(rows, 1)));
    else if (columns < KG_DOCUMENT_BLOCK / 4)
        kg_document_say(document,
                        "Rows are short: let one task take about %.0f of them, several rows in "
                        "one vector.\n\n",
                        "每行较短：一个任务处理约 %.0f 行，多行放入同一向量。\n\n",
                        fmax(KG_DOCUMENT_BLOCK / fmax(columns, 1), 1));
    else if (count > 0)
        kg_document_say(document,
                        "One thread takes whole rows and combines them in registers, %s rows a "
                        "core.\n\n",
                        "每个线程处理整行，归约全程在寄存器中完成，每个核心 %s 行。\n\n",
                        kg_document_count(rows / count).text);
    else
        kg_document_say(document, "One thread takes whole rows and combines them in registers.\n\n",
                        "每个线程处理整行，归约全程在寄存器中完成。\n\n");
}

static void say_product(struct kg_document *document)
{
    struct kg_document_product sizes = kg_document_product_of(document->main);
    const int tile = KG_DOCUMENT_TILE, count = document->facts->units;
    double tiles = ceil(sizes.m / tile) * ceil(sizes.n / tile) * sizes.batch;
    double columns = kg_document_columns(document->main);
    kg_document_say(document, "A product of %s × %s × %s, %s time%s. ",
                    "%s × %s × %s 的矩阵乘，共 %s 个%.0s。", kg_document_count(sizes.m).text,
                    kg_document_count(sizes.n).text, kg_document_count(columns).text,
                    kg_document_count(sizes.batch).text, sizes.batch == 1 ? "" : "s");
    if (fmin(sizes.m, sizes.n) < 16)
        kg_document_say(document,
                        "One side is below 16: it is the larger factor's bandwidth that counts, "
                        "and tiles should be long, not square.\n\n",
                        "有一侧小于 16：瓶颈是较大因子的读取带宽，应使用长条形而非方形分块。\n\n");
    else if (tiles < count)
        kg_document_say(
            document,
            "There are %.0f tiles of %d × %d for %d cores: take smaller tiles, or split "
            "the reduction.\n\n",
            "按 %2$d × %3$d 只分出 %1$.0f 块，而核心有 %4$d 个：应减小分块，或切分归约"
            "维。\n\n",
            tiles, tile, tile, count);
    else if (count > 0)
        kg_document_say(document,
                        "There are %.0f tiles of %d × %d, %.1f a core; cores that wait for the "
                        "last tiles cost %.0f%%.\n\n",
                        "按 %2$d × %3$d 分为 %1$.0f 块，每个核心 %4$.1f 块；等待最后几块的损失为 "
                        "%5$.0f%%。\n\n",
                        tiles, tile, tile, tiles / count,
                        100 * (ceil(tiles / count) / (tiles / count) - 1));
    else
        kg_document_say(document, "There are %.0f tiles of %d × %d.\n\n",
                        "按 %2$d × %3$d 分为 %1$.0f 块。\n\n", tiles, tile, tile);
}

static void say_scan(struct kg_document *document)
{
    double rows, length;
    int count = document->facts->units;
    if (!kg_document_scans(document->main, &rows, &length)) {
        say_rows(document);
        return;
    }
    kg_document_say(document, "%s running results of length %s. ", "共 %s 条扫描，每条长 %s。",
                    kg_document_count(rows).text, kg_document_count(length).text);
    if (rows < 2.0 * count)
        kg_document_say(document,
                        "That is too few rows for %d cores: cut each into chunks, scan the chunks, "
                        "then carry their totals.\n\n",
                        "行数不足以占满 %d 个核心：应将每条扫描切成若干段，段内扫描后再传递段间"
                        "前缀。\n\n",
                        count);
    else
        kg_document_say(document,
                        "One thread takes whole rows and carries their results along, without a "
                        "second pass.\n\n",
                        "每个线程处理整行，沿行传递前缀，无需第二遍扫描。\n\n");
}

static void say_outputs(struct kg_document *document)
{
    double outputs = kg_document_rows(document->main);
    int count = document->facts->units;
    kg_document_say(document, "%s outputs, none of which waits for another",
                    "共 %s 个输出元素，互不依赖", kg_document_count(outputs).text);
    if (count > 0)
        kg_document_say(document, ": %s a core", "：每个核心 %s 个",
                        kg_document_count(outputs / count).text);
    if (document->main->output_axes > 1 && kg_document_has_broadcast(document))
        kg_document_say(document,
                        ". Some inputs do not vary with every axis: a thread that takes blocks of "
                        "several rows keeps them in registers.\n\n",
                        "。部分输入不随所有轴变化：线程按多行的块计算，可将其保留在寄存器中。"
                        "\n\n");
    else
        kg_document_say(document,
                        ". One loop over merged axes is enough, of which each thread takes a "
                        "range.\n\n",
                        "。合并各轴后用一重循环即可，每个线程处理其中一段。\n\n");
}

void kg_document_cores(struct kg_document *document)
{
    kg_document_say(document, "### 3.1 Cores and parallelism\n\n", "### 3.1 多核并行优化\n\n");
    switch (document->main->class) {
    case KG_CLASS_REDUCE:
        say_rows(document);
        break;
    case KG_CLASS_CONTRACT:
        say_product(document);
        break;
    case KG_CLASS_SCAN:
        say_scan(document);
        break;
    default:
        say_outputs(document);
        break;
    }
}
