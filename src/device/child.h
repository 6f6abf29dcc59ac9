// Runs work that may hang, crash or be killed in a separate process. The child is a fork: it sees
// the parent's memory as it was, and answers through a socket. A service handles several requests.

#ifndef KG_DEVICE_CHILD_H
#define KG_DEVICE_CHILD_H

#include "base/error.h"
#include "base/text.h"
#include "device/confinement.h"

// Runs in the child. The bytes it appends to `answer` reach the parent, whatever it returns.
typedef enum kg_status kg_child_job(void *user, struct kg_text *answer, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed (0: none), KG_ERROR_FAULT when the child died (the signal
// is in the error's text) or answered nonsense or more than `limit` bytes, KG_ERROR_CANCELLED when
// `*cancel` became nonzero (NULL: never); the child is then gone and `answer` empty. Otherwise the
// job's own status, error and answer. Several threads may have children at once.
enum kg_status kg_child_run(kg_child_job *job, void *user, double seconds,
                            const volatile int *cancel, size_t limit, struct kg_text *answer,
                            struct kg_error *error);

// A service: `prepare` (may be NULL) runs at once, then `serve` for every request.
struct kg_child_service {
    void *user;
    void (*prepare)(void *user);
    enum kg_status (*serve)(void *user, const void *request, size_t length, struct kg_text *answer,
                            struct kg_error *error);
    // For children that run kernels under judgement; NULL: the child may do what its parent may. A
    // forbidden call is KG_ERROR_FAULT, and so is exit(); the error says which.
    const struct kg_confinement *confinement;
};
struct kg_child; // used by the thread that started it; ends with that thread

// `service` is borrowed.
enum kg_status kg_child_start(const struct kg_child_service *service, struct kg_child **child,
                              struct kg_error *error);
// Starts a program instead of a fork, for processes that use resources which a fork cannot use,
// such as a GPU's driver. The program only calls kg_child_serve.
enum kg_status kg_child_spawn(const char *program, struct kg_child **child, struct kg_error *error);
_Noreturn void kg_child_serve(const struct kg_child_service *service, int argc, char **argv);
// As kg_child_run. After the child has ended, every request returns the same failure.
enum kg_status kg_child_ask(struct kg_child *child, const void *request, size_t length,
                            double seconds, const volatile int *cancel, size_t limit,
                            struct kg_text *answer, struct kg_error *error);
// The signal that caused KG_ERROR_FAULT; 0: the child did not fail so, or it exited.
int kg_child_signal(const struct kg_child *child);
// Kills the child and frees it.
void kg_child_stop(struct kg_child *child);

#endif
