// Third section of the definition document: what matters for this op on this device. Every sentence
// is a conclusion from the analysis, with its numbers; sentences that do not apply are left out.

#include "analyze/document.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK KG_DOCUMENT_BLOCK
#define TILE KG_DOCUMENT_TILE
// Latency of a load from main memory in seconds, on GPUs of this decade, within a third.
#define LATENCY 0.7e-6
// Bytes of a line of a CPU's caches.
#define CACHE_LINE 64

static bool is_gpu(const struct kg_document *document)
{
    return document->facts && document->facts->shared_bytes > 0;
}

static int units(const struct kg_document *document)
{
    return document->facts ? document->facts->units : 0;
}

// Distance in elements between neighbours along an axis; false: not a constant.
static bool step_along(const struct kg_problem *problem, const struct kg_access *access, int axis,
                       int64_t *step)
{
    *step = 0;
    for (int d = 0; d < access->tensor->rank; d++) {
        const struct kg_affine *map = &access->map[d];
        bool used[KG_MAX_INDICES] = {false};
        kg_analyze_used(map->subscript, used);
        if (used[axis] && !map->is_affine)
            return false;
        int64_t stride = problem->layouts[access->tensor->id].stride[d], part;
        if (__builtin_mul_overflow(map->coefficient[axis], stride, &part) ||
            __builtin_add_overflow(*step, part, step))
            return false;
    }
    return true;
}

static double element_bytes(const struct kg_tensor *tensor)
{
    bool is_local = tensor->role == KG_ROLE_LOCAL;
    return kg_dtypes[is_local ? tensor->memory : tensor->type.dtype].bits / 8.0;
}

// The axis along which most bytes of the nest are contiguous, and which is long enough for the 32
// lanes of a warp: adjacent lanes take adjacent elements of it.
static int lane_axis(const struct kg_document *document, const struct kg_nest *nest)
{
    int best = nest->axis_count - 1;
    double max = 0;
    for (int a = 0; a < nest->axis_count; a++) {
        double bytes = 0;
        int64_t step;
        if (a == nest->output_axes - 1)
            bytes += kg_document_rows(nest) * element_bytes(nest->output);
        for (int i = 0; i < nest->access_count; i++)
            if (step_along(document->problem, &nest->accesses[i], a, &step) && llabs(step) == 1)
                bytes += (double)kg_analyze_footprint(document->problem, nest, &nest->accesses[i]) *
                         element_bytes(nest->accesses[i].tensor);
        bytes *= fmin((double)nest->extent[a], 32) / 32;
        if (bytes > max) {
            max = bytes;
            best = a;
        }
    }
    return best;
}

static void say_grid_of_rows(struct kg_document *document)
{
    double rows = kg_document_rows(document->main), columns = kg_document_columns(document->main);
    int count = units(document);
    kg_document_say(document, "%s independent results, each of %s elements. ",
                    "共 %s 个相互独立的结果，每个由 %s 个元素归约得到。",
                    kg_document_count(rows).text, kg_document_count(columns).text);
    if (count > 0 && rows < 4.0 * count)
        kg_document_say(
            document,
            "That is too few for %d units: split each reduction into about %.0f parts "
            "and combine them in a second step.\n\n",
            "不足以占满 %d 个计算单元：应将每个归约切分为约 %.0f 段，再用第二步合并。\n\n", count,
            ceil(4.0 * count / fmax(rows, 1)));
    else if (columns < BLOCK / 4)
        kg_document_say(
            document,
            "Rows are short: let one program take about %.0f of them, one per warp or "
            "less.\n\n",
            "每行较短：一个程序块处理约 %.0f 行，每行由一个 warp 或更少的线程负责。\n\n",
            fmax(BLOCK / fmax(columns, 1), 1));
    else if (count > 0)
        kg_document_say(document,
                        "One program a row keeps the combining on chip, %s rows a unit.\n\n",
                        "每行一个程序块，归约全程在片上完成，每个计算单元 %s 行。\n\n",
                        kg_document_count(rows / count).text);
    else
        kg_document_say(document, "One program a row keeps the combining on chip.\n\n",
                        "每行一个程序块，归约全程在片上完成。\n\n");
}

