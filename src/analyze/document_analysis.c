// Second section of the definition document: complexity, intensity, roofline, bottleneck, data
// flow.

#include "analyze/document.h"
#include "lang/panels.h"

#include <string.h>

// A product of extents as the user writes them: "M × N × K".
struct term {
    int count;
    char factor[KG_MAX_INDICES][64];
};

static void add_factor(struct term *term, const struct kg_expr *extent)
{
    if (extent->kind == KG_EXPR_NUMBER || term->count == KG_MAX_INDICES)
        return;
    struct kg_text text = {0};
    bool simple = extent->kind == KG_EXPR_SIZE;
    kg_text_add(&text, simple ? "" : "(");
    kg_lang_print_expr(&text, extent);
    kg_text_add(&text, simple ? "" : ")");
    char *factor = term->factor[term->count++];
    size_t room = sizeof term->factor[0] - 1;
    memcpy(factor, kg_text_string(&text), text.length < room ? text.length : room);
    kg_text_free(&text);
}

static struct term term_of_nest(const struct kg_nest *nest)
{
    struct term term = {0};
    bool loops[KG_MAX_INDICES];
    kg_analyze_loops(nest, loops);
    for (int a = 0; a < nest->axis_count; a++)
        if (loops[a])
            add_factor(&term, nest->axes[a]->end);
    return term;
}

static struct term term_of_tensor(const struct kg_tensor *tensor)
{
    struct term term = {0};
    for (int i = 0; i < kg_lang_declared_rank(tensor); i++)
        add_factor(&term, kg_lang_declared_dim(tensor, i));
    return term;
}

// Is every factor of `small` a factor of `large`? O(P) is negligible beside O(P × D).
static bool contains(const struct term *large, const struct term *small)
{
    bool taken[KG_MAX_INDICES] = {false};
    for (int i = 0; i < small->count; i++) {
        int j = 0;
        while (j < large->count && (taken[j] || strcmp(large->factor[j], small->factor[i]) != 0))
            j++;
        if (j == large->count)
            return false;
        taken[j] = true;
    }
    return true;
}

static void add_term(struct term *terms, int *count, struct term term)
{
    int kept = 0;
    for (int i = 0; i < *count; i++)
        if (contains(&terms[i], &term))
            return;
    for (int i = 0; i < *count; i++)
        if (!contains(&term, &terms[i]))
            terms[kept++] = terms[i];
    terms[kept++] = term;
    *count = kept;
}

static void say_order(struct kg_document *document, const struct term *terms, int count)
{
    kg_text_add(document->text, "O(");
    for (int i = 0; i < count; i++) {
        kg_text_add(document->text, i ? " + " : "");
        for (int j = 0; j < terms[i].count; j++)
            kg_text_format(document->text, j ? " × %s" : "%s", terms[i].factor[j]);
        if (terms[i].count == 0)
            kg_text_add(document->text, "1");
    }
    kg_text_add(document->text, count ? ")" : "1)");
}

static void say_time_complexity(struct kg_document *document)
{
    struct term terms[KG_MAX_NESTS];
    int count = 0;
    double iterations = 0;
    for (int i = 0; i < document->problem->nest_count; i++) {
        add_term(terms, &count, term_of_nest(document->problem->nests[i]));
        iterations += document->problem->nests[i]->iterations;
    }
    kg_document_say(document, "**Time**: ", "**时间复杂度**：");
    say_order(document, terms, count);
    kg_document_say(document,
                    ". For the sizes above: %s steps of innermost loops in %d nest%s, %s, of them "
                    "%s transcendental calls.\n\n",
                    "。按上述尺寸：最内层循环共 %s 步，分布在 %d 个循环嵌套中%.0s，%s，其中超越函数"
                    "调用 %s 次。\n\n",
                    kg_document_count(iterations).text, document->problem->nest_count,
                    document->problem->nest_count == 1 ? "" : "s",
                    kg_document_amount(document->problem->operations, "FLOP").text,
                    kg_document_count(document->problem->transcendentals).text);
}

static double bytes_of(const struct kg_problem *problem, enum kg_role role)
{
    double bytes = 0;
    for (int i = 0; i < problem->tensor_count; i++)
        if (problem->tensors[i]->role == role)
            bytes += (double)problem->layouts[i].bytes;
    return bytes;
}

