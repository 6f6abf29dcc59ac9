// Tensor maps: descriptions of a tensor from which the TMA copies boxes. The driver reports only
// that a map is invalid, so its rules are checked here first.
//
// What was encoded is kept for the device: maps of a tensor that stays the same, such as weights,
// are encoded once, whatever sizes the other tensors of a plan take.

#include "device/cuda/cuda_device.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define ALIGNMENT 16 // of addresses, strides and rows of boxes, in bytes
#define MAX_SHAPE ((int64_t)1 << 32)
#define MAX_STRIDE (((int64_t)1 << 40) - 1)
#define MAX_BOX 256

// Copies do not interpret values: only the size of elements matters.
static const struct {
    int bytes, type;
} elements[] = {
    {1, KG_CUDA_MAP_UINT8},
    {2, KG_CUDA_MAP_UINT16},
    {4, KG_CUDA_MAP_UINT32},
    {8, KG_CUDA_MAP_UINT64},
};

static const struct {
    int bytes, pattern;
} swizzles[] = {
    {0, KG_CUDA_MAP_NO_SWIZZLE},
    {32, KG_CUDA_MAP_SWIZZLE_32},
    {64, KG_CUDA_MAP_SWIZZLE_64},
    {128, KG_CUDA_MAP_SWIZZLE_128},
};

// -1: there is no type of this size.
static int element_type(int bytes)
{
    for (size_t i = 0; i < COUNT(elements); i++)
        if (elements[i].bytes == bytes)
            return elements[i].type;
    return -1;
}

static int swizzle_pattern(int bytes)
{
    for (size_t i = 0; i < COUNT(swizzles); i++)
        if (swizzles[i].bytes == bytes)
            return swizzles[i].pattern;
    return -1;
}

static enum kg_status check_dimension(const struct kg_map *map, int dim, struct kg_error *error)
{
    long long shape = map->shape[dim], stride = dim > 0 ? map->stride[dim] : 0;
    if (shape < 1 || shape > MAX_SHAPE)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%lld elements of dimension %d are not between 1 and %lld", shape, dim,
                            (long long)MAX_SHAPE);
    if (stride < 0 || stride > MAX_STRIDE)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "the stride of dimension %d, %lld bytes, is not between 0 and %lld",
                            dim, stride, (long long)MAX_STRIDE);
    if (stride % ALIGNMENT != 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "the stride of dimension %d, %lld bytes, is no multiple of %d", dim,
                            stride, ALIGNMENT);
    if (map->box[dim] < 1 || map->box[dim] > MAX_BOX)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "a box of %d elements along dimension %d is not between 1 and %d",
                            map->box[dim], dim, MAX_BOX);
    return KG_OK;
}

static enum kg_status check_map(const struct kg_map *map, const void *address,
                                struct kg_error *error)
{
    if (map->rank < 1 || map->rank > KG_MAX_MAP_RANK)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "%d dimensions are not between 1 and %d",
                            map->rank, KG_MAX_MAP_RANK);
    if (element_type(map->element) < 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "an element has 1, 2, 4 or 8 bytes, and not %d", map->element);
    if (swizzle_pattern(map->swizzle) < 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "a swizzle has 0, 32, 64 or 128 bytes, and not %d", map->swizzle);
    if ((uintptr_t)address % ALIGNMENT != 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT, "the address %p is no multiple of %d",
                            address, ALIGNMENT);
    for (int dim = 0; dim < map->rank; dim++) {
        enum kg_status status = check_dimension(map, dim, error);
        if (status)
            return status;
    }
    int row = map->box[0] * map->element;
    if (row % ALIGNMENT != 0)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "the rows of a box, %d bytes, are no multiple of %d", row, ALIGNMENT);
    if (map->swizzle > 0 && row > map->swizzle)
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "the rows of a box, %d bytes, are longer than the swizzle, %d", row,
                            map->swizzle);
    return KG_OK;
}

// All that the encoding depends on.
static struct kg_cuda_map_key key_of(const struct kg_map *map, const void *address)
{
    struct kg_cuda_map_key key;
    memset(&key, 0, sizeof key); // compared as bytes
    key.address = (uintptr_t)address;
    key.element = map->element;
    key.swizzle = map->swizzle;
    key.rank = map->rank;
    for (int dim = 0; dim < map->rank; dim++) {
        key.shape[dim] = map->shape[dim];
        key.stride[dim] = dim > 0 ? map->stride[dim] : 0;
        key.box[dim] = map->box[dim];
    }
    return key;
}

