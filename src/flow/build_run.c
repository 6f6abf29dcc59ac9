// See build_run.h.

#include "flow/build_run.h"

#include "base/files.h"
#include "flow/analysis.h"
#include "flow/plan_bench.h"

#include <string.h>

void kg_build_run_announce(const struct kg_build_run *build, const char *stage, int number)
{
    const struct kg_session *session = build->request.session;
    if (session->progress)
        session->progress(session->user, stage, number, 5);
}

bool kg_build_run_is_measuring(const struct kg_build_run *build)
{
    return build->request.rigor != KG_RIGOR_ESTIMATE && build->request.rigor != KG_RIGOR_WISDOM;
}

// An override may lie in the folder of the bundle, but not under the name of one of its files.
static enum kg_status publish(const struct kg_build_run *build, const char *path, const char *text,
                              struct kg_error *error)
{
    const char *override = build->options->override;
    if (override && kg_files_are_same(path, override))
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s is read, and would be overwritten by a file of the bundle: give it "
                            "another name, or the bundle another folder",
                            override);
    return kg_files_publish(path, text, strlen(text), error);
}

enum kg_status kg_build_run_write_file(const struct kg_build_run *build, const char *suffix,
                                       const char *text, struct kg_error *error)
{
    if (!build->options->folder)
        return KG_OK;
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s%s", build->options->folder, build->request.problem->op->name,
                   suffix);
    enum kg_status status =
        path.failed ? kg_error_memory(error, "a path") : publish(build, path.data, text, error);
    kg_text_free(&path);
    return status;
}

enum kg_status kg_build_run_write(const struct kg_build_run *build, const char *suffix,
                                  struct kg_text *text, struct kg_error *error)
{
    enum kg_status status =
        text->failed ? kg_error_memory(error, "a document")
                     : kg_build_run_write_file(build, suffix, kg_text_string(text), error);
    kg_text_free(text);
    return status;
}

enum kg_status kg_build_run_write_kernel(const struct kg_build_run *build, struct kg_error *error)
{
    if (!build->options->folder)
        return KG_OK;
    const struct kg_target *target = kg_target_of(build->request.device);
    bool has_assembly = target->has_assembly;
    struct kg_text text = {0};
    kg_flow_source(build->plan, &text);
    enum kg_status status = kg_build_run_write(build, target->suffix, &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_flow_assembly(build->plan, &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_build_run_write(build, ".ptx", &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_flow_analyse(build->plan, &text, error);
    if (status == KG_OK && has_assembly)
        status = kg_build_run_write(build, "_assembly.txt", &text, error);
    kg_text_free(&text);
    return status;
}

enum kg_status kg_build_run_verify(struct kg_build_run *build, struct kg_plan *plan,
                                   struct kg_error *error)
{
    struct kg_verdict verdict;
    enum kg_status status = kg_evaluator_verify(build->evaluator, plan, &verdict, error);
    if (status != KG_OK)
        return status;
    build->report->verdict = verdict;
    if (verdict.passed)
        return KG_OK;
    return kg_error_set(error, KG_ERROR_WRONG, "the accuracy gate refused %s\n  %s", plan->choice,
                        verdict.reason);
}

enum kg_status kg_build_run_measure(const struct kg_build_run *build, struct kg_plan *plan,
                                    const struct kg_plan *rival, struct kg_bench_result *bench,
                                    double *rival_seconds, struct kg_error *error)
{
    enum kg_status status =
        kg_evaluator_bench(build->evaluator, plan, rival, bench, rival_seconds, error);
    if (status == KG_OK) {
        plan->seconds = bench->seconds;
        plan->spread = bench->spread;
    }
    return status;
}
