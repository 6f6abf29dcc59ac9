// Safetensors files from anywhere: what is listed lies within the file and has the bytes that its
// shape needs; a refusal says where.

#include "weights/safetensors.h"

#include "fuzz/stored_tensors.h"

#include <string.h>

// Most changes to a file make the length of its header a wrong one: here it ends with its last '}'.
static void list_mended(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 8 ? memrchr(data + 8, '}', size - 8) : NULL;
    uint8_t *mended = end ? malloc(size) : NULL;
    if (!mended)
        return;
    size_t length = (size_t)(end + 1 - (data + 8));
    memcpy(mended, data, size);
    for (size_t i = 0; i < 8; i++)
        mended[i] = (uint8_t)((uint64_t)length >> 8 * i);
    list_and_touch(kg_safetensors_list, mended, size);
    free(mended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    list_and_touch(kg_safetensors_list, data, size);
    list_mended(data, size);
    return 0;
}