static struct kg_cuda_kept_map *set_of(struct kg_cuda_maps *maps, const struct kg_cuda_map_key *key)
{
    uint64_t words[sizeof *key / sizeof(uint64_t)], hash = 0;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < COUNT(words); i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15;
    return maps->kept[(hash >> 32) % COUNT(maps->kept)];
}

// Puts one in front of the set's first `count`, which move up by one place.
static void put_first(struct kg_cuda_kept_map *set, int count, const struct kg_cuda_kept_map *one)
{
    const struct kg_cuda_kept_map first = *one;
    memmove(set + 1, set, (size_t)count * sizeof *set);
    set[0] = first;
}

// False if it is not known, or another thread uses the table right now.
static bool find_kept(struct kg_cuda_maps *maps, const struct kg_cuda_map_key *key,
                      struct kg_encoded_map *encoded)
{
    struct kg_cuda_kept_map *set = set_of(maps, key);
    if (atomic_exchange_explicit(&maps->is_busy, true, memory_order_acquire))
        return false;
    int way = 0;
    while (way < KG_CUDA_MAP_WAYS && memcmp(&set[way].key, key, sizeof *key) != 0)
        way++;
    bool found = way < KG_CUDA_MAP_WAYS;
    if (found && way > 0)
        put_first(set, way, &set[way]);
    if (found)
        memcpy(encoded->words, set[0].words, sizeof set[0].words);
    atomic_store_explicit(&maps->is_busy, false, memory_order_release);
    return found;
}

static void keep(struct kg_cuda_maps *maps, const struct kg_cuda_map_key *key,
                 const struct kg_encoded_map *encoded)
{
    struct kg_cuda_kept_map one = {.key = *key};
    memcpy(one.words, encoded->words, sizeof one.words);
    if (atomic_exchange_explicit(&maps->is_busy, true, memory_order_acquire))
        return;
    put_first(set_of(maps, key), KG_CUDA_MAP_WAYS - 1, &one);
    atomic_store_explicit(&maps->is_busy, false, memory_order_release);
}

static int ask_driver(const struct kg_cuda_driver *driver, const struct kg_map *map,
                      const void *address, struct kg_encoded_map *encoded)
{
    uint64_t shape[KG_MAX_MAP_RANK], strides[KG_MAX_MAP_RANK];
    uint32_t box[KG_MAX_MAP_RANK], steps[KG_MAX_MAP_RANK];
    for (int dim = 0; dim < map->rank; dim++) {
        shape[dim] = (uint64_t)map->shape[dim];
        box[dim] = (uint32_t)map->box[dim];
        steps[dim] = 1;
        if (dim > 0)
            strides[dim - 1] = (uint64_t)map->stride[dim];
    }
    return driver->encode_map(encoded, element_type(map->element), (uint32_t)map->rank,
                              (void *)(uintptr_t)address, shape, strides, box, steps,
                              KG_CUDA_MAP_PLAIN, swizzle_pattern(map->swizzle), KG_CUDA_MAP_L2_256,
                              KG_CUDA_MAP_ZEROS);
}

enum kg_status kg_cuda_encode(struct kg_device *device, const struct kg_map *map,
                              const void *address, struct kg_encoded_map *encoded,
                              struct kg_error *error)
{
    struct kg_cuda_device *cuda = (struct kg_cuda_device *)device;
    const struct kg_cuda_driver *driver = &cuda->driver;
    *encoded = (struct kg_encoded_map){{0}};
    enum kg_status status = check_map(map, address, error);
    if (status)
        return status;
    if (!driver->encode_map)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "the NVIDIA driver (CUDA %d.%d) has no cuTensorMapEncodeTiled. "
                            "Install a newer one, or choose a config without tensor maps",
                            driver->version / 1000, driver->version % 1000 / 10);
    const struct kg_cuda_map_key key = key_of(map, address);
    if (find_kept(&cuda->maps, &key, encoded))
        return KG_OK;
    int result = ask_driver(driver, map, address, encoded);
    if (result)
        return kg_cuda_error(driver, result, "the driver refuses it", error);
    keep(&cuda->maps, &key, encoded);
    return KG_OK;
}
