#include "base/cholesky.h"

#include <math.h>

static bool factorise(double *matrix, int count)
{
    for (int i = 0; i < count; i++) {
        double *row = matrix + i * count;
        for (int j = 0; j <= i; j++) {
            const double *other = matrix + j * count;
            double sum = row[j];
            for (int k = 0; k < j; k++)
                sum -= row[k] * other[k];
            if (i == j && !(sum > 0))
                return false;
            row[j] = i == j ? sqrt(sum) : sum / other[j];
        }
    }
    return true;
}

bool kg_cholesky_solve(double *matrix, double *right, int count)
{
    if (!factorise(matrix, count))
        return false;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++)
            right[i] -= matrix[i * count + k] * right[k];
        right[i] /= matrix[i * count + i];
    }
    for (int i = count - 1; i >= 0; i--) {
        for (int k = i + 1; k < count; k++)
            right[i] -= matrix[k * count + i] * right[k];
        right[i] /= matrix[i * count + i];
    }
    return true;
}
