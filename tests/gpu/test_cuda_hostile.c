// Candidates that hang, fault, write where they should not, are wrong or unsteady, on a real GPU,
// met by a search and by verify --candidate: each is an outcome, the search goes on, and the
// process that started it is as good as before. Without a GPU or NVRTC it is skipped.

#include "gen/standalone.h"
#include "kernelgen.h"
#include "support/folder.h"
#include "support/hostile.h"
#include "support/sample_problem.h"
#include "test.h"

#include <time.h>

#define HANG_SECONDS 4.0

static char folder[] = "/tmp/kg-test-hostile-XXXXXX";
static struct kg_error error;
static struct kg_device *device;
static struct kg_backend backend; // the device's own, but for its compiler
static enum kg_status (*compile_honestly)(struct kg_device *device, const struct kg_source *source,
                                          double time_limit, struct kg_binary *binary,
                                          struct kg_error *error);
static struct made made;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Configs of the family `direct` that stand for the hostile ones.
static void print_config(int hostile, char *text, size_t size)
{
    static const int threads[] = {64, 128, 512};
    static const int registers[] = {32, 40, 64};
    snprintf(text, size, "direct: threads=%d maxnreg=%d", threads[hostile % 3],
             registers[hostile / 3]);
}

// Sources say which config they are of. The worker asks again and gets the same.
static enum kg_status compile(struct kg_device *self, const struct kg_source *source,
                              double time_limit, struct kg_binary *binary, struct kg_error *own)
{
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        char config[64], line[80];
        struct kg_text text = {0};
        print_config(i, config, sizeof config);
        snprintf(line, sizeof line, "// %s\n", config);
        if (!strstr(source->text, line))
            continue;
        hostile_print(&text, "kg_kernel_0", hostiles[i].body);
        struct kg_source other = {.text = text.data, .entry = source->entry, .options = ""};
        enum kg_status status = compile_honestly(self, &other, time_limit, binary, own);
        kg_text_free(&text);
        return status;
    }
    return compile_honestly(self, source, time_limit, binary, own);
}

static struct seen {
    int count;
    enum kg_outcome_kind kind;
    char reason[600];
} seen[HOSTILE_COUNT];
static int measured;

static void take(void *user, const struct kg_outcome *outcome)
{
    (void)user;
    char config[64];
    measured += outcome->kind == KG_OUTCOME_MEASURED && !outcome->final;
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        print_config(i, config, sizeof config);
        if (strcmp(outcome->choice, config) != 0)
            continue;
        seen[i].count++;
        seen[i].kind = outcome->kind;
        snprintf(seen[i].reason, sizeof seen[i].reason, "%s",
                 outcome->reason ? outcome->reason : "");
    }
}

// The choice as it is, run in this process.
static void runs_right(const struct kg_choice *choice)
{
    struct kg_built *built;
    void *tensors[3] = {NULL}, *workspace = NULL;
    static float x[4096 * 300], b[300], y[4096 * 300];
    const struct kg_problem *problem = made.problem;
    for (int i = 0; i < 4096 * 300; i++)
        x[i] = (float)(i % 1000);
    for (int i = 0; i < 300; i++)
        b[i] = (float)i;
    const void *hosts[] = {x, b, y};
    CHECK_STATUS(kg_built_make(device, problem, choice, 60, &built, &error), KG_OK, &error);
    for (int i = 0; i < 3; i++) {
        size_t bytes = problem->layouts[i].bytes;
        CHECK_STATUS(backend.allocate(device, bytes, &tensors[i], &error), KG_OK, &error);
        CHECK_STATUS(backend.copy(device, tensors[i], hosts[i], bytes, &error), KG_OK, &error);
    }
    size_t bytes = kg_built_workspace(built, problem);
    if (bytes > 0)
        CHECK_STATUS(backend.allocate(device, bytes, &workspace, &error), KG_OK, &error);
    CHECK_STATUS(kg_built_run(built, problem, tensors, workspace, NULL, &error), KG_OK, &error);
    CHECK_STATUS(backend.copy(device, y, tensors[2], sizeof y, &error), KG_OK, &error);
    int right = 0;
    for (int i = 0; i < 4096 * 300; i++)
        right += y[i] == x[i] + b[i % 300];
    CHECK(right == 4096 * 300);
    for (int i = 0; i < 3; i++)
        backend.release(device, tensors[i]);
    if (workspace)
        backend.release(device, workspace);
    kg_built_free(built);
}

