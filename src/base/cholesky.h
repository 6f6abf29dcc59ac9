// Solves symmetric positive definite equations, as least squares need it.

#ifndef KG_BASE_CHOLESKY_H
#define KG_BASE_CHOLESKY_H

#include <stdbool.h>

// Solves `matrix` x = `right` for a count x count matrix, and replaces `right` by x. Only the lower
// triangle of the matrix is read; it is replaced by L of the factorisation L * L^T. False when the
// matrix is not positive definite, or has elements that are not numbers.
bool kg_cholesky_solve(double *matrix, double *right, int count);

#endif
