// The constants of NVIDIA's GPUs. Limits of residency are from the CUDA C++ Programming Guide 13.0,
// table "Technical Specifications per Compute Capability", and from the occupancy rules that NVIDIA
// publishes; tests/unit/asm/test_occupancy.c compares both if a toolkit is installed. Lanes per
// clock are from the guide's table "Throughput of Native Arithmetic Instructions"; where it gives a
// range, or nothing, the larger number is used. FLOPs of matrix units are the data sheet's dense
// rate divided by the SMs and by the clock of that data sheet.

#include "asm/gpu.h"

#define KIB 1024

#define GUIDE "CUDA C++ Programming Guide 13.0, compute capabilities and arithmetic throughput; "

// Common to all rows.
#define COMMON                                                                                     \
    .registers = 65536, .register_granule = 256, .thread_registers = 255, .partitions = 4,         \
    .block_threads = 1024, .shared_default = 48 * KIB, .memory = 32, .shared_bytes = 128,          \
    .latency = 700
// Since Ampere the system reserves a KiB of shared memory in every block.
#define AMPERE_SHARED(kib)                                                                         \
    .shared = (kib)*KIB, .shared_opt_in = ((kib)-1) * KIB, .shared_reserved = KIB,                 \
    .shared_granule = 128

const struct kg_sm kg_sms[] = {
    {
        .sm = 75,
        .name = "Turing",
        COMMON,
        .warps = 32,
        .blocks = 16,
        .shared = 64 * KIB,
        .shared_opt_in = 64 * KIB,
        .shared_granule = 256,
        .cluster = 1,
        .fma = 64,
        .half = 64,
        .real64 = 2,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {0, 0, 1024, 2048, 4096},
        .source = GUIDE "T4 data sheet: 65 TFLOPS f16 = 40 SMs * 1.59 GHz * 1024",
    },
    {
        .sm = 80,
        .name = "Ampere",
        COMMON,
        AMPERE_SHARED(164),
        .warps = 64,
        .blocks = 32,
        .cluster = 1,
        .fma = 64,
        .half = 128,
        .real64 = 32,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {128, 1024, 2048, 4096, 8192},
        .source = GUIDE "A100 data sheet: 312 TFLOPS f16 = 108 SMs * 1.41 GHz * 2048",
    },
    {
        .sm = 86,
        .name = "Ampere",
        COMMON,
        AMPERE_SHARED(100),
        .warps = 48,
        .blocks = 16,
        .cluster = 1,
        .fma = 128,
        .half = 128,
        .real64 = 2,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {0, 512, 1024, 2048, 4096},
        .source = GUIDE "A40 data sheet: 149.7 TFLOPS f16 = 84 SMs * 1.74 GHz * 1024",
    },
    {
        .sm = 87,
        .name = "Ampere",
        COMMON,
        AMPERE_SHARED(164),
        .warps = 48,
        .blocks = 16,
        .cluster = 1,
        .fma = 128,
        .half = 128,
        .real64 = 2,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {0, 1024, 2048, 4096, 8192},
        .source = GUIDE "Jetson AGX Orin data sheet: 85 dense TOPS i8 = 16 SMs * 1.3 GHz * 4096",
    },
    {
        .sm = 89,
        .name = "Ada",
        COMMON,
        AMPERE_SHARED(100),
        .warps = 48,
        .blocks = 24,
        .cluster = 1,
        .fma = 128,
        .half = 128,
        .real64 = 2,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {0, 512, 1024, 2048, 4096},
        .source =
            GUIDE "L40S data sheet: 362 TFLOPS f16 = 142 SMs * 2.52 GHz * 1024 (GeForce: half "
                  "of it when accumulating in f32)",
    },
    {
        .sm = 90,
        .name = "Hopper",
        COMMON,
        AMPERE_SHARED(228),
        .warps = 64,
        .blocks = 32,
        .barriers = 64,
        .cluster = 8,
        .fma = 128,
        .half = 128,
        .real64 = 64,
        .integer = 64,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {256, 2048, 4096, 8192, 0},
        .source = GUIDE "H100 SXM data sheet: 989.4 TFLOPS f16 = 132 SMs * 1.83 GHz * 4096",
    },
    {
        .sm = 100,
        .name = "Blackwell",
        COMMON,
        AMPERE_SHARED(228),
        .warps = 64,
        .blocks = 32,
        .barriers = 64,
        .cluster = 8,
        .fma = 128,
        .half = 128,
        .real64 = 64,
        .integer = 128,
        .special = 16,
        .convert = 64,
        .l2_bytes = 128,
        .matrix = {128, 4096, 8192, 16384, 32768},
        .source =
            GUIDE "B200 data sheet: 2250 TFLOPS f16 = 148 SMs * 1.86 GHz * 8192; lanes of i32 "
                  "and bytes of the L2 unverified, hence generous",
    },
    {
        .sm = 103,
        .name = "Blackwell Ultra",
        COMMON,
        AMPERE_SHARED(228),
        .warps = 64,
        .blocks = 32,
        .barriers = 64,
        .cluster = 8,
        .fma = 128,
        .half = 128,
        .real64 = 64,
        .integer = 128,
        .special = 32,
        .convert = 64,
        .l2_bytes = 128,
        .matrix = {128, 4096, 8192, 16384, 49152},
        .source = GUIDE "as sm_100, with twice the exponentials and half again the FP4 rate of the "
                        "B300 brief; its f64 and i8 units are slower than said here",
    },
    {
        .sm = 120,
        .name = "Blackwell",
        COMMON,
        AMPERE_SHARED(100),
        .warps = 48,
        .blocks = 24,
        .barriers = 24,
        .cluster = 8,
        .fma = 128,
        .half = 128,
        .real64 = 2,
        .integer = 128,
        .special = 16,
        .convert = 64,
        .l2_bytes = 64,
        .matrix = {0, 512, 1024, 2048, 4096},
        .source = GUIDE "RTX Blackwell white paper: RTX 5090 419 TFLOPS f16 = 170 SMs * 2.41 GHz * "
                        "1024 (half of it when accumulating in f32)",
    },
    {.sm = 0},
};

