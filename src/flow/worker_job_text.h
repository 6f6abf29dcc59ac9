// The protocol between the library and kernelgen-worker: jobs and answers as bytes.

#ifndef KG_FLOW_WORKER_JOB_TEXT_H
#define KG_FLOW_WORKER_JOB_TEXT_H

#include "flow/request.h"

enum kg_worker_job_kind {
    KG_WORKER_JOB_PLAN,
    KG_WORKER_JOB_VERIFY,
    KG_WORKER_JOB_VERIFY_FILE,
    KG_WORKER_JOB_BENCH
};

// Everything but the problem, which is sent as its definition, dtypes, params, sizes and strides.
struct kg_worker_job {
    enum kg_worker_job_kind kind;
    enum kg_rigor rigor;
    enum kg_change change; // see struct kg_request
    double seconds;
    uint64_t seed;
    struct kg_protocol protocol;
    double effort;
    bool exercises; // see struct kg_session
    bool takes_nearest;
    const char *home;   // NULL: there is no folder for records
    const char *wisdom; // the wisdom file; may be NULL
    const char *device; // its name
    const char *cache;
    const char *choice; // of the plan, or to try first; may be NULL
    const char *rival;  // may be NULL
    const char *path;   // may be NULL
};

// The head of every answer.
struct kg_worker_job_head {
    char unrecorded[KG_SESSION_UNRECORDED]; // of the session; see kg_session_recorded
};

// The results of a plan, before the text of its choice.
struct kg_worker_job_answer {
    struct kg_found found; // without its choice
    enum kg_rigor rigor;
    int origin; // enum kg_origin of the plan
    bool verified;
};

bool kg_worker_job_write(const struct kg_worker_job *job, const struct kg_problem *problem,
                         struct kg_text *bytes);
// Texts and the problem are in `arena`, except the problem itself, which the caller frees.
// KG_ERROR_MISSING: written by a library of another version.
enum kg_status kg_worker_job_read(const void *bytes, size_t length, struct kg_arena *arena,
                                  struct kg_worker_job *job, struct kg_problem **problem,
                                  struct kg_error *error);

#endif
