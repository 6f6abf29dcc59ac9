// Runs work that may hang, crash or be killed in a separate process. The child is a fork: it sees
// the parent's memory as it was.

#ifndef KG_TUNE_WORKER_H
#define KG_TUNE_WORKER_H

#include "device/confinement.h"
#include "device/device.h"

#include <stddef.h>

#define KG_READY_SECONDS 120.0 // for opening a device and preparing it; more is a hang

// Where candidates run.
enum kg_isolation {
    KG_ISOLATION_AUTO,   // chosen by kg_worker_isolation for the device
    KG_ISOLATION_FORK,   // each in a fork
    KG_ISOLATION_WORKER, // all in one long-lived process, which is replaced when a candidate breaks
                         // it
    KG_ISOLATION_NONE,   // in this process; a crash ends it, and a hang blocks it
};
// FORK for devices that share memory; WORKER for devices that take long to prepare; NONE if this
// process uses the device already, so that no fork can.
enum kg_isolation kg_worker_isolation(struct kg_device *device);

// Runs in the child. The parent receives what it writes to `result` (of `size` bytes).
typedef enum kg_status kg_worker_job(void *user, void *result, size_t size, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed, KG_ERROR_FAULT when the child died (the signal is in the
// error's text), KG_ERROR_CANCELLED when `cancel` became nonzero; the child is then gone. Otherwise
// the job's own status, error and result.
enum kg_status kg_worker_run(kg_worker_job *job, void *user, double seconds,
                             const volatile int *cancel, void *result, size_t size,
                             struct kg_error *error);
// The same for a job that runs kernels of a device that shares memory: the child is confined.
enum kg_status kg_worker_run_confined(kg_worker_job *job, void *user, double seconds,
                                      const volatile int *cancel, void *result, size_t size,
                                      struct kg_error *error);

// A part of a job that has a time limit of its own.
struct kg_worker_step {
    kg_worker_job *job;
    double seconds;
    const char *when; // ends the sentence of its failure: "while it was loaded"
};
// The same for steps that run one after the other in one child, until one fails. `result` is what
// the last step that has succeeded wrote; each finds there what the one before has written.
enum kg_status kg_worker_run_steps(const struct kg_worker_step *steps, int count, void *user,
                                   const struct kg_confinement *confinement,
                                   const volatile int *cancel, void *result, size_t size,
                                   struct kg_error *error);
// As kg_worker_run_confined, for a job that uses `device`. It runs in this process, without time
// limit and cancellation, if no fork can use the device, and a child that uses a GPU is not
// confined. A device with separate memory is opened before the
// job's time begins; KG_ERROR_MISSING when that fails.
enum kg_status kg_worker_run_on(struct kg_device *device, kg_worker_job *job, void *user,
                                double seconds, const volatile int *cancel, void *result,
                                size_t size, struct kg_error *error);

#endif
