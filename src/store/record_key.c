// The key of a record: its rows, its hash, and the hash that seals what is recorded under it.

#include "store/database.h"

#include <math.h>
#include <string.h>

struct kg_hash kg_store_hash_integer(struct kg_hash hash, int64_t value)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    return kg_hash_chain(hash, bytes, sizeof bytes);
}

// As SQLite returns it: any NaN is one NaN, and zero has no sign.
struct kg_hash kg_store_hash_number(struct kg_hash hash, double value)
{
    int64_t bits = -1;
    value += 0.0;
    if (!isnan(value))
        memcpy(&bits, &value, sizeof bits);
    return kg_store_hash_integer(hash, bits);
}

struct kg_hash kg_store_hash_key(const struct kg_key *key, const char *generator)
{
    const char *const texts[] = {key->op,  key->dtypes, key->sizes,    key->layout,  key->device,
                                 key->isa, key->driver, key->compiler, key->protocol};
    struct kg_hash hash = key->definition;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hash = kg_hash_chain_text(hash, texts[i] ? texts[i] : "");
    if (generator[0])
        hash = kg_hash_chain_text(hash, generator);
    return kg_store_hash_integer(hash, key->units);
}

static enum kg_status add_problem(struct kg_store *store, const struct kg_key *key, int64_t *id,
                                  struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_OP);
    kg_query_bind_text(&query, key->op);
    kg_query_bind_hash(&query, key->definition);
    int64_t op;
    enum kg_status status = kg_query_end_with_id(&query, &op, error);
    if (status != KG_OK)
        return status;
    query = kg_query_begin(store, KG_SQL_ADD_PROBLEM);
    kg_query_bind_integer(&query, op);
    kg_query_bind_text(&query, key->dtypes);
    kg_query_bind_text(&query, key->sizes);
    kg_query_bind_text(&query, key->layout);
    return kg_query_end_with_id(&query, id, error);
}

static enum kg_status add_device(struct kg_store *store, const struct kg_key *key, int64_t *id,
                                 struct kg_error *error)
{
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_DEVICE);
    kg_query_bind_text(&query, key->device);
    kg_query_bind_text(&query, key->isa);
    kg_query_bind_integer(&query, key->units);
    kg_query_bind_text(&query, key->driver);
    return kg_query_end_with_id(&query, id, error);
}

enum kg_status kg_store_add_key(struct kg_store *store, const struct kg_key *key, int64_t *id,
                                struct kg_error *error)
{
    struct kg_hash hash = kg_store_hash_key(key, "");
    *id = store->last_key_id;
    if (*id && hash.high == store->last_key.high && hash.low == store->last_key.low)
        return KG_OK;
    int64_t problem = 0, device = 0;
    enum kg_status status = add_problem(store, key, &problem, error);
    if (status == KG_OK)
        status = add_device(store, key, &device, error);
    if (status != KG_OK)
        return status;
    struct kg_query query = kg_query_begin(store, KG_SQL_ADD_KEY);
    kg_query_bind_integer(&query, problem);
    kg_query_bind_integer(&query, device);
    kg_query_bind_text(&query, key->compiler);
    kg_query_bind_text(&query, key->protocol);
    status = kg_query_end_with_id(&query, id, error);
    if (status == KG_OK) {
        store->last_key = hash;
        store->last_key_id = *id;
    }
    return status;
}
