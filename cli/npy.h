// NumPy's .npy files: one array, with its dtype and shape. NumPy has no bf16 and no 4-bit integers:
// bf16 is stored as its bits (<u2, or V2 as ml_dtypes does), 4-bit integers as packed bytes (u1).
//
// Functions return false on failure, with one line of text in `error`.

#ifndef KG_CLI_NPY_H
#define KG_CLI_NPY_H

#include "kernelgen.h"

#define NPY_ERROR 256

struct npy_array {
    enum kg_dtype dtype;
    int rank;
    int64_t shape[KG_MAX_RANK];
    int64_t stride[KG_MAX_RANK]; // in elements; Fortran order shows here and nowhere else
    void *data;                  // aligned to 64 bytes, in this machine's byte order
    size_t bytes;
};

// The file must hold the array its header tells of and nothing more. `path` may not be a pipe.
bool npy_read(const char *path, struct npy_array *array, char error[NPY_ERROR]);
// The same from memory.
bool npy_parse(const void *bytes, size_t length, struct npy_array *array, char error[NPY_ERROR]);
void npy_free(struct npy_array *array);

// Takes an array of bytes for one of u4 or i4, two to a byte: the last dimension doubles. Any other
// change of dtype is refused.
bool npy_view(struct npy_array *array, enum kg_dtype dtype, char error[NPY_ERROR]);

// Writes in C order, whatever the strides of `array`. 4-bit integers must be contiguous; they are
// written as bytes, with half the last dimension where that is even, else as one dimension. errno
// tells why the file could not be written, 0 that nothing is wrong with the file.
bool npy_write(const char *path, const struct npy_array *array, char error[NPY_ERROR]);

#endif
