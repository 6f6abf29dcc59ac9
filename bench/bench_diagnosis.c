// Is the diagnosis right? Kernels with one known bottleneck each, which the definition and a choice
// given by hand bring about, are timed and diagnosed.
//
//     bench_diagnosis [--device host|cuda:0]
//
// Prints a row for each kernel, and exits with status 1 if more than one is diagnosed wrongly, or
// if there is none for the device.
// Other work on the machine makes every kernel slower than it is, and the rows with it.

#include "base/files.h"
#include "flow/evidence.h"
#include "flow/plan_bench.h"
#include "gen/grouping.h"
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALLOWED_WRONG 1
#define COPY "op copy(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = x[p, d] + 1 }\n"
#define PRODUCT                                                                                    \
    "op product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"                                   \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define SOFTMAX                                                                                    \
    "op softmax(x: f32[P, D]) -> (y: f32[P, D])\n{\n    m[p] = max(d) x[p, d]\n"                   \
    "    e[p, d] = exp(x[p, d] - m[p])\n    y[p, d] = e[p, d] / (sum(d) e[p, d])\n}\n"
#define PRODUCT_F16                                                                                \
    "op product(a: f16[M, K], b: f16[K, N]) -> (c: f16[M, N])\n"                                   \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define PRODUCT_BF16                                                                               \
    "op product(a: bf16[M, K], b: bf16[K, N]) -> (c: bf16[M, N])\n"                                \
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
#define CHAIN                                                                                      \
    "op chain(x: f32[P]) -> (y: f32[P])\n{\n    a[p] = x[p] + 1\n    b[p] = a[p] * a[p]\n"         \
    "    y[p] = b[p] + 1\n}\n"
#define GATHER "op gather(t: f32[V, D], i: i64[N]) -> (y: f32[N, D])\n{ y[n, d] = t[i[n], d] }\n"
#define CALLS                                                                                      \
    "op calls(x: f32[P], w: f32[K]) -> (y: f32[P])\n"                                              \
    "{ y[p] = sum(k) (exp2(x[p] * w[k]) + exp2(x[p] + w[k]) + exp2(x[p] - w[k])) }\n"
#define EXP8(x) "exp2(-exp2(-exp2(-exp2(-exp2(-exp2(-exp2(-exp2(-" x "))))))))"
#define EXPONENTIALS                                                                               \
    "op exponentials(x: f32[P]) -> (y: f32[P])\n{ y[p] = " EXP8(EXP8(EXP8("x[p]"))) " }\n"
#define LOG4(x) "log2(abs(log2(abs(log2(abs(log2(abs(" x ") + 2)) + 2)) + 2)) + 2)"
#define LOGARITHMS                                                                                 \
    "op logarithms(x: f32[P]) -> (y: f32[P])\n{ y[p] = " LOG4(LOG4(LOG4(LOG4(LOG4("x[p]"))))) " }" \
                                                                                              "\n"
#define ROWS "op rows(x: f32[P, D]) -> (y: f32[P])\n{ y[p] = sum(d) x[p, d] }\n"
#define POLYNOMIAL                                                                                 \
    "op polynomial(x: f32[P], w: f32[K]) -> (y: f32[P])\n{\n    y[p] = sum(k) "                    \
    "(((((((x[p] * w[k] + 0.1) * x[p] + 0.2) * x[p] + 0.3) * x[p] + 0.4) * x[p] + 0.5) * x[p] + "  \
    "0.6) * x[p] + 0.7)\n}\n"
#define COLUMNS "op columns(x: f32[P, D]) -> (y: f32[D])\n{ y[d] = sum(p) x[p, d] }\n"

#define BIT(row) (1u << KG_BOTTLENECK_##row)

struct subject {
    const char *what;
    const char *backend;
    const char *text;
    const char *sizes;
    const char *choice;   // NULL: the rule's; PLAIN, SINGLE: of these groupings
    unsigned bottlenecks; // any of these is right
};

