// Work that may hang, crash or be killed, in a process of its own. The child is a fork: it sees
// the parent's memory as it was.

#ifndef KG_TUNE_WORKER_H
#define KG_TUNE_WORKER_H

#include "device/device.h"

#include <stddef.h>

#define KG_READY_SECONDS 120.0 // for a device and what is put there; more is a hang

// Where candidates run.
enum kg_isolation {
    KG_ISOLATION_AUTO,   // as the device allows: kg_worker_isolation
    KG_ISOLATION_FORK,   // each in a fork
    KG_ISOLATION_WORKER, // all in one process that stays, until one of them breaks it
    KG_ISOLATION_NONE,   // in this process, which ends with one that crashes, and hangs with it
};
// Forks where they share memory; a worker where preparing a device takes long; nothing where
// somebody in this process uses a device that no fork can use then.
enum kg_isolation kg_worker_isolation(struct kg_device *device);

// Runs in the child. Whatever it writes to `result` (of `size` bytes) reaches the parent.
typedef enum kg_status kg_worker_job(void *user, void *result, size_t size, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed, KG_ERROR_FAULT when the child died (the signal is in the
// error's text), KG_ERROR_CANCELLED when `cancel` became nonzero; the child is then gone. Otherwise
// the job's own status, error and result.
enum kg_status kg_worker_run(kg_worker_job *job, void *user, double seconds,
                             const volatile int *cancel, void *result, size_t size,
                             struct kg_error *error);
// The same for a job that uses `device`: in this process where no fork can use it, without limit
// and cancellation then. A device with memory of its own is made ready before the job's time
// begins; KG_ERROR_MISSING where it cannot be.
enum kg_status kg_worker_run_on(struct kg_device *device, kg_worker_job *job, void *user,
                                double seconds, const volatile int *cancel, void *result,
                                size_t size, struct kg_error *error);

#endif
