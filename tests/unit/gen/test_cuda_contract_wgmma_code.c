// The compiled code of products by wgmma, if there is NVRTC: for every variant no spills, wgmma in
// the main loop, no compiler advisories of serialised wgmma, and the expected copies.

#include "wgmma_code.h"
#include "wgmma_products.h"

#define LARGE "M=4096 N=4096 K=4096 T=f16"
#define TILE "tile_m=128 tile_n=128 tile_k=64 stages=4"

// Any of the functions may be launched early: each has to wait by itself.
static void check_waits(const char *ptx, const char *values)
{
    static const char wait[] = "griddepcontrol.wait";
    int functions = 0;
    for (const char *entry = strstr(ptx, ".entry "); entry; functions++) {
        const char *next = strstr(entry + 1, ".entry "), *found = strstr(entry, wait);
        bool waits = found && (!next || found < next);
        CHECK(waits);
        if (!waits)
            fprintf(stderr, "%s: function %d does not wait\n", values, functions);
        entry = next;
    }
    CHECK(functions == 4);
}

static int count_text(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; at && (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

// An operand may be streamed if this block loads all of it, and a stage uses whole 256-byte units:
// two adjacent boxes, or those of more lines.
static const struct {
    const char *op, *values;
    int boxes; // of a stage, that are loaded with evict_first if the operand is large
} sides[] = {
    {"nt", "tile_m=64 tile_n=32 tile_k=128 stages=4", 4},
    {"nt", "tile_m=64 tile_n=32 tile_k=64 stages=4", 0},
    {"nt", "tile_m=64 tile_n=32 tile_k=128 stages=4 cluster_m=1 cluster_n=4", 2},
    {"nt", "tile_m=64 tile_n=32 tile_k=128 stages=4 cluster_m=2 cluster_n=2", 0},
    {"nn", "tile_m=64 tile_n=128 tile_k=64 stages=4", 2},
    {"tn", "tile_m=64 tile_n=64 tile_k=128 stages=4", 0},
};

static bool side_passes(struct kg_device *device, size_t which)
{
    const char *values = sides[which].values;
    struct kg_binary binary = {0};
    enum kg_status status = compile(device, definitions, sides[which].op, LARGE, values, &binary);
    int boxes = status == KG_OK ? count_text(binary.ptx, ".L2::cache_hint") : sides[which].boxes;
    CHECK(boxes == sides[which].boxes);
    if (boxes != sides[which].boxes)
        fprintf(stderr, "%s: %d boxes may pass\n", values, boxes);
    kg_binary_free(&binary);
    return status != KG_ERROR_MISSING;
}

static void large_operands_are_streamed(void)
{
    compile_cases(sizeof sides / sizeof *sides, side_passes);
}

// Each 64 rows of a consumer take four or eight instructions per stage.
static const struct {
    const char *op, *sizes, *values;
    int products;
} ways[] = {
    {"nn", LARGE, TILE, 4},
    {"nt", "M=4096 N=4096 K=4096 T=bf16",
     "tile_m=128 tile_n=256 tile_k=64 stages=4 cluster_m=2 cluster_n=1", 4},
    {"tn", LARGE, "tile_m=256 tile_n=128 tile_k=64 stages=3 cluster_m=1 cluster_n=2 raster=1", 8},
    {"tt", "M=4096 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=192 tile_k=64 stages=4 pingpong=1", 8},
    {"linear", "B=4 M=4 N=4096 K=4096 T=bf16", "tile_m=64 tile_n=16 tile_k=128 stages=8 swap=1", 8},
    {"linear", "B=4 M=1024 N=4096 K=4096 T=f16", "tile_m=64 tile_n=32 tile_k=64 stages=4", 4},
    {"batches", "B=4 M=1024 N=1024 K=1024 T=f16",
     "tile_m=64 tile_n=128 tile_k=64 stages=4 split_k=4", 4},
    {"nt", "M=5 N=4096 K=4096 T=f16", "tile_m=128 tile_n=8 tile_k=64 stages=4 split_k=8 swap=1", 4},
    {"tn", "M=64 N=64 K=8192 T=bf16", "tile_m=64 tile_n=64 tile_k=64 stages=4 split_k=16", 4},
    {"wide", LARGE, "tile_m=256 tile_n=192 tile_k=64 stages=3", 8},
    {"bias", LARGE, "tile_m=256 tile_n=192 tile_k=64 stages=3", 8},
    {"bias", LARGE, "tile_m=128 tile_n=192 tile_k=64 stages=4 pingpong=1", 8},
    {"own", "B=4 M=1024 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 tile_k=64 stages=4", 8},
    {"linear", "B=4 M=1024 N=4096 K=4096 T=f16", "tile_m=256 tile_n=128 tile_k=64 stages=4", 8},
    {"own", "B=4 M=4 N=4096 K=4096 T=f16", "tile_m=64 tile_n=16 tile_k=128 stages=8 swap=1", 8},
    {"nn", LARGE, "tile_m=128 tile_n=256 tile_k=64 stages=4 split_k=0", 4},
    {"wide", LARGE, "tile_m=256 tile_n=192 tile_k=64 stages=3 split_k=0", 8},
    {"linear", "B=4 M=1000 N=4096 K=4096 T=bf16",
     "tile_m=128 tile_n=128 tile_k=64 stages=5 split_k=0", 4},
    {"tn", "M=4096 N=4096 K=4096 T=bf16",
     "tile_m=128 tile_n=128 tile_k=64 stages=4 pingpong=1 split_k=0 swap=1", 8},
    {"tt", LARGE, "tile_m=256 tile_n=128 tile_k=64 stages=4 split_k=0 raster=1", 8},
    {"nt", "M=1000 N=1000 K=1000 T=f16",
     "tile_m=128 tile_n=80 tile_k=64 stages=7 cluster_m=4 cluster_n=2", 4},
    {"nt", "M=64 N=4096 K=4096 T=f16",
     "tile_m=64 tile_n=32 tile_k=128 stages=9 cluster_m=1 cluster_n=4", 8},
    {"tn", LARGE, "tile_m=256 tile_n=128 tile_k=64 stages=4 cluster_m=2 cluster_n=4", 8},
    {"nt", "M=4096 N=4095 K=1000 T=bf16",
     "tile_m=128 tile_n=176 tile_k=64 stages=4 pingpong=1 overlap=16", 8},
    {"nn", "M=4096 N=4098 K=1000 T=f16",
     "tile_m=256 tile_n=128 tile_k=64 stages=3 cluster_n=2 overlap=16", 8},
    {"bias", "M=4096 N=4095 K=1000 T=f16",
     "tile_m=128 tile_n=160 tile_k=64 stages=4 pingpong=1 overlap=16", 8},
    {"linear", "B=4 M=1000 N=4095 K=4096 T=bf16",
     "tile_m=64 tile_n=128 tile_k=64 stages=4 split_k=0 overlap=16", 4},
};

static bool way_compiles(struct kg_device *device, size_t which)
{
    const struct contents contents = {4, "kernel_2", "UTMALDG", ways[which].products, 13};
    struct kg_binary binary = {0};
    enum kg_status status = compile(device, definitions, ways[which].op, ways[which].sizes,
                                    ways[which].values, &binary);
    if (status == KG_OK) {
        check_waits(binary.ptx, ways[which].values);
        check_contents(&binary, ways[which].values, &contents);
    }
    kg_binary_free(&binary);
    return status != KG_ERROR_MISSING;
}

static void all_variants_compile(void)
{
    compile_cases(sizeof ways / sizeof *ways, way_compiles);
}

TEST_MAIN(large_operands_are_streamed, all_variants_compile)
