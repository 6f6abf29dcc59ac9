// The definition documents, byte for byte. UPDATE=1 in the environment rewrites the expected files.

#include "analyze/roofline.h"
#include "base/files.h"
#include "support/sample_problem.h"
#include "test.h"

#include <glob.h>
#include <jansson.h>

// A device of round numbers, so that the documents can be checked by head.
static const struct kg_device_facts device = {
    .name = "Example GPU",
    .isa = "sm_90a",
    .units = 100,
    .clock = 1.5e9,
    .bandwidth = 3e12,
    .flops = {[KG_TYPE_I64] = 1e13, [KG_TYPE_F32] = 6e13, [KG_TYPE_F64] = 3e13},
    .cache = {0, 256 << 10, 50 << 20, 50 << 20},
    .vector_bytes = 16,
    .shared_bytes = 227 << 10,
    .matrix_flops = {[KG_F16] = 9e14, [KG_BF16] = 9e14}};

// CPUs: few cores, and more than most ops have rows or tiles for.
static const struct kg_device_facts hosts[] = {
    {.name = "Example CPU",
     .isa = "x86-64",
     .units = 4,
     .clock = 3e9,
     .bandwidth = 5e10,
     .flops = {[KG_TYPE_I64] = 2e11, [KG_TYPE_F32] = 4e11, [KG_TYPE_F64] = 2e11},
     .cache = {0, 32 << 10, 1 << 20, 32 << 20},
     .vector_bytes = 64},
    {.name = "Large CPU", .isa = "x86-64", .units = 100000, .clock = 3e9, .vector_bytes = 64}};

static const char softmax[] = "# Softmax over the last dimension.\n"
                              "# Rows are independent.\n"
                              "op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 bf16 f32\n"
                              "{\n"
                              "    m[p] = max(d) x[p, d]\n"
                              "    e[p, d] = exp(x[p, d] - m[p])\n"
                              "    y[p, d] = e[p, d] / (sum(d) e[p, d])\n"
                              "}\n"
                              "goal {\n"
                              "    baseline torch \"torch.softmax(x, -1)\"\n"
                              "    speedup 1.2\n"
                              "    rounds 5\n"
                              "    tune P D = 4096 1000, 65536 4096\n"
                              "}\n";

static const char *const others[][2] = {
    {"op f(a: T[M, K], b: T[K, N], c: T[N]) -> (y: T[M, N]) where T in f16\n"
     "{ y[m, n] = relu((sum(k) a[m, k] * b[k, n]) + c[n]) }\n",
     "M=4096 N=4096 K=4096"},
    {"op f(x: f32[N, C, H, W]) -> (y: f32[N, C, (H+2*Q-R)/S+1, (W+2*Q-R)/S+1])\n"
     "param R = 3, S = 2, Q = 1\n"
     "{ y[n, c, h, w] = max(r in 0..R, t in 0..R) pad(x[n, c, h*S+r-Q, w*S+t-Q], -inf) }\n",
     "N=8 C=64 H=112 W=112"},
    {"op f(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = sum(j <= d) x[p, j] }\n", "P=4 D=100000"},
    {"op f(t: f16[V, D], ids: i64[B, L]) -> (y: f16[B, L, D])\n"
     "{ y[b, l, d] = t[ids[b, l], d] }\n",
     "V=50000 D=768 B=8 L=512"},
    {"op f(x: f32[P, D]) -> (l: f32[]) { l[] = mean(p, d) x[p, d] * x[p, d] }\n", "P=0 D=3"},
    {"op f(x: f32[]) -> (y: bool[]) { y[] = x[] > 0 || x[] < -1 }\n", ""},
    {"op f(x: f32[P, D], b: f32[D]) -> (y: f32[D, P]) { y[d, p] = relu(x[p, d] + b[d]) }\n",
     "P=4096 D=511"},
};

static void check_file(const char *name, const char *actual)
{
    char path[1024];
    struct kg_error error = {0};
    char *expected = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/tests/golden/document/%s", KG_SOURCE_DIR, name);
    if (getenv("UPDATE"))
        CHECK_STATUS(kg_files_publish(path, actual, strlen(actual), &error), KG_OK, &error);
    CHECK_STATUS(kg_files_read(path, 1 << 20, &expected, &length, &error), KG_OK, &error);
    CHECK_TEXT(actual, expected ? expected : "");
    free(expected);
}

static void test_softmax(void)
{
    struct made made = make(softmax, "P=4096 D=1000 T=f16");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_text text = {0};
    kg_analyze_document(&text, made.problem, &device, KG_ENGLISH);
    check_file("softmax.en.md", kg_text_string(&text));
    kg_text_cut(&text, 0);
    kg_analyze_document(&text, made.problem, &device, KG_CHINESE);
    check_file("softmax.zh.md", kg_text_string(&text));
    kg_text_cut(&text, 0);
    kg_analyze_document_json(&text, made.problem, &device);
    kg_text_add(&text, "\n");
    check_file("softmax.json", kg_text_string(&text));
    kg_text_free(&text);
    unmake(&made);
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part)) != NULL) {
        text += strlen(part);
        count++;
    }
    return count;
}