static void say_grid_of_tiles(struct kg_document *document)
{
    struct kg_document_product sizes = kg_document_product_of(document->main);
    double tiles = ceil(sizes.m / TILE) * ceil(sizes.n / TILE) * sizes.batch;
    double columns = kg_document_columns(document->main);
    int count = units(document);
    kg_document_say(document, "A product of %s × %s × %s, %s time%s. ",
                    "%s × %s × %s 的矩阵乘，共 %s 个%.0s。", kg_document_count(sizes.m).text,
                    kg_document_count(sizes.n).text, kg_document_count(columns).text,
                    kg_document_count(sizes.batch).text, sizes.batch == 1 ? "" : "s");
    if (fmin(sizes.m, sizes.n) < 16)
        kg_document_say(document,
                        "One side is below 16: it is the larger factor's bandwidth that counts, "
                        "and tiles should be long, not square.\n\n",
                        "有一侧小于 16：瓶颈是较大因子的读取带宽，应使用长条形而非方形分块。\n\n");
    else if (count > 0 && tiles < count)
        kg_document_say(document,
                        "Tiles of %d × %d make %.0f programs for %d units: split the reduction, or "
                        "take smaller tiles.\n\n",
                        "按 %d × %d 分块只有 %.0f 个程序块，而计算单元有 %d 个：应切分归约维"
                        "（split-K）或减小分块。\n\n",
                        TILE, TILE, tiles, count);
    else if (count > 0)
        kg_document_say(document,
                        "Tiles of %d × %d make %.0f programs, %.2f waves on %d units; a last wave "
                        "that is not full costs %.0f%%.\n\n",
                        "按 %1$d × %2$d 分块共 %3$.0f 个程序块，在 %5$d 个计算单元上为 %4$.2f "
                        "个波次，末尾波次未占满的损失为 %6$.0f%%。\n\n",
                        TILE, TILE, tiles, tiles / count, count,
                        100 * (ceil(tiles / count) / (tiles / count) - 1));
    else
        kg_document_say(document, "Tiles of %d × %d make %.0f programs.\n\n",
                        "按 %d × %d 分块共 %.0f 个程序块。\n\n", TILE, TILE, tiles);
}

static void say_flat_grid(struct kg_document *document)
{
    double outputs = kg_document_rows(document->main), programs = ceil(outputs / BLOCK);
    int count = units(document);
    kg_document_say(document,
                    "%s outputs, none of which waits for another: ", "共 %s 个输出元素，互不依赖：",
                    kg_document_count(outputs).text);
    if (count > 0)
        kg_document_say(document, "%.0f programs of %d elements, %.1f a unit. ",
                        "按每块 %2$d 个元素划分为 %1$.0f 个程序块，每个计算单元 %3$.1f 个。",
                        programs, BLOCK, programs / count);
    else
        kg_document_say(document, "%.0f programs of %d elements. ",
                        "按每块 %2$d 个元素划分为 %1$.0f 个程序块。", programs, BLOCK);
    if (document->main->output_axes > 1 && kg_document_has_broadcast(document))
        kg_document_say(document,
                        "Some inputs do not vary with every axis: a two-dimensional grid lets a "
                        "program keep them in registers over several rows.\n\n",
                        "部分输入不随所有轴变化：采用二维网格，使程序块在多行之间将其保留在寄存器"
                        "中。\n\n");
    else
        kg_document_say(document, "A one-dimensional grid over merged axes is enough.\n\n",
                        "合并各轴后使用一维网格即可。\n\n");
}

