// Element types: conversions bit by bit, rounding, packing.

#include "lang/dtype.h"

#include "test.h"

#include <math.h>

static uint16_t stored(enum kg_dtype dtype, double value)
{
    uint16_t bits = 0xAAAA;
    kg_dtype_store(dtype, &bits, 0, value);
    return bits;
}

static void test_table(void)
{
    for (int i = 0; i < KG_DTYPE_COUNT; i++) {
        const struct kg_dtype_info *info = &kg_dtypes[i];
        CHECK(info->name != NULL && info->bits > 0 && info->compute != KG_TYPE_NONE);
        CHECK((int)kg_dtype_find(info->name, strlen(info->name)) == i);
        CHECK(kg_dtype_round((enum kg_dtype)i, info->largest) == info->largest);
    }
    CHECK(kg_dtype_find("f1", 2) == KG_DTYPE_COUNT);
    CHECK(kg_dtype_find("f166", 4) == KG_DTYPE_COUNT);
    CHECK(kg_dtype_bytes(KG_U4, 5) == 3 && kg_dtype_bytes(KG_F16, 5) == 10);
    CHECK(kg_dtype_bytes(KG_I4, 0) == 0 && kg_dtype_bytes(KG_BOOL, 3) == 3);
    CHECK_TEXT(kg_type_name_of(KG_TYPE_F32), "f32");
}

// All 65536 patterns survive a load and a store; NaNs stay NaN.
static void check_patterns(enum kg_dtype dtype)
{
    int wrong = 0;
    for (unsigned i = 0; i < 65536; i++) {
        uint16_t bits = (uint16_t)i;
        double value = kg_dtype_load(dtype, &bits, 0);
        if (isnan(value))
            wrong += !isnan(kg_dtype_load(dtype, &(uint16_t){stored(dtype, value)}, 0));
        else
            wrong += stored(dtype, value) != bits;
    }
    CHECK(wrong == 0);
}

// Half way between two neighbours goes to the even one, a hair beyond it to the next.
static void check_ties(enum kg_dtype dtype)
{
    int wrong = 0;
    for (unsigned i = 0; i + 1 < 65536 / 2; i++) {
        uint16_t low = (uint16_t)i, high = (uint16_t)(i + 1);
        double a = kg_dtype_load(dtype, &low, 0), b = kg_dtype_load(dtype, &high, 0);
        if (!isfinite(a) || !isfinite(b))
            continue;
        double middle = a / 2 + b / 2;
        wrong += stored(dtype, middle) != (low % 2 ? high : low);
        wrong += stored(dtype, nextafter(middle, b)) != high;
        wrong += stored(dtype, nextafter(middle, a)) != low;
        wrong += stored(dtype, -middle) != ((low % 2 ? high : low) | 0x8000);
    }
    CHECK(wrong == 0);
}

static void test_narrow(void)
{
    check_patterns(KG_F16);
    check_patterns(KG_BF16);
    check_ties(KG_F16);
    check_ties(KG_BF16);
    CHECK(stored(KG_F16, 1) == 0x3C00 && stored(KG_BF16, 1) == 0x3F80);
    CHECK(stored(KG_F16, 65504) == 0x7BFF && stored(KG_F16, 65519.99) == 0x7BFF);
    CHECK(stored(KG_F16, 65520) == 0x7C00 && stored(KG_F16, -1e300) == 0xFC00);
    CHECK(stored(KG_F16, 0x1p-25) == 0 && stored(KG_F16, 0x1.8p-25) == 1);
    CHECK(stored(KG_F16, -0.0) == 0x8000 && stored(KG_F16, NAN) == 0x7E00);
    CHECK(stored(KG_BF16, 3.4e38) == 0x7F80 && stored(KG_BF16, 1e-310) == 0);
}

// A float of 8 bits by the definition of its format: (-1)^s 2^(e - bias) (1 + m / 2^fraction).
static double formula(unsigned bits, int fraction, int bias, bool has_infinity)
{
    double sign = bits >> 7 ? -1 : 1, scale = ldexp(1, -fraction);
    int field = (int)(bits >> fraction) & (0x7f >> fraction);
    int mantissa = (int)bits & ((1 << fraction) - 1);
    if (has_infinity && field == 0x7f >> fraction)
        return mantissa ? (double)NAN : sign * HUGE_VAL;
    if (!has_infinity && (bits & 0x7f) == 0x7f)
        return NAN;
    return field == 0 ? sign * ldexp(mantissa * scale, 1 - bias)
                      : sign * ldexp(1 + mantissa * scale, field - bias);
}

