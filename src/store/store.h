// Records and wisdom: SQLite (WAL) at $KERNELGEN_HOME/records.db. Each outcome is appended in a
// transaction of its own, so measurements survive a kill.

#ifndef KG_STORE_STORE_H
#define KG_STORE_STORE_H

#include "tune/search.h"

struct kg_store;

// A corrupt database is moved aside (records.db.corrupt-N), reported in `notice`, and replaced by a
// new one; a full disk or a read-only folder gives KG_ERROR_IO.
enum kg_status kg_store_open(const char *home, struct kg_store **store, struct kg_text *notice,
                             struct kg_error *error);
// A store in memory only: its content is lost when it is closed.
enum kg_status kg_store_open_memory(struct kg_store **store, struct kg_error *error);
void kg_store_close(struct kg_store *store);

// Everything that a measurement depends on besides the candidate.
struct kg_key {
    const char *op;            // name
    struct kg_hash definition; // of the op's source text and params
    const char *dtypes;        // "T=f16"
    const char *sizes;         // "P=4096 D=1000"
    const char *layout;        // "contiguous" or strides
    const char *device;        // facts.name
    const char *isa;
    int units; // cores used or SMs
    const char *driver;
    const char *compiler; // with flags
    const char *protocol; // "cold launch"
};

enum kg_status kg_store_append(struct kg_store *store, const struct kg_key *key,
                               const struct kg_outcome *outcome, struct kg_error *error);
// The latest outcome of this candidate under this key, not of an override. KG_OK and *found false
// if there is none. Strings of the outcome live until the next call on the store.
enum kg_status kg_store_find(struct kg_store *store, const struct kg_key *key, const char *choice,
                             struct kg_outcome *outcome, bool *found, struct kg_error *error);
// The latest outcome with the kernels of this hash.
enum kg_status kg_store_find_emitted(struct kg_store *store, const struct kg_key *key,
                                     const char *choice, struct kg_hash emitted,
                                     struct kg_outcome *outcome, bool *found,
                                     struct kg_error *error);

// Visits the latest outcome of every candidate under this key, without overrides: measured ones
// first, fastest first.
enum kg_status kg_store_each(struct kg_store *store, const struct kg_key *key,
                             void (*visit)(void *user, const struct kg_outcome *outcome),
                             void *user, struct kg_error *error);

// Visits every outcome under this key in the order of being recorded, without overrides.
enum kg_status kg_store_history(struct kg_store *store, const struct kg_key *key,
                                void (*visit)(void *user, const struct kg_outcome *outcome),
                                void *user, struct kg_error *error);

// Visits every key that has records, by op, the oldest first; of one op, or of all (NULL). `visit`
// may use the store; the key's strings live until it returns.
enum kg_status kg_store_keys(struct kg_store *store, const char *op,
                             void (*visit)(void *user, const struct kg_key *key), void *user,
                             struct kg_error *error);

// A lease is held by the process that measures a problem: others that share the records wait for
// its outcomes instead of measuring the same candidates. It is void when its holder has ended, or
// has not renewed it for KG_LEASE_SECONDS (a process that was stopped, or one in another container,
// whose process numbers mean nothing here).
#define KG_LEASE_SECONDS 300

struct kg_lease {
    bool held;           // by this store
    bool holder_ended;   // another process held it, and ended without giving it back
    int64_t holder;      // process number of whoever has it or had it; 0: nobody
    double holder_since; // seconds that the other process has held it
};
// Takes the lease of a key unless another process has it. Taking one's own again is allowed.
enum kg_status kg_store_lease_take(struct kg_store *store, const struct kg_key *key,
                                   struct kg_lease *lease, struct kg_error *error);
// `*held` is false if another process took over meanwhile.
enum kg_status kg_store_lease_renew(struct kg_store *store, const struct kg_key *key, bool *held,
                                    struct kg_error *error);
// Does nothing if the lease is not this store's.
enum kg_status kg_store_lease_drop(struct kg_store *store, const struct kg_key *key,
                                   struct kg_error *error);

// Wisdom: the best known choice of a key, with its evidence.
struct kg_wisdom {
    char *choice;
    enum kg_rigor rigor;
    double seconds;
    double spread;
    uint64_t seed; // of the gate that passed it
    char *date;    // ISO 8601, UTC
    // Of the kernels that passed and were timed (gen/source_identity.h); zero: unknown.
    struct kg_hash source;
    // For kg_store_learn: replaces the known choice of the key even if that was better.
    bool replaces;
};
enum kg_status kg_store_learn(struct kg_store *store, const struct kg_key *key,
                              const struct kg_wisdom *wisdom, struct kg_error *error);
// KG_ERROR_NO_WISDOM when nothing is known. The caller frees with kg_wisdom_free.
enum kg_status kg_store_recall(struct kg_store *store, const struct kg_key *key,
                               struct kg_wisdom *wisdom, struct kg_error *error);