static void say_space_complexity(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    struct term terms[KG_MAX_NESTS + KG_MAX_TENSORS];
    int count = 0, locals = 0;
    for (int i = 0; i < problem->tensor_count; i++) {
        locals += problem->tensors[i]->role == KG_ROLE_LOCAL;
        if (problem->tensors[i]->role != KG_ROLE_LOCAL)
            add_term(terms, &count, term_of_tensor(problem->tensors[i]));
    }
    kg_document_say(document, "**Space**: ", "**空间复杂度**：");
    say_order(document, terms, count);
    kg_document_say(document, ": inputs %s, outputs %s.", "：输入 %s，输出 %s。",
                    kg_document_amount(bytes_of(problem, KG_ROLE_INPUT), "B").text,
                    kg_document_amount(bytes_of(problem, KG_ROLE_OUTPUT), "B").text);
    if (locals == 0) {
        kg_document_say(document, " There are no intermediates.\n\n", "没有中间张量。\n\n");
        return;
    }
    kg_document_say(document, " Intermediates that fusion should keep out of memory: ",
                    "应通过融合避免写入内存的中间张量：");
    for (int i = 0, listed = 0; i < problem->tensor_count; i++)
        if (problem->tensors[i]->role == KG_ROLE_LOCAL)
            kg_text_format(document->text, listed++ ? ", `%s` (%s)" : "`%s` (%s)",
                           problem->tensors[i]->name,
                           kg_document_amount((double)problem->layouts[i].bytes, "B").text);
    kg_document_say(document, ".\n\n", "。\n\n");
}

static void say_density(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    kg_document_say(document,
                    "### 2.2 Compute density\n\n"
                    "| Quantity | Value |\n|---|---|\n"
                    "| Operations | %s |\n"
                    "| Compulsory reads (each input element used, once) | %s |\n"
                    "| Compulsory writes (each output element, once) | %s |\n"
                    "| **Density** = operations / bytes | **%s FLOP/B** |\n\n",
                    "### 2.2 计算密度分析\n\n"
                    "| 项目 | 数值 |\n|---|---|\n"
                    "| 计算操作数 | %s |\n"
                    "| 必需读取量（用到的输入元素各读一次） | %s |\n"
                    "| 必需写入量（输出元素各写一次） | %s |\n"
                    "| **计算密度** = 操作数 / 字节数 | **%s FLOP/B** |\n\n",
                    kg_document_amount(problem->operations, "FLOP").text,
                    kg_document_amount(problem->read_bytes, "B").text,
                    kg_document_amount(problem->write_bytes, "B").text,
                    kg_document_count(problem->intensity).text);
}

static void say_roofline(struct kg_document *document)
{
    const struct kg_roofline *roofline = &document->roofline;
    kg_document_say(document, "### 2.3 Roofline\n\n", "### 2.3 Roofline模型分析\n\n");
    if (!document->facts || document->facts->bandwidth <= 0) {
        kg_document_say(document,
                        "Attainable performance = min(peak, bandwidth × %s FLOP/B). Choose a "
                        "device to see it in seconds.\n\n",
                        "性能上限 = min(计算峰值, 内存带宽 × %s FLOP/B)。指定设备后可得到时间"
                        "下限。\n\n",
                        kg_document_count(document->problem->intensity).text);
        return;
    }
    kg_document_say(
        document,
        "| Limit | Least time |\n|---|---|\n"
        "| Memory: %s at %s | %s |\n"
        "| Compute: %s | %s |\n"
        "| **Roofline** | **%s** |\n\n"
        "The two meet at %s FLOP/B; this op has %s.\n\n",
        "| 上限 | 时间下限 |\n|---|---|\n"
        "| 内存：%s，带宽 %s | %s |\n"
        "| 计算：%s | %s |\n"
        "| **Roofline** | **%s** |\n\n"
        "两条上限在 %s FLOP/B 处相交，本算子的计算密度为 %s。\n\n",
        kg_document_amount(document->problem->read_bytes + document->problem->write_bytes, "B")
            .text,
        kg_document_amount(document->facts->bandwidth, "B/s").text,
        kg_document_seconds(roofline->memory_seconds).text,
        kg_document_amount(document->problem->operations, "FLOP").text,
        kg_document_seconds(roofline->compute_seconds).text,
        kg_document_seconds(roofline->seconds).text, kg_document_count(roofline->ridge).text,
        kg_document_count(document->problem->intensity).text);
}

// Takes less time than starting a kernel, or waking the threads of a pool?
static bool is_tiny(const struct kg_document *document)
{
    return document->facts && document->facts->bandwidth > 0 &&
           document->roofline.seconds < (document->facts->shared_bytes > 0 ? 2e-6 : 5e-7);
}