static void check_eight(enum kg_dtype dtype, int fraction, int bias)
{
    bool has_infinity = kg_dtypes[dtype].has_infinity;
    int wrong = 0, nans = 0;
    for (unsigned bits = 0; bits < 256; bits++) {
        uint8_t byte = (uint8_t)bits, back = 0xAA;
        double want = formula(bits, fraction, bias, has_infinity);
        double got = kg_dtype_load(dtype, &byte, 0);
        nans += isnan(want);
        wrong += isnan(want) ? !isnan(got) : got != want || signbit(got) != signbit(want);
        kg_dtype_store(dtype, &back, 0, want);
        wrong += isnan(want) ? !isnan(kg_dtype_load(dtype, &back, 0)) : back != byte;
        wrong += !isnan(want) && kg_dtype_round(dtype, want) != want;
    }
    CHECK(wrong == 0 && nans == (has_infinity ? 6 : 2));
    for (unsigned bits = 0; bits < 0x7f; bits++) { // halfway, and a hair to either side of it
        double a = formula(bits, fraction, bias, has_infinity);
        double b = formula(bits + 1, fraction, bias, has_infinity), middle = (a + b) / 2;
        uint8_t even = (uint8_t)(bits % 2 ? bits + 1 : bits), got[3];
        if (!isfinite(a) || !isfinite(b))
            continue;
        kg_dtype_store(dtype, got, 0, middle);
        kg_dtype_store(dtype, got, 1, nextafter(middle, 0));
        kg_dtype_store(dtype, got, 2, -nextafter(middle, HUGE_VAL));
        wrong += got[0] != even || got[1] != bits || got[2] != bits + 1 + 0x80;
    }
    CHECK(wrong == 0);
}

static void test_eights(void)
{
    check_eight(KG_F8E4M3, 3, 7);
    check_eight(KG_F8E5M2, 2, 15);
    CHECK(kg_dtype_round(KG_F8E4M3, 464) == 448 && isnan(kg_dtype_round(KG_F8E4M3, 464.0001)));
    CHECK(isnan(kg_dtype_round(KG_F8E4M3, -HUGE_VAL)) && isnan(kg_dtype_round(KG_F8E4M3, 1e308)));
    CHECK(kg_dtype_round(KG_F8E5M2, 61439) == 57344 &&
          kg_dtype_round(KG_F8E5M2, 61440) == HUGE_VAL);
    CHECK(kg_dtype_round(KG_F8E5M2, -HUGE_VAL) == -HUGE_VAL &&
          isnan(kg_dtype_round(KG_F8E5M2, NAN)));
    CHECK(kg_dtype_round(KG_F8E4M3, 0x1p-10) == 0 &&
          kg_dtype_round(KG_F8E4M3, 0x1.8p-10) == 0x1p-9);
}

// What every row has to say for the rest to hold.
static void test_rows(void)
{
    for (int i = 0; i < KG_DTYPE_COUNT; i++) {
        enum kg_dtype dtype = (enum kg_dtype)i;
        const struct kg_dtype_info *info = &kg_dtypes[i];
        bool computed = dtype == KG_F32 || dtype == KG_F64 || dtype == KG_I64 || dtype == KG_BOOL;
        CHECK(kg_dtype_is_computed(dtype) == computed);
        CHECK(!info->is_float || info->epsilon == ldexp(1, -info->fraction));
        CHECK(info->is_float || info->fraction == 0);
        CHECK(!info->has_infinity || info->is_float);
        CHECK(kg_dtype_is_in_c(dtype) == (strncmp(info->c_type, "kg_", 3) != 0));
        CHECK(kg_dtype_is_in_c(dtype) || strcmp(info->c_type + 3, info->name) == 0);
        unsigned char element[8] = {0};
        kg_dtype_store(dtype, element, 0, info->smallest);
        CHECK(kg_dtype_load(dtype, element, 0) == info->smallest);
        CHECK(info->is_float || dtype == KG_BOOL ||
              kg_dtype_round(dtype, -1e300) == info->smallest);
        CHECK(info->numpy[1] - '0' == (info->bits < 8 ? 1 : info->bits / 8));
        CHECK(!info->numpy_is_raw || info->numpy[0] == 'u');
    }
}

