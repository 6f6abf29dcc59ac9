// What the conditions of planted faults ask about elements and sizes. For C and CUDA.

#define FOR_INPUTS(i, n)                                                                           \
    for (int i = 0; i < INPUTS; i++)                                                               \
        for (int64_t n = 0; n < t[i].elements; n++)

SIEGE_FN int siege_is_nan(const struct siege_tensor *t, int64_t n)
{
    double value = siege_is_real(t->kind) ? siege_real(t, n) : 0;
    return value != value;
}

SIEGE_FN int siege_is_infinite(const struct siege_tensor *t, int64_t n)
{
    return siege_is_real(t->kind) && fabs(siege_real(t, n)) > siege_largest(t->kind);
}

SIEGE_FN int siege_any_line(const struct siege_tensor *t, int nan)
{
    int found = 0;
    for (int i = 0; i < INPUTS && !found; i++)
        found = siege_is_real(t[i].kind) && siege_has_line_of(&t[i], nan);
    return found;
}

SIEGE_FN int siege_is_problem(const int64_t *size)
{
    int same = 1;
    for (int i = 0; i < SIZES; i++)
        same &= size[i] == problem[i];
    return same;
}

SIEGE_FN int siege_all_ones(const int64_t *size)
{
    int same = 1;
    for (int i = 0; i < SIZES; i++)
        same &= size[i] == 1;
    return same;
}

SIEGE_FN int64_t siege_greatest(const int64_t *size)
{
    int64_t most = 0;
    for (int i = 0; i < SIZES; i++)
        most = size[i] > most ? size[i] : most;
    return most;
}

SIEGE_FN double siege_number(const struct siege_tensor *t, int64_t n)
{
    return siege_is_real(t->kind) ? siege_real(t, n) : (double)siege_integer(t, n);
}

SIEGE_FN void siege_fence(void)
{
    asm volatile("" ::: "memory");
}