static void search(double seconds, struct kg_found *found)
{
    struct kg_gate *gate;
    struct kg_policy policy = {.seed = 7};
    char configs[HOSTILE_COUNT][64];
    const char *hints[HOSTILE_COUNT];
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        print_config(i, configs[i], sizeof configs[i]);
        hints[i] = configs[i];
    }
    memset(seen, 0, sizeof seen);
    measured = 0;
    CHECK_STATUS(kg_gate_make(device, made.op, &policy, &gate, &error), KG_OK, &error);
    struct kg_search order = {.device = device,
                              .problem = made.problem,
                              .target = &kg_target_cuda,
                              .gate = gate,
                              .rigor = KG_RIGOR_EXHAUSTIVE, // prunes nothing
                              .seconds = seconds,
                              .run_limit = HANG_SECONDS,
                              .protocol = kg_protocol_default,
                              .hints = hints,
                              .hint_count = HOSTILE_COUNT,
                              .record = take};
    CHECK_STATUS(kg_search_run(&order, found, &error), KG_OK, &error);
    kg_gate_free(gate);
}

static void a_search_meets_them(void)
{
    struct kg_found found;
    double start = seconds_now();
    search(HANG_SECONDS + 25, &found);
    printf("the search took %.1f s: %d measured, %d failed\n", seconds_now() - start,
           found.measured, found.failed);
    for (int i = 0; i < HOSTILE_COUNT; i++) {
        printf("  %-28s %-8s %.200s\n", hostiles[i].name, kg_outcome_names[seen[i].kind],
               seen[i].reason);
        CHECK(seen[i].count == 1 && seen[i].kind == hostiles[i].kind);
        CHECK(strstr(seen[i].reason, hostiles[i].told) != NULL);
    }
    CHECK(found.failed == HOSTILE_COUNT);
    CHECK(measured > 1 && found.seconds > 0); // the guess, and others after all that
    if (found.seconds > 0)
        runs_right(&found.choice);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

// As files from outside: through the public interface, in one context, one after the other.
static void verify_refuses_them(void)
{
    struct kg_options options = {.home = folder};
    struct kg_context *context;
    struct kg_op *op;
    struct kg_problem *problem;
    struct kg_device *cuda;
    struct kg_verify_result result = {.size = sizeof result};
    char path[200];
    snprintf(path, sizeof path, "%s/candidate.cu", folder);
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_op_parse(context, "add.kg", hostile_op, strlen(hostile_op), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, NULL, 0, &problem) == KG_OK);
    CHECK(kg_context_device(context, "cuda:0", &cuda) == KG_OK);
    for (int i = -1; i < HOSTILE_COUNT; i++) {
        struct kg_text text = {0};
        if (i >= 0 && hostiles[i].kind == KG_OUTCOME_TIMEOUT)
            continue; // would take its 30 s
        kg_text_add(&text, "// Launch: add, ceil(P * D / 512) blocks of 128 threads\n"
                           "//         with x, b, y, P, D, scratch\n"
                           "//         scratch: 16 bytes\n");
        hostile_print(&text, "add", i < 0 ? "" : hostiles[i].body);
        write_file(path, text.data);
        kg_text_free(&text);
        enum kg_status status = kg_problem_verify_file(problem, cuda, path, 7, &result);
        printf("  %-28s %s %.200s\n", i < 0 ? "is right" : hostiles[i].name,
               result.passed ? "passed" : "refused",
               status ? kg_context_error(context) : result.reason);
        CHECK(status == KG_OK && result.passed == (i < 0));
        if (i >= 0)
            CHECK(strstr(result.reason, hostiles[i].told) != NULL);
        else
            CHECK(result.cases > 20 && result.impostors > 5);
    }
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
}