static void say_scan_grid(struct kg_document *document)
{
    double rows, length;
    if (!kg_document_scans(document->main, &rows, &length)) {
        say_grid_of_rows(document);
        return;
    }
    kg_document_say(document, "%s running results of length %s. ", "共 %s 条扫描，每条长 %s。",
                    kg_document_count(rows).text, kg_document_count(length).text);
    if (units(document) > 0 && rows < 2.0 * units(document))
        kg_document_say(document,
                        "That is too few rows for %d units: cut each into chunks, scan the chunks, "
                        "then carry their totals.\n\n",
                        "行数不足以占满 %d 个计算单元：应将每条扫描切成若干段，段内扫描后再传递"
                        "段间前缀。\n\n",
                        units(document));
    else
        kg_document_say(document,
                        "One program a row, a carry from block to block, no second pass.\n\n",
                        "每行一个程序块，块间传递进位，无需第二遍扫描。\n\n");
}

static void say_grid(struct kg_document *document)
{
    if (kg_document_is_of_host(document)) {
        kg_document_cores(document);
        return;
    }
    kg_document_say(document, "### 3.1 Grid and parallelism\n\n", "### 3.1 网格配置优化\n\n");
    switch (document->main->class) {
    case KG_CLASS_REDUCE:
        say_grid_of_rows(document);
        break;
    case KG_CLASS_CONTRACT:
        say_grid_of_tiles(document);
        break;
    case KG_CLASS_SCAN:
        say_scan_grid(document);
        break;
    default:
        say_flat_grid(document);
        break;
    }
}

static void say_blocks(struct kg_document *document)
{
    const struct kg_nest *nest = document->main;
    int lane = lane_axis(document, nest);
    int access =
        document->facts && document->facts->vector_bytes > 0 ? document->facts->vector_bytes : 16;
    double size = element_bytes(nest->access_count ? nest->accesses[0].tensor : nest->output);
    int64_t vector = (int64_t)(access / size), extent = nest->extent[lane];
    bool host = kg_document_is_of_host(document);
    if (host)
        kg_document_say(document, "### 3.2 Sizes of vectors and tiles\n\n",
                        "### 3.2 向量与分块大小优化\n\n");
    else
        kg_document_say(document, "### 3.2 Block sizes\n\n", "### 3.2 块大小优化\n\n");
    if (host)
        kg_document_say(document, "Vectors go along `%s`, ", "向量沿 `%s` 轴展开，",
                        nest->axes[lane]->name);
    else
        kg_document_say(document, "Lanes go along `%s`, ", "线程沿 `%s` 轴展开，",
                        nest->axes[lane]->name);
    kg_document_say(document,
                    "where most bytes are consecutive. %lld elements fill one access of %d bytes; "
                    "%s = %lld ",
                    "该轴上连续的字节最多。%lld 个元素构成一次 %d 字节访问；%s = %lld ",
                    (long long)vector, access, nest->axes[lane]->name, (long long)extent);
    if (vector > 0 && extent % vector == 0)
        kg_document_say(document, "is a multiple of it, so rows stay aligned.",
                        "是其整数倍，各行保持对齐。");
    else
        kg_document_say(document,
                        "is not a multiple of it: rows begin unaligned and need narrower accesses "
                        "or a masked tail.",
                        "不是其整数倍：行首不对齐，需要更窄的访问或带掩码的尾部处理。");
    if (nest->class == KG_CLASS_CONTRACT && is_gpu(document))
        kg_document_say(document,
                        " A stage of two %d × 32 tiles takes %s of the %s of shared memory.",
                        "每级流水的两个 %d × 32 分块占用共享内存 %s（共 %s）。", TILE,
                        kg_document_amount(2.0 * TILE * 32 * size, "B").text,
                        kg_document_amount((double)document->facts->shared_bytes, "B").text);
    if (nest->class == KG_CLASS_REDUCE)
        kg_document_say(document, " One row is %s.", "一行数据为 %s。",
                        kg_document_amount(kg_document_columns(nest) * size, "B").text);
    kg_text_add(document->text, "\n\n");
}

