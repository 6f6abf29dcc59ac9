// GGUF files from anywhere: what is listed lies within the file and has the bytes that its shape
// needs; a refusal says where.

#include "weights/gguf.h"

#include "fuzz/stored_tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    list_and_touch(kg_gguf_list, data, size);
    return 0;
}
