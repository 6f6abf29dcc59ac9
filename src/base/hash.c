// XXH3 with 128 bits, from its header alone (no library to link). The result is the same on every
// machine, so it may be stored in files.

#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static void put_little_endian(unsigned char out[8], uint64_t value)
{
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(value >> (8 * i));
}

struct kg_hash kg_hash_bytes(const void *bytes, size_t length)
{
    XXH128_hash_t digest = XXH3_128bits(bytes, length);
    return (struct kg_hash){.high = digest.high64, .low = digest.low64};
}

// Hashes the previous hash, the length, and the hash of the bytes.
struct kg_hash kg_hash_chain(struct kg_hash hash, const void *bytes, size_t length)
{
    struct kg_hash link = kg_hash_bytes(bytes, length);
    unsigned char block[40];
    put_little_endian(block, hash.high);
    put_little_endian(block + 8, hash.low);
    put_little_endian(block + 16, (uint64_t)length);
    put_little_endian(block + 24, link.high);
    put_little_endian(block + 32, link.low);
    return kg_hash_bytes(block, sizeof block);
}

struct kg_hash kg_hash_chain_text(struct kg_hash hash, const char *text)
{
    return kg_hash_chain(hash, text, strlen(text));
}

void kg_hash_format(struct kg_hash hash, char out[KG_HASH_TEXT])
{
    snprintf(out, KG_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high,
             (unsigned long long)hash.low);
}
