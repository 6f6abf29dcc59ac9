// Content hashes: keys of caches and records. 128 bits, written as 32 hex digits.

#ifndef KG_BASE_HASH_H
#define KG_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define KG_HASH_TEXT 33 // 32 digits and the terminator

struct kg_hash {
    uint64_t high;
    uint64_t low;
};

struct kg_hash kg_hash_bytes(const void *bytes, size_t length);
// Folds in `bytes` with their length, so that ("ab","c") and ("a","bc") differ.
struct kg_hash kg_hash_chain(struct kg_hash hash, const void *bytes, size_t length);
struct kg_hash kg_hash_chain_text(struct kg_hash hash, const char *text);
void kg_hash_format(struct kg_hash hash, char out[KG_HASH_TEXT]);

#endif
