// Integers, selection and logic, with the same meaning on every target.

// ---- Integers: arithmetic wraps, division rounds down, dividing by zero gives 0 ----

KG_INLINE int64_t kg_add_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

KG_INLINE int64_t kg_sub_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

KG_INLINE int64_t kg_mul_i64(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

KG_INLINE int64_t kg_neg_i64(int64_t a)
{
    return (int64_t)(0 - (uint64_t)a);
}

KG_INLINE int64_t kg_div_i64(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return kg_neg_i64(a);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

KG_INLINE int64_t kg_mod_i64(int64_t a, int64_t b)
{
    return b == 0 ? 0 : kg_sub_i64(a, kg_mul_i64(kg_div_i64(a, b), b));
}

KG_INLINE int64_t kg_ceildiv_i64(int64_t a, int64_t b)
{
    return kg_neg_i64(kg_div_i64(kg_neg_i64(a), b));
}

KG_INLINE int64_t kg_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

KG_INLINE int64_t kg_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

KG_INLINE int64_t kg_relu_i64(int64_t x)
{
    return x < 0 ? 0 : x;
}

KG_INLINE int64_t kg_abs_i64(int64_t x)
{
    return x < 0 ? kg_neg_i64(x) : x;
}

KG_INLINE int64_t kg_sign_i64(int64_t x)
{
    return (x > 0) - (x < 0);
}

KG_INLINE int64_t kg_bit_and_i64(int64_t a, int64_t b)
{
    return a & b;
}

KG_INLINE int64_t kg_bit_or_i64(int64_t a, int64_t b)
{
    return a | b;
}

KG_INLINE int64_t kg_bit_xor_i64(int64_t a, int64_t b)
{
    return a ^ b;
}

KG_INLINE int64_t kg_bit_not_i64(int64_t a)
{
    return ~a;
}

// Counts below 0 or above 63 move every bit out.
KG_INLINE int64_t kg_shift_left_i64(int64_t a, int64_t count)
{
    return (uint64_t)count < 64 ? (int64_t)((uint64_t)a << count) : 0;
}

KG_INLINE int64_t kg_shift_right_i64(int64_t a, int64_t count)
{
    return a >> ((uint64_t)count < 63 ? count : 63);
}

KG_INLINE int64_t kg_floor_i64(int64_t x)
{
    return x;
}

KG_INLINE int64_t kg_ceil_i64(int64_t x)
{
    return x;
}

KG_INLINE int64_t kg_round_i64(int64_t x)
{
    return x;
}

// Clamps an index to a dimension of `size` elements, in a form that compilers keep free of
// branches.
KG_INLINE int64_t kg_clamp(int64_t index, int64_t size)
{
    const int64_t last = size - 1;
    int64_t below = index < last ? index : last;
    return below > 0 ? below : 0;
}

KG_INLINE bool kg_inside(int64_t index, int64_t size)
{
    return index >= 0 && index < size;
}

// ---- Selection and logic: both operands are always evaluated, so that loops have no branches ----

KG_INLINE bool kg_and(bool a, bool b)
{
    return a & b;
}

KG_INLINE bool kg_or(bool a, bool b)
{
    return a | b;
}

KG_INLINE float kg_where_f32(bool condition, float a, float b)
{
    return condition ? a : b;
}

KG_INLINE double kg_where_f64(bool condition, double a, double b)
{
    return condition ? a : b;
}

KG_INLINE int64_t kg_where_i64(bool condition, int64_t a, int64_t b)
{
    return condition ? a : b;
}

KG_INLINE bool kg_where_bool(bool condition, bool a, bool b)
{
    return condition ? a : b;
}

KG_INLINE bool kg_isnan_f32(float x)
{
    return x != x;
}

KG_INLINE bool kg_isnan_f64(double x)
{
    return x != x;
}

KG_INLINE bool kg_isnan_i64(int64_t x)
{
    (void)x;
    return false;
}

KG_INLINE bool kg_isnan_bool(bool x)
{
    (void)x;
    return false;
}

// argmax and argmin: does the later `value` replace `best`? The first NaN wins.
KG_INLINE bool kg_beats_max_f32(float value, float best)
{
    return value > best || (value != value && best == best);
}

KG_INLINE bool kg_beats_max_f64(double value, double best)
{
    return value > best || (value != value && best == best);
}

KG_INLINE bool kg_beats_max_i64(int64_t value, int64_t best)
{
    return value > best;
}

KG_INLINE bool kg_beats_min_f32(float value, float best)
{
    return value < best || (value != value && best == best);
}

KG_INLINE bool kg_beats_min_f64(double value, double best)
{
    return value < best || (value != value && best == best);
}

KG_INLINE bool kg_beats_min_i64(int64_t value, int64_t best)
{
    return value < best;
}

KG_INLINE float kg_relu_f32(float x)
{
    return x < 0.0f ? 0.0f : x;
}

KG_INLINE double kg_relu_f64(double x)
{
    return x < 0.0 ? 0.0 : x;
}

KG_INLINE float kg_sign_f32(float x)
{
    return (float)((x > 0.0f) - (x < 0.0f));
}

KG_INLINE double kg_sign_f64(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}
