// Softmax of rows, sixteen elements at a time: a maximum and a sum for each lane, exponentials by a
// polynomial that the compiler turns into vector code, rows on all cores. The last elements of a
// row go through the same code, padded with what adds nothing.
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16

// exp(x) for x <= 0: 2^n times a polynomial for the rest, after Cody and Waite. NaN stays NaN.
static inline float exp_of(float x)
{
    float n = rintf(x * 1.44269504f);
    float r = fmaf(n, -0.693359375f, x);
    r = fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691e-4f;
    p = fmaf(p, r, 1.3981999e-3f);
    p = fmaf(p, r, 8.3334519e-3f);
    p = fmaf(p, r, 4.1665796e-2f);
    p = fmaf(p, r, 1.6666666e-1f);
    p = fmaf(p, r, 5.0000000e-1f);
    p = fmaf(p * r, r, r) + 1;
    int32_t bits = x < -87 ? 0 : ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return x < -87 ? 0 : p * power;
}

static void fold(const float *block, float *largest)
{
    for (int l = 0; l < LANES; l++)
        largest[l] = block[l] > largest[l] ? block[l] : largest[l];
}

static void exponentials(const float *block, float most, float *out, float *sums)
{
    for (int l = 0; l < LANES; l++) {
        out[l] = exp_of(block[l] - most);
        sums[l] += out[l];
    }
}

static void softmax_row(const float *row, float *out, int64_t D)
{
    float largest[LANES], sums[LANES] = {0}, last[LANES], rest[LANES], most = -INFINITY, sum = 0;
    int64_t whole = D / LANES * LANES;
    for (int l = 0; l < LANES; l++) {
        largest[l] = -INFINITY;
        last[l] = whole + l < D ? row[whole + l] : -INFINITY;
    }
    for (int64_t d = 0; d < whole; d += LANES)
        fold(row + d, largest);
    fold(last, largest);
    for (int l = 0; l < LANES; l++)
        most = largest[l] > most ? largest[l] : most;
    for (int64_t d = 0; d < whole; d += LANES)
        exponentials(row + d, most, out + d, sums);
    exponentials(last, most, rest, sums);
    memcpy(out + whole, rest, (size_t)(D - whole) * sizeof *out);
    for (int l = 0; l < LANES; l++)
        sum += sums[l];
    for (int64_t d = 0; d < D; d++)
        out[d] *= 1 / sum;
}

void softmax(const float *x, float *y, int64_t P, int64_t D)
{
#pragma omp parallel for
    for (int64_t p = 0; p < P; p++)
        softmax_row(x + p * D, y + p * D, D);
}
