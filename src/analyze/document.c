// The definition document in Markdown: shared functions, and its first section, the definition.

#include "analyze/document.h"
#include "lang/panels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void kg_document_say(struct kg_document *document, const char *english, const char *chinese, ...)
{
    va_list arguments;
    va_start(arguments, chinese);
    kg_text_vformat(document->text, document->language == KG_CHINESE ? chinese : english,
                    arguments);
    va_end(arguments);
}

struct kg_amount kg_document_amount(double value, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
    struct kg_amount amount;
    size_t step = 0;
    while (value >= 999.5 && step + 1 < sizeof prefixes / sizeof prefixes[0]) {
        value /= 1000;
        step++;
    }
    int digits = step == 0 && value == floor(value) ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(amount.text, sizeof amount.text, "%.*f %s%s", digits, value, prefixes[step], unit);
    return amount;
}

struct kg_amount kg_document_count(double value)
{
    struct kg_amount amount;
    if (value < 1e5)
        snprintf(amount.text, sizeof amount.text,
                 value == floor(value) || value >= 999.5 ? "%.0f" : "%.3g", value);
    else
        amount = kg_document_amount(value, "");
    return amount;
}

struct kg_amount kg_document_seconds(double seconds)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1, "s"}, {1e3, "ms"}, {1e6, "µs"}, {1e9, "ns"}};
    struct kg_amount amount;
    size_t i = 0;
    while (seconds * units[i].scale < 1 && i + 1 < sizeof units / sizeof units[0])
        i++;
    snprintf(amount.text, sizeof amount.text, "%.3g %s", seconds * units[i].scale, units[i].unit);
    return amount;
}

static void say_cell(struct kg_document *document, const char *string)
{
    for (; *string; string++) // a bar would end the table cell
        kg_text_add_bytes(document->text, *string == '|' ? "\\|" : string, *string == '|' ? 2 : 1);
}

void kg_document_nest(struct kg_document *document, const struct kg_nest *nest)
{
    struct kg_text statement = {0};
    kg_nest_print(&statement, nest);
    kg_text_add(document->text, "`");
    say_cell(document, kg_text_string(&statement));
    kg_text_add(document->text, "`");
    kg_text_free(&statement);
}

double kg_document_rows(const struct kg_nest *nest)
{
    double rows = 1;
    for (int a = 0; a < nest->output_axes; a++)
        rows *= (double)nest->extent[a];
    return rows;
}

double kg_document_columns(const struct kg_nest *nest)
{
    double columns = 1;
    for (int a = nest->output_axes; a < nest->axis_count; a++)
        columns *= (double)nest->extent[a];
    return columns;
}

