// A CUDA device above the fake driver, and tests that each run in a process of their own. For one
// file of a test program.

#ifndef KG_TESTS_SUPPORT_FAKE_CUDA_H
#define KG_TESTS_SUPPORT_FAKE_CUDA_H

#include "device/device.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-cuda-XXXXXX";
static struct kg_error error;
static struct fake_driver *fake;

static inline struct kg_device *open_device(void)
{
    struct kg_device *device = NULL;
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &device, &error), KG_OK, &error);
    return device;
}

// Runs a test in a process of its own, which starts with an untouched driver.
static inline void apart(void (*test)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
        test();
        exit(test_failures != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

// PTX for the driver: the fake one takes any text.
static inline struct kg_kernel *load(struct kg_device *device)
{
    struct kg_binary binary = {.bytes = (char[]){"ptx"}, .length = 3};
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(device->backend->load(device, &binary, "k", &kernel, &error), KG_OK, &error);
    return kernel;
}

static inline void forget_log(void)
{
    memset(fake->log, 0, sizeof fake->log);
    fake->log_length = 0;
}

// Runs tests, one after the other; returns what main does.
static inline int run_apart(void (*const *tests)(void), size_t count)
{
    CHECK(folder_make(folder));
    fake = fake_driver_open();
    CHECK(fake != NULL);
    for (size_t i = 0; fake && i < count; i++)
        apart(tests[i]);
    folder_remove(folder);
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}

#endif
