// Turns on a device: one process at a time, until it ends.

#include "device/device_turn.h"
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct kg_backend gpu = {.name = "a GPU"};
static const struct kg_backend cores = {.name = "cores", .shares_memory = true};
static struct kg_device device = {.backend = &gpu, .name = "test"};

static const volatile int cancelled = 1;

static bool is_free(void)
{
    int turn = kg_device_turn_begin(&device, &cancelled);
    kg_device_turn_end(turn);
    return turn >= 0;
}

// Has its turn when this returns, until it is killed or `seconds` are over.
static pid_t start_holder(double seconds)
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        const struct timespec time = {.tv_nsec = (long)(seconds * 1e9)};
        bool has = kg_device_turn_begin(&device, NULL) >= 0;
        if (write(ready[1], has ? "y" : "n", 1) == 1)
            nanosleep(&time, NULL);
        _exit(0);
    }
    CHECK(read(ready[0], &byte, 1) == 1 && byte == 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
}

static void others_wait(void)
{
    CHECK(is_free());
    pid_t holder = start_holder(0.3);
    CHECK(!is_free()); // a cancelled one does not wait
    int turn = kg_device_turn_begin(&device, NULL);
    CHECK(turn >= 0);
    CHECK(waitpid(holder, NULL, 0) == holder); // it had ended, or was about to
    CHECK(!is_free());
    kg_device_turn_end(turn);
    CHECK(is_free());
}

static void a_killed_holder_has_none(void)
{
    pid_t holder = start_holder(0.9);
    CHECK(!is_free());
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    CHECK(is_free());
}

static void devices_differ(void)
{
    pid_t holder = start_holder(0.9);
    snprintf(device.name, sizeof device.name, "another");
    CHECK(is_free());
    snprintf(device.name, sizeof device.name, "test");
    CHECK(!is_free());
    device.backend = &cores;
    CHECK(!kg_device_has_turns(&device) && kg_device_turn_begin(&device, NULL) == -1);
    device.backend = &gpu;
    CHECK(kg_device_has_turns(&device));
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}

static void all(void)
{
    char here[512]; // other builds of this test may run beside
    CHECK(getcwd(here, sizeof here) && setenv("CUDA_VISIBLE_DEVICES", here, 1) == 0);
    others_wait();
    a_killed_holder_has_none();
    devices_differ();
}

TEST_MAIN(all)
