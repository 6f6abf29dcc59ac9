// Softmax of rows in three passes: maximum, exponentials with their sum, division. The sum has
// sixteen accumulators: one alone loses what the accuracy gate looks for.
#include <math.h>
#include <stdint.h>

#define LANES 16

void softmax(const float *x, float *y, int64_t P, int64_t D)
{
    for (int64_t p = 0; p < P; p++) {
        const float *row = x + p * D;
        float *out = y + p * D;
        float largest = -INFINITY, sums[LANES] = {0}, sum = 0;
        for (int64_t d = 0; d < D; d++)
            largest = row[d] > largest || isnan(row[d]) ? row[d] : largest;
        for (int64_t d = 0; d < D; d++)
            sums[d % LANES] += out[d] = expf(row[d] - largest);
        for (int lane = 0; lane < LANES; lane++)
            sum += sums[lane];
        for (int64_t d = 0; d < D; d++)
            out[d] /= sum;
    }
}
