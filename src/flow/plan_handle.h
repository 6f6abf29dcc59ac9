// A plan: one choice for one problem on one device, compiled and loaded. It can run, and show its
// source.

#ifndef KG_FLOW_PLAN_HANDLE_H
#define KG_FLOW_PLAN_HANDLE_H

#include "flow/nearest.h"
#include "flow/request.h"
#include "gen/prepared.h"

// Where a choice comes from.
enum kg_origin {
    KG_ORIGIN_RULE,     // the families' rules, without measurements
    KG_ORIGIN_SEARCH,   // measured just now
    KG_ORIGIN_RECORDS,  // wisdom of this problem
    KG_ORIGIN_FILE,     // the same, from the wisdom file beside the records
    KG_ORIGIN_NEAREST,  // wisdom of the nearest shape, not measured for this one
    KG_ORIGIN_PATTERNS, // the rules', corrected by what other problems have taught
    KG_ORIGIN_COUNT
};

struct kg_workspaces; // memory between kernels, one buffer per concurrent execution
struct kg_replay;     // executions as graphs: flow/replaying.h
struct kg_resized;    // executions at other sizes: flow/resized.h

// PTX from a file that runs instead of the kernels generated for the same choice.
struct kg_override {
    char *path;
    char *text;
    struct kg_hash hash;      // of the text
    struct kg_plan *original; // the generated kernels
};

struct kg_plan {
    struct kg_session *session;
    const struct kg_problem *problem;
    struct kg_device *device;
    struct kg_built *built;
    struct kg_prepared *prepared;
    char *choice; // kg_choice_print of built->choice
    // The override whose kernels run; NULL: the generated ones.
    struct kg_override *override;
    double seconds; // measured when it was chosen; 0: never
    double spread;
    uint64_t seed; // of the gate that passed it, when it was chosen just now
    bool verified; // by this library, now or when it became wisdom
    enum kg_origin origin;
    struct kg_nearest nearest; // if nothing was known of its own shape when it was made
    enum kg_rigor rigor;
    struct kg_found found; // of the search that chose it; zero from wisdom
    struct kg_workspaces *workspaces;
    struct kg_replay *replay;   // NULL: executions are launched
    struct kg_resized *resized; // executions at other sizes; NULL: strided, or the source alone
};

// A plan of this choice; nothing is verified or measured.
enum kg_status kg_flow_plan_of(const struct kg_request *request, const struct kg_choice *choice,
                               struct kg_plan **plan, struct kg_error *error);
// The same with kernels that are built already. The plan owns them; on failure they are freed.
enum kg_status kg_flow_plan_around(const struct kg_request *request, struct kg_built *built,
                                   struct kg_plan **plan, struct kg_error *error);
void kg_flow_plan_free(struct kg_plan *plan);
// A request for the plan's problem and device, with everything else at its default.
struct kg_request kg_flow_request_of(const struct kg_plan *plan);

enum kg_status kg_flow_execute(const struct kg_plan *plan, void *const *tensors, void *stream,
                               struct kg_error *error);

// The source of all kernels, one file: C on the host, CUDA C++ on GPUs.
bool kg_flow_source(const struct kg_plan *plan, struct kg_text *text);
// The same with host functions that launch them; KG_ERROR_UNSUPPORTED for targets whose source has
// such functions already.
enum kg_status kg_flow_launcher(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error);
// The source of a choice for CUDA, and the PTX it compiles to; the caller frees both.
enum kg_status kg_flow_compile_file(const struct kg_problem *problem, struct kg_device *device,
                                    const struct kg_choice *choice, struct kg_text *source,
                                    struct kg_binary *binary, struct kg_error *error);
// The PTX of a plan's kernels, after the comments that describe its launches. KG_ERROR_UNSUPPORTED
// if there is none.
enum kg_status kg_flow_assembly(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error);

#endif
