#include "npy.h"
#include "test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char error[NPY_ERROR];

// A file in memory: magic, version, header text, data.
struct file {
    unsigned char bytes[4096];
    size_t length;
};

static struct file make(int major, const char *header, const void *data, size_t size)
{
    struct file file = {.bytes = "\x93NUMPY"};
    size_t length = strlen(header), begin = major == 1 ? 10 : 12;
    file.bytes[6] = (unsigned char)major;
    file.bytes[8] = (unsigned char)length;
    file.bytes[9] = (unsigned char)(length >> 8);
    memcpy(file.bytes + begin, header, length);
    if (size)
        memcpy(file.bytes + begin + length, data, size);
    file.length = begin + length + size;
    return file;
}

static bool parse(const struct file *file, struct npy_array *array)
{
    error[0] = '\0';
    bool done = npy_parse(file->bytes, file->length, array, error);
    CHECK(done == (array->data != NULL) && done == (error[0] == '\0'));
    return done;
}

// As NumPy writes it: numpy.save of numpy.arange(6, dtype="<f4").reshape(2, 3).
static void test_plain(void)
{
    const float values[6] = {0, 1, 2, 3, 4, 5};
    for (int major = 1; major <= 3; major++) {
        struct file file =
            make(major, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n", values,
                 sizeof values);
        struct npy_array array;
        CHECK(parse(&file, &array));
        CHECK(array.dtype == KG_F32 && array.rank == 2 && array.bytes == 24);
        CHECK(array.shape[0] == 2 && array.shape[1] == 3);
        CHECK(array.stride[0] == 3 && array.stride[1] == 1);
        CHECK((uintptr_t)array.data % 64 == 0 && memcmp(array.data, values, 24) == 0);
        npy_free(&array);
    }
    npy_free(NULL);
}

static void test_fortran_order_is_strides(void)
{
    const float values[6] = {0, 3, 1, 4, 2, 5};
    struct file file =
        make(1, "{'shape':(2,3),\"fortran_order\":True,'descr':'<f4'}", values, sizeof values);
    struct npy_array array;
    CHECK(parse(&file, &array));
    CHECK(array.stride[0] == 1 && array.stride[1] == 2);
    CHECK(((float *)array.data)[1 * array.stride[0] + 2 * array.stride[1]] == 5);
    npy_free(&array);
}

static void test_dtypes(void)
{
    static const struct {
        const char *descr;
        enum kg_dtype dtype;
        size_t size;
    } rows[] = {
        {"<f2", KG_F16, 2}, {"<f4", KG_F32, 4}, {"<f8", KG_F64, 8}, {"|i1", KG_I8, 1},
        {"|u1", KG_U8, 1},  {"<i4", KG_I32, 4}, {"<i8", KG_I64, 8}, {"|b1", KG_BOOL, 1},
        {"<u2", KG_U16, 2}, {"<V2", KG_U16, 2}, {"|V2", KG_U16, 2}, {"=i4", KG_I32, 4},
        {">i4", KG_I32, 4}, {"<i2", KG_I16, 2}, {"<u4", KG_U32, 4}, {"|V1", KG_U8, 1},
    };
    const unsigned char ones[16] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char header[128];
        struct npy_array array;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
                 rows[i].descr);
        struct file file = make(1, header, ones, 2 * rows[i].size);
        CHECK(parse(&file, &array));
        CHECK(array.dtype == rows[i].dtype && array.bytes == 2 * rows[i].size);
        npy_free(&array);
    }
    static const char *const refused[] = {"<c8", "<u8",     "<u3",  "O",   "<U4",
                                          "",    "<f16",    "<f",   "f4",  "<V4",
                                          "|S1", "<M8[ns]", "<f4x", "<f0", "|b2"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char header[128];
        struct npy_array array;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (0,), }",
                 refused[i]);
        struct file file = make(1, header, NULL, 0);
        CHECK(!parse(&file, &array));
        CHECK(strstr(error, "elements of type '"));
    }
}

static void test_big_endian_is_swapped(void)
{
    const unsigned char data[8] = {0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0};
    struct file file = make(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", data, 8);
    struct npy_array array;
    CHECK(parse(&file, &array));
    CHECK(((float *)array.data)[0] == 1 && ((float *)array.data)[1] == -2);
    npy_free(&array);
}

static void test_scalars_and_empty(void)
{
    const double value = 2.5;
    struct npy_array array;
    struct file file = make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", &value, 8);
    CHECK(parse(&file, &array));
    CHECK(array.rank == 0 && *(double *)array.data == 2.5);
    npy_free(&array);
    file = make(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 0, 7)}", NULL, 0);
    CHECK(parse(&file, &array));
    CHECK(array.rank == 3 && array.bytes == 0 && array.stride[0] == 7);
    npy_free(&array);
}

