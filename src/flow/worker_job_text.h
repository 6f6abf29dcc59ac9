// A job for kernelgen-worker as bytes: what both sides have to agree on.

#ifndef KG_FLOW_WORKER_JOB_TEXT_H
#define KG_FLOW_WORKER_JOB_TEXT_H

#include "flow/request.h"

enum kg_worker_job_kind {
    KG_WORKER_JOB_PLAN,
    KG_WORKER_JOB_VERIFY,
    KG_WORKER_JOB_VERIFY_FILE,
    KG_WORKER_JOB_BENCH
};

// Everything but the problem, which goes along as its definition, dtypes, params, sizes and
// strides.
struct kg_worker_job {
    enum kg_worker_job_kind kind;
    enum kg_rigor rigor;
    double seconds;
    uint64_t seed;
    struct kg_protocol protocol;
    bool takes_nearest;
    const char *home;   // NULL: there is no place for records
    const char *wisdom; // the file beside the records; may be NULL
    const char *device; // its name
    const char *cache;
    const char *choice; // of the plan, or what to try first; may be NULL
    const char *rival;  // may be NULL
    const char *path;   // may be NULL
};

// What every answer begins with.
struct kg_worker_job_head {
    char unrecorded[KG_SESSION_UNRECORDED]; // of the session; see kg_session_recorded
};

// What is said of a plan, before the text of its choice.
struct kg_worker_job_answer {
    struct kg_found found; // without its choice
    enum kg_rigor rigor;
    int origin; // enum kg_origin of the plan
    bool verified;
};

bool kg_worker_job_write(const struct kg_worker_job *job, const struct kg_problem *problem,
                         struct kg_text *bytes);
// Texts and the problem live in `arena`, but for the problem itself, which the caller frees.
// KG_ERROR_MISSING: it was written by a library of another version.
enum kg_status kg_worker_job_read(const void *bytes, size_t length, struct kg_arena *arena,
                                  struct kg_worker_job *job, struct kg_problem **problem,
                                  struct kg_error *error);

#endif