static void test_round(void)
{
    CHECK(kg_dtype_round(KG_F16, 0.1) == 0.0999755859375);
    CHECK(kg_dtype_round(KG_BF16, 257) == 256 && kg_dtype_round(KG_BF16, 259) == 260);
    CHECK(kg_dtype_round(KG_F32, 0.1) == (double)0.1f && kg_dtype_round(KG_F64, 0.1) == 0.1);
    CHECK(isnan(kg_dtype_round(KG_F16, NAN)) && isinf(kg_dtype_round(KG_F16, 1e6)));
    CHECK(kg_dtype_round(KG_I8, 200) == 127 && kg_dtype_round(KG_U4, -3) == 0);
    CHECK(kg_dtype_round(KG_I8, 2.5) == 2 && kg_dtype_round(KG_BOOL, 0.5) == 1);
}

static void test_integers(void)
{
    unsigned char bytes[16] = {0};
    kg_dtype_store_integer(KG_I8, bytes, 1, 200);
    CHECK(bytes[1] == 200 && kg_dtype_load_integer(KG_I8, bytes, 1) == -56);
    kg_dtype_store(KG_U8, bytes, 2, 258.9);
    CHECK(kg_dtype_load(KG_U8, bytes, 2) == 2);
    kg_dtype_store_integer(KG_I32, bytes, 1, (int64_t)1 << 31);
    CHECK(kg_dtype_load_integer(KG_I32, bytes, 1) == INT32_MIN);
    kg_dtype_store_integer(KG_I16, bytes, 3, 0x18001);
    CHECK(kg_dtype_load_integer(KG_I16, bytes, 3) == INT16_MIN + 1);
    kg_dtype_store_integer(KG_U16, bytes, 3, -1);
    CHECK(kg_dtype_load(KG_U16, bytes, 3) == UINT16_MAX);
    kg_dtype_store_integer(KG_U32, bytes, 1, -2);
    CHECK(kg_dtype_load_integer(KG_U32, bytes, 1) == UINT32_MAX - 1);
    kg_dtype_store(KG_I64, bytes, 1, 1e300);
    CHECK(kg_dtype_load_integer(KG_I64, bytes, 1) == INT64_MAX);
    kg_dtype_store(KG_I64, bytes, 1, -INFINITY);
    CHECK(kg_dtype_load_integer(KG_I64, bytes, 1) == INT64_MIN);
    kg_dtype_store(KG_I64, bytes, 1, NAN);
    CHECK(kg_dtype_load_integer(KG_I64, bytes, 1) == 0);
    kg_dtype_store(KG_BOOL, bytes, 0, 0.25);
    CHECK(bytes[0] == 1 && kg_dtype_load_integer(KG_BOOL, bytes, 0) == 1);
    bytes[0] = 7;
    CHECK(kg_dtype_load(KG_BOOL, bytes, 0) == 1);
    float real = -2.75f;
    CHECK(kg_dtype_load_integer(KG_F32, &real, 0) == -2);
    kg_dtype_store_integer(KG_F32, &real, 0, 3);
    CHECK(real == 3);
}

static void test_nibbles(void)
{
    unsigned char bytes[2] = {0xFF, 0xFF};
    for (int i = 0; i < 4; i++)
        kg_dtype_store_integer(KG_U4, bytes, (size_t)i, i + 17);
    CHECK(bytes[0] == 0x21 && bytes[1] == 0x43); // the even element in the low half
    for (int i = 0; i < 4; i++)
        CHECK(kg_dtype_load_integer(KG_U4, bytes, (size_t)i) == i + 1);
    for (int value = -8; value < 8; value++) {
        kg_dtype_store(KG_I4, bytes, 1, value);
        CHECK(kg_dtype_load(KG_I4, bytes, 1) == value);
        CHECK((bytes[0] & 15) == 1);
    }
}

TEST_MAIN(test_table, test_rows, test_narrow, test_eights, test_round, test_integers, test_nibbles)