static void say_bottleneck(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    // Without a device: 8 FLOP/B is the ridge of f32 arithmetic on most machines, within a factor
    // of three.
    bool known = document->facts && document->facts->bandwidth > 0;
    bool memory = known ? document->roofline.memory_bound : problem->intensity < 8;
    kg_document_say(document, "### 2.4 Bottleneck\n\n", "### 2.4 性能瓶颈分析\n\n");
    if (problem->read_bytes + problem->write_bytes == 0)
        kg_document_say(document, "Nothing to do at these sizes: the call itself is the cost.\n\n",
                        "在该尺寸下没有实际计算，开销仅为调用本身。\n\n");
    else if (is_tiny(document) && kg_document_is_of_host(document))
        kg_document_say(document,
                        "**Latency.** The work takes %s at best, less than waking a thread: fewer "
                        "kernels matter, not faster ones.\n\n",
                        "**延迟受限。** 计算本身最少仅需 %s，小于唤醒一个线程的开销：应减少内核"
                        "数量，而非继续加速内核。\n\n",
                        kg_document_seconds(document->roofline.seconds).text);
    else if (is_tiny(document))
        kg_document_say(document,
                        "**Latency.** The work takes %s at best, less than starting a kernel: "
                        "fewer kernels matter, not faster ones.\n\n",
                        "**延迟受限。** 计算本身最少仅需 %s，小于启动一次内核的开销：应减少内核"
                        "数量，而非继续加速内核。\n\n",
                        kg_document_seconds(document->roofline.seconds).text);
    else if (memory)
        kg_document_say(document,
                        "**Memory bandwidth.** Every byte beyond the compulsory %s costs time; "
                        "arithmetic is hidden behind the transfers.\n\n",
                        "**内存带宽受限（Memory Bandwidth Bound）。** 超出必需数据量 %s 的每个字节"
                        "都会增加时间，算术运算可被访存掩盖。\n\n",
                        kg_document_amount(problem->read_bytes + problem->write_bytes, "B").text);
    else if (kg_document_is_of_host(document))
        kg_document_say(document,
                        "**Arithmetic.** %s have to be issued; operands must come from registers "
                        "and the first cache often enough not to wait.\n\n",
                        "**计算受限（Compute Bound）。** 需要发射 %s，操作数必须足够多地来自寄存器"
                        "和一级缓存，避免等待访存。\n\n",
                        kg_document_amount(problem->operations, "FLOP").text);
    else
        kg_document_say(document,
                        "**Arithmetic.** %s have to be issued; operands must come from registers "
                        "and on-chip memory often enough not to wait.\n\n",
                        "**计算受限（Compute Bound）。** 需要发射 %s，操作数必须足够多地来自寄存器"
                        "和片上存储，避免等待访存。\n\n",
                        kg_document_amount(problem->operations, "FLOP").text);
    if (problem->transcendentals > 0 && problem->transcendentals * 4 > problem->operations)
        kg_document_say(document,
                        "%s of the operations are transcendental calls, which run at a fraction "
                        "of the arithmetic rate.\n\n",
                        "其中 %s 次超越函数调用的吞吐远低于普通算术指令。\n\n",
                        kg_document_count(problem->transcendentals).text);
}

// Mermaid gives < and " a special meaning.
static void say_label(struct kg_document *document, const struct kg_nest *nest)
{
    struct kg_text statement = {0};
    kg_nest_print(&statement, nest);
    for (const char *at = kg_text_string(&statement); *at; at++) {
        if (*at == '<')
            kg_text_add(document->text, "#lt;");
        else if (*at == '>')
            kg_text_add(document->text, "#gt;");
        else if (*at == '"')
            kg_text_add(document->text, "#quot;");
        else
            kg_text_add_bytes(document->text, at, 1);
    }
    kg_text_free(&statement);
}

// The nest that defines a tensor, -1 for inputs.
static int producer(const struct kg_problem *problem, const struct kg_tensor *tensor)
{
    for (int i = 0; i < problem->nest_count; i++)
        if (problem->nests[i]->output == tensor)
            return i;
    return -1;
}

// Is this the first access of the nest to its tensor?
static bool is_first(const struct kg_nest *nest, int access)
{
    for (int i = 0; i < access; i++)
        if (nest->accesses[i].tensor == nest->accesses[access].tensor)
            return false;
    return true;
}

static void say_flow(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    kg_document_say(document, "### 2.5 Data flow\n\n```mermaid\nflowchart TD\n",
                    "### 2.5 数据流分析\n\n```mermaid\nflowchart TD\n");
    for (int i = 0; i < problem->op->input_count; i++)
        kg_text_format(document->text, "    t%d([\"%s\"])\n", i, problem->tensors[i]->name);
    for (int i = 0; i < problem->nest_count; i++) {
        const struct kg_nest *nest = problem->nests[i];
        kg_text_format(document->text, "    n%d[\"", i + 1);
        say_label(document, nest);
        kg_text_add(document->text, "\"]\n");
        for (int j = 0; j < nest->access_count; j++) {
            const struct kg_tensor *tensor = nest->accesses[j].tensor;
            int from = producer(problem, tensor);
            if (!is_first(nest, j))
                continue;
            if (from < 0)
                kg_text_format(document->text, "    t%d --> n%d\n", tensor->id, i + 1);
            else
                kg_text_format(document->text, "    n%d -- %s --> n%d\n", from + 1, tensor->name,
                               i + 1);
        }
        if (nest->output->role == KG_ROLE_OUTPUT)
            kg_text_format(document->text, "    n%d --> t%d([\"%s\"])\n", i + 1, nest->output->id,
                           nest->output->name);
    }
    kg_text_add(document->text, "```\n\n");
}

