#include "base/names.h"
#include "test.h"

static void test_distance(void)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"relu", "relu", 0},
        {"ReLU", "relu", 0},
        {"relu", "rellu", 1},
        {"relu", "elu", 1},
        {"relu", "rulu", 1},
        {"relu", "rleu", 1},
        {"sofmtax", "softmax", 1},
        {"ca", "abc", 3},
        {"gelu", "sum", 4},
        {"kitten", "sitting", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK(kg_names_distance(rows[i].a, rows[i].b) == rows[i].distance);
        CHECK(kg_names_distance(rows[i].b, rows[i].a) == rows[i].distance);
    }
}

static void test_long_names(void)
{
    char a[400], b[300];
    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[sizeof a - 1] = b[sizeof b - 1] = '\0';
    CHECK(kg_names_distance(a, b) == 399);
    CHECK(kg_names_distance(a, a) == 0);
    CHECK(kg_names_distance(a + 399 - 127, b + 299 - 120) == 7);
}

static void test_nearest(void)
{
    static const char *const names[] = {"relu", "gelu", "softmax", "x", "mean"};
    CHECK_TEXT(kg_names_nearest("sofmax", names, 5), "softmax");
    CHECK_TEXT(kg_names_nearest("Relu", names, 5), "relu");
    CHECK_TEXT(kg_names_nearest("elu", names, 5), "relu"); // the first of equals
    CHECK(!kg_names_nearest("y", names, 5));
    CHECK(!kg_names_nearest("convolution", names, 5));
    CHECK(!kg_names_nearest("relu", names, 0));
}

TEST_MAIN(test_distance, test_long_names, test_nearest)
