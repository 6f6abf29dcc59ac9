// Records for judges of the report that are not written in C: many problems on three devices, and
// awkward ones.
//
//     write_records FOLDER

#include "support/sample_records.h"

#include <math.h>

// What a hostile record would like to be read as.
#define HOSTILE "<script>alert('1')</script>&\"\x01"
#define HOSTILE_ATTRIBUTE "\" onmouseover=\"alert(1)\" x=\""
#define LONG_NAME                                                                                  \
    "scaled_dot_product_attention_with_rotary_embedding_and_a_causal_mask_and_a_sliding_window_"   \
    "and_grouped_query_heads_of_the_last_layer_backward_with_respect_to_its_keys"
#define LONG_CHOICE                                                                                \
    "reduce: column=0 width=64 unroll=1 chunk=1048576; rowwise*2: lanes=64 keep=0 stream=1 "       \
    "prefetch=0 behind=0; contract/wgmma: tile_m=128 tile_n=256 tile_k=64 stages=4 cluster_m=2 "   \
    "cluster_n=1 split=1 swizzle=128 maxnreg=168 epilogue=tma_store persistent=1; "                \
    "averyveryverylongwordwithoutanyspaceatallinwhichnobrowserfindsaplacetobreakthelineofthetext"

static struct kg_store *store;

static void must(enum kg_status status, const struct kg_error *error)
{
    if (status == KG_OK)
        return;
    fprintf(stderr, "write_records: %s\n", error->text);
    exit(1);
}

static void add_round(const struct kg_key *key, struct kg_round round)
{
    struct kg_error error = {0};
    must(kg_store_round(store, key, &round, &error), &error);
}

static void add_outcome(const struct kg_key *key, const char *choice, double seconds)
{
    struct kg_error error = {0};
    struct kg_outcome outcome = sample_outcome(choice);
    outcome.timing.median = seconds;
    outcome.bound = seconds * 0.7;
    must(kg_store_append(store, key, &outcome, &error), &error);
}

static void add_failure(const struct kg_key *key, const char *choice, enum kg_outcome_kind kind,
                        const char *reason)
{
    struct kg_error error = {0};
    struct kg_outcome outcome = sample_outcome(choice);
    outcome.kind = kind;
    outcome.reason = reason;
    outcome.timing = (struct kg_timing){0};
    outcome.verdict.passed = false;
    outcome.verdict.worst_relative = 1234.5;
    must(kg_store_append(store, key, &outcome, &error), &error);
}

static void learn(const struct kg_key *key, const char *choice, double seconds)
{
    struct kg_error error = {0};
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", choice);
    struct kg_wisdom wisdom = sample_wisdom(copy);
    wisdom.seconds = seconds;
    must(kg_store_learn(store, key, &wisdom, &error), &error);
}

// What the problem costs, and a text whose goal is its own.
static void describe(const struct kg_key *key, double seconds)
{
    struct kg_error error = {0};
    const struct kg_cost cost = {1e6, 4e6, seconds * 0.6, seconds * 0.0423};
    char text[1024];
    snprintf(text, sizeof text,
             "op %s(x: f32[P]) -> (y: f32[P])\n{ y[p] = x[p] + 1 }\ngoal { speedup 1.37 }\n",
             key->op);
    must(kg_store_describe(store, key, &cost, text, &error), &error);
}

// A build: the rule's version, what the search found, and a round that gave nothing. The search's
// own time differs from that of the race with the baseline, as it does in practice.
static void add_build(const struct kg_key *key, const char *best, double seconds, double ratio)
{
    describe(key, seconds);
    add_round(key, (struct kg_round){.number = 0,
                                     .diagnosis = "the first version, by rule",
                                     .change = "none",
                                     .choice = "direct{}",
                                     .before = 0,
                                     .after = seconds * 1.4,
                                     .baseline = seconds * ratio * 1.02,
                                     .roofline = seconds * 0.6,
                                     .result = "measured against the baseline"});
    add_round(key, (struct kg_round){.number = 1,
                                     .diagnosis = "latency: memory access, 57% of the roofline",
                                     .change = "parameters only: the kernel is regenerated",
                                     .choice = best,
                                     .before = seconds * 1.43,
                                     .after = seconds,
                                     .baseline = seconds * ratio,
                                     .roofline = seconds * 0.6,
                                     .result = "kept",
                                     .base = "direct{}",
                                     .kind = "search",
                                     .bottleneck = "latency",
                                     .predicted = seconds * 0.77,
                                     .tried = 4,
                                     .kept = true,
                                     .difference = "--- direct{}\n+++ rows{}\n@@ -1 +1,2 @@\n"
                                                   "-lanes 8\n+lanes 16\n+```|<b>\n"});
    add_round(key, (struct kg_round){.number = 2,
                                     .diagnosis = "tail: 1.31 waves",
                                     .change = "block and grid: block 64 -> 128",
                                     .choice = "rows{block=128}",
                                     .before = seconds * 1.02,
                                     .after = seconds * 1.19,
                                     .baseline = seconds * ratio * 0.98,
                                     .roofline = seconds * 0.6,
                                     .result = "not faster beyond the noise",
                                     .base = best,
                                     .kind = "block",
                                     .bottleneck = "tail",
                                     .predicted = seconds * 0.83,
                                     .tried = 3});
    add_outcome(key, best, seconds * 0.93);
    add_outcome(key, "direct{}", seconds * 1.3);
    add_outcome(key, "direct{stream=1}", seconds * 1.2);
    add_failure(key, "rows{lanes=1}", KG_OUTCOME_PRUNED, "bound is above the best time");
    learn(key, best, seconds * 0.93);
}