static void say_pipeline(struct kg_document *document)
{
    const struct kg_device_facts *facts = document->facts;
    if (kg_document_is_of_host(document))
        kg_document_say(document, "### 3.3 Vectors, instruction parallelism\n\n",
                        "### 3.3 向量化与指令级并行优化\n\n");
    else
        kg_document_say(document, "### 3.3 Warps, stages, instruction parallelism\n\n",
                        "### 3.3 Warp和Stage配置优化\n\n");
    if (facts && is_gpu(document) && facts->bandwidth > 0 && facts->units > 0)
        kg_document_say(document,
                        "To keep memory busy for its latency of about %s, %s have to be on their "
                        "way in every unit: warps × loads ahead of use × 16 bytes. More of either "
                        "beyond that only takes registers.\n\n",
                        "要覆盖约 %s 的访存延迟，每个计算单元需有 %s 数据在途：即 warp 数 × 提前"
                        "发出的加载数 × 16 字节。超过该值只会多占寄存器。\n\n",
                        kg_document_seconds(LATENCY).text,
                        kg_document_amount(facts->bandwidth * LATENCY / facts->units, "B").text);
    else if (document->main->has_reduce)
        kg_document_say(
            document,
            "A reduction waits for its previous step: keep 8 or more independent accumulators "
            "and combine them at the end.\n\n",
            "归约存在前后依赖：应保持 8 个以上相互独立的累加器，最后再合并。\n\n");
    else
        kg_document_say(
            document,
            "Steps are independent: unroll until several loads are under way at once.\n\n",
            "各步相互独立：展开循环，使多个加载同时在途。\n\n");
}

// How neighbours along `axis` are placed in memory, `step` elements of `size` bytes apart.
static void say_step(struct kg_document *document, const char *axis, int64_t step, double size,
                     bool is_padded)
{
    double bytes = (double)llabs(step) * size;
    bool host = kg_document_is_of_host(document);
    if (step == 0 && host)
        kg_document_say(document, ": one element for all of `%s`, loaded once.\n",
                        "：沿 `%s` 轴为同一元素，加载一次后广播。\n", axis);
    else if (step == 0)
        kg_document_say(document, ": one element for all lanes along `%s`, loaded once.\n",
                        "：沿 `%s` 轴为同一元素，加载一次后广播。\n", axis);
    else if (llabs(step) == 1 && is_padded)
        kg_document_say(document,
                        ": consecutive along `%s`, full-width accesses, masked at the border.\n",
                        "：沿 `%s` 轴连续，可全宽访问，仅边界处需要掩码。\n", axis);
    else if (llabs(step) == 1)
        kg_document_say(document, ": consecutive along `%s`, full-width accesses.\n",
                        "：沿 `%s` 轴连续，可全宽访问。\n", axis);
    else if (host)
        kg_document_say(
            document,
            ": %s apart along `%s`, so a line of %d bytes holds %.0f element%s; copy it to where "
            "they are adjacent, or let vectors go along another axis.\n",
            "：沿 `%2$s` 轴相邻元素间隔 %1$s，一条 %3$d 字节的缓存行只含 %4$.0f "
            "个元素%5$.0s；应先复制到连续的位置，或改变向量展开的轴。\n",
            kg_document_amount(bytes, "B").text, axis, CACHE_LINE,
            fmax(floor(CACHE_LINE / bytes), 1), bytes > CACHE_LINE / 2 ? "" : "s");
    else
        kg_document_say(
            document,
            ": %s apart along `%s`, so a 32-byte sector serves %.0f lane%s; stage it on "
            "chip, or let lanes go along another axis.\n",
            "：沿 `%2$s` 轴相邻元素间隔 %1$s，一个 32 字节扇区只服务 %3$.0f "
            "个线程%4$.0s；应经片上存储中转，或改变线程展开的轴。\n",
            kg_document_amount(bytes, "B").text, axis, fmax(floor(32 / bytes), 1),
            bytes > 16 ? "" : "s");
}

// The lanes of a scan run along its output, and read along the axis that the output bounds.
static int reading_axis(const struct kg_nest *nest, int lane)
{
    for (int a = nest->output_axes; a < nest->axis_count; a++) {
        bool used[KG_MAX_INDICES] = {false};
        if (nest->axes[a]->bound)
            kg_analyze_used(nest->axes[a]->bound, used);
        if (used[lane])
            return a;
    }
    return lane;
}

