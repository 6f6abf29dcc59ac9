// Reading trusts nothing: the header's length, its text and its shape are checked against each
// other and against the size of the file before anything is allocated.

#include "npy.h"

#include "npy_header.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHORT_PREFIX 10                // magic, version, the header's length in 2 bytes
#define LONG_PREFIX 12                 // the same in 4 bytes
#define LONGEST_HEADER ((size_t)65536) // NumPy's own limit is 10 000 characters
#define ALIGNMENT ((size_t)64)

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

// Two elements share a byte.
static bool is_packed(enum kg_dtype dtype)
{
    return kg_dtype_bits(dtype) < 8;
}

// Bytes of what NumPy takes for one element: of two, if they share a byte.
static size_t item_size(enum kg_dtype dtype)
{
    return is_packed(dtype) ? 1 : (size_t)kg_dtype_bits(dtype) / 8;
}

// NumPy's own dtype of this kind and size; KG_DTYPE_COUNT when there is none. Kind V is how files
// hold types that NumPy learned from ml_dtypes: bits, if there is a dtype here that they may be of.
static enum kg_dtype find_dtype(char kind, size_t size)
{
    enum kg_dtype found = KG_DTYPE_COUNT;
    bool may_be_bits = false;
    for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++) {
        bool is_raw;
        const char *descr = kg_dtype_numpy((enum kg_dtype)dtype, &is_raw);
        if (item_size((enum kg_dtype)dtype) != size || descr[0] != (kind == 'V' ? 'u' : kind))
            continue;
        may_be_bits |= is_raw && !is_packed((enum kg_dtype)dtype);
        if (!is_raw)
            found = (enum kg_dtype)dtype;
    }
    return kind != 'V' || may_be_bits ? found : KG_DTYPE_COUNT;
}

// Where the dict is, from the first bytes of a file.
static bool find_header(const unsigned char *bytes, size_t length, size_t *begin, size_t *size,
                        char error[NPY_ERROR])
{
    if (length < SHORT_PREFIX || memcmp(bytes, magic, sizeof magic) != 0)
        return npy_fail(error, "not a .npy file");
    int major = bytes[6];
    if (major < 1 || major > 3 || bytes[7] != 0)
        return npy_fail(error, "version %d.%d of the .npy format is unknown", major, bytes[7]);
    *begin = major == 1 ? SHORT_PREFIX : LONG_PREFIX;
    if (length < *begin)
        return npy_fail(error, "the file ends inside its header");
    *size = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1)
        *size |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*size > LONGEST_HEADER)
        return npy_fail(error, "the header claims %zu bytes", *size);
    return true;
}

// "<f4": byte order, kind, size. `*swap` when the bytes are in the other order.
static bool read_descr(const char *descr, enum kg_dtype *dtype, size_t *size, bool *swap,
                       char error[NPY_ERROR])
{
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    char order = descr[0];
    *size = 0;
    if (order != '\0' && strchr("<>|=", order) && descr[1] && descr[2] >= '1' && descr[2] <= '8' &&
        !descr[3])
        *size = (size_t)(descr[2] - '0');
    *dtype = *size > 0 ? find_dtype(descr[1], *size) : KG_DTYPE_COUNT;
    *swap = *size > 1 && order == (little ? '>' : '<');
    return *dtype != KG_DTYPE_COUNT ||
           npy_fail(error, "elements of type '%s' cannot be read", descr);
}

// Strides and size of the array.
static bool lay_out(const struct npy_header *header, size_t item, struct npy_array *array,
                    char error[NPY_ERROR])
{
    int64_t next = 1;
    bool empty = false;
    for (int i = 0; i < header->rank; i++) {
        int d = header->fortran ? i : header->rank - 1 - i;
        int64_t size = header->shape[d];
        array->shape[d] = size;
        array->stride[d] = next;
        if (__builtin_mul_overflow(next, size ? size : 1, &next))
            return npy_fail(error, "the array is larger than the address space");
        empty = empty || size == 0;
    }
    // Also where a size is 0: nothing computed from these sizes may overflow later.
    if (next > INT64_MAX / 16)
        return npy_fail(error, "the array is larger than the address space");
    array->rank = header->rank;
    array->bytes = empty ? 0 : (size_t)next * item;
    return true;
}

