// What every flow needs to know of the context it runs in, and the key of what it measures.

#ifndef KG_FLOW_SESSION_H
#define KG_FLOW_SESSION_H

#include "base/times.h"
#include "store/store.h"

#define KG_SESSION_UNRECORDED 1024

struct kg_session {
    struct kg_store *store;  // see kg_session_open
    const char *home;        // the folder the records are in; NULL: there is no place for them
    struct kg_error missing; // why the records could not be opened; KG_OK: they were
    bool told_missing;
    char unrecorded[KG_SESSION_UNRECORDED]; // why the first record was lost; "": none was
    int threads;
    struct kg_protocol protocol;                                         // of all that is timed
    const volatile int *cancel;                                          // may be NULL
    void (*progress)(void *user, const char *what, int done, int total); // may be NULL
    void (*notice)(void *user, const char *text);                        // may be NULL
    void *user;
    struct kg_times times; // since the session began
    bool warned;           // see kg_session_warn
    const char *file_path; // of a wisdom file to be read beside the records; NULL: none
    struct kg_store *file; // what it says; see kg_session_file
    bool file_was_read;
};

// A key and the texts it points to.
struct kg_session_key {
    struct kg_arena arena;
    struct kg_key key;
};

enum kg_status kg_session_key_make(const struct kg_problem *problem, const struct kg_device *device,
                                   const struct kg_protocol *protocol, struct kg_session_key *key,
                                   struct kg_error *error);
// What of a key depends on the device only; the rest is NULL. Texts are the device's.
void kg_session_key_here(const struct kg_device *device, struct kg_key *key);
void kg_session_key_free(struct kg_session_key *key);

// Opens the records of `home`. Those that cannot be opened stop nothing: the store is in memory
// then, and `missing` says why (where `home` is NULL, it does so already). `notice` receives what
// else is worth telling. Only a lack of memory is a failure.
enum kg_status kg_session_open(struct kg_session *session, struct kg_text *notice,
                               struct kg_error *error);
// Tells, once, that there are no records: whatever would ask them or add to them does so first.
void kg_session_tell_missing(struct kg_session *session);

// What comes of an attempt to record something, with its error: a record that could not be written
// is told of, once, and stops nothing. Only a lack of memory is a failure, and returned.
enum kg_status kg_session_recorded(struct kg_session *session, enum kg_status status,
                                   struct kg_error *error);
// Tells, once, that records were lost.
void kg_session_tell_unrecorded(struct kg_session *session, const char *why);

// The wisdom file beside the records, read when it is first asked for; NULL when there is none. A
// file that cannot be read, or lines that cannot match this device, are told once and stop nothing;
// only a lack of memory is a failure.
enum kg_status kg_session_file(struct kg_session *session, const struct kg_device *device,
                               struct kg_store **file, struct kg_error *error);

// "T=f16 U=i64", "P=4096 D=1000": as shown to people and as stored.
void kg_session_print_dtypes(struct kg_text *text, const struct kg_op *instance);
void kg_session_print_sizes(struct kg_text *text, const struct kg_problem *problem);

// To whoever listens to notices.
void kg_session_tell(const struct kg_session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Tells, once for a device, that its cache cannot be written or has become full: that costs time,
// and stops nothing.
void kg_session_tell_of_cache(const struct kg_session *session, struct kg_device *device);
// Tells the caller, once, when what is about to run on the device cannot be kept in a process of
// its own.
void kg_session_warn(struct kg_session *session, struct kg_device *device);
bool kg_session_cancelled(const struct kg_session *session);

#endif