static void say_access(struct kg_document *document, const struct kg_nest *nest,
                       const struct kg_access *access, int lane)
{
    int64_t step;
    kg_text_add(document->text, "- `");
    kg_lang_print_expr(document->text, access->read);
    kg_text_add(document->text, "`");
    if (step_along(document->problem, access, lane, &step) && step == 0)
        lane = reading_axis(nest, lane);
    if (step_along(document->problem, access, lane, &step))
        say_step(document, nest->axes[lane]->name, step, element_bytes(access->tensor),
                 access->read->pad != NULL);
    else
        kg_document_say(document, ": irregular along `%s`; rely on the cache.\n",
                        "：沿 `%s` 轴访问不规则，依赖缓存。\n", nest->axes[lane]->name);
}

static void say_store(struct kg_document *document, const struct kg_nest *nest, int lane)
{
    kg_document_say(document, "- `%s`, written", "- 写入 `%s`", nest->output->name);
    if (lane < nest->output_axes)
        say_step(document, nest->axes[lane]->name,
                 document->problem->layouts[nest->output->id].stride[lane],
                 element_bytes(nest->output), false);
    else
        kg_document_say(document, ": one element after all of `%s`.\n",
                        "：`%s` 轴归约完成后写一个元素。\n", nest->axes[lane]->name);
}

// Intermediates are mentioned for the most expensive nest only: fusion keeps the others out of
// memory.
static bool goes_to_memory(const struct kg_document *document, const struct kg_nest *nest,
                           const struct kg_tensor *tensor)
{
    return tensor->role != KG_ROLE_LOCAL || nest == document->main;
}

static void say_memory(struct kg_document *document)
{
    kg_document_say(document, "### 3.4 Memory access\n\n", "### 3.4 内存访问优化\n\n");
    for (int n = 0; n < document->problem->nest_count; n++) {
        const struct kg_nest *nest = document->problem->nests[n];
        bool any = goes_to_memory(document, nest, nest->output);
        for (int i = 0; i < nest->access_count; i++)
            any = any || goes_to_memory(document, nest, nest->accesses[i].tensor);
        if (!any || nest->axis_count == 0 || nest->iterations * 4 < document->main->iterations)
            continue;
        int lane = lane_axis(document, nest);
        kg_document_nest(document, nest);
        kg_text_add(document->text, "\n\n");
        for (int i = 0; i < nest->access_count; i++)
            if (goes_to_memory(document, nest, nest->accesses[i].tensor))
                say_access(document, nest, &nest->accesses[i], lane);
        if (nest->output->role == KG_ROLE_OUTPUT)
            say_store(document, nest, lane);
        kg_text_add(document->text, "\n");
    }
}

// The number of nests that read the tensor.
static int readers(const struct kg_problem *problem, const struct kg_tensor *tensor)
{
    int count = 0;
    for (int n = 0; n < problem->nest_count; n++) {
        bool reads = false;
        for (int i = 0; i < problem->nests[n]->access_count; i++)
            reads = reads || problem->nests[n]->accesses[i].tensor == tensor;
        count += reads;
    }
    return count;
}

static const char *place_for(const struct kg_document *document, double bytes)
{
    const struct kg_device_facts *facts = document->facts;
    bool chinese = document->language == KG_CHINESE, host = kg_document_is_of_host(document);
    double on_chip = !facts                    ? 64e3
                     : facts->shared_bytes > 0 ? (double)facts->shared_bytes
                                               : (double)facts->cache[1];
    double cache = !facts                ? 4e6
                   : facts->cache[3] > 0 ? (double)facts->cache[3]
                                         : (double)facts->cache[2];
    if (bytes <= on_chip / 2 && host)
        return chinese ? "可整体放入每个核心的一级缓存" : "fits in every core's first cache";
    if (bytes <= cache && host)
        return chinese ? "可驻留在末级缓存，分块后在一级缓存中复用"
                       : "stays in the last cache; reuse tiles in the first";
    if (bytes <= on_chip / 2)
        return chinese ? "可整体放入每个计算单元的片上存储" : "fits on chip in every unit";
    if (bytes <= cache)
        return chinese ? "可驻留在末级缓存，分块后在片上复用"
                       : "stays in the last cache; reuse tiles on chip";
    return chinese ? "必须分块复用" : "has to be reused tile by tile";
}