// Everything but the data. `total`: bytes of the file; the data begins at `*begin`.
static bool parse_header(const unsigned char *bytes, size_t length, size_t total, size_t *begin,
                         bool *swap, struct npy_array *array, char error[NPY_ERROR])
{
    size_t size = 0, item = 0;
    struct npy_header header;
    if (!find_header(bytes, length, begin, &size, error))
        return false;
    if (size > length - *begin)
        return npy_fail(error, "the file ends inside its header");
    const char *text = (const char *)bytes + *begin;
    *begin += size;
    if (!npy_header_read(text, size, &header, error) ||
        !read_descr(header.descr, &array->dtype, &item, swap, error) ||
        !lay_out(&header, item, array, error))
        return false;
    if (array->bytes != total - *begin)
        return npy_fail(error, "the array has %zu bytes and the file holds %zu", array->bytes,
                        total - *begin);
    return true;
}

static bool allocate(struct npy_array *array, char error[NPY_ERROR])
{
    size_t size = array->bytes ? (array->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    array->data = aligned_alloc(ALIGNMENT, size);
    return array->data || npy_fail(error, "out of memory for %zu bytes", array->bytes);
}

// Byte order, and values that no kernel expects.
static bool finish(struct npy_array *array, bool swap, char error[NPY_ERROR])
{
    unsigned char *bytes = array->data;
    size_t item = item_size(array->dtype);
    for (size_t i = 0; swap && i < array->bytes; i += item)
        for (size_t j = 0; j < item / 2; j++) {
            unsigned char byte = bytes[i + j];
            bytes[i + j] = bytes[i + item - 1 - j];
            bytes[i + item - 1 - j] = byte;
        }
    for (size_t i = 0; array->dtype == KG_BOOL && i < array->bytes; i++)
        if (bytes[i] > 1)
            return npy_fail(error, "element %zu is neither true nor false", i);
    return true;
}

static bool read_file(FILE *file, struct npy_array *array, char error[NPY_ERROR])
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        return npy_fail(error, "not a regular file");
    size_t total = (size_t)info.st_size, begin = 0;
    size_t most = LONG_PREFIX + LONGEST_HEADER;
    unsigned char *start = malloc(most);
    if (!start)
        return npy_fail(error, "out of memory");
    size_t length = fread(start, 1, total < most ? total : most, file);
    bool swap;
    bool done =
        parse_header(start, length, total, &begin, &swap, array, error) && allocate(array, error);
    free(start);
    if (!done)
        return false;
    errno = 0;
    if (fseek(file, (long)begin, SEEK_SET) != 0 ||
        fread(array->data, 1, array->bytes, file) != array->bytes)
        return npy_fail(error, "cannot be read: %s", errno ? strerror(errno) : "it ends too early");
    return finish(array, swap, error);
}

// ---- Writing

// "{'descr': '<f4', ...}", padded so that the data begins at a multiple of 64.
static size_t write_header(char out[512], const struct npy_array *array)
{
    char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    if (item_size(array->dtype) == 1)
        order = '|';
    int length =
        snprintf(out + SHORT_PREFIX, 500, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                 order, kg_dtype_numpy(array->dtype, NULL));
    for (int i = 0; i < array->rank; i++)
        length += snprintf(out + SHORT_PREFIX + length, (size_t)(500 - length), "%lld%s",
                           (long long)array->shape[i],
                           array->rank == 1 ? "," : (i + 1 < array->rank ? ", " : ""));
    length += snprintf(out + SHORT_PREFIX + length, (size_t)(500 - length), "), }");
    size_t total = ((size_t)length + SHORT_PREFIX + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(out + SHORT_PREFIX + length, ' ', total - SHORT_PREFIX - (size_t)length);
    out[total - 1] = '\n';
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((total - SHORT_PREFIX) & 0xFF);
    out[9] = (char)((total - SHORT_PREFIX) >> 8);
    return total;
}

static bool is_contiguous(const struct npy_array *array)
{
    int64_t next = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        if (array->shape[i] == 0)
            return true;
        if (array->shape[i] != 1 && array->stride[i] != next)
            return false;
        next *= array->shape[i];
    }
    return true;
}