// Rows of kg_sms, by position.
enum { SM_75, SM_80, SM_86, SM_87, SM_89, SM_90, SM_100, SM_103, SM_120 };

#define MAX_CLOCK "clock: \"max clocks\" of nvidia-smi; else "

const struct kg_gpu kg_gpus[] = {
    {"NVIDIA H100 80GB HBM3", "h100", &kg_sms[SM_90], 132, 1.980e9, 3.352e12, 50 << 20,
     MAX_CLOCK "H100 data sheet, SXM5"},
    {"NVIDIA H100 PCIe", "h100-pcie", &kg_sms[SM_90], 114, 1.755e9, 2.039e12, 50 << 20,
     MAX_CLOCK "H100 data sheet, PCIe"},
    {"NVIDIA H200", "h200", &kg_sms[SM_90], 132, 1.980e9, 4.917e12, 50 << 20,
     MAX_CLOCK "H200 data sheet; bandwidth: 6144 bits at 6.4 Gb/s, said to be 4.8 TB/s"},
    {"NVIDIA A100-SXM4-80GB", "a100", &kg_sms[SM_80], 108, 1.410e9, 2.039e12, 40 << 20,
     MAX_CLOCK "A100 data sheet, 80 GB SXM4"},
    {"NVIDIA L4", "l4", &kg_sms[SM_89], 58, 2.040e9, 3.001e11, 48 << 20, MAX_CLOCK "L4 data sheet"},
    {"NVIDIA L40S", "l40s", &kg_sms[SM_89], 142, 2.520e9, 8.64e11, 96 << 20,
     MAX_CLOCK "L40S data sheet"},
    {"Tesla T4", "t4", &kg_sms[SM_75], 40, 1.590e9, 3.2e11, 4 << 20, MAX_CLOCK "T4 data sheet"},
    {"NVIDIA GeForce RTX 4090", "rtx4090", &kg_sms[SM_89], 128, 3.105e9, 1.008e12, 72 << 20,
     MAX_CLOCK "Ada white paper, which counts with 2.52 GHz"},
    {"NVIDIA B200", "b200", &kg_sms[SM_100], 148, 1.965e9, 8.0e12, 126 << 20,
     MAX_CLOCK "Blackwell data sheet"},
    {"NVIDIA GeForce RTX 5090", "rtx5090", &kg_sms[SM_120], 170, 3.090e9, 1.792e12, 96 << 20,
     MAX_CLOCK "RTX Blackwell white paper, which counts with 2.41 GHz"},
    {.name = NULL},
};
