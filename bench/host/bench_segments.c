// Times every way in which a family can take consecutive statements of an op, alone, and says what
// its rule expects of it: what the constants of src/gen/host/host_times.h are fitted to.
//
//     bench_segments [--threads N] [--seconds S] [--list] < CASES
//
// A case is a line "FILE.kg OP T=f32 M=512,K=512,N=512". The answer is a line of JSON for each case
// and segment: first statement, count, family, the config of its rule, `expected` and `seconds`,
// the least of several rounds with warm caches. Segments of a case run in turns, so that other work
// on the machine meets all of them. With --list nothing is compiled. bench/host/judge_times.py
// makes the groupings of the segments and says what going by the expectation costs.

#include "base/files.h"
#include "base/json.h"
#include "gen/host/host_times.h"
#include "gen/prepared.h"
#include "lang/lang.h"
#include "tune/compiling.h"
#include "tune/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SEGMENTS = 1024, ROUNDS = 9, COMPILE_LIMIT = 120, NEAR_ONE = 0x3f };

struct segment {
    struct kg_choice choice;
    double expected, seconds;
};

struct bench {
    struct kg_device *device;
    double limit; // seconds for the runs of a segment
    bool list;
    const struct kg_problem *problem;
    int count;
    struct segment segments[MOST_SEGMENTS];
    struct kg_compilation compilations[MOST_SEGMENTS];
};

static struct kg_error error;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void find_segments(struct bench *bench)
{
    const struct kg_device_facts *facts = &bench->device->facts;
    bench->count = 0;
    for (int first = 0; first < bench->problem->nest_count; first++)
        for (int count = 1; first + count <= bench->problem->nest_count; count++)
            for (const struct kg_family *const *family = kg_target_host.families; *family;
                 family++) {
                const struct kg_group group = {bench->problem, first, count};
                const struct kg_match *match = kg_match_find(*family, &group, facts, NULL);
                if (!match || bench->count == MOST_SEGMENTS)
                    continue;
                struct segment *segment = &bench->segments[bench->count++];
                *segment = (struct segment){.choice = {.count = 1, .matches = {match}}};
                (*family)->guess(match, &segment->choice.configs[0]);
                segment->expected = kg_choice_expected(&segment->choice);
            }
}

// Intermediates that subscripts are read from have to be small; others should not be zero.
static bool reads_places(const struct kg_problem *problem)
{
    for (int i = 0; i < problem->nest_count; i++)
        for (int a = 0; a < problem->nests[i]->access_count; a++)
            for (int dim = 0; dim < problem->nests[i]->accesses[a].tensor->rank; dim++)
                if (problem->nests[i]->accesses[a].map[dim].is_gather)
                    return true;
    return false;
}

static enum kg_status time_segment(struct bench *bench, int at, void *const *tensors,
                                   double *seconds)
{
    struct kg_prepared *prepared;
    void *workspace = NULL;
    const struct kg_backend *backend = bench->device->backend;
    enum kg_status status =
        kg_prepared_make(bench->compilations[at].built, bench->problem, &prepared, &error);
    size_t bytes = status ? 0 : kg_prepared_workspace(prepared);
    if (!status && bytes > 0)
        status = backend->allocate(bench->device, bytes, &workspace, &error);
    if (!status && bytes > 0)
        memset(workspace, reads_places(bench->problem) ? 0 : NEAR_ONE, bytes);
    double until = now() + bench->limit / ROUNDS;
    for (int run = 0; !status && (run < 2 || now() < until); run++) {
        double began = now();
        status = kg_prepared_run(prepared, tensors, workspace, NULL, &error);
        double took = now() - began;
        if (*seconds == 0 || took < *seconds)
            *seconds = took;
        if (took > bench->limit)
            break;
    }
    if (workspace)
        backend->release(bench->device, workspace);
    kg_prepared_free(prepared);
    return status;
}

static enum kg_status time_segments(struct bench *bench)
{
    void *tensors[KG_MAX_TENSORS] = {NULL};
    for (int i = 0; i < bench->count; i++)
        bench->compilations[i] =
            (struct kg_compilation){.problem = bench->problem, .choice = bench->segments[i].choice};
    kg_compile_all(bench->device, bench->compilations, bench->count, COMPILE_LIMIT, 0, true, NULL,
                   NULL);
    enum kg_status status = kg_tensors_make_inputs(bench->device, bench->problem, tensors, &error);
    if (!status)
        status = kg_tensors_make_outputs(bench->device, bench->problem, tensors, &error);
    for (int round = 0; round < ROUNDS && !status; round++)
        for (int i = 0; i < bench->count && !status; i++)
            if (bench->compilations[i].built)
                status = time_segment(bench, i, tensors, &bench->segments[i].seconds);
    kg_tensors_release_inputs(bench->device, bench->problem, tensors);
    kg_tensors_release_outputs(bench->device, bench->problem, tensors);
    for (int i = 0; i < bench->count; i++)
        kg_built_free(bench->compilations[i].built);
    return status;
}

