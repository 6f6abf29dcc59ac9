// Turns on a device: what one process times there, another one does not disturb.

#ifndef KG_DEVICE_DEVICE_TURN_H
#define KG_DEVICE_DEVICE_TURN_H

#include "device/device.h"

// Not on the host, where every program disturbs the others.
bool kg_device_has_turns(const struct kg_device *device);
// Waits until no other process has its turn, and takes it. Processes that see devices alike wait
// for each other: the same name, and the same CUDA_VISIBLE_DEVICES. Ends early when `*cancel`
// becomes nonzero (may be NULL), and when another process keeps its turn for a minute: no turn is
// that long unless it hangs. The turn ends with kg_device_turn_end, or with the process. -1 if
// there is none: none are taken there, or no file can be locked.
int kg_device_turn_begin(const struct kg_device *device, const volatile int *cancel);
void kg_device_turn_end(int turn);

#endif
