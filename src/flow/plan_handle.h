// A plan: one choice for one problem on one device, compiled and loaded. What it can do by itself:
// run, and show its source.

#ifndef KG_FLOW_PLAN_HANDLE_H
#define KG_FLOW_PLAN_HANDLE_H

#include "flow/nearest.h"
#include "flow/request.h"
#include "gen/prepared.h"

// Where a choice comes from.
enum kg_origin {
    KG_ORIGIN_RULE,    // the families' rules; nothing was measured
    KG_ORIGIN_SEARCH,  // measured just now
    KG_ORIGIN_RECORDS, // wisdom of this very problem
    KG_ORIGIN_FILE,    // the same, from the wisdom file beside the records
    KG_ORIGIN_NEAREST, // wisdom of the nearest shape, not measured for this one
    KG_ORIGIN_COUNT
};

struct kg_workspaces; // memory between kernels, one piece per execution under way
struct kg_replay;     // executions as graphs: flow/replaying.h

// PTX from outside that runs in the place of what is generated for the same choice.
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
    // Whose kernels run instead of the generated ones; NULL: they do themselves.
    struct kg_override *override;
    double seconds; // as measured when it was chosen; 0: never
    double spread;
    bool verified; // by this library, now or when it became wisdom
    enum kg_origin origin;
    struct kg_nearest nearest; // known when the plan was made and nothing was of its own shape
    enum kg_rigor rigor;
    struct kg_found found; // of the search that chose it; zero from wisdom
    struct kg_workspaces *workspaces;
    struct kg_replay *replay; // NULL: executions are launched
};

// A plan of exactly this choice; nothing is verified or measured.
enum kg_status kg_flow_plan_of(const struct kg_request *request, const struct kg_choice *choice,
                               struct kg_plan **plan, struct kg_error *error);
// The same around kernels that were built already. The plan owns them; on failure they are freed.
enum kg_status kg_flow_plan_around(const struct kg_request *request, struct kg_built *built,
                                   struct kg_plan **plan, struct kg_error *error);
void kg_flow_plan_free(struct kg_plan *plan);
// What the plan is about, as a request that asks for nothing more.
struct kg_request kg_flow_request_of(const struct kg_plan *plan);

enum kg_status kg_flow_execute(const struct kg_plan *plan, void *const *tensors, void *stream,
                               struct kg_error *error);

// The source of all kernels, one file: C on the host, CUDA C++ on GPUs.
bool kg_flow_source(const struct kg_plan *plan, struct kg_text *text);
// Of a choice for CUDA, and what the compiler makes of it; the caller frees both.
enum kg_status kg_flow_compile_file(const struct kg_problem *problem, struct kg_device *device,
                                    const struct kg_choice *choice, struct kg_text *source,
                                    struct kg_binary *binary, struct kg_error *error);
// What the compiler makes of a plan's: PTX, below what the source says of its launches.
// KG_ERROR_UNSUPPORTED where there is none.
enum kg_status kg_flow_assembly(const struct kg_plan *plan, struct kg_text *text,
                                struct kg_error *error);

#endif
