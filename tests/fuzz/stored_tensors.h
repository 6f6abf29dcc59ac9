// What must hold of the tensors that any reader of checkpoints lists.

#ifndef KG_TESTS_FUZZ_STORED_TENSORS_H
#define KG_TESTS_FUZZ_STORED_TENSORS_H

#include "fuzz/fuzz.h"
#include "weights/stored_list.h"

#include <string.h>

typedef enum kg_status list_tensors(const struct kg_weight_file *file, struct kg_stored_list *list,
                                    struct kg_error *error);

static inline void touch_tensor(const struct kg_stored *tensor, const uint8_t *data, size_t size)
{
    int64_t elements = 1;
    FUZZ_CHECK(tensor->name && tensor->file && tensor->type_name);
    FUZZ_CHECK(tensor->type < KG_STORED_COUNT && tensor->rank <= KG_STORED_RANK);
    for (int d = 0; d < tensor->rank; d++) {
        FUZZ_CHECK(tensor->shape[d] >= 0);
        elements *= tensor->shape[d];
    }
    FUZZ_CHECK(elements == tensor->elements);
    FUZZ_CHECK(tensor->offset <= size && tensor->bytes <= size - tensor->offset);
    FUZZ_CHECK((const uint8_t *)tensor->data == data + tensor->offset);
    if (tensor->bytes > 0) {
        volatile uint8_t first = data[tensor->offset];
        volatile uint8_t last = data[tensor->offset + tensor->bytes - 1];
        (void)first;
        (void)last;
    }
}

static inline void list_and_touch(list_tensors *list_all, const uint8_t *data, size_t size)
{
    struct kg_stored_list list = {0};
    struct kg_error error = {0};
    struct kg_weight_file file = {"FILE", data, size};
    if (list_all(&file, &list, &error) == KG_OK)
        for (size_t i = 0; i < list.count; i++)
            touch_tensor(&list.items[i], data, size);
    else
        FUZZ_CHECK(strncmp(error.text, "FILE: ", 6) == 0);
    kg_stored_list_free(&list);
}

#endif