static void say_reuse(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    bool any = false;
    kg_document_say(document, "### 3.5 Reuse\n\n", "### 3.5 数据复用优化\n\n");
    for (int i = 0; i < document->main->access_count; i++) {
        const struct kg_access *access = &document->main->accesses[i];
        double touched = (double)kg_analyze_footprint(problem, document->main, access);
        if (touched == 0 || document->main->iterations < 2 * touched)
            continue;
        any = true;
        kg_document_say(document, "- `%s`: each element is used %s times; its %s %s.\n",
                        "- `%s`：每个元素使用 %s 次，共 %s，%s。\n", access->tensor->name,
                        kg_document_count(document->main->iterations / touched).text,
                        kg_document_amount(touched * element_bytes(access->tensor), "B").text,
                        place_for(document, touched * element_bytes(access->tensor)));
    }
    for (int i = 0; i < problem->tensor_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        int count = readers(problem, tensor);
        if (count < 2 || tensor->role == KG_ROLE_OUTPUT)
            continue;
        any = true;
        kg_document_say(
            document,
            "- `%s` is read by %d statements: fused, it is transferred once and not %d "
            "times (%s saved).\n",
            "- `%s` 被 %d 条语句读取：融合后只需传输一次而非 %d 次（节省 %s）。\n", tensor->name,
            count, count,
            kg_document_amount((double)problem->layouts[i].bytes * (count - 1), "B").text);
    }
    if (!any)
        kg_document_say(document,
                        "Nothing is used twice: each byte passes through registers once.\n",
                        "没有可复用的数据：每个字节只经过寄存器一次。\n");
    kg_text_add(document->text, "\n");
}

static void say_dynamic(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    const struct kg_shapes *tune = &op->goal.tune;
    kg_document_say(
        document,
        "### 3.6 Dynamic shapes\n\nSizes and strides are arguments of the kernel: one "
        "build serves all shapes. ",
        "### 3.6 动态Shape处理优化\n\n尺寸和步长均为内核参数，一次编译适用于所有形状。");
    if (!document->problem->contiguous)
        kg_document_say(document, "These tensors are views, so axes cannot be merged. ",
                        "当前张量为非连续视图，不能合并维度。");
    if (tune->row_count == 0) {
        kg_document_say(document, "The goal names no shapes to tune for; defaults are tuned.\n\n",
                        "目标中未指定调优形状，按默认形状调优。\n\n");
        return;
    }
    kg_document_say(document, "Tuned one by one: ", "以下形状逐一调优：");
    for (int row = 0; row < tune->row_count; row++) {
        kg_text_add(document->text, row ? "; " : "");
        for (int i = 0; i < tune->size_count; i++)
            kg_text_format(document->text, "%s%s=%lld", i ? " " : "", tune->sizes[i]->name,
                           (long long)tune->rows[row * tune->size_count + i]);
    }
    kg_document_say(document, ". Other shapes take the nearest choice that is valid for them.\n\n",
                    "。其他形状采用最接近且合法的配置。\n\n");
}

void kg_document_strategy(struct kg_document *document)
{
    kg_document_say(document, "## 3. Strategy\n\n", "## 3. 性能优化策略\n\n");
    if (!document->main || document->main->axis_count == 0) {
        kg_document_say(document, "A single element: the call itself is all there is.\n\n",
                        "仅有一个元素，开销即调用本身。\n\n");
        return;
    }
    say_grid(document);
    say_blocks(document);
    say_pipeline(document);
    say_memory(document);
    say_reuse(document);
    say_dynamic(document);
}
