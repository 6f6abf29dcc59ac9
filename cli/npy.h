// NumPy's .npy files: one array, with its dtype and shape. What NumPy has no type for is stored as
// its bits: bf16 as <u2, 8-bit floats as u1, 4-bit integers as packed bytes, u1 again. Such files,
// and those of V2 and V1 that ml_dtypes writes, are read as unsigned integers; whoever knows better
// views them as what they are.
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

// May elements that were read as `held` be of `dtype`: are they the same, or its bits?
bool npy_may_be(enum kg_dtype held, enum kg_dtype dtype);
// Takes an array of bits for what they are of. Where two elements share a byte, the last dimension
// doubles. Any other change of dtype is refused.
bool npy_view(struct npy_array *array, enum kg_dtype dtype, char error[NPY_ERROR]);

// Are these bytes in one dimension, which may hold packed elements of a tensor of any shape, as
// npy_write writes those of an odd last dimension?
bool npy_is_flat(const struct npy_array *array, enum kg_dtype dtype);

// Writes in C order, whatever the strides of `array`. 4-bit integers must be contiguous; they are
// written as bytes, with half the last dimension where that is even, else as one dimension. errno
// tells why the file could not be written, 0 that nothing is wrong with the file.
bool npy_write(const char *path, const struct npy_array *array, char error[NPY_ERROR]);

#endif
