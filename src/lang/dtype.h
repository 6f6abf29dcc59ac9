// Element types, as stored (dtype) and as computed (type). One table row each.

#ifndef KG_LANG_DTYPE_H
#define KG_LANG_DTYPE_H

#include "kernelgen.h"

#include <stdbool.h>
#include <stddef.h>

// What an expression computes in. Narrow floats compute in F32, integers in I64 (and wrap at the
// store), and `bool` is the type of comparisons.
enum kg_type { KG_TYPE_NONE, KG_TYPE_BOOL, KG_TYPE_I64, KG_TYPE_F32, KG_TYPE_F64 };

// All that is true of a dtype. Nothing outside this table and kernels/elements.h, where generated
// code finds how elements are loaded and stored, compares dtypes to learn what they are.
struct kg_dtype_info {
    const char *name; // as written in a definition
    int bits;         // of storage
    bool is_float;
    bool is_signed;
    enum kg_type compute;
    // Floats have a sign, an exponent and a fraction of so many bits, from the highest bit down.
    int fraction;
    // What is too large becomes infinity, or NaN where there is none; then the largest exponent
    // holds numbers too, and NaN is all ones behind the sign.
    bool has_infinity;
    double epsilon;    // floats: distance from 1 to the next value; 0 for integers
    double largest;    // largest finite value
    double smallest;   // floats: smallest normal; integers: least value
    const char *numpy; // .npy descr without byte order
    bool numpy_is_raw; // NumPy has no such type: the descr is that of unsigned integers
    int dlpack;        // DLPack's type code
    // The type of an element in generated C and CUDA. Where the languages have none it is kg_NAME,
    // which kernels/ declare.
    const char *c_type;
    double relative; // default tolerances of the accuracy gate
    double absolute;
};

extern const struct kg_dtype_info kg_dtypes[KG_DTYPE_COUNT];

// KG_DTYPE_COUNT when there is none of this name.
enum kg_dtype kg_dtype_find(const char *name, size_t length);
// Bytes of `count` contiguous elements (4-bit types round up to a byte).
size_t kg_dtype_bytes(enum kg_dtype dtype, size_t count);
const char *kg_type_name_of(enum kg_type type);
// The dtype whose elements are stored as the type computes them; f32 for none.
enum kg_dtype kg_type_dtype(enum kg_type type);

// Questions to a row.
bool kg_dtype_is_computed(enum kg_dtype dtype);     // stored as computed: nothing rounds or wraps
bool kg_dtype_is_narrow_float(enum kg_dtype dtype); // computed in f32, stored in fewer bits
bool kg_dtype_is_half(enum kg_dtype dtype);         // and in 16 of them: f16 and bf16
bool kg_dtype_is_packed(enum kg_dtype dtype);       // two elements share a byte
bool kg_dtype_is_truth(enum kg_dtype dtype);        // 0 or 1
bool kg_dtype_is_in_c(enum kg_dtype dtype);         // a type of C, converted by its own rules

// One element, to and from f64. `index` counts elements from `data`. The store rounds to nearest
// even (floats) or wraps (integers; the value must be within int64).
double kg_dtype_load(enum kg_dtype dtype, const void *data, size_t index);
void kg_dtype_store(enum kg_dtype dtype, void *data, size_t index, double value);
int64_t kg_dtype_load_integer(enum kg_dtype dtype, const void *data, size_t index);
void kg_dtype_store_integer(enum kg_dtype dtype, void *data, size_t index, int64_t value);
// `value` rounded to the nearest value of the dtype, as f64. Floats past the largest value become
// infinity, or NaN if the dtype has none.
double kg_dtype_round(enum kg_dtype dtype, double value);

#endif