static const struct subject subjects[] = {
    {"a copy, streamed", "host", COPY, "P=8192 D=8192",
     "pointwise: block=16384 stream=64 tile=0 ways=4", BIT(NONE) | BIT(BANDWIDTH)},
    {"64 elements, three kernels, plain", "host", CHAIN, "P=64", "PLAIN", BIT(LAUNCH)},
    {"a range for one thread", "host",
     "op heavy(x: f32[P]) -> (y: f32[P])\n{ y[p] = erf(tanh(x[p])) }\n", "P=16384",
     "pointwise: block=16384 stream=0 tile=0 ways=1", BIT(PARALLELISM)},
    {"one range more than threads", "host",
     "op heavy(x: f32[P]) -> (y: f32[P])\n{ y[p] = erf(tanh(x[p])) }\n", "P=THREADS+1",
     "pointwise: block=16384 stream=0 tile=0 ways=1", BIT(TAIL)},
    {"transcendental functions", "host",
     "op calls(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = erf(sin(tanh(x[p, d]))) }\n",
     "P=1024 D=2048", NULL, BIT(SPECIAL)},
    {"a product of scalars in one chain", "host", PRODUCT, "M=2048 N=256 K=256",
     "direct: block=256 lanes=1", BIT(ARITHMETIC)},
    {"a product with more sums than registers", "host", PRODUCT, "M=2048 N=256 K=256",
     "direct: block=256 lanes=64", BIT(SPILLS)},
    {"sums of columns, column by column", "host", COLUMNS, "P=32768 D=512",
     "direct: block=256 lanes=1", BIT(LOCALITY)},
    {"a softmax in four kernels", "host", SOFTMAX, "P=4096 D=4096", "SINGLE", BIT(LOCALITY)},
    {"rows of 16 bytes, anywhere", "host", GATHER, "V=4000000 D=4 N=2000000",
     "direct: block=256 lanes=1", BIT(LATENCY)},
    {"a recurrence along rows", "host",
     "op cumsum(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = sum(j <= d) x[p, j] }\n",
     "P=64 D=131072", "direct: block=256 lanes=1", BIT(LATENCY)},
    {"a sum by one thread", "host", "op total(x: f32[P]) -> (y: f32[])\n{ y[] = sum(p) x[p] }\n",
     "P=1048576", "reduce: column=0 width=64 unroll=4 chunk=1048576", BIT(PARALLELISM)},
    // On GPUs of 132 multiprocessors.
    {"a copy", "cuda", COPY, "P=16384 D=8192", NULL, BIT(NONE) | BIT(BANDWIDTH)},
    {"64 elements, three kernels", "cuda", CHAIN, "P=64", "PLAIN", BIT(LAUNCH)},
    {"a sum by one block", "cuda", "op total(x: f32[P]) -> (y: f32[])\n{ y[] = sum(p) x[p] }\n",
     "P=16777216", "reduce: column=0 threads=256 vector=4 unroll=4 split=1 cluster=0 maxnreg=0",
     BIT(PARALLELISM)},
    {"568 blocks of 512 threads", "cuda", CALLS, "P=290816 K=2048", "direct: threads=512 maxnreg=0",
     BIT(TAIL)},
    {"transcendental functions", "cuda", EXPONENTIALS, "P=67108864", NULL, BIT(SPECIAL)},
    {"a polynomial of f32", "cuda", POLYNOMIAL, "P=286720 K=4096", NULL,
     BIT(ARITHMETIC) | BIT(NONE)},
    {"a product on the tensor cores", "cuda", PRODUCT_F16, "M=8192 N=8192 K=8192", NULL,
     BIT(TENSOR) | BIT(NONE)},
    {"the product by scalars", "cuda", PRODUCT_F16, "M=2048 N=2048 K=2048",
     "direct: threads=256 maxnreg=0", BIT(TENSOR)},
    {"a softmax in four kernels", "cuda", SOFTMAX, "P=16384 D=4096", "SINGLE", BIT(LOCALITY)},
    {"a chain in three kernels", "cuda", CHAIN, "P=67108864", "SINGLE", BIT(LOCALITY)},
    {"elements anywhere", "cuda",
     "op gather(t: f32[V], i: i64[N]) -> (y: f32[N])\n{ y[n] = t[i[n]] }\n",
     "V=67108864 N=16777216", NULL, BIT(LATENCY) | BIT(LOCALITY)},
    {"a thread for each row", "cuda", ROWS, "P=65536 D=4096", "direct: threads=256 maxnreg=0",
     BIT(LATENCY) | BIT(LOCALITY)},
    // Added after the tree and its thresholds were settled on the ones above.
    {"sums of rows", "cuda", ROWS, "P=65536 D=4096", NULL, BIT(NONE) | BIT(BANDWIDTH)},
    {"logarithms", "cuda", LOGARITHMS, "P=67108864", NULL, BIT(SPECIAL)},
    {"a transposed copy, column by column", "cuda",
     "op turn(x: f32[M, N]) -> (y: f32[N, M])\n{ y[n, m] = x[m, n] }\n", "M=8192 N=8192",
     "direct: threads=256 maxnreg=0", BIT(LOCALITY) | BIT(LATENCY)},
    {"a norm, a kernel for each statement", "cuda",
     "op norm(x: f32[P, D]) -> (y: f32[P, D])\n{\n    m[p] = mean(d) x[p, d]\n"
     "    c[p, d] = x[p, d] - m[p]\n    v[p] = mean(d) c[p, d] * c[p, d]\n"
     "    y[p, d] = c[p, d] * rsqrt(v[p] + 1e-5)\n}\n",
     "P=16384 D=4096", "SINGLE", BIT(LOCALITY)},
    {"16 rows by 16 blocks", "cuda", ROWS, "P=16 D=4194304",
     "reduce: column=0 threads=256 vector=4 unroll=4 split=1 cluster=0 maxnreg=0",
     BIT(PARALLELISM)},
    {"a product of bf16", "cuda", PRODUCT_BF16, "M=6144 N=6144 K=6144", NULL,
     BIT(TENSOR) | BIT(NONE)},
};

static struct kg_error error;

static void stop(const char *doing)
{
    fprintf(stderr, "bench_diagnosis: %s: %s\n", doing, error.text);
    exit(2);
}