static void say_nests(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    kg_document_say(document,
                    "| # | Statement | Class | Axes | Operations |\n|---|---|---|---|---|\n",
                    "| # | 语句 | 类别 | 循环轴 | 计算量 |\n|---|---|---|---|---|\n");
    for (int i = 0; i < problem->nest_count; i++) {
        const struct kg_nest *nest = problem->nests[i];
        kg_text_format(document->text, "| %d | ", i + 1);
        kg_document_nest(document, nest);
        kg_text_format(document->text, " | %s |", kg_class_names[nest->class]);
        for (int a = 0; a < nest->axis_count; a++)
            kg_text_format(document->text, "%s %s=%lld",
                           // The axes after the arrow are reduced.
                           a == nest->output_axes ? " →" : "", nest->axes[a]->name,
                           (long long)nest->extent[a]);
        kg_text_format(document->text, " | %s |\n",
                       kg_document_amount(nest->operations, "FLOP").text);
    }
    kg_document_say(document, "\nAxes behind the arrow are reduced.\n\n",
                    "\n箭头之后的轴为归约轴。\n\n");
}

static unsigned long long magnitude(int64_t value)
{
    return value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
}

static void say_map(struct kg_document *document, const struct kg_nest *nest,
                    const struct kg_affine *map)
{
    if (map->is_gather) {
        kg_document_say(document, "gather", "间接寻址");
        return;
    }
    if (!map->is_affine) {
        kg_lang_print_expr(document->text, map->subscript);
        return;
    }
    bool first = true;
    for (int a = 0; a < nest->axis_count; a++) {
        int64_t factor = map->coefficient[a];
        if (factor == 0)
            continue;
        kg_text_add(document->text, first ? (factor < 0 ? "-" : "") : factor < 0 ? " - " : " + ");
        if (factor != 1 && factor != -1)
            kg_text_format(document->text, "%llu*", magnitude(factor));
        kg_text_add(document->text, nest->axes[a]->name);
        first = false;
    }
    if (map->base) {
        kg_text_add(document->text, first ? "" : " + ");
        kg_lang_print_expr(document->text, map->base);
        first = false;
    }
    if (first)
        kg_text_format(document->text, "%lld", (long long)map->offset);
    else if (map->offset != 0)
        kg_text_format(document->text, map->offset < 0 ? " - %llu" : " + %llu",
                       magnitude(map->offset));
}

static void say_accesses(struct kg_document *document)
{
    const struct kg_problem *problem = document->problem;
    kg_document_say(
        document,
        "| # | Tensor | Subscripts | Elements touched | Uses of each |\n|---|---|---|---|---|\n",
        "| # | 张量 | 下标映射 | 访问元素数 | 每元素使用次数 |\n|---|---|---|---|---|\n");
    for (int i = 0; i < problem->nest_count; i++)
        for (int j = 0; j < problem->nests[i]->access_count; j++) {
            const struct kg_nest *nest = problem->nests[i];
            const struct kg_access *access = &nest->accesses[j];
            double touched = (double)kg_analyze_footprint(problem, nest, access);
            kg_text_format(document->text, "| %d | %s | `[", i + 1, access->tensor->name);
            for (int d = 0; d < access->tensor->rank; d++) {
                kg_text_add(document->text, d ? ", " : "");
                say_map(document, nest, &access->map[d]);
            }
            kg_text_format(document->text, "]`%s | %s | %s |\n", access->read->pad ? " pad" : "",
                           kg_document_count(touched).text,
                           kg_document_count(touched > 0 ? nest->iterations / touched : 0).text);
        }
    kg_text_add(document->text, "\n");
}

void kg_document_analysis(struct kg_document *document)
{
    kg_document_say(document, "## 2. Algorithm analysis\n\n### 2.1 Complexity\n\n",
                    "## 2. 算法分析\n\n### 2.1 算法复杂度分析\n\n");
    say_time_complexity(document);
    say_space_complexity(document);
    say_density(document);
    say_roofline(document);
    say_bottleneck(document);
    say_flow(document);
    say_nests(document);
    say_accesses(document);
}
