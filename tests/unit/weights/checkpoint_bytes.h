// Small writers of safetensors and GGUF files: a text that bytes are appended to.

#ifndef KG_TESTS_CHECKPOINT_BYTES_H
#define KG_TESTS_CHECKPOINT_BYTES_H

#include "base/text.h"
#include "weights/stored_list.h"

#include <stdlib.h>
#include <string.h>

// A reader of one format.
typedef enum kg_status list_tensors(const struct kg_weight_file *file, struct kg_stored_list *list,
                                    struct kg_error *error);

// Little-endian.
static inline void put_number(struct kg_text *file, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char byte = (char)(number >> 8 * i);
        kg_text_add_bytes(file, &byte, 1);
    }
}

// 0, 1, 2, ...: so a byte says where it was.
static inline void put_data(struct kg_text *file, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put_number(file, i, 1);
}

static inline void put_safetensors(struct kg_text *file, const char *header, size_t data)
{
    put_number(file, strlen(header), 8);
    kg_text_add(file, header);
    put_data(file, data);
}

static inline void put_gguf_head(struct kg_text *file, uint32_t version, uint64_t tensors,
                                 uint64_t pairs)
{
    kg_text_add(file, "GGUF");
    put_number(file, version, 4);
    put_number(file, tensors, 8);
    put_number(file, pairs, 8);
}

static inline void put_gguf_text(struct kg_text *file, const char *text)
{
    put_number(file, strlen(text), 8);
    kg_text_add(file, text);
}

// A pair whose value is a number of some bytes.
static inline void put_gguf_pair(struct kg_text *file, const char *key, uint32_t type,
                                 uint64_t value, size_t bytes)
{
    put_gguf_text(file, key);
    put_number(file, type, 4);
    put_number(file, value, bytes);
}

// Two dimensions, the fastest first.
static inline void put_gguf_tensor(struct kg_text *file, const char *name, uint64_t fast,
                                   uint64_t slow, uint32_t type, uint64_t offset)
{
    put_gguf_text(file, name);
    put_number(file, 2, 4);
    put_number(file, fast, 8);
    put_number(file, slow, 8);
    put_number(file, type, 4);
    put_number(file, offset, 8);
}

static inline void put_gguf_padding(struct kg_text *file, size_t alignment)
{
    while (file->length % alignment)
        put_number(file, 0, 1);
}

// What the reader says of the first `length` bytes, which a sanitizer guards: "" or its message.
static inline const char *message_of(list_tensors *list_all, const void *bytes, size_t length)
{
    static struct kg_error error;
    struct kg_stored_list list = {0};
    unsigned char *copy = malloc(length ? length : 1);
    kg_error_clear(&error);
    if (copy && length)
        memcpy(copy, bytes, length);
    struct kg_weight_file file = {"FILE", copy, length};
    enum kg_status status = list_all(&file, &list, &error);
    if (status == KG_OK && error.text[0])
        kg_error_set(&error, KG_ERROR_WRONG, "a message without a failure");
    if (status != KG_OK && status != KG_ERROR_CORRUPT)
        kg_error_set(&error, KG_ERROR_WRONG, "status %d", (int)status);
    kg_stored_list_free(&list);
    free(copy);
    return error.text;
}

#endif
