// What a unit of a GPU of Hopper's kind has room for, for tests that make up a device.

#ifndef KG_TESTS_HOPPER_UNIT_H
#define KG_TESTS_HOPPER_UNIT_H

#define HOPPER_UNIT                                                                                \
    {                                                                                              \
        .registers = 65536, .thread_registers = 255, .threads = 2048, .blocks = 32,                \
        .block_threads = 1024, .cluster = 8, .shared = 228 << 10, .static_shared = 48 << 10,       \
        .block_reserve = 1024                                                                      \
    }

#endif
