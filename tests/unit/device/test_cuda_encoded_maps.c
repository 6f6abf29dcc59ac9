// Maps of tensors for the copying engine: what the driver is asked for, how often, and what it is
// never asked.

#include "device/cuda/cuda_device.h"
#include "support/fake_cuda.h"

static char place[1024] __attribute__((aligned(256)));
static const struct kg_map good_map = {.element = 2,
                                       .rank = 3,
                                       .shape = {1000, 77, 3},
                                       .stride = {2, 2048, 157696},
                                       .box = {64, 128, 1},
                                       .swizzle = 128};

static enum kg_status encode(struct kg_device *device, const struct kg_map *map, size_t past,
                             struct kg_encoded_map *encoded)
{
    bool changed;
    enum kg_status status = device->backend->enter(device, &changed, &error);
    if (status == KG_OK) {
        status = device->backend->encode(device, map, place + past, encoded, &error);
        device->backend->leave(device, changed);
    }
    return status;
}

static void maps_are_what_the_driver_takes(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    forget_log();
    CHECK_STATUS(encode(device, &good_map, 48, &encoded), KG_OK, &error);
    CHECK_TEXT(fake->log, "map type 1 at +48 1000/64/1 77/128/1 3/1/1 stride 2048 stride 157696, "
                          "0 3 3 0\n");
    CHECK(encoded.words[0] == (uintptr_t)(place + 48) && encoded.words[1] == 0);
    struct kg_map plain = {.element = 8, .rank = 1, .shape = {5}, .box = {256}};
    forget_log();
    CHECK_STATUS(encode(device, &plain, 0, &encoded), KG_OK, &error);
    CHECK_TEXT(fake->log, "map type 4 at +0 5/256/1, 0 0 3 0\n");
    // What the driver does not say more about.
    fake->fail_in = "cuTensorMapEncodeTiled";
    fake->result = 1;
    CHECK_STATUS(encode(device, &plain, 16, &encoded), KG_ERROR_ARGUMENT, &error);
    CHECK(strstr(error.text, "CUDA_ERROR_INVALID_VALUE") && encoded.words[0] == 0);
    fake->fail_in = NULL;
    CHECK_STATUS(encode(device, &plain, 16, &encoded), KG_OK, &error); // the refusal is not kept
    CHECK(encoded.words[0] == (uintptr_t)(place + 16));
    struct kg_cuda_driver *driver = &((struct kg_cuda_device *)device)->driver;
    driver->encode_map = NULL;
    CHECK_STATUS(encode(device, &plain, 0, &encoded), KG_ERROR_MISSING, &error);
    CHECK(strstr(error.text, "(CUDA 13.0) has no cuTensorMapEncodeTiled"));
    kg_device_close(device);
}

// Whatever a map depends on makes another one of it; the tensor's number and offset, which the
// address holds, do not.
static void maps_are_encoded_once(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    struct kg_map other[6];
    for (int i = 0; i < 6; i++)
        other[i] = good_map;
    other[0].shape[1]++;
    other[1].stride[2] += 16;
    other[2].box[1]--;
    other[3].swizzle = 0;
    other[4].rank = 2;
    other[5].tensor = 7, other[5].offset = 64, other[5].stride[0] = 4;
    fake->encodings = 0;
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(encode(device, &good_map, 48, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 1 && encoded.words[0] == (uintptr_t)(place + 48));
    CHECK_STATUS(encode(device, &good_map, 64, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 2 && encoded.words[0] == (uintptr_t)(place + 64));
    for (int i = 0; i < 5; i++)
        CHECK_STATUS(encode(device, &other[i], 48, &encoded), KG_OK, &error);
    CHECK(fake->encodings == 7);
    fake->encodings = 0;
    CHECK_STATUS(encode(device, &other[4], 48, &encoded), KG_OK, &error);
    CHECK_STATUS(encode(device, &other[5], 48, &encoded), KG_OK, &error);
    CHECK(encoded.words[0] == (uintptr_t)(place + 48) && fake->encodings <= 1);
    kg_device_close(device);
}

// The driver is not asked, so not even initialised.
static void maps_that_break_rules(void)
{
    struct kg_device *device = open_device();
    struct kg_encoded_map encoded;
    struct kg_map map[15];
    size_t past[15] = {0};
    for (int i = 0; i < 15; i++)
        map[i] = good_map;
    map[0].rank = 0;
    map[1].rank = 6;
    map[2].element = 3;
    map[3].swizzle = 16;
    past[4] = 8;
    map[5].shape[1] = 0;
    map[6].shape[2] = ((int64_t)1 << 32) + 1;
    map[7].stride[1] = 2056;
    map[8].stride[2] = -16;
    map[9].stride[2] = (int64_t)1 << 40;
    map[10].box[1] = 257;
    map[11].box[2] = 0;
    map[12].box[0] = 63;
    map[13].swizzle = 64;
    map[14].box[0] = INT32_MAX;
    static const char *const why[15] = {
        "0 dimensions are not between 1 and 5",
        "6 dimensions",
        "an element has 1, 2, 4 or 8 bytes, and not 3",
        "a swizzle has 0, 32, 64 or 128 bytes, and not 16",
        "is no multiple of 16",
        "0 elements of dimension 1 are not between 1",
        "4294967297 elements of dimension 2",
        "the stride of dimension 1, 2056 bytes, is no multiple of 16",
        "the stride of dimension 2, -16 bytes, is not between 0",
        "the stride of dimension 2, 1099511627776 bytes",
        "a box of 257 elements along dimension 1 is not between 1 and 256",
        "a box of 0 elements along dimension 2",
        "the rows of a box, 126 bytes, are no multiple of 16",
        "the rows of a box, 128 bytes, are longer than the swizzle, 64",
        "a box of 2147483647 elements along dimension 0",
    };
    for (int i = 0; i < 15; i++) {
        CHECK_STATUS(encode(device, &map[i], past[i], &encoded), KG_ERROR_ARGUMENT, &error);
        CHECK(strstr(error.text, why[i]));
    }
    kg_device_close(device);
}

int main(void)
{
    void (*const tests[])(void) = {maps_are_what_the_driver_takes, maps_are_encoded_once,
                                   maps_that_break_rules};
    return run_apart(tests, sizeof tests / sizeof tests[0]);
}