static void on_h100(struct kg_key *key)
{
    key->device = "NVIDIA H100 80GB HBM3";
    key->isa = "sm_90a";
    key->units = 132;
    key->driver = "580.95";
    key->compiler = "NVRTC 13.0 --gpu-architecture=sm_90a";
}

static void add_many(void)
{
    static const char *const ops[] = {"add", "softmax", "rms_norm", "matmul", "cumsum", "gelu"};
    static const char *const dtypes[] = {"T=f16", "T=bf16", "T=f32"};
    for (int i = 0; i < 36; i++) {
        struct kg_key key = sample_key();
        char sizes[32];
        if (i % 2)
            on_h100(&key);
        snprintf(sizes, sizeof sizes, "P=%d D=%d", 64 << (i % 5), 1000 + i);
        key.op = ops[i % 6];
        key.dtypes = dtypes[i % 3];
        key.sizes = sizes;
        add_build(&key, "rows{lanes=16}", 1e-6 * pow(1.6, i % 29), 0.8 + 0.07 * i);
    }
}

static void add_awkward(void)
{
    struct kg_key key = sample_key();
    key.op = LONG_NAME;
    key.sizes = "BATCH=1 HEADS=128 QUERY_HEADS_OF_A_GROUP=8 SEQUENCE=131072 HEAD_DIMENSION=128";
    key.layout = "q=1048576,8192,128,1 k=1048576,8192,128,1 v=1048576,8192,128,1";
    add_build(&key, LONG_CHOICE, 70.0921e-3, 0.71); // a loss
    for (int i = 0; i < 25; i++) {
        char choice[600];
        snprintf(choice, sizeof choice, "variant=%d " LONG_CHOICE, i);
        add_outcome(&key, choice, 0.08 + i * 1e-3);
    }

    key = sample_key();
    key.op = "hostile" HOSTILE;
    key.dtypes = HOSTILE_ATTRIBUTE;
    key.sizes = "</details></section>" HOSTILE;
    key.device = "Device " HOSTILE;
    add_build(&key, HOSTILE HOSTILE_ATTRIBUTE, 2e-4, 1.3);
    add_failure(&key, "rows{" HOSTILE "}", KG_OUTCOME_WRONG, HOSTILE);

    key = sample_key();
    key.op = "refused";
    add_failure(&key, "rows{lanes=32}", KG_OUTCOME_WRONG,
                "y[0,7]: 1.5 where 1 <= 1.001 is right\nseed 7");
    add_failure(&key, "rows{lanes=64}", KG_OUTCOME_FAULT, "it wrote outside its buffers");

    key.op = "refused_later"; // by a tool, after it was timed and known
    add_build(&key, "rows{lanes=8}", 5e-5, 2);
    add_failure(&key, "rows{lanes=8}", KG_OUTCOME_WRONG, "memcheck: invalid read of 4 bytes");

    key.op = "only_wisdom"; // imported
    learn(&key, "rows{lanes=4}", 3e-5);

    key.op = "only_rounds"; // built without a search
    add_round(&key, (struct kg_round){.number = 0,
                                      .diagnosis = "the first version, by rule",
                                      .change = "none",
                                      .choice = "direct{}",
                                      .before = 0,
                                      .after = 2e-3,
                                      .baseline = 3e-2,
                                      .roofline = 2e-5,
                                      .result = "measured against the baseline"});

    key.op = "only_judged";
    add_round(&key, (struct kg_round){.diagnosis = "a kernel from outside",
                                      .change = "verified",
                                      .choice = "foreign: /home/someone/kernels/mine.c",
                                      .result = "passed: 12 cases, seed 7"});

    key.op = "not_finite";
    key.dtypes = key.sizes = key.layout = key.compiler = "";
    add_round(&key, (struct kg_round){.number = 0,
                                      .diagnosis = "",
                                      .change = "",
                                      .choice = "direct{}",
                                      .before = 0,
                                      .after = NAN,
                                      .baseline = INFINITY,
                                      .roofline = NAN,
                                      .result = "lost"});

    key = sample_key();
    key.op = "as_fast";
    add_build(&key, "rows{lanes=8}", 999.7e-6, 1.004);
}

int main(int count, char **words)
{
    struct kg_error error = {0};
    if (count != 2)
        return 2;
    must(kg_store_open(words[1], &store, NULL, &error), &error);
    add_many();
    add_awkward();
    kg_store_close(store);
    return 0;
}