// What emit writes passes, as CUDA and as PTX; with one number changed it does not.
static void round_trips(void)
{
    static const struct {
        const char *text, *sizes;
    } ops[] = {
        {hostile_op, "P=256 D=96"},
        {"op softmax(x: f32[P, D]) -> (y: f32[P, D])\n{ m[p] = max(d) x[p, d]\n"
         "e[p, d] = exp(x[p, d] - m[p])\ny[p, d] = e[p, d] / (sum(d) e[p, d]) }\n",
         "P=100 D=1000"},
        {"op total(x: f32[N]) -> (y: f32[])\n{ y[] = sum(n) x[n] }\n", "N=1000000"},
        {"op running(x: f32[P, D]) -> (y: f32[P, D])\n{ y[p, d] = sum(j <= d) x[p, j] }\n",
         "P=3 D=100000"},
        {"op two(x: f32[P, D]) -> (a: f32[P], b: f32[D])\n"
         "{ a[p] = sum(d) x[p, d]\n  b[d] = max(p) x[p, d] }\n",
         "P=100 D=64"},
    };
    struct kg_options options = {.home = folder};
    struct kg_context *context;
    struct kg_device *cuda;
    char path[200];
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_context_device(context, "cuda:0", &cuda) == KG_OK);
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct kg_op *op;
        struct kg_problem *problem;
        struct kg_plan *plan;
        struct kg_verify_result result = {.size = sizeof result};
        struct kg_binding bindings[2] = {{0}};
        char sizes[64], *rest = sizes;
        int count = 0;
        snprintf(sizes, sizeof sizes, "%s", ops[i].sizes);
        for (char *word; (word = strtok_r(rest, " =", &rest)); count++)
            bindings[count] = (struct kg_binding){word, strtok_r(rest, " =", &rest)};
        CHECK(kg_op_parse(context, "op.kg", ops[i].text, strlen(ops[i].text), NULL, &op) == KG_OK);
        CHECK(kg_problem_create(context, op, bindings, count, &problem) == KG_OK);
        CHECK(kg_plan_create(problem, cuda, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
        for (int form = 0; form < 2; form++) {
            char *text;
            CHECK((form ? kg_plan_assembly : kg_plan_source)(plan, &text) == KG_OK);
            snprintf(path, sizeof path, "%s/%s.%s", folder, kg_op_name(op), form ? "ptx" : "cu");
            write_file(path, text);
            enum kg_status status = kg_problem_verify_file(problem, cuda, path, 7, &result);
            printf("  %-8s %-4s %s %.200s\n", kg_op_name(op), form ? "ptx" : "cu",
                   result.passed ? "passed" : "refused",
                   status ? kg_context_error(context) : result.reason);
            CHECK(status == KG_OK && result.passed);
            kg_text_release(text);
        }
        kg_plan_destroy(plan);
        kg_problem_destroy(problem);
        kg_op_destroy(op);
    }
    kg_context_destroy(context);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!folder_make(folder))
        return 1;
    enum kg_status status = kg_device_open("cuda:0", folder, 0, &device, &error);
    if (status != KG_OK || !device->compiler[0]) {
        printf("skipped: %s\n", status ? error.text : "no NVRTC");
        kg_device_close(device);
        folder_remove(folder);
        return 77;
    }
    made = make(hostile_op, "P=4096 D=300");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_backend *own = device->backend;
    backend = *own;
    compile_honestly = backend.compile;
    backend.compile = compile;
    device->backend = &backend;
    round_trips();
    verify_refuses_them();
    a_search_meets_them();
    device->backend = own;
    kg_device_close(device);
    unmake(&made);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