// Visits the wisdom of every key that differs only in sizes or layout, the oldest first. Neither
// the store nor the arguments of `visit` may be used after it returns.
enum kg_status kg_store_near(struct kg_store *store, const struct kg_key *key,
                             void (*visit)(void *user, const struct kg_key *near,
                                           const struct kg_wisdom *wisdom),
                             void *user, struct kg_error *error);
void kg_wisdom_free(struct kg_wisdom *wisdom);

// JSON lines, a header first. All or nothing: a file with one malformed line changes nothing, and
// the error names the line. Lines of another device, driver or compiler are imported but never
// match; `notice` reports their number, and that of lines which do not identify their kernels.
enum kg_status kg_store_export(struct kg_store *store, struct kg_text *lines,
                               struct kg_error *error);
enum kg_status kg_store_import(struct kg_store *store, const char *lines, size_t length,
                               const struct kg_key *here, struct kg_text *notice,
                               struct kg_error *error);
// The content of a wisdom file as a store in memory, read as by kg_store_import. `notice` receives
// what can never match here: "2 for another device, 1 for another compiler".
enum kg_status kg_store_open_file(const char *path, const struct kg_key *here,
                                  struct kg_store **store, struct kg_text *notice,
                                  struct kg_error *error);
// A table for people (or a JSON array); `pattern` filters by op name, NULL: all.
enum kg_status kg_store_list(struct kg_store *store, const char *pattern, bool json,
                             struct kg_text *text, struct kg_error *error);
// Deletes wisdom of ops matching `pattern` (NULL: all). `*count` tells how many.
enum kg_status kg_store_forget(struct kg_store *store, const char *pattern, int *count,
                               struct kg_error *error);

#define KG_ROUND_SEARCH "search" // the kind of a round that searches everything

// A round of the optimisation loop. All texts are for people but `kind` and `bottleneck`, which are
// keys: of kg_change_keys or KG_ROUND_SEARCH, and of kg_bottlenecks. A later round of that kind is
// the search's version, which took its place again at the end of a build. Either
// is "" if there was no such thing; in rounds that were recorded by versions before them, so are
// `base` and `difference`.
struct kg_round {
    int number;
    const char *diagnosis;
    const char *change;
    const char *choice;                       // the fastest that the round found
    double before, after, baseline, roofline; // seconds; `before` is of the base, in the same race
    const char *result;
    const char *base; // the choice that the round started from
    const char *kind;
    const char *bottleneck;
    double predicted;       // seconds that the round could reach at best; 0: unknown
    int tried;              // candidates that were compiled, judged and timed for it
    bool kept;              // `choice` took the place of `base`
    const char *difference; // of the emitted source, from base to choice, as a unified diff
    const char *date;       // ISO 8601, UTC; set by the store
};
enum kg_status kg_store_round(struct kg_store *store, const struct kg_key *key,
                              const struct kg_round *round, struct kg_error *error);
// Visits the rounds of a key, oldest first. The round's strings live until `visit` returns.
enum kg_status kg_store_rounds(struct kg_store *store, const struct kg_key *key,
                               void (*visit)(void *user, const struct kg_round *round), void *user,
                               struct kg_error *error);

// What the records say of a problem beside its key.
struct kg_cost {
    double operations, bytes;               // the compulsory ones
    double memory_seconds, compute_seconds; // as in kg_roofline; 0: unknown
};
// Notes the cost of the key's problem and the text of its op.
enum kg_status kg_store_describe(struct kg_store *store, const struct kg_key *key,
                                 const struct kg_cost *cost, const char *text,
                                 struct kg_error *error);
// All 0 if nothing was noted.
enum kg_status kg_store_cost(struct kg_store *store, const struct kg_key *key, struct kg_cost *cost,
                             struct kg_error *error);
// The text of the op of this name and hash, "" if it was not noted. Lives until the next call.
enum kg_status kg_store_text(struct kg_store *store, const char *op, struct kg_hash definition,
                             const char **text, struct kg_error *error);

// What the log of a key lists beside its rounds: overrides too, each under its choice and file.
enum kg_log_table {
    KG_LOG_COUNTS,  // outcome, count, first, last: how many candidates had it, and when
    KG_LOG_FASTEST, // choice, median, spread, count (of samples), bound, last: the first ten
    KG_LOG_FAILED,  // choice, outcome, reason, last: the latest ten, the oldest first
    KG_LOG_TABLE_COUNT
};
struct kg_log_row { // members that its table lacks are "", 0 or NAN
    const char *choice, *outcome, *reason;
    const char *first, *last;     // dates
    double median, spread, bound; // seconds
    int64_t count;
};
// The row's strings live until `visit` returns.
enum kg_status kg_store_log_rows(struct kg_store *store, const struct kg_key *key,
                                 enum kg_log_table table,
                                 void (*visit)(void *user, const struct kg_log_row *row),
                                 void *user, struct kg_error *error);

#endif
