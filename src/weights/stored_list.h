// What the readers of checkpoints share: the list they fill, and what both formats refuse alike.

#ifndef KG_WEIGHTS_STORED_LIST_H
#define KG_WEIGHTS_STORED_LIST_H

#include "base/arena.h"
#include "weights/checkpoint.h"

#define KG_MAX_STORED ((size_t)1 << 20)
#define KG_MAX_STORED_NAME ((size_t)4096)

// A file whose bytes are all at hand.
struct kg_weight_file {
    const char *path;
    const unsigned char *bytes;
    size_t length;
};

// Zero-initialised is an empty list. It refers to the files it lists.
struct kg_stored_list {
    struct kg_arena arena; // of names
    struct kg_stored *items;
    size_t count;
    size_t capacity;
};

void kg_stored_list_free(struct kg_stored_list *list);
// Appends `tensor` under a copy of its name.
enum kg_status kg_stored_list_add(struct kg_stored_list *list, const struct kg_weight_file *file,
                                  const struct kg_stored *tensor, struct kg_error *error);
// Refuses tensors that share bytes of their file; `first` is the first one of it.
enum kg_status kg_stored_list_check_overlaps(const struct kg_stored_list *list, size_t first,
                                             const struct kg_weight_file *file,
                                             struct kg_error *error);

// Sets rank, shape and elements, and the type of tensors with too many dimensions. False: the
// product of the sizes that are not zero does not fit.
bool kg_stored_set_shape(struct kg_stored *tensor, const int64_t *sizes, int rank);

// KG_ERROR_CORRUPT: "FILE: offset N: tensor "NAME": reason". `tensor` may be NULL.
enum kg_status kg_weights_refuse(const struct kg_weight_file *file, size_t offset,
                                 const char *tensor, struct kg_error *error, const char *format,
                                 ...) __attribute__((format(printf, 5, 6)));

#endif
