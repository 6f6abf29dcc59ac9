// Every shipped definition, for every dtype it lists, through the accuracy gate on the host: the
// kernels that the rules choose, for contiguous tensors and for strided views. The impostors must
// all be rejected by the very inputs in use, or the gate itself fails.
//
// KG_DTYPES=first takes the first dtype of each variable only, as `make test` does; KG_SIZES=verify
// plans for the smallest sizes instead of the largest.
//
// Compiling takes most of the time, so several processes share the ops. KG_OPS=NAME limits the test
// to ops whose names begin so, KG_TURN=N to every sixth one, KG_DEVICE=cuda:0 takes another
// device. The numbers are fresh ones each time, or those of KG_SEED; KG_ROUNDS=N judges every
// kernel by N lots of them.

#include "base/files.h"
#include "flow/planner.h"
#include "flow/verify.h"
#include "lang/lang.h"
#include "support/case_turns.h"
#include "support/folder.h"
#include "test.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PROCESSES 16
#define TURNS 6

static struct kg_error error;
static int judged;
static int number, taken, process, processes; // this process judges every `processes`-th op

// Sizes for the plan itself, which decide its config; the gate chooses its own, whatever these are.
// What a definition is to be tuned for, or with KG_SIZES=verify its smallest case.
static void choose_sizes(const struct kg_op *op, int64_t *sizes)
{
    const char *wanted = getenv("KG_SIZES");
    bool small = wanted && strcmp(wanted, "verify") == 0;
    const struct kg_shapes *shapes = &op->goal.tune;
    if (small || shapes->row_count == 0)
        shapes = &op->goal.verify;
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = 16;
    int row = small ? 0 : shapes->row_count - 1;
    for (int i = 0; shapes->row_count > 0 && i < shapes->size_count; i++)
        sizes[shapes->sizes[i]->id] = shapes->rows[row * shapes->size_count + i];
}

static uint64_t number_wanted(const char *variable, uint64_t otherwise)
{
    const char *wanted = getenv(variable);
    return wanted ? strtoull(wanted, NULL, 10) : otherwise;
}

// Seed 0 asks for a fresh one.
static enum kg_status verify(const struct kg_plan *plan, struct kg_verdict *verdict)
{
    uint64_t seed = number_wanted("KG_SEED", 0), rounds = number_wanted("KG_ROUNDS", 1);
    enum kg_status status = KG_OK;
    verdict->passed = true;
    for (uint64_t round = 0; round < rounds && status == KG_OK && verdict->passed; round++)
        status = kg_flow_verify(plan, seed ? seed + round : 0, verdict, &error);
    return status;
}

static void judge(struct kg_session *session, struct kg_device *device, const struct kg_op *op,
                  const struct kg_bindings *bindings)
{
    struct kg_arena arena = {0};
    struct kg_op *instance;
    struct kg_problem *problem = NULL;
    struct kg_plan *plan = NULL;
    struct kg_verdict verdict = {0};
    int64_t sizes[KG_MAX_SIZES] = {0};
    choose_sizes(op, sizes);
    enum kg_status status = kg_lang_instantiate(&arena, op, bindings, &instance, &error);
    if (status == KG_OK)
        status = kg_problem_make(instance, sizes, NULL, &problem, &error);
    struct kg_request request = {.session = session, .problem = problem, .device = device};
    if (status == KG_OK)
        status = kg_flow_plan(&request, &plan, &error);
    if (status == KG_OK)
        status = verify(plan, &verdict);
    judged++;
    test_checks++;
    if (status != KG_OK || !verdict.passed) {
        struct kg_text dtypes = {0};
        if (status == KG_OK)
            kg_session_print_dtypes(&dtypes, instance);
        fprintf(stderr, "%s %s: %s, seed %" PRIu64 "\n  %s\n", op->name, kg_text_string(&dtypes),
                plan ? plan->choice : "no plan", verdict.seed,
                status != KG_OK ? error.text : verdict.reason);
        kg_text_free(&dtypes);
        test_failures++;
    }
    kg_flow_plan_free(plan);
    kg_problem_free(problem);
    kg_arena_free(&arena);
}

