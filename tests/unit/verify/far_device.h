// A device with memory of its own, as far as the gate can tell, for tests.

#ifndef KG_TESTS_FAR_DEVICE_H
#define KG_TESTS_FAR_DEVICE_H

#include "base/hash.h"
#include "unit/verify/judge.h"

static size_t fetched; // bytes copied, but for images on their way there

static inline enum kg_status far_copy(struct kg_device *device, void *to, const void *from,
                                      size_t bytes, struct kg_error *error)
{
    fetched += bytes;
    return plain_copy(device, to, from, bytes, error);
}

static inline enum kg_status far_fill(struct kg_device *device, void *memory, unsigned char value,
                                      size_t bytes, struct kg_error *error)
{
    (void)device, (void)error;
    memset(memory, value, bytes);
    return KG_OK;
}

static inline enum kg_status far_digest(struct kg_device *device, const void *memory, size_t bytes,
                                        uint64_t *sum, struct kg_error *error)
{
    (void)device, (void)error;
    *sum = kg_hash_chain((struct kg_hash){*sum, 0}, memory, bytes).low;
    return KG_OK;
}

static const struct kg_backend far_backend = {.name = "far",
                                              .allocate = plain_allocate,
                                              .release = plain_release,
                                              .copy = far_copy,
                                              .fill = far_fill,
                                              .digest = far_digest};
static struct kg_device far_device = {.backend = &far_backend};

#endif