static void test_hostile_headers(void)
{
    static const struct {
        const char *header, *message;
    } rows[] = {
        {"", "not a dict"},
        {"{", "lacks a string"},
        {"{}", "lacks"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': ()}", "not a dict"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}", "twice"},
        {"{'descr': '<f4', 'fortran_order': 1, 'shape': ()}", "neither"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "not a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1.5,)}", "not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", "not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}", "not a tuple of sizes"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "64 bits"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
         "address space"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}",
         "address space"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}", "file holds 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "dimensions"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "several fields"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': ()}", "not a dict"},
        {"{'descr': 'aaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'shape': ()}", "too long"},
        {"{'other': 1}", "unknown key"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)} x", "end with its dict"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct npy_array array;
        struct file file = make(1, rows[i].header, NULL, 0);
        CHECK(!parse(&file, &array));
        if (!strstr(error, rows[i].message))
            CHECK_TEXT(error, rows[i].message);
    }
}

static void test_hostile_files(void)
{
    const float value = 1;
    const struct file good =
        make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", &value, 4);
    struct npy_array array;
    for (size_t length = 0; length < good.length; length++) {
        struct file cut = good;
        cut.length = length;
        CHECK(!parse(&cut, &array));
    }
    struct file file = good;
    file.length++;
    CHECK(!parse(&file, &array)); // something more than the array
    file = good;
    file.bytes[6] = 4;
    CHECK(!parse(&file, &array));
    file = good;
    file.bytes[0] = 'N';
    CHECK(!parse(&file, &array));
    file = good;
    file.bytes[9] = 0xFF; // a header longer than the file
    CHECK(!parse(&file, &array));
    file = make(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", NULL, 0);
    file.bytes[11] = 0xFF; // four gigabytes of header
    CHECK(!parse(&file, &array));
    file = make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", "\1\2", 2);
    CHECK(!parse(&file, &array));
    CHECK(strstr(error, "element 1"));
}

static void test_packed(void)
{
    struct npy_array array;
    struct file file =
        make(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}", "abcdef", 6);
    CHECK(parse(&file, &array));
    CHECK(!npy_view(&array, KG_F16, error));
    CHECK(npy_view(&array, KG_U4, error));
    CHECK(array.dtype == KG_U4 && array.shape[0] == 2 && array.shape[1] == 6);
    CHECK(array.stride[0] == 6 && array.stride[1] == 1 && array.bytes == 6);
    CHECK(npy_view(&array, KG_U4, error) && !npy_view(&array, KG_I4, error));
    npy_free(&array);

    file = make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef", 6);
    CHECK(parse(&file, &array));
    CHECK(!npy_view(&array, KG_I4, error));
    npy_free(&array);
}

// Bits of what NumPy has no type for are viewed as that, and as nothing else.
static void test_bits(void)
{
    static const struct {
        const char *descr;
        enum kg_dtype is;
        enum kg_dtype is_not;
    } rows[] = {
        {"|u1", KG_F8E4M3, KG_BF16}, {"|V1", KG_F8E5M2, KG_I8}, {"<u2", KG_BF16, KG_F16},
        {"<V2", KG_BF16, KG_F8E4M3}, {"|i1", KG_I8, KG_F8E4M3}, {"<f2", KG_F16, KG_BF16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char header[128];
        struct npy_array array;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': True, 'shape': (1, 2)}",
                 rows[i].descr);
        struct file file = make(1, header, "abcd", rows[i].descr[2] == '1' ? 2 : 4);
        CHECK(parse(&file, &array));
        CHECK(!npy_view(&array, rows[i].is_not, error));
        CHECK(npy_view(&array, rows[i].is, error) && array.dtype == rows[i].is);
        CHECK(array.shape[1] == 2 && memcmp(array.data, "ab", 2) == 0);
        npy_free(&array);
    }
}

// What is written and read again; the path is free afterwards.
static struct npy_array again(const struct npy_array *array)
{
    char path[] = "/tmp/kernelgen-npy-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    struct npy_array read = {0};
    CHECK(npy_write(path, array, error));
    struct stat info;
    CHECK(stat(path, &info) == 0 && (size_t)info.st_size % 64 == array->bytes % 64);
    if (!npy_read(path, &read, error))
        CHECK_TEXT(error, "");
    unlink(path);
    return read;
}

static void test_write(void)
{
    int32_t values[6] = {0, 1, 2, 3, 4, 5};
    for (int rank = 0; rank <= 3; rank++) {
        struct npy_array array = {.dtype = KG_I32,
                                  .rank = rank,
                                  .shape = {1, 1, 1},
                                  .stride = {1, 1, 1},
                                  .data = values,
                                  .bytes = 4};
        if (rank > 0) {
            array.shape[rank - 1] = 6;
            array.bytes = 24;
        }
        struct npy_array read = again(&array);
        CHECK(read.dtype == KG_I32 && read.rank == rank && read.bytes == array.bytes);
        CHECK(rank == 0 || read.shape[rank - 1] == 6);
        CHECK(memcmp(read.data, values, read.bytes) == 0);
        npy_free(&read);
    }
    // Transposed: in memory 2 rows of 3, written as 3 rows of 2.
    struct npy_array turned = {
        .dtype = KG_I32, .rank = 2, .shape = {3, 2}, .stride = {1, 3}, .data = values, .bytes = 24};
    const int32_t expected[6] = {0, 3, 1, 4, 2, 5};
    struct npy_array read = again(&turned);
    CHECK(read.shape[0] == 3 && read.shape[1] == 2 && read.stride[0] == 2);
    CHECK(memcmp(read.data, expected, 24) == 0);
    npy_free(&read);
    turned.shape[0] = 0; // nothing, with strides
    turned.bytes = 0;
    read = again(&turned);
    CHECK(read.bytes == 0 && read.shape[1] == 2);
    npy_free(&read);
}

static void test_write_dtypes(void)
{
    unsigned char values[16] = {1, 0, 1};
    for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++) {
        size_t size = (size_t)kg_dtype_bits((enum kg_dtype)dtype) / 8;
        if (size == 0) // below
            continue;
        struct npy_array array = {.dtype = (enum kg_dtype)dtype,
                                  .rank = 1,
                                  .shape = {2},
                                  .stride = {1},
                                  .data = values,
                                  .bytes = 2 * size};
        struct npy_array read = again(&array);
        CHECK(npy_view(&read, array.dtype, error) && read.dtype == array.dtype);
        CHECK(memcmp(read.data, values, array.bytes) == 0);
        npy_free(&read);
    }
    struct npy_array packed = {
        .dtype = KG_I4, .rank = 2, .shape = {2, 4}, .stride = {4, 1}, .data = values, .bytes = 4};
    struct npy_array read = again(&packed);
    CHECK(read.dtype == KG_U8 && read.rank == 2 && read.shape[1] == 2);
    CHECK(npy_view(&read, KG_I4, error) && read.shape[1] == 4);
    npy_free(&read);
    packed.shape[1] = 3; // rows that share a byte
    packed.stride[0] = 3;
    packed.bytes = 3;
    read = again(&packed);
    CHECK(read.rank == 1 && read.shape[0] == 3);
    npy_free(&read);
    packed.stride[0] = 4;
    CHECK(!npy_write("/tmp/kernelgen-npy-never", &packed, error) && strstr(error, "strides"));
}

static void test_files(void)
{
    struct npy_array array;
    CHECK(!npy_read("/tmp/kernelgen-none.npy", &array, error));
    CHECK(strstr(error, "kernelgen-none.npy: cannot be read: No such file"));
    CHECK(!npy_read("/tmp", &array, error) && !npy_read("/dev/zero", &array, error));
    float value = 1;
    struct npy_array one = {.dtype = KG_F32, .data = &value, .bytes = 4};
    CHECK(!npy_write("/tmp/kernelgen-none/y.npy", &one, error));
    CHECK(strstr(error, "y.npy: cannot be written: No such file"));
    if (access("/dev/full", W_OK) == 0) {
        CHECK(!npy_write("/dev/full", &one, error));
        CHECK(strstr(error, "the disk is full") && access("/dev/full", F_OK) == 0);
    }
}

TEST_MAIN(test_plain, test_fortran_order_is_strides, test_dtypes, test_big_endian_is_swapped,
          test_scalars_and_empty, test_hostile_headers, test_hostile_files, test_packed, test_bits,
          test_write, test_write_dtypes, test_files)
