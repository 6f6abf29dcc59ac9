// bench_pack: how fast the layers of each format are packed, and compared with what was read, and
// how fast matrices are packed and unpacked, by one core. GB/s of packed weights; nothing is
// written to a disk.

#include "weights/matrix_panels.h"
#include "weights/packed.h"
#include "weights/readers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS 4096
#define COLUMNS 14336
#define ROUNDS 5

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double least(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

static bool measure(const char *name, struct kg_layer layer)
{
    struct kg_packed packed;
    int64_t row, column;
    double write = 0, compare = 0;
    bool same = true;
    kg_packed_lay_out(&layer, &packed);
    void *memory = aligned_alloc(KG_PACKED_HEADER, packed.bytes);
    for (int i = 0; memory && i < ROUNDS; i++) {
        double start = now();
        kg_packed_write(&layer, &packed, memory);
        double middle = now();
        same &= kg_packed_holds(&layer, &packed, memory, &row, &column);
        write = least(write, middle - start);
        compare = least(compare, now() - middle);
    }
    free(memory);
    double bytes = 1e-9 * (double)packed.bytes;
    printf("%-28s %8.2f %8.2f %10.2f%s\n", name, bytes / write, bytes / compare,
           bytes / (write + compare), same ? "" : "  DIFFERENT");
    return same;
}

// A matrix without scales, to a packed tensor and back.
static bool measure_matrix(const char *name, const void *codes, bool transposed)
{
    const struct kg_weights weights = {
        .batch = 1, .rows = ROWS, .columns = COLUMNS, .transposed = transposed};
    size_t length = 0, panels = 0;
    double there = 0, back = 0;
    kg_matrix_lengths(&weights, &length, &panels, NULL);
    void *packed = malloc(panels), *again = malloc(length);
    for (int i = 0; packed && again && i < ROUNDS; i++) {
        double start = now();
        kg_matrix_pack(&weights, codes, packed);
        double middle = now();
        kg_matrix_unpack(&weights, packed, again);
        there = least(there, middle - start);
        back = least(back, now() - middle);
    }
    bool same = packed && again && memcmp(codes, again, length) == 0;
    free(packed);
    free(again);
    double bytes = 1e-9 * (double)panels;
    printf("%-28s %8.2f %8.2f%s\n", name, bytes / there, bytes / back, same ? "" : "  DIFFERENT");
    return same;
}

int main(void)
{
    size_t length = (size_t)ROWS * COLUMNS; // more than any format needs
    unsigned char *data = malloc(length);
    int32_t *order = malloc(ROWS * sizeof *order);
    if (!data || !order)
        return 1;
    for (size_t i = 0; i < length; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    for (int i = 0; i < ROWS; i++)
        order[i] = i * 1237 % ROWS;
    const struct kg_layer layer = {.rows = ROWS,
                                   .columns = COLUMNS,
                                   .group = 128,
                                   .dtype = KG_F16,
                                   .zero = KG_ZERO_CODES,
                                   .code_data = data,
                                   .scale_data = data,
                                   .zero_data = data};
    struct kg_layer gptq = layer, ordered = layer, awq = layer, compressed = layer;
    struct kg_layer q4_0 = layer, q4_k = layer;
    gptq.reader = &kg_gptq_reader;
    ordered.reader = &kg_gptq_ordered_reader;
    ordered.order = order;
    awq.reader = &kg_awq_reader;
    compressed.reader = &kg_compressed_reader;
    compressed.code_stride = ROWS / 8;
    q4_0.reader = &kg_q4_0_reader;
    q4_0.zero = KG_ZERO_FIXED;
    q4_0.group = 32;
    q4_0.code_stride = ROWS / 32 * 18;
    q4_k.reader = &kg_q4_k_reader;
    q4_k.zero = KG_ZERO_OFFSETS;
    q4_k.group = 32;
    q4_k.dtype = KG_F32;
    q4_k.code_stride = ROWS / 256 * 144;
    printf("GB/s, %d x %d            pack  compare       both\n", ROWS, COLUMNS);
    bool same = measure("GPTQ, groups of 128", gptq);
    same &= measure("GPTQ, rows in another order", ordered);
    same &= measure("AWQ", awq);
    same &= measure("compressed-tensors", compressed);
    same &= measure("GGUF Q4_0", q4_0);
    same &= measure("GGUF Q4_K", q4_k);
    printf("\nGB/s, matrices                   pack   unpack\n");
    same &= measure_matrix("in rows, [K, N]", data, false);
    same &= measure_matrix("in columns, [N, K]", data, true);
    free(data);
    free(order);
    return !same;
}
