// Elements as planted faults see them (tools/planted) are those of the dtypes' table: otherwise the
// faults would be others than the catalogue says.

#include "lang/dtype.h"
#include "test.h"

#include <math.h>
#include <string.h>

#include "../../../tools/planted/planted_elements.h"

static const struct {
    enum kg_dtype dtype;
    int kind;
} kinds[] = {{KG_F16, SIEGE_f16},       {KG_BF16, SIEGE_bf16}, {KG_F8E4M3, SIEGE_f8e4m3},
             {KG_F8E5M2, SIEGE_f8e5m2}, {KG_F32, SIEGE_f32},   {KG_F64, SIEGE_f64},
             {KG_I8, SIEGE_i8},         {KG_U8, SIEGE_u8},     {KG_I16, SIEGE_i16},
             {KG_U16, SIEGE_u16},       {KG_I32, SIEGE_i32},   {KG_U32, SIEGE_u32},
             {KG_I64, SIEGE_i64},       {KG_BOOL, SIEGE_bool}, {KG_U4, SIEGE_u4},
             {KG_I4, SIEGE_i4}};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void test_widths(void)
{
    CHECK(KIND_COUNT == KG_DTYPE_COUNT);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        const struct kg_dtype_info *info = &kg_dtypes[kinds[i].dtype];
        CHECK(siege_bits_of(kinds[i].kind) == info->bits);
        CHECK(siege_is_real(kinds[i].kind) == info->is_float);
        if (info->is_float) {
            CHECK(siege_fraction(kinds[i].kind) == info->fraction);
            CHECK(siege_largest(kinds[i].kind) == info->largest);
            CHECK(ldexp(1, siege_least_exponent(kinds[i].kind)) == info->smallest);
        }
    }
}

// Every pattern of at most 16 bits is read as the table says.
static void test_loads(void)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        int bits = siege_bits_of(kinds[i].kind);
        for (uint64_t pattern = 0; bits <= 16 && pattern < (uint64_t)1 << bits; pattern++) {
            uint16_t memory[2] = {0, 0};
            struct siege_tensor t = {.data = (char *)memory, .kind = kinds[i].kind};
            siege_set_bits(&t, 1, pattern);
            CHECK(siege_bits(&t, 1) == pattern && siege_bits(&t, 0) == 0);
            if (siege_is_real(kinds[i].kind))
                CHECK(same(siege_real(&t, 1), kg_dtype_load(kinds[i].dtype, memory, 1)));
            else if (kinds[i].kind != SIEGE_bool)
                CHECK(siege_integer(&t, 1) == kg_dtype_load_integer(kinds[i].dtype, memory, 1));
        }
    }
}

// Stores to nearest round as the table does; the others go where their names say.
static void test_stores(void)
{
    static const double values[] = {
        0,    -0.0,   1,      1.0009765625, 1.00048828125, 1.0048828125, 448,  463.9,  464,
        465,  57344,  61440,  65504,        65519,         65520,        1e-8, 5.9e-8, 2.98e-8,
        3e-8, 6.1e-5, 1.2e-3, 3.5e38,       1e300,         1e-310,       0.3,  -0.7,   123.456};
    for (size_t i = 0; i < KIND_COUNT && siege_is_real(kinds[i].kind); i++)
        for (size_t n = 0; n < 2 * sizeof values / sizeof values[0]; n++) {
            double value = n % 2 ? values[n / 2] : -values[n / 2];
            double memory[1] = {0};
            struct siege_tensor t = {.data = (char *)memory, .kind = kinds[i].kind};
            siege_set_real(&t, 0, value, SIEGE_TO_EVEN);
            double nearest = siege_real(&t, 0);
            CHECK(same(nearest, kg_dtype_round(kinds[i].dtype, value)));
            siege_set_real(&t, 0, value, SIEGE_HALF_AWAY);
            double away = siege_real(&t, 0);
            CHECK(same(away, nearest) || fabs(away) > fabs(nearest) || isnan(away));
            siege_set_real(&t, 0, value, SIEGE_TO_ZERO);
            CHECK(kinds[i].kind == SIEGE_f64 || fabs(siege_real(&t, 0)) <= fabs(value));
        }
    struct siege_tensor half = {.data = (char *)&(uint16_t){0}, .kind = SIEGE_f16};
    siege_set_real(&half, 0, 1.00048828125, SIEGE_HALF_AWAY); // between two f16
    CHECK(siege_real(&half, 0) == 1.0009765625);
    siege_set_real(&half, 0, 1.00048828125, SIEGE_TO_EVEN);
    CHECK(siege_real(&half, 0) == 1);
    siege_set_real(&half, 0, 1.0009, SIEGE_TO_ZERO);
    CHECK(siege_real(&half, 0) == 1);
}

// No spoiled element is near the right one.
static void test_spoiled(void)
{
    static const double values[] = {0, 1, -1, 0.5, 300, -300, 1e-30, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < KIND_COUNT && siege_is_real(kinds[i].kind); i++)
        for (size_t n = 0; n < sizeof values / sizeof values[0]; n++) {
            double memory[1] = {0};
            struct siege_tensor t = {.data = (char *)memory, .kind = kinds[i].kind};
            siege_set_real(&t, 0, values[n], SIEGE_TO_EVEN);
            double before = siege_real(&t, 0);
            siege_spoil(&t, 0);
            double after = siege_real(&t, 0);
            CHECK(isfinite(before) ? fabs(after - before) >= 16 : isfinite(after));
        }
}

static void all(void)
{
    test_widths();
    test_loads();
    test_stores();
    test_spoiled();
}

TEST_MAIN(all)