// The elements in C order: an odometer over all but the last dimension, which is copied in a loop.
static bool write_elements(FILE *file, const struct npy_array *array)
{
    size_t item = item_size(array->dtype);
    if (is_contiguous(array))
        return fwrite(array->data, 1, array->bytes, file) == array->bytes;
    int last = array->rank - 1;
    int64_t at[KG_MAX_RANK] = {0};
    for (int i = 0; i <= last; i++)
        if (array->shape[i] == 0)
            return true;
    for (int d = last; d >= 0;) {
        int64_t offset = 0;
        for (int i = 0; i < last; i++)
            offset += at[i] * array->stride[i];
        for (int64_t i = 0; i < array->shape[last]; i++) {
            const char *element =
                (const char *)array->data + (offset + i * array->stride[last]) * (int64_t)item;
            if (fwrite(element, 1, item, file) != item)
                return false;
        }
        for (d = last - 1; d >= 0 && ++at[d] == array->shape[d]; d--)
            at[d] = 0;
    }
    return true;
}

// 4-bit integers as the bytes they are stored in.
static bool as_bytes(struct npy_array *array, char error[NPY_ERROR])
{
    if (!is_contiguous(array))
        return npy_fail(error, "4-bit integers with strides cannot be written");
    int last = array->rank - 1;
    array->dtype = KG_U8;
    if (array->rank > 0 && array->shape[last] % 2 == 0) {
        array->shape[last] /= 2;
    } else {
        array->rank = 1;
        array->shape[0] = (int64_t)array->bytes;
    }
    return true;
}

// ---- What npy.h promises

bool npy_parse(const void *bytes, size_t length, struct npy_array *array, char error[NPY_ERROR])
{
    struct npy_array parsed = {0};
    size_t begin;
    bool swap;
    *array = parsed;
    if (!parse_header(bytes, length, length, &begin, &swap, &parsed, error) ||
        !allocate(&parsed, error))
        return false;
    if (parsed.bytes)
        memcpy(parsed.data, (const char *)bytes + begin, parsed.bytes);
    if (!finish(&parsed, swap, error)) {
        npy_free(&parsed);
        return false;
    }
    *array = parsed;
    return true;
}

bool npy_read(const char *path, struct npy_array *array, char error[NPY_ERROR])
{
    *array = (struct npy_array){0};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "rb");
    if (!file) {
        npy_fail(error, "%s: cannot be read: %s", path, strerror(errno));
        if (descriptor >= 0)
            close(descriptor);
        return false;
    }
    char why[NPY_ERROR];
    bool done = read_file(file, array, why);
    fclose(file);
    if (done)
        return true;
    npy_free(array);
    return npy_fail(error, "%s: %s", path, why);
}

void npy_free(struct npy_array *array)
{
    if (!array)
        return;
    free(array->data);
    *array = (struct npy_array){0};
}

bool npy_may_be(enum kg_dtype held, enum kg_dtype dtype)
{
    bool held_raw, is_raw;
    const char *a = kg_dtype_numpy(held, &held_raw), *b = kg_dtype_numpy(dtype, &is_raw);
    return held == dtype || (!held_raw && is_raw && strcmp(a, b) == 0);
}

bool npy_view(struct npy_array *array, enum kg_dtype dtype, char error[NPY_ERROR])
{
    if (array->dtype == dtype)
        return true;
    int last = array->rank - 1;
    if (!npy_may_be(array->dtype, dtype))
        return npy_fail(error, "the file holds elements of another dtype");
    if (!is_packed(dtype)) {
        array->dtype = dtype;
        return true;
    }
    if (last < 0 || !is_contiguous(array))
        return npy_fail(error, "packed 4-bit integers must be bytes in C order");
    int64_t next = 1;
    array->shape[last] *= 2;
    for (int i = last; i >= 0; i--) {
        array->stride[i] = next;
        next *= array->shape[i] ? array->shape[i] : 1;
    }
    array->dtype = dtype;
    return true;
}

bool npy_is_flat(const struct npy_array *array, enum kg_dtype dtype)
{
    return is_packed(dtype) && !is_packed(array->dtype) && array->rank == 1;
}

bool npy_write(const char *path, const struct npy_array *array, char error[NPY_ERROR])
{
    struct npy_array plain = *array;
    errno = 0;
    if (is_packed(array->dtype) && !as_bytes(&plain, error))
        return false;
    char header[512];
    size_t length = write_header(header, &plain);
    struct output output;
    bool done = output_open(&output, path);
    if (done) {
        done = fwrite(header, 1, length, output.stream) == length;
        if (done && is_packed(array->dtype))
            done = fwrite(plain.data, 1, plain.bytes, output.stream) == plain.bytes;
        else if (done)
            done = write_elements(output.stream, &plain);
        done = output_close(&output, done);
    }
    int why = errno;
    if (!done)
        npy_fail(error, "%s: cannot be written: %s", path, output_why(why));
    errno = why;
    return done;
}
