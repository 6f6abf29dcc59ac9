// Compiled by test_object.c with whatever `cc` there is: code as compilers write it.

void spilling(const float *restrict a, float *restrict out, long n)
{
    // More sums than there are registers.
    typedef float vector __attribute__((vector_size(32), aligned(4)));
    vector s[24];
    for (int i = 0; i < 24; i++)
        s[i] = (vector){0};
    for (long k = 0; k < n; k++)
#pragma GCC unroll 24
        for (int i = 0; i < 24; i++)
            s[i] += *(const vector *)(a + k + 8 * i) * *(const vector *)(a + 5 * k + i);
    for (int i = 0; i < 24; i++)
        *(vector *)(out + 8 * i) = s[i];
}

float dot_product(const float *restrict a, const float *restrict b, long n)
{
    float sum = 0;
    for (long i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void scale(float *restrict a, float by, long n)
{
    for (long i = 0; i < n; i++)
        a[i] = a[i] * by + 1;
}
