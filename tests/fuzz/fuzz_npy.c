// .npy files from anywhere: what is read is laid out within its memory, and says the same when it
// is written and read again.

#include "npy.h"

#include "fuzz/fuzz.h"

#include <string.h>
#include <unistd.h>

// Every element once, through the strides.
static uint64_t touch(const struct npy_array *array, size_t item)
{
    uint64_t sum = 0;
    int64_t at[KG_MAX_RANK] = {0};
    if (array->bytes == 0)
        return 0;
    for (int d = 0; d >= 0;) {
        int64_t offset = 0;
        for (int i = 0; i < array->rank; i++)
            offset += at[i] * array->stride[i];
        FUZZ_CHECK(offset >= 0 && ((size_t)offset + 1) * item <= array->bytes);
        sum += ((const unsigned char *)array->data)[(size_t)offset * item];
        for (d = array->rank - 1; d >= 0 && ++at[d] == array->shape[d]; d--)
            at[d] = 0;
    }
    return sum;
}

static void write_and_read(const struct npy_array *array, size_t item)
{
    char path[64], error[NPY_ERROR];
    snprintf(path, sizeof path, "/tmp/kernelgen-fuzz-%ld.npy", (long)getpid());
    struct npy_array read;
    FUZZ_CHECK(npy_write(path, array, error));
    FUZZ_CHECK(npy_read(path, &read, error));
    unlink(path);
    FUZZ_CHECK(read.dtype == array->dtype && read.rank == array->rank);
    FUZZ_CHECK(memcmp(read.shape, array->shape, sizeof read.shape) == 0);
    FUZZ_CHECK(touch(&read, item) == touch(array, item));
    npy_free(&read);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy_array array;
    char error[NPY_ERROR] = "";
    if (!npy_parse(data, size, &array, error)) {
        FUZZ_CHECK(error[0] && !array.data);
        return 0;
    }
    size_t elements = 1;
    for (int i = 0; i < array.rank; i++)
        elements *= (size_t)array.shape[i];
    size_t item = elements ? array.bytes / elements : 1;
    touch(&array, item);
    write_and_read(&array, item);
    if (npy_view(&array, KG_U4, error))
        FUZZ_CHECK(array.dtype == KG_U4);
    npy_free(&array);
    return 0;
}
