// The text in a .npy file that says what the array is: a Python dict of three keys.

#ifndef KG_CLI_NPY_HEADER_H
#define KG_CLI_NPY_HEADER_H

#include "npy.h"

struct npy_header {
    char descr[16]; // "<f4"
    bool fortran;
    int rank;
    int64_t shape[KG_MAX_RANK]; // each >= 0; their product may be anything
    bool has_descr, has_order, has_shape;
};

// `text` is not terminated. False, with the reason, when it is anything but such a dict.
bool npy_header_read(const char *text, size_t length, struct npy_header *header,
                     char error[NPY_ERROR]);

// Puts the reason into `error`, and is false.
bool npy_fail(char error[NPY_ERROR], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
