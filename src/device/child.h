// Work that may hang, crash or be killed, in a process of its own. The child is a fork: it sees
// the parent's memory as it was, and answers through a socket. One that serves stays for the next
// request.

#ifndef KG_DEVICE_CHILD_H
#define KG_DEVICE_CHILD_H

#include "base/error.h"
#include "base/text.h"

// Runs in the child. The bytes it appends to `answer` reach the parent, whatever it returns.
typedef enum kg_status kg_child_job(void *user, struct kg_text *answer, struct kg_error *error);

// KG_ERROR_TIMEOUT when `seconds` passed (0: none), KG_ERROR_FAULT when the child died (the signal
// is in the error's text) or answered nonsense or more than `limit` bytes, KG_ERROR_CANCELLED when
// `*cancel` became nonzero (NULL: never); the child is then gone and `answer` empty. Otherwise the
// job's own status, error and answer. Several threads may have children at once.
enum kg_status kg_child_run(kg_child_job *job, void *user, double seconds,
                            const volatile int *cancel, size_t limit, struct kg_text *answer,
                            struct kg_error *error);

// What a child that stays does: `prepare` (may be NULL) at once, then `serve` for every request.
struct kg_child_service {
    void *user;
    void (*prepare)(void *user);
    enum kg_status (*serve)(void *user, const void *request, size_t length, struct kg_text *answer,
                            struct kg_error *error);
};
struct kg_child; // used by the thread that started it; ends with that thread

// `service` is borrowed.
enum kg_status kg_child_start(const struct kg_child_service *service, struct kg_child **child,
                              struct kg_error *error);
// The same with a program instead of a fork: for processes that have what no fork can use, a GPU's
// driver say. The program does nothing but kg_child_serve.
enum kg_status kg_child_spawn(const char *program, struct kg_child **child, struct kg_error *error);
_Noreturn void kg_child_serve(const struct kg_child_service *service, int argc, char **argv);
// As kg_child_run. What it says of a child that is gone, it says of every request after that.
enum kg_status kg_child_ask(struct kg_child *child, const void *request, size_t length,
                            double seconds, const volatile int *cancel, size_t limit,
                            struct kg_text *answer, struct kg_error *error);
// The signal that made it answer KG_ERROR_FAULT; 0: it did not, or exited.
int kg_child_signal(const struct kg_child *child);
// Kills it.
void kg_child_stop(struct kg_child *child);

#endif
