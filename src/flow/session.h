// The context that flows run in, and the keys of their measurements.

#ifndef KG_FLOW_SESSION_H
#define KG_FLOW_SESSION_H

#include "base/times.h"
#include "store/store.h"

#define KG_SESSION_UNRECORDED 1024

struct kg_session {
    struct kg_store *store;  // see kg_session_open
    const char *home;        // folder of the records; NULL: there is none
    struct kg_error missing; // why the records could not be opened; KG_OK: they were
    bool told_missing;
    char unrecorded[KG_SESSION_UNRECORDED]; // why the first record was lost; "": none was
    int threads;
    double effort;               // of the accuracy gate: see struct kg_policy; 0: as 1
    bool sanitizes;              // what is verified is run under sanitizers too: sanitize.h
    bool exercises;              // kernels are run and not judged: kg_gate_exercise
    struct kg_protocol protocol; // of all measurements
    const volatile int *cancel;  // may be NULL
    void (*progress)(void *user, const char *what, int done, int total); // may be NULL
    void (*notice)(void *user, const char *text);                        // may be NULL
    void *user;
    struct kg_times times; // since the session was opened
    bool warned;           // see kg_session_warn
    const char *file_path; // of a wisdom file besides the records; NULL: none
    struct kg_store *file; // its content; see kg_session_file
    bool file_was_read;
};

// A key and the texts that it points to.
struct kg_session_key {
    struct kg_arena arena;
    struct kg_key key;
};

// What a record knows of a definition, and is found by: its text, comments included, and the values
// of its params; the defaults where they are not bound.
struct kg_hash kg_session_definition(const struct kg_op *op);
enum kg_status kg_session_key_make(const struct kg_problem *problem, const struct kg_device *device,
                                   const struct kg_protocol *protocol, struct kg_session_key *key,
                                   struct kg_error *error);
// The members of a key that depend only on the device; the others are NULL. Texts are the device's.
void kg_session_key_here(const struct kg_device *device, struct kg_key *key);
void kg_session_key_free(struct kg_session_key *key);

// Opens the records of `home`. If that fails the store is in memory, and `missing` says why (if
// `home` is NULL, the caller sets it). `notice` receives other messages. Only a lack of memory is a
// failure.
enum kg_status kg_session_open(struct kg_session *session, struct kg_text *notice,
                               struct kg_error *error);
// Reports, once, that there are no records. Whatever uses the records calls it first.
void kg_session_tell_missing(struct kg_session *session);

// Handles the status of writing a record: a failure is reported once and does not stop anything.
// Only a lack of memory is returned as a failure.
enum kg_status kg_session_recorded(struct kg_session *session, enum kg_status status,
                                   struct kg_error *error);
// Reports, once, that records were lost.
void kg_session_tell_unrecorded(struct kg_session *session, const char *why);

// The wisdom file, read when it is first needed; NULL if there is none. A file that cannot be read,
// or lines that cannot match this device, are reported once; only a lack of memory is a failure.
enum kg_status kg_session_file(struct kg_session *session, const struct kg_device *device,
                               struct kg_store **file, struct kg_error *error);

// "T=f16 U=i64", "P=4096 D=1000": for people and for keys.
void kg_session_print_dtypes(struct kg_text *text, const struct kg_op *instance);
void kg_session_print_sizes(struct kg_text *text, const struct kg_problem *problem);

// Sends a text to the listener for notices, if any.
void kg_session_tell(const struct kg_session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Reports, once for a device, that its cache cannot be written or is full: that costs time, but
// does not stop anything.
void kg_session_tell_of_cache(const struct kg_session *session, struct kg_device *device);
// Reports, once, that what is about to run on the device cannot run in a process of its own.
void kg_session_warn(struct kg_session *session, struct kg_device *device);
bool kg_session_cancelled(const struct kg_session *session);

#endif
