// A device's clock that only moves when a test moves it.

#ifndef KG_TESTS_FAKE_CLOCK_H
#define KG_TESTS_FAKE_CLOCK_H

#include "device/device.h"

static double clock_now = 1, clock_started;

static double fake_now(struct kg_device *device)
{
    (void)device;
    return clock_now;
}

static enum kg_status fake_start(struct kg_device *device, struct kg_error *error)
{
    (void)device;
    (void)error;
    clock_started = clock_now;
    return KG_OK;
}

static enum kg_status fake_stop(struct kg_device *device, double *seconds, struct kg_error *error)
{
    (void)device;
    (void)error;
    *seconds = clock_now - clock_started;
    return KG_OK;
}

#endif