// The op's own text in a fence longer than any run of backquotes in it.
static void say_source(struct kg_document *document, const char *source)
{
    size_t longest = 2, run = 0;
    for (const char *at = source; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        kg_text_add(document->text, "`");
    size_t length = strlen(source);
    kg_text_format(document->text, "kg\n%s%s", source,
                   length > 0 && source[length - 1] == '\n' ? "" : "\n");
    for (size_t i = 0; i <= longest; i++)
        kg_text_add(document->text, "`");
    kg_text_add(document->text, "\n\n");
}

static void say_requirement(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    kg_document_say(document, "### (1) Original requirement\n\n", "### （1）原始需求\n\n");
    if (op->description[0] == '\0')
        kg_document_say(document, "No description was written above the definition.\n\n",
                        "定义上方没有写描述。\n\n");
    for (const char *line = op->description; *line;) {
        size_t length = strcspn(line, "\n");
        kg_text_add(document->text, "> ");
        kg_text_add_bytes(document->text, line, length);
        kg_text_add(document->text, "\n");
        line += length + (line[length] == '\n');
        if (*line == '\0')
            kg_text_add(document->text, "\n");
    }
    say_source(document, op->source);
}

// The names and meanings of the classes.
static const struct {
    const char *english;
    const char *chinese;
} class_meanings[KG_CLASS_COUNT] = {
    [KG_CLASS_POINTWISE] = {"every output element is computed by itself",
                            "逐元素计算，输出元素之间互不依赖"},
    [KG_CLASS_GATHER] = {"elements are fetched where an index tensor says",
                         "按索引张量取数，访存地址由数据决定"},
    [KG_CLASS_REDUCE] = {"many elements become one", "归约，多个元素合并为一个"},
    [KG_CLASS_SCAN] = {"each output depends on a prefix or a suffix",
                       "扫描，每个输出依赖前缀或后缀"},
    [KG_CLASS_CONTRACT] = {"sums of products in which both factors are reused",
                           "乘积求和（矩阵乘类），两侧因子均可复用"},
    [KG_CLASS_WINDOW] = {"each output reduces a window of the input, windows overlap",
                         "滑动窗口，相邻窗口的输入重叠"},
};

static void say_device(struct kg_document *document)
{
    const struct kg_device_facts *facts = document->facts;
    kg_document_say(document, "| **Device** | ", "| **目标设备** | ");
    if (!facts) {
        kg_document_say(document,
                        "none | no device was chosen; costs are in bytes and operations |\n",
                        "未指定 | 未选择设备，开销仅以字节数和运算次数给出 |\n");
        return;
    }
    say_cell(document, facts->name);
    kg_text_format(document->text, " | %s", facts->isa);
    if (kg_document_is_of_host(document))
        kg_document_say(document, ", %d cores", "，%d 个核心", facts->units);
    else
        kg_document_say(document, ", %d units", "，%d 个计算单元", facts->units);
    kg_document_say(document, ", %s, main memory %s |\n", "，%s，主存带宽 %s |\n",
                    kg_document_amount(facts->clock, "Hz").text,
                    facts->bandwidth > 0 ? kg_document_amount(facts->bandwidth, "B/s").text : "?");
}

static void say_types(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    for (int i = 0; i < op->typevar_count; i++) {
        const struct kg_typevar *variable = op->typevars[i];
        kg_document_say(document, "| **Type %s** | %s | allowed: ", "| **类型 %s** | %s | 可选 ",
                        variable->name, kg_dtypes[op->bound[i]].name);
        for (int j = 0; j < variable->count; j++)
            kg_text_format(document->text, j ? ", %s" : "%s", kg_dtypes[variable->allowed[j]].name);
        kg_text_add(document->text, " |\n");
    }
}

static void say_sizes(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    for (int i = 0; i < op->size_count; i++) {
        const struct kg_size *size = op->sizes[i];
        char value[32];
        if (size->is_real)
            snprintf(value, sizeof value, "%g", size->real);
        else
            snprintf(value, sizeof value, "%lld", (long long)document->problem->sizes[i]);
        if (size->is_param)
            kg_document_say(document, "| **Param %s** | %s | fixed when the kernel is built |\n",
                            "| **参数 %s** | %s | 编译期常量 |\n", size->name, value);
        else
            kg_document_say(document, "| **Size %s** | %s | any at run time; analysed for this |\n",
                            "| **尺寸 %s** | %s | 运行时可变，以下按此值分析 |\n", size->name,
                            value);
    }
}

static void say_facts(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    enum kg_class class = document->problem->class;
    kg_document_say(document,
                    "### (2) Basic facts\n\n| Property | Value | Meaning |\n|---|---|---|\n"
                    "| **Name** | %s | what the kernel is called |\n",
                    "### （2）算子基本信息\n\n| 属性 | 值 | 说明 |\n|---|---|---|\n"
                    "| **算子名称** | %s | 算子的唯一标识 |\n",
                    op->name);
    kg_document_say(document, "| **Kind** | %s | %s |\n", "| **算子类型** | %s | %s |\n",
                    kg_class_names[class],
                    document->language == KG_CHINESE ? class_meanings[class].chinese
                                                     : class_meanings[class].english);
    say_device(document);
    say_types(document);
    say_sizes(document);
    kg_document_say(document, "| **Goal** | %.2fx | over ", "| **目标加速比** | %.2fx | 相对于 ",
                    op->goal.given ? op->goal.speedup : 1.0);
    if (op->goal.baseline) {
        kg_text_format(document->text, "%s `", op->goal.baseline_kind);
        say_cell(document, op->goal.baseline);
        kg_text_add(document->text, "` |\n\n");
    } else {
        kg_document_say(document, "a baseline derived from the formula |\n\n",
                        "由公式推导的基准实现 |\n\n");
    }
}

// What is packed is shown as declared, and then as it lies in memory.
static void say_shape(struct kg_document *document, const struct kg_tensor *tensor)
{
    const struct kg_layout *layout = &document->problem->layouts[tensor->id];
    kg_text_add(document->text, "`[");
    for (int i = 0; i < kg_lang_declared_rank(tensor); i++) {
        kg_text_add(document->text, i ? ", " : "");
        kg_lang_print_expr(document->text, kg_lang_declared_dim(tensor, i));
    }
    if (tensor->panel_rows)
        kg_document_say(document, "]`, in memory `[", "]`，内存中为 `[");
    for (int i = 0; tensor->panel_rows && i < tensor->rank; i++) {
        kg_text_add(document->text, i ? ", " : "");
        kg_lang_print_expr(document->text, tensor->dims[i]);
    }
    kg_text_add(document->text, "]` = [");
    for (int i = 0; i < tensor->rank; i++)
        kg_text_format(document->text, i ? ", %lld" : "%lld", (long long)layout->shape[i]);
    kg_text_add(document->text, "]");
}

static void say_tensors(struct kg_document *document, enum kg_role role)
{
    const struct kg_problem *problem = document->problem;
    kg_document_say(document, "| Name | Type | Shape | Layout | Bytes |\n|---|---|---|---|---|\n",
                    "| 名称 | 数据类型 | 形状 | 内存布局 | 字节数 |\n|---|---|---|---|---|\n");
    for (int i = 0; i < problem->op->tensor_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        const struct kg_layout *layout = &problem->layouts[i];
        if (tensor->role != role)
            continue;
        kg_text_format(document->text, "| **%s** | %s%s | ", tensor->name,
                       tensor->panel_rows ? "packed " : "", kg_dtypes[tensor->type.dtype].name);
        say_shape(document, tensor);
        if (layout->contiguous)
            kg_document_say(document, " | contiguous", " | 连续");
        else
            kg_document_say(document, " | strides", " | 步长");
        for (int d = 0; !layout->contiguous && d < tensor->rank; d++)
            kg_text_format(document->text, d ? ", %lld" : " %lld", (long long)layout->stride[d]);
        kg_text_format(document->text, " | %s |\n",
                       kg_document_amount((double)layout->bytes, "B").text);
    }
    kg_text_add(document->text, "\n");
}

// A size that is a dimension by itself must be equal in all shapes.
static void say_size_constraint(struct kg_document *document, const struct kg_size *size)
{
    const struct kg_op *op = document->problem->op;
    int places = 0;
    struct kg_text list = {0};
    for (int i = 0; i < op->input_count; i++)
        for (int d = 0; d < op->tensors[i]->rank; d++) {
            const struct kg_expr *dim = op->tensors[i]->dims[d];
            if (dim->kind == KG_EXPR_SIZE && dim->size == size)
                kg_text_format(&list, "%s`%s.shape[%d]`", places++ ? " = " : "",
                               op->tensors[i]->name, d);
        }
    if (places > 1)
        kg_document_say(document, "- %s = %s.\n", "- %s = %s。\n", size->name,
                        kg_text_string(&list));
    kg_text_free(&list);
}

static bool is_gathered_from(const struct kg_problem *problem, const struct kg_tensor *tensor)
{
    for (int n = 0; n < problem->nest_count; n++)
        for (int i = 0; i < problem->nests[n]->access_count; i++)
            for (int d = 0; d < problem->nests[n]->accesses[i].tensor->rank; d++)
                if (problem->nests[n]->accesses[i].tensor == tensor &&
                    problem->nests[n]->accesses[i].map[d].is_gather)
                    return true;
    return false;
}

static void say_constraints(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    kg_document_say(document, "Constraints:\n\n", "输入约束：\n\n");
    for (int i = 0; i < op->size_count; i++)
        if (!op->sizes[i]->is_param)
            say_size_constraint(document, op->sizes[i]);
    for (int i = 0; i < op->input_count; i++) {
        const struct kg_tensor *tensor = op->tensors[i];
        if (kg_dtype_is_packed(tensor->type.dtype))
            kg_document_say(document,
                            "- `%s` holds two elements a byte, the even one in the low half.\n",
                            "- `%s` 每字节存放两个元素，偶数位元素在低 4 位。\n", tensor->name);
        if (tensor->panel_rows)
            kg_document_say(document,
                            "- `%s` is packed in panels of 64 rows and 16 columns, as "
                            "`kg_pack_weights` writes them. Codes outside its rows and columns "
                            "are never used.\n",
                            "- `%s` 按 64 行 × 16 列的面板打包（由 `kg_pack_weights` 写出）；"
                            "行列范围之外的编码不参与计算。\n",
                            tensor->name);
        if (is_gathered_from(document->problem, tensor))
            kg_document_say(document, "- Indices into `%s` beyond its ends are clamped to them.\n",
                            "- 对 `%s` 的越界索引会被截断到两端。\n", tensor->name);
    }
    kg_document_say(document,
                    "- All tensors are on one device; strides are not negative; sizes of 0 are "
                    "legal.\n- Inputs are not modified.\n\n",
                    "- 所有张量位于同一设备；步长不得为负；允许尺寸为 0。\n"
                    "- 输入张量不会被修改。\n\n");
}

void kg_document_definition(struct kg_document *document)
{
    const struct kg_op *op = document->problem->op;
    kg_document_say(document, "## 1. Definition\n\n", "## 1. 算子定义\n\n");
    say_requirement(document);
    say_facts(document);
    kg_document_say(document, "### (3) Inputs\n\n", "### （3）输入参数\n\n");
    say_tensors(document, KG_ROLE_INPUT);
    say_constraints(document);
    kg_document_say(document, "### (4) Outputs\n\n", "### （4）输出参数\n\n");
    say_tensors(document, KG_ROLE_OUTPUT);
    kg_document_say(document,
                    "Values are computed in at least 32 bits and rounded once, when they are "
                    "stored.\n\n### (5) Rounds of optimisation at most\n\n%d\n\n",
                    "中间计算至少使用 32 位精度，仅在写回时舍入一次。\n\n"
                    "### （5）自动优化最大迭代轮次\n\n%d\n\n",
                    op->goal.given ? op->goal.rounds : 5);
}

static const struct kg_nest *costliest(const struct kg_problem *problem)
{
    const struct kg_nest *main = NULL;
    for (int i = 0; i < problem->nest_count; i++)
        if (problem->nests[i]->class == problem->class &&
            (!main || problem->nests[i]->iterations > main->iterations))
            main = problem->nests[i];
    return main;
}

void kg_analyze_document(struct kg_text *text, const struct kg_problem *problem,
                         const struct kg_device_facts *facts, enum kg_language language)
{
    struct kg_document document = {.text = text,
                                   .problem = problem,
                                   .facts = facts,
                                   .language = language,
                                   .main = costliest(problem)};
    if (facts)
        document.roofline = kg_roofline_of(problem, facts);
    kg_document_say(&document, "# %s: definition and analysis\n\n", "# %s 算子定义与分析文档\n\n",
                    problem->op->name);
    kg_document_definition(&document);
    kg_document_analysis(&document);
    kg_document_strategy(&document);
    kg_document_remedies(&document);
}
