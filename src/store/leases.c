// Leases: which process measures a problem just now. See store.h.

#include "store/database.h"
#include "store/owner.h"

#include <stdio.h>
#include <sys/random.h>

// A row of `leases`.
struct row {
    bool exists;
    int64_t token;
    struct kg_owner owner;
    int64_t taken, renewed;
};

static void read_name(struct kg_query *query, char *name, size_t size)
{
    snprintf(name, size, "%s", kg_query_text(query));
}

static enum kg_status find_row(struct kg_store *store, const struct kg_key *key, struct row *row,
                               struct kg_error *error)
{
    bool lacks_memory = false;
    *row = (struct row){0};
    struct kg_query query = kg_query_begin(store, KG_SQL_GET_LEASE);
    kg_query_bind_key(&query, key);
    if (kg_query_step(&query)) {
        row->exists = true;
        row->token = kg_query_integer(&query);
        read_name(&query, row->owner.boot, sizeof row->owner.boot);
        read_name(&query, row->owner.pid_namespace, sizeof row->owner.pid_namespace);
        row->owner.pid = kg_query_integer(&query);
        row->owner.started = kg_query_integer(&query);
        row->taken = kg_query_integer(&query);
        row->renewed = kg_query_integer(&query);
        lacks_memory = kg_query_lacks_memory(&query); // texts are empty then
    }
    enum kg_status status = kg_query_end(&query, error);
    return status == KG_OK && lacks_memory ? kg_error_memory(error, "a lease") : status;
}

// Rows carry no seal: a damaged time is far from now, in the past or in the future, and voids the
// lease.
static bool is_stale(const struct row *row)
{
    int64_t now = kg_owner_clock();
    return row->renewed < now - KG_LEASE_SECONDS || row->renewed > now + KG_LEASE_SECONDS;
}

// Whether nobody but this store holds it. `lease` is told of a holder that ended.
static bool is_free(const struct kg_store *store, const struct row *row, struct kg_lease *lease)
{
    if (!row->exists)
        return true;
    bool ours = store->token != 0 && row->token == store->token;
    if (ours)
        return true;
    lease->holder = row->owner.pid;
    lease->holder_since = (double)(kg_owner_clock() - row->taken);
    lease->holder_ended = kg_owner_has_ended(&row->owner);
    return lease->holder_ended || is_stale(row);
}

// Leases of this store's are told from those of other stores of the same process by a number.
static void make_token(struct kg_store *store)
{
    if (store->token != 0)
        return;
    if (getrandom(&store->token, sizeof store->token, 0) != (ssize_t)sizeof store->token)
        store->token = (int64_t)(intptr_t)store;
    if (store->token == 0)
        store->token = 1;
}

static enum kg_status set_row(struct kg_store *store, const struct kg_key *key,
                              struct kg_error *error)
{
    struct kg_owner self;
    int64_t id, now = kg_owner_clock();
    enum kg_status status = kg_store_add_key(store, key, &id, error);
    if (status != KG_OK)
        return status;
    kg_owner_self(&self);
    struct kg_query query = kg_query_begin(store, KG_SQL_SET_LEASE);
    kg_query_bind_integer(&query, id);
    kg_query_bind_integer(&query, store->token);
    kg_query_bind_text(&query, self.boot);
    kg_query_bind_text(&query, self.pid_namespace);
    kg_query_bind_integer(&query, self.pid);
    kg_query_bind_integer(&query, self.started);
    kg_query_bind_integer(&query, now);
    kg_query_bind_integer(&query, now);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}

// Inside a transaction, so that of several processes that find it free one takes it.
static enum kg_status take(struct kg_store *store, const struct kg_key *key, struct kg_lease *lease,
                           struct kg_error *error)
{
    struct row row;
    enum kg_status status = find_row(store, key, &row, error);
    *lease = (struct kg_lease){0};
    if (status == KG_OK && is_free(store, &row, lease)) {
        status = set_row(store, key, error);
        lease->held = status == KG_OK;
    }
    return status;
}

enum kg_status kg_store_lease_take(struct kg_store *store, const struct kg_key *key,
                                   struct kg_lease *lease, struct kg_error *error)
{
    struct row row;
    *lease = (struct kg_lease){0};
    kg_arena_free(&store->scratch);
    make_token(store);
    // Processes that wait ask several times a second: they only read.
    enum kg_status status = find_row(store, key, &row, error);
    if (status != KG_OK || !is_free(store, &row, lease))
        return status;
    status = kg_store_begin(store, error);
    if (status != KG_OK)
        return status;
    status = take(store, key, lease, error);
    if (status == KG_OK)
        status = kg_store_commit(store, error);
    else
        kg_store_rollback(store);
    lease->held = lease->held && status == KG_OK;
    return status;
}

enum kg_status kg_store_lease_renew(struct kg_store *store, const struct kg_key *key, bool *held,
                                    struct kg_error *error)
{
    int64_t id;
    struct kg_query query = kg_query_begin(store, KG_SQL_RENEW_LEASE);
    kg_query_bind_key(&query, key);
    kg_query_bind_integer(&query, store->token);
    kg_query_bind_integer(&query, kg_owner_clock());
    enum kg_status status = kg_query_end_with_id(&query, &id, error);
    *held = status == KG_OK && id != 0;
    return status;
}

enum kg_status kg_store_lease_drop(struct kg_store *store, const struct kg_key *key,
                                   struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_DROP_LEASE);
    kg_query_bind_key(&query, key);
    kg_query_bind_integer(&query, store->token);
    kg_query_step(&query);
    return kg_query_end(&query, error);
}
