// Symmetric equations that are positive definite: what least squares come to.

#ifndef KG_BASE_CHOLESKY_H
#define KG_BASE_CHOLESKY_H

#include <stdbool.h>

// Replaces `right` by what times `matrix`, count x count, gives it. Of the matrix only the lower
// triangle is read, and L with L * L^T the matrix stands there afterwards. False when it is not
// positive definite, or not numbers.
bool kg_cholesky_solve(double *matrix, double *right, int count);

#endif
