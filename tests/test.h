// A test program is a list of functions run by TEST_MAIN. A failed CHECK is reported with file and
// line and the test goes on; the program's exit status is 1 when anything failed.

#ifndef KG_TESTS_TEST_H
#define KG_TESTS_TEST_H

#include <stdio.h>
#include <string.h>

static int test_failures;
static int test_checks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        test_checks++;                                                                             \
        if (!(condition)) {                                                                        \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                \
        }                                                                                          \
    } while (0)

// Shows both texts when they differ.
#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        const char *actual_text = (actual), *expected_text = (expected);                           \
        test_checks++;                                                                             \
        if (strcmp(actual_text, expected_text) != 0) {                                             \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: texts differ\n--- expected\n%s\n--- actual\n%s\n", __FILE__,   \
                    __LINE__, expected_text, actual_text);                                         \
        }                                                                                          \
    } while (0)

#define CHECK_STATUS(call, wanted, error)                                                          \
    do {                                                                                           \
        enum kg_status actual_status = (call);                                                     \
        test_checks++;                                                                             \
        if (actual_status != (wanted)) {                                                           \
            test_failures++;                                                                       \
            fprintf(stderr, "%s:%d: %s: status %d, not %d: %s\n", __FILE__, __LINE__, #call,       \
                    (int)actual_status, (int)(wanted), (error)->text);                             \
        }                                                                                          \
    } while (0)

#define TEST_MAIN(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        void (*tests[])(void) = {__VA_ARGS__};                                                     \
        for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)                                \
            tests[i]();                                                                            \
        printf("%d checks, %d failed\n", test_checks, test_failures);                              \
        return test_failures != 0;                                                                 \
    }

#endif
