#include "base/cholesky.h"
#include "test.h"

#include <math.h>

// Only the lower triangle is read: the upper one is not a number.
static void test_solves(void)
{
    double matrix[] = {4, NAN, NAN, 2, 5, NAN, -2, 1, 6}, right[] = {2, 15, 18};
    CHECK(kg_cholesky_solve(matrix, right, 3));
    CHECK(fabs(right[0] - 1) < 1e-12 && fabs(right[1] - 2) < 1e-12 && fabs(right[2] - 3) < 1e-12);
    CHECK(matrix[0] == 2 && matrix[3] == 1 && matrix[4] == 2);
    CHECK(kg_cholesky_solve(matrix, right, 0));
}

static void test_refuses(void)
{
    double indefinite[] = {1, 0, 2, 1}, singular[] = {1, 0, 1, 1}, unknown[] = {NAN},
           right[2] = {0};
    CHECK(!kg_cholesky_solve(indefinite, right, 2));
    CHECK(!kg_cholesky_solve(singular, right, 2));
    CHECK(!kg_cholesky_solve(unknown, right, 1));
}

TEST_MAIN(test_solves, test_refuses)