// "P=THREADS+1" stands for so many blocks of 16384 elements.
static int64_t value_of(const char *text, const struct kg_device *device)
{
    if (strncmp(text, "THREADS+1", 9) == 0)
        return (int64_t)(device->facts.units + 1) * 16384;
    return strtoll(text, NULL, 10);
}

static struct kg_problem *make_problem(const struct subject *subject,
                                       const struct kg_device *device, struct kg_arena *arena)
{
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES] = {0};
    const char *text = subject->text;
    if (kg_lang_parse(arena, "bench", text, strlen(text), &file, &error) != KG_OK ||
        kg_lang_select(file, NULL, &op, &error) != KG_OK)
        stop(subject->what);
    kg_lang_default_bindings(op, &bindings);
    for (int i = 0; i < op->size_count; i++) { // names of one letter
        const char *at = strstr(subject->sizes, op->sizes[i]->name);
        sizes[i] = at ? value_of(at + 2, device) : 1;
    }
    if (kg_lang_instantiate(arena, op, &bindings, &instance, &error) != KG_OK ||
        kg_problem_make(instance, sizes, NULL, &problem, &error) != KG_OK)
        stop(subject->what);
    return problem;
}

// A kernel for each nest, by the family with the shortest time.
static bool find_single(const struct kg_problem *problem, const struct kg_device *device,
                        struct kg_choice *choice)
{
    static struct kg_groupings groupings;
    if (!kg_groupings_list(problem, &device->facts, kg_target_of(device), &groupings, NULL))
        return false;
    for (int i = 0; i < groupings.count; i++)
        if (groupings.options[i].kind == KG_GROUPING_SINGLE) {
            *choice = groupings.options[i].choice;
            return true;
        }
    return false;
}

static bool find_choice(const struct subject *subject, const struct kg_problem *problem,
                        const struct kg_device *device, struct kg_choice *choice)
{
    const struct kg_target *target = kg_target_of(device);
    if (!subject->choice) {
        kg_choice_guess(problem, &device->facts, target, choice);
        return choice->count > 0;
    }
    if (strcmp(subject->choice, "PLAIN") == 0) {
        kg_choice_plain(problem, &device->facts, target, choice);
        return choice->count > 0;
    }
    if (strcmp(subject->choice, "SINGLE") == 0)
        return find_single(problem, device, choice);
    return kg_choice_read(problem, &device->facts, target, subject->choice, choice);
}

static bool diagnose(const struct subject *subject, struct kg_session *session,
                     struct kg_device *device)
{
    struct kg_arena arena = {0};
    struct kg_choice choice;
    struct kg_plan *plan;
    struct kg_bench_result result;
    struct kg_diagnosed diagnosed;
    struct kg_problem *problem = make_problem(subject, device, &arena);
    struct kg_request request = {.session = session, .problem = problem, .device = device};
    if (!find_choice(subject, problem, device, &choice)) {
        kg_error_set(&error, KG_ERROR_ARGUMENT, "the choice does not fit");
        stop(subject->what);
    }
    if (kg_flow_plan_of(&request, &choice, &plan, &error) != KG_OK ||
        kg_flow_bench(plan, NULL, &result, NULL, &error) != KG_OK)
        stop(subject->what);
    kg_flow_diagnose_plan(plan, result.seconds, &diagnosed);
    bool right = subject->bottlenecks >> diagnosed.bottleneck & 1;
    printf("| %s | %s | %s | %.4g us; %s |\n", subject->what, right ? "right" : "WRONG",
           diagnosed.row->key, result.seconds * 1e6, diagnosed.evidence);
    fflush(stdout);
    kg_flow_plan_free(plan);
    kg_problem_free(problem);
    kg_arena_free(&arena);
    return right;
}

int main(int argc, char **argv)
{
    struct kg_session session = {.protocol = {0}};
    struct kg_device *device;
    struct kg_text notice = {0};
    const char *name = argc == 3 && strcmp(argv[1], "--device") == 0 ? argv[2] : "host";
    int wrong = 0, count = 0;
    char *home, cache[1024];
    if (kg_files_home(NULL, &home, &error) != KG_OK)
        stop("opening records");
    snprintf(cache, sizeof cache, "%s/cache", home);
    free(home);
    if (kg_device_open(name, cache, 0, &device, &error) != KG_OK)
        stop(name);
    if (kg_session_open(&session, &notice, &error) != KG_OK)
        stop("opening records");
    printf("%s\n\n| kernel | diagnosis | bottleneck | evidence |\n|---|---|---|---|\n",
           device->facts.name);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (strcmp(subjects[i].backend, device->backend->name) != 0)
            continue;
        count++;
        wrong += !diagnose(&subjects[i], &session, device);
    }
    printf("\n%d of %d right\n", count - wrong, count);
    if (count == 0)
        fprintf(stderr, "bench_diagnosis: no kernels for %s\n", device->backend->name);
    kg_store_close(session.store);
    kg_text_free(&notice);
    kg_device_close(device);
    return count == 0 || wrong > ALLOWED_WRONG;
}