// Both languages have the same headings and tables, for every class, with and without a device.
static void check_structure(const struct made *made, const struct kg_device_facts *facts)
{
    struct kg_text english = {0}, chinese = {0}, json = {0};
    kg_analyze_document(&english, made->problem, facts, KG_ENGLISH);
    kg_analyze_document(&chinese, made->problem, facts, KG_CHINESE);
    kg_analyze_document_json(&json, made->problem, facts);
    static const char *const parts[] = {"\n## ", "\n### ", "\n|", "|", "```", "\n- ", "\n\n"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        CHECK(count_of(kg_text_string(&english), parts[i]) ==
              count_of(kg_text_string(&chinese), parts[i]));
    static const char *const wrong[] = {" nan ", "-nan", " inf ", "nan FLOP", "inf FLOP", "nan%"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(strstr(kg_text_string(&english), wrong[i]) == NULL);
    json_error_t error;
    json_t *parsed = json_loads(kg_text_string(&json), 0, &error);
    CHECK(parsed != NULL);
    json_decref(parsed);
    kg_text_free(&english);
    kg_text_free(&chinese);
    kg_text_free(&json);
}

// What only GPUs have. The first section quotes the definition.
static void check_words(const char *document)
{
    static const char *const words[] = {
        "program", " unit",      "warp",     "Warp",     "stage", "Stage",   "Grid",    " grid",
        " wave",   "shared mem", "sector",   "all lane", "Lanes", "on chip", "on-chip", ".cu`",
        "程序块",  "网格",       "计算单元", "波次",     "扇区",  "片上",    "线程沿",  "共享内存"};
    const char *analysis = strstr(document, "\n## 2.");
    CHECK(analysis != NULL);
    CHECK(strstr(document, " cores, ") || strstr(document, "个核心，"));
    for (size_t i = 0; analysis && i < sizeof words / sizeof words[0]; i++) {
        const char *at = strstr(analysis, words[i]);
        CHECK(at == NULL);
        if (at)
            fprintf(stderr, "  %.60s\n", at);
    }
}

static void check_hosts(const struct made *made)
{
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        check_structure(made, &hosts[i]);
        for (int language = KG_ENGLISH; language <= KG_CHINESE; language++) {
            struct kg_text text = {0};
            kg_analyze_document(&text, made->problem, &hosts[i], (enum kg_language)language);
            check_words(kg_text_string(&text));
            kg_text_free(&text);
        }
    }
}

static void test_structure(void)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct made made = make(others[i][0], others[i][1]);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.problem) {
            check_structure(&made, NULL);
            check_structure(&made, &device);
            check_hosts(&made);
        }
        unmake(&made);
    }
}

// One row of sizes as choices: "P=4096 D=1000".
static const char *choices_of(const struct kg_shapes *shapes, struct kg_text *text)
{
    kg_text_cut(text, 0);
    for (int i = 0; shapes->row_count > 0 && i < shapes->size_count; i++)
        kg_text_format(text, "%s%s=%lld", i ? " " : "", shapes->sizes[i]->name,
                       (long long)shapes->rows[i]);
    return kg_text_string(text);
}

static void check_shipped_file(const char *path)
{
    struct kg_arena arena = {0};
    struct kg_file *file = NULL;
    struct kg_error error = {0};
    struct kg_text choices = {0};
    char *text = NULL;
    size_t length;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    if (text)
        CHECK_STATUS(kg_lang_parse(&arena, path, text, length, &file, &error), KG_OK, &error);
    for (int i = 0; file && i < file->op_count; i++) {
        struct made made = make_strided(text, file->ops[i]->name,
                                        choices_of(&file->ops[i]->goal.verify, &choices), NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.problem) {
            check_structure(&made, NULL);
            check_structure(&made, &device);
            check_hosts(&made);
        }
        unmake(&made);
    }
    kg_text_free(&choices);
    free(text);
    kg_arena_free(&arena);
}

static void test_shipped(void)
{
    glob_t files;
    CHECK(glob(KG_SOURCE_DIR "/ops/*.kg", 0, NULL, &files) == 0);
    CHECK(files.gl_pathc > 0);
    for (size_t i = 0; i < files.gl_pathc; i++)
        check_shipped_file(files.gl_pathv[i]);
    globfree(&files);
}

static void test_roofline(void)
{
    // 2 * 4096^3 on the matrix unit: 153 us; 3 * 32 MiB in 34 us.
    struct made made = make(others[0][0], others[0][1]);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    struct kg_roofline roofline = kg_roofline_of(made.problem, &device);
    CHECK(!roofline.memory_bound);
    CHECK(roofline.compute_seconds > 1.527e-4 && roofline.compute_seconds < 1.54e-4);
    CHECK(roofline.memory_seconds > 3.35e-5 && roofline.memory_seconds < 3.36e-5);
    CHECK(roofline.seconds == roofline.compute_seconds);
    unmake(&made);
    // 16 bytes a row at 3 TB/s beat one operation each.
    made = make(others[2][0], others[2][1]);
    roofline = kg_roofline_of(made.problem, &device);
    CHECK(roofline.memory_bound && roofline.seconds == 8.0 * 400000 / 3e12);
    CHECK(roofline.ridge == 6e13 / 3e12);
    unmake(&made);
}

TEST_MAIN(test_softmax, test_structure, test_shipped, test_roofline)
