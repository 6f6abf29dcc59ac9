// Queries the driver for devices. That initialises the driver, after which forks cannot use it, so
// a child process does it.

#include "device/child.h"
#include "device/cuda/cuda_device.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

// Initialising takes tenths of a second, seconds on machines of many GPUs.
#define PROBE_SECONDS 60.0

struct question {
    const struct kg_cuda_driver *driver;
    int ordinal;
};

static double ask_number(const struct kg_cuda_driver *driver, int device, int attribute)
{
    int value = 0;
    return driver->device_attribute(&value, attribute, device) == 0 && value > 0 ? value : 0;
}

static void fill_facts(const struct kg_cuda_driver *driver, int device,
                       struct kg_device_facts *facts)
{
    double major = ask_number(driver, device, KG_CUDA_CAPABILITY_MAJOR);
    double minor = ask_number(driver, device, KG_CUDA_CAPABILITY_MINOR);
    kg_cuda_format_isa((int)(10 * major + minor), facts->isa, sizeof facts->isa);
    facts->units = (int)ask_number(driver, device, KG_CUDA_SM_COUNT);
    facts->clock = 1e3 * ask_number(driver, device, KG_CUDA_CLOCK_RATE);
    // Two transfers per clock, on every bit of the bus.
    facts->bandwidth = 2e3 * ask_number(driver, device, KG_CUDA_MEMORY_CLOCK_RATE) *
                       ask_number(driver, device, KG_CUDA_MEMORY_BUS_WIDTH) / 8;
    facts->unit = (struct kg_unit_limits){
        .registers = (int)ask_number(driver, device, KG_CUDA_UNIT_REGISTERS),
        .threads = (int)ask_number(driver, device, KG_CUDA_UNIT_THREADS),
        .blocks = (int)ask_number(driver, device, KG_CUDA_UNIT_BLOCKS),
        .block_threads = (int)ask_number(driver, device, KG_CUDA_BLOCK_THREADS),
        .shared = (int64_t)ask_number(driver, device, KG_CUDA_UNIT_SHARED_BYTES),
        .static_shared = (int64_t)ask_number(driver, device, KG_CUDA_BLOCK_SHARED),
        .block_reserve = (int64_t)ask_number(driver, device, KG_CUDA_BLOCK_RESERVE),
    };
    facts->shared_bytes = (int64_t)ask_number(driver, device, KG_CUDA_SHARED_OPT_IN);
    facts->cache[2] = facts->cache[3] = (int64_t)ask_number(driver, device, KG_CUDA_L2_BYTES);
    kg_cuda_complete_facts(facts);
}

static void format_driver(const struct kg_cuda_driver *driver, char *text, size_t size)
{
    struct kg_nvml nvml;
    char version[80] = "";
    kg_nvml_open(&nvml);
    if (!nvml.library || nvml.driver_version(version, sizeof version) != 0)
        version[0] = '\0';
    snprintf(text, size, "%s%sCUDA %d.%d", version, version[0] ? " / " : "", driver->version / 1000,
             driver->version % 1000 / 10);
}

static enum kg_status ask_here(void *user, struct kg_text *answer, struct kg_error *error)
{
    const struct question *question = user;
    const struct kg_cuda_driver *driver = question->driver;
    struct kg_cuda_report report = {0};
    int device = 0;
    int result = driver->init(0);
    if (!result)
        result = driver->device_count(&report.count);
    if (!result && question->ordinal < report.count) {
        result = driver->device_get(&device, question->ordinal);
        if (!result)
            result = driver->device_name(report.facts.name, (int)sizeof report.facts.name, device);
        if (!result)
            fill_facts(driver, device, &report.facts);
        format_driver(driver, report.driver, sizeof report.driver);
    }
    if (result)
        return kg_cuda_error(driver, result, "asking the CUDA driver", error);
    kg_text_add_bytes(answer, (const char *)&report, sizeof report);
    return KG_OK;
}

// A fork cannot initialise the driver if another thread of its parent was loading a library, which
// is soon over: so it is asked again.
static enum kg_status ask_a_child(struct question *question, struct kg_text *answer,
                                  struct kg_error *error)
{
    enum { TRIES = 4 };
    enum kg_status status = KG_ERROR_FAULT;
    for (int i = 0; i < TRIES && status == KG_ERROR_FAULT; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000000L << i}, NULL);
        status = kg_child_run(ask_here, question, PROBE_SECONDS, NULL,
                              sizeof(struct kg_cuda_report), answer, error);
    }
    if (status == KG_ERROR_FAULT || status == KG_ERROR_TIMEOUT)
        kg_error_prefix(error, "asking the CUDA driver");
    return status;
}

enum kg_status kg_cuda_ask(const struct kg_cuda_driver *driver, int ordinal,
                           struct kg_cuda_report *report, struct kg_error *error)
{
    struct question question = {.driver = driver, .ordinal = ordinal};
    struct kg_text answer = {0};
    *report = (struct kg_cuda_report){0};
    enum kg_status status;
    if (kg_cuda_driver_in_use(driver))
        status = ask_here(&question, &answer, error);
    else
        status = ask_a_child(&question, &answer, error);
    if (!status && answer.length == sizeof *report)
        memcpy(report, answer.data, sizeof *report);
    else if (!status)
        status = kg_error_memory(error, "the facts of a device");
    kg_text_free(&answer);
    return status;
}