static bool takes_all_dtypes(void)
{
    const char *wanted = getenv("KG_DTYPES");
    return !wanted || strcmp(wanted, "first") != 0;
}

// All combinations of the dtypes that the op's variables allow.
static void judge_op(struct kg_session *session, struct kg_device *device, const struct kg_op *op)
{
    struct kg_bindings bindings;
    kg_lang_default_bindings(op, &bindings);
    int at[KG_DTYPE_COUNT] = {0};
    for (int variable = 0; variable >= 0;) {
        for (int i = 0; i < op->typevar_count; i++)
            bindings.dtypes[i] = op->typevars[i]->allowed[at[i]];
        judge(session, device, op, &bindings);
        variable = takes_all_dtypes() ? op->typevar_count - 1 : -1;
        while (variable >= 0 && ++at[variable] == op->typevars[variable]->count)
            at[variable--] = 0;
    }
}

static void judge_file(struct kg_session *session, struct kg_device *device, const char *name)
{
    const char *wanted = getenv("KG_OPS");
    char path[1024];
    snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, name);
    char *text;
    size_t length;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    struct kg_arena arena = {0};
    struct kg_file *file;
    enum kg_status status = kg_lang_parse(&arena, name, text, length, &file, &error);
    CHECK_STATUS(status, KG_OK, &error);
    for (int i = 0; status == KG_OK && i < file->op_count; i++) {
        if (wanted && strncmp(file->ops[i]->name, wanted, strlen(wanted)) != 0)
            continue;
        if (has_turn(number++, TURNS) && taken++ % processes == process)
            judge_op(session, device, file->ops[i]);
    }
    kg_arena_free(&arena);
    free(text);
}

static void judge_share(void)
{
    struct kg_session session = {0};
    struct kg_device *device = NULL;
    char home[] = "/tmp/kernelgen-ops-XXXXXX";
    char cache[64];
    CHECK(folder_make(home));
    snprintf(cache, sizeof cache, "%s/cache", home);
    CHECK_STATUS(kg_store_open(home, &session.store, NULL, &error), KG_OK, &error);
    const char *wanted = getenv("KG_DEVICE");
    CHECK_STATUS(kg_device_open(wanted ? wanted : "host", cache, 1, &device, &error), KG_OK,
                 &error);
    if (!device)
        return;
    DIR *folder = opendir(KG_SOURCE_DIR "/ops");
    CHECK(folder != NULL);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strstr(entry->d_name, ".kg"))
            judge_file(&session, device, entry->d_name);
    if (folder)
        closedir(folder);
    kg_device_close(device);
    kg_store_close(session.store);
    folder_remove(home);
}

// Each child judges its share and tells how much that was through a pipe.
static void test_every_op(void)
{
    int counts[2];
    CHECK(pipe(counts) == 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    processes = cores < 1 ? 1 : cores > MOST_PROCESSES ? MOST_PROCESSES : (int)cores;
    for (process = 0; process < processes; process++)
        if (fork() == 0) {
            judge_share();
            bool told = write(counts[1], &judged, sizeof judged) == sizeof judged;
            _exit(test_failures > 0 || !told);
        }
    int total = 0;
    for (int i = 0; i < processes; i++) {
        int status = 1, count = 0;
        CHECK(wait(&status) > 0 && status == 0);
        CHECK(read(counts[0], &count, sizeof count) == sizeof count);
        total += count;
    }
    int least = (takes_all_dtypes() ? 600 : 200) / turns_of(TURNS);
    CHECK(getenv("KG_OPS") || total > least);
    printf("%d pairs of definition and dtypes judged\n", total);
}

TEST_MAIN(test_every_op)