static void print_segments(const struct bench *bench, const char *name)
{
    for (int i = 0; i < bench->count; i++) {
        const struct segment *segment = &bench->segments[i];
        const struct kg_match *match = segment->choice.matches[0];
        struct kg_text text = {0}, config = {0};
        struct kg_json json = {.text = &text};
        kg_choice_print(&segment->choice, &config);
        kg_json_begin_object(&json, NULL);
        kg_json_text(&json, "case", name);
        kg_json_number(&json, "nests", bench->problem->nest_count);
        kg_json_number(&json, "first", match->group.first);
        kg_json_number(&json, "count", match->group.count);
        kg_json_text(&json, "family", match->family->name);
        kg_json_text(&json, "choice", kg_text_string(&config));
        kg_json_number(&json, "expected", segment->expected);
        kg_json_number(&json, "seconds", segment->seconds);
        kg_json_end_object(&json);
        puts(kg_text_string(&text));
        kg_text_free(&text);
        kg_text_free(&config);
    }
    fflush(stdout);
}

static void bind(const struct kg_op *op, const char *dtypes, const char *words,
                 struct kg_bindings *bindings, int64_t *sizes)
{
    for (int i = 0; i < op->typevar_count; i++)
        for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++)
            if (strncmp(dtypes, "T=", 2) == 0 && strcmp(dtypes + 2, kg_dtypes[dtype].name) == 0)
                bindings->dtypes[i] = (enum kg_dtype)dtype;
    for (int i = 0; i < op->size_count; i++) {
        size_t length = strlen(op->sizes[i]->name);
        sizes[i] = 1;
        for (const char *at = words; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (strncmp(at, op->sizes[i]->name, length) == 0 && at[length] == '=')
                sizes[i] = strtoll(at + length + 1, NULL, 10);
    }
}

static enum kg_status run_case(struct bench *bench, const char *line)
{
    char path[512], name[128], dtypes[64], words[512];
    char *text = NULL;
    size_t length;
    int64_t sizes[KG_MAX_SIZES];
    struct kg_arena arena = {0};
    struct kg_file *file;
    struct kg_op *op, *instance;
    struct kg_bindings bindings;
    struct kg_problem *problem = NULL;
    if (sscanf(line, "%511s %127s %63s %511s", path, name, dtypes, words) != 4)
        return kg_error_set(&error, KG_ERROR_ARGUMENT, "not a case: %s", line);
    enum kg_status status = kg_files_read(path, 1 << 20, &text, &length, &error);
    if (!status)
        status = kg_lang_parse(&arena, path, text, length, &file, &error);
    if (!status)
        status = kg_lang_select(file, name, &op, &error);
    if (!status) {
        kg_lang_default_bindings(op, &bindings);
        bind(op, dtypes, words, &bindings, sizes);
        status = kg_lang_instantiate(&arena, op, &bindings, &instance, &error);
    }
    if (!status)
        status = kg_problem_make(instance, sizes, NULL, &problem, &error);
    bench->problem = problem;
    if (!status)
        find_segments(bench);
    if (!status && !bench->list)
        status = time_segments(bench);
    if (!status)
        print_segments(bench, line);
    kg_problem_free(problem);
    kg_arena_free(&arena);
    free(text);
    return status;
}

static enum kg_status open_device(int threads, struct kg_device **device)
{
    char *home, cache[1024];
    enum kg_status status = kg_files_home(NULL, &home, &error);
    if (status)
        return status;
    snprintf(cache, sizeof cache, "%s/cache", home);
    free(home);
    return kg_device_open("host", cache, threads, device, &error);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.limit = 0.2};
    int threads = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            bench.list = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            threads = (int)strtol(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            bench.limit = strtod(argv[++i], NULL);
        else
            return fputs("usage: bench_segments [--threads N] [--seconds S] [--list] < CASES\n",
                         stderr),
                   2;
    }
    if (open_device(threads, &bench.device)) {
        fprintf(stderr, "bench_segments: %s\n", error.text);
        return 1;
    }
    char line[2048];
    int failed = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (run_case(&bench, line)) {
            fprintf(stderr, "bench_segments: %s: %s\n", line, error.text);
            failed = 1;
        }
    }
    kg_device_close(bench.device);
    return failed;
}
