// Products on tensor cores by wgmma: what the rule chooses and refuses, the launches and the boxes
// of tensor maps. test_cuda_contract_wgmma_code.c compiles them.

#include "wgmma_bench.h"
#include "wgmma_products.h"

#include "lang/lang.h"

#define LARGE "M=4096 N=4096 K=4096 T=f16"
#define TILE "tile_m=128 tile_n=128 tile_k=64 stages=4"

// ---- Refusals ----

static void check_reason(const char *op, const char *sizes, const char *values, const char *wanted)
{
    check_reason_on("sm_90a", definitions, op, sizes, values, wanted);
}

static void operands_are_refused(void)
{
    check_reason_on("sm_90", definitions, "nn", LARGE, TILE, "wgmma is an instruction of sm_90a");
    check_reason("scaled", LARGE, TILE, "both operands have to be arrays");
    static const char types[] = "both operands have to be f16, or both bf16";
    check_reason("mixed", "M=4096 N=4096 K=4096", TILE, types);
    check_reason("nn", "M=512 N=512 K=512 T=f64", TILE, types);
    check_reason("whole", "M=512 N=512 K=512", TILE, types);
    check_reason("nt", "M=1073741824 N=64 K=64 T=f16", TILE, "sizes are larger than 2^30");
    check_reason("nt", "M=536870912 N=60000 K=64 T=f16", "tile_m=64 tile_n=64 tile_k=64 stages=4",
                 "too many tiles");
}

static void tiles_are_refused(void)
{
    static const struct {
        const char *op, *values, *reason;
    } cases[] = {
        {"nn", TILE, ""},
        {"nn", "tile_m=32 tile_n=128 tile_k=64 stages=4", NULL},
        {"nn", "tile_m=128 tile_n=512 tile_k=64 stages=4", NULL},
        {"nn", "tile_m=128 tile_n=4 tile_k=64 stages=4", NULL},
        {"nn", "tile_m=128 tile_n=128 tile_k=32 stages=4", NULL},
        // Boxes of an operand that is not K-major are 64 wide.
        {"nn", "tile_m=128 tile_n=32 tile_k=64 stages=4",
         "an N-major operand needs a multiple of 64 columns per block"},
        {"nt", "tile_m=128 tile_n=32 tile_k=64 stages=4", ""},
        {"nn", "tile_m=128 tile_n=64 tile_k=64 stages=4 cluster_m=2 cluster_n=1",
         "an N-major operand needs a multiple of 64 columns per block"},
        {"nt", "tile_m=128 tile_n=64 tile_k=64 stages=4 cluster_m=2 cluster_n=1", ""},
        {"tt", "tile_m=128 tile_n=32 tile_k=64 stages=4 swap=1",
         "an N-major operand needs a multiple of 64 columns per block"},
        {"tn", "tile_m=64 tile_n=128 tile_k=64 stages=4 cluster_m=1 cluster_n=2",
         "an M-major operand needs a multiple of 64 rows per block"},
        {"nt", "tile_m=64 tile_n=128 tile_k=64 stages=4 cluster_m=1 cluster_n=2", ""},
        {"nt", "tile_m=128 tile_n=24 tile_k=64 stages=4 cluster_m=2 cluster_n=1", ""},
        {"nt", "tile_m=128 tile_n=24 tile_k=64 stages=4 cluster_m=4 cluster_n=4",
         "a cluster has at most 8 blocks"},
        {"nn", TILE " cluster_m=2 cluster_n=1 split_k=2",
         "multicast clusters and split-K exclude each other"},
        {"nn", TILE " pingpong=1 split_k=2", "pingpong needs whole tiles of at most 128 rows"},
        {"nn", "tile_m=256 tile_n=64 tile_k=64 stages=4 pingpong=1",
         "pingpong needs whole tiles of at most 128 rows"},
        {"nn", "tile_m=128 tile_n=128 tile_k=64 stages=1", NULL},
        {"nn", "tile_m=256 tile_n=256 tile_k=64 stages=2",
         "the accumulators need more registers than a thread has"},
        {"nn", "tile_m=128 tile_n=128 tile_k=128 stages=4",
         "a block would need more shared memory than there is"},
        {"nn", TILE " maxnreg=96", "a thread would need more registers than it can have"},
        {"nn", TILE " maxnreg=128", ""},
        {"nn", "tile_m=128 tile_n=256 tile_k=64 stages=4 maxnreg=128",
         "setmaxnreg already divides the registers among the warps"},
        {"nn", "tile_m=128 tile_n=256 tile_k=64 stages=4", ""},
        {"nn", "tile_m=256 tile_n=192 tile_k=64 stages=3", ""},
        {"nn", TILE " split_k=0", ""},
        {"nn", TILE " cluster_m=2 cluster_n=1 split_k=0",
         "stream-K and multicast clusters exclude each other"},
        {"nn", "tile_m=128 tile_n=128 tile_k=64 stages=4 pingpong=1 split_k=0", ""},
        {"nn", "tile_m=128 tile_n=192 tile_k=64 stages=4 pingpong=1 split_k=0",
         "a thread would need more registers than it can have"},
        {"nn", TILE " split_k=128", "split_k is larger than the number of K tiles"},
        // An epilogue takes registers, fewer for per-row and per-column values.
        {"bias", "tile_m=256 tile_n=192 tile_k=64 stages=3", ""},
        {"own", "tile_m=256 tile_n=192 tile_k=64 stages=3",
         "a thread would need more registers than it can have"},
        {"linear", "tile_m=256 tile_n=192 tile_k=64 stages=3",
         "a thread would need more registers than it can have"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_reason(cases[i].op, LARGE, cases[i].values, cases[i].reason);
    check_reason("nn", "M=1536 N=1408 K=512 T=f16", TILE " split_k=0",
                 "the tiles fill whole waves: stream-K has nothing to divide");
    check_reason("nn", "M=1000 N=1000 K=256 T=f16", TILE " split_k=0",
                 "too few K tiles for stream-K");
}

// ---- Launches ----

enum { PACK_A, PACK_B, MULTIPLY, FOLD };
enum { LEFT, RIGHT, OUT, LAST_LEFT, LAST_RIGHT };

// Bytes from the first to the end of the last element of a map.
static size_t reach_of(const struct kg_map *map)
{
    size_t reach = (size_t)(map->shape[0] * map->element);
    for (int dim = 1; dim < map->rank; dim++)
        reach += (size_t)((map->shape[dim] - 1) * map->stride[dim]);
    return reach;
}

// Checks the driver's rules, and what the skeleton expects of an operand's box.
static bool is_map(const struct kg_map *map, const struct kg_grids *grids, bool side)
{
    int width = map->box[0] * map->element;
    bool fine = map->rank == 3 && map->element == 2 && width % 16 == 0 && map->box[2] == 1;
    fine = fine && (side ? width == 128 && map->swizzle == 128 : width <= 128);
    fine = fine && (map->swizzle == 0 || map->swizzle == width);
    for (int dim = 0; dim < 3; dim++) {
        fine = fine && map->shape[dim] > 0 && map->shape[dim] <= (int64_t)1 << 32;
        fine = fine && map->box[dim] > 0 && map->box[dim] <= 256;
        if (dim > 0)
            fine = fine && map->stride[dim] > 0 && map->stride[dim] % 16 == 0 &&
                   map->stride[dim] < (int64_t)1 << 40;
    }
    if (map->tensor == KG_MAP_SCRATCH)
        return fine && map->offset % 256 == 0 && map->offset + reach_of(map) <= grids->scratch;
    return fine && map->offset == 0;
}

// The map of the last tile: like the operand's own, but with the remaining lines, `again` of which
// tiles have in common. None if no lines remain, if the operand is not K-major, or in pairs.
static bool is_last(const struct kg_map *last, const struct kg_map *map, int64_t again)
{
    struct kg_map like = *map;
    int64_t left = (map->shape[1] + again) % map->box[1];
    if (last->rank == 0)
        return true;
    like.box[1] = last->box[1];
    return left > 0 && last->box[1] == left && memcmp(&like, last, sizeof like) == 0;
}

static bool are_apart(const struct kg_map *one, const struct kg_map *other)
{
    return one->tensor != KG_MAP_SCRATCH || other->tensor != KG_MAP_SCRATCH ||
           one->offset + reach_of(one) <= other->offset ||
           other->offset + reach_of(other) <= one->offset;
}

// Checks the grids of any problem that is not empty. `again`: columns that tiles have in common.
static bool are_grids(const struct kg_grids *grids, int64_t again)
{
    const struct kg_grid *multiply = &grids->grids[MULTIPLY];
    int copies = 0;
    bool fine = grids->count == 4 && grids->map_count == 5 && grids->alignment == 16;
    fine = fine && multiply->blocks[0] > 0 && multiply->shared <= facts.shared_bytes;
    fine = fine && multiply->blocks[0] % (multiply->cluster > 1 ? multiply->cluster : 1) == 0;
    for (int i = LEFT; i <= RIGHT; i++) {
        fine = fine && is_map(&grids->maps[i], grids, true) &&
               is_last(&grids->maps[i == LEFT ? LAST_LEFT : LAST_RIGHT], &grids->maps[i],
                       i == RIGHT ? again : 0);
        copies += grids->maps[i].tensor == KG_MAP_SCRATCH;
    }
    fine = fine &&
           copies == (grids->grids[PACK_A].blocks[0] > 0) + (grids->grids[PACK_B].blocks[0] > 0);
    fine = fine && are_apart(&grids->maps[LEFT], &grids->maps[RIGHT]);
    if (grids->maps[OUT].rank > 0)
        fine = fine && is_map(&grids->maps[OUT], grids, false) && grids->maps[OUT].tensor >= 0;
    // With unaligned addresses both operands are packed if there is scratch, else FOLD computes
    // everything.
    if (copies == 0)
        return fine && grids->unaligned[MULTIPLY].blocks[0] == 0 &&
               grids->unaligned[FOLD].blocks[0] > 0 && grids->unaligned_maps[LEFT].rank == 0;
    for (int i = LEFT; i <= RIGHT; i++)
        fine = fine && is_map(&grids->unaligned_maps[i], grids, true) &&
               is_last(&grids->unaligned_maps[i == LEFT ? LAST_LEFT : LAST_RIGHT],
                       &grids->unaligned_maps[i], i == RIGHT ? again : 0) &&
               grids->unaligned_maps[i].tensor == KG_MAP_SCRATCH;
    return fine && are_apart(&grids->unaligned_maps[LEFT], &grids->unaligned_maps[RIGHT]) &&
           grids->unaligned[PACK_A].blocks[0] > 0 && grids->unaligned[PACK_B].blocks[0] > 0 &&
           grids->unaligned[MULTIPLY].blocks[0] == multiply->blocks[0] &&
           grids->unaligned_maps[OUT].rank == 0;
}

// Columns that the tiles of a config, side by side along N, have in common.
static int64_t columns_again(const char *config, int64_t n)
{
    int64_t overlap = strtol(choice_of(config, "overlap"), NULL, 10),
            tile = strtol(choice_of(config, "tile_n"), NULL, 10);
    return overlap > 0 && n > tile ? (n - overlap - 1) / (tile - overlap) * overlap : 0;
}

// The grids of a config. `strides`: of the tensors in order, or NULL.
static struct kg_grids launches_of(const char *op, const char *sizes, const char *values,
                                   const int64_t (*strides)[KG_MAX_RANK])
{
    struct made made = make_strided(definitions, op, sizes, strides);
    struct kg_grids grids = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        const struct kg_match *match = match_all(&made);
        struct kg_config config = configure(match, values);
        CHECK(is_valid(match, &config));
        family->grids(match, &config, &grids);
    }
    unmake(&made);
    return grids;
}

static struct kg_grids launches(const char *op, const char *sizes, const char *values)
{
    struct kg_grids grids = launches_of(op, sizes, values, NULL);
    CHECK(are_grids(&grids, 0));
    return grids;
}

static bool has_box(const struct kg_map *map, int64_t length, int64_t lines, int width, int height)
{
    return map->shape[0] == length && map->shape[1] == lines && map->box[0] == width &&
           map->box[1] == height;
}

static void operands_are_mapped(void)
{
    struct kg_grids grids = launches("nn", "M=4096 N=4000 K=2048 T=f16", TILE);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 132 && grids.grids[MULTIPLY].threads[0] == 384);
    CHECK(grids.grids[PACK_A].blocks[0] == 0 && grids.grids[PACK_B].blocks[0] == 0);
    CHECK(grids.grids[FOLD].blocks[0] == 0 && grids.scratch == 0);
    CHECK(has_box(&grids.maps[LEFT], 2048, 4096, 64, 128) && grids.maps[LEFT].stride[1] == 4096);
    CHECK(has_box(&grids.maps[RIGHT], 4000, 2048, 64, 64) && grids.maps[RIGHT].stride[1] == 8000);
    CHECK(has_box(&grids.maps[OUT], 4000, 4096, 64, 64) && grids.maps[OUT].swizzle == 128);
    // Fewer columns are stored in narrower lines.
    grids = launches("nt", LARGE, "tile_m=128 tile_n=96 tile_k=64 stages=4");
    CHECK(grids.maps[OUT].box[0] == 32 && grids.maps[OUT].swizzle == 64);
    grids = launches("nt", LARGE, "tile_m=128 tile_n=24 tile_k=64 stages=4");
    CHECK(grids.maps[OUT].box[0] == 8 && grids.maps[OUT].swizzle == 0);
    // Swapped: B supplies the rows.
    grids = launches("nt", "M=20 N=4096 K=2048 T=bf16",
                     "tile_m=128 tile_n=24 tile_k=128 stages=4 swap=1");
    CHECK(has_box(&grids.maps[LEFT], 2048, 4096, 64, 128) && grids.maps[LEFT].tensor == 1);
    CHECK(has_box(&grids.maps[RIGHT], 2048, 20, 64, 24) && grids.maps[RIGHT].tensor == 0);
    CHECK(has_box(&grids.maps[OUT], 4096, 20, 64, 24));
    // The missing lines of the last tile of a K-major operand are not loaded.
    CHECK(has_box(&grids.maps[LAST_RIGHT], 2048, 20, 64, 20) && grids.maps[LAST_LEFT].rank == 0);
    CHECK(grids.maps[LAST_RIGHT].tensor == 0 && grids.maps[LAST_RIGHT].stride[1] == 4096);
    struct kg_grids ragged = launches("nn", "M=300 N=4000 K=2048 T=f16", TILE);
    CHECK(has_box(&ragged.maps[LAST_LEFT], 2048, 300, 64, 44) && ragged.maps[LAST_RIGHT].rank == 0);
    ragged = launches("nt", "M=300 N=4000 K=2048 T=f16", TILE " cluster_m=4 cluster_n=1");
    CHECK(ragged.maps[LEFT].box[1] == 128 && ragged.maps[LAST_LEFT].box[1] == 300 % 128);
    CHECK(ragged.maps[RIGHT].box[1] == 32 && ragged.maps[LAST_RIGHT].rank == 0);
    ragged = launches("nt", "M=300 N=4000 K=2048 T=f16", TILE " cluster_m=2 cluster_n=4");
    CHECK(ragged.maps[LEFT].box[1] == 32 && ragged.maps[LAST_LEFT].box[1] == 300 % 32);
    CHECK(ragged.maps[RIGHT].box[1] == 64 && ragged.maps[LAST_RIGHT].box[1] == 4000 % 64);
    ragged = launches("nt", "M=300 N=4000 K=2044 T=f16", TILE);
    CHECK(ragged.maps[LAST_LEFT].tensor == KG_MAP_SCRATCH && ragged.maps[LAST_LEFT].box[1] == 44);
    CHECK(has_box(&ragged.unaligned_maps[LAST_LEFT], 2044, 300, 64, 44));
    CHECK(grids.grids[MULTIPLY].blocks[0] == 32);
    // f32 is stored element by element; batches are a dimension, or part of the rows.
    grids = launches("wide", LARGE, TILE);
    CHECK(grids.maps[OUT].rank == 0);
    grids = launches("batches", "B=3 M=512 N=256 K=128 T=f16", TILE);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 3 * 4 * 2 && grids.maps[LEFT].shape[2] == 3);
    CHECK(grids.maps[RIGHT].stride[2] == 256 * 128 * 2 && grids.maps[OUT].tensor == 3);
    grids = launches("linear", "B=3 M=100 N=256 K=128 T=f16", TILE);
    CHECK(grids.maps[LEFT].shape[1] == 300 && grids.maps[LEFT].shape[2] == 1);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 3 * 2);
}

static void clusters_are_launched(void)
{
    struct kg_grids grids =
        launches("nt", "M=640 N=512 K=512 T=f16", TILE " cluster_m=2 cluster_n=1");
    CHECK(grids.grids[MULTIPLY].cluster == 2 && grids.grids[MULTIPLY].blocks[0] == 3 * 4 * 2);
    CHECK(grids.maps[LEFT].box[1] == 128 && grids.maps[RIGHT].box[1] == 64);
    grids = launches("nt", "M=640 N=640 K=512 T=f16", TILE " cluster_m=1 cluster_n=2");
    CHECK(grids.grids[MULTIPLY].cluster == 2 && grids.grids[MULTIPLY].blocks[0] == 5 * 3 * 2);
    CHECK(grids.maps[LEFT].box[1] == 64 && grids.maps[RIGHT].box[1] == 128);
    grids = launches("nt", LARGE, TILE " cluster_m=2 cluster_n=1");
    CHECK(grids.grids[MULTIPLY].blocks[0] == 132);
    // Larger clusters do not find room on all SMs.
    grids = launches("nt", LARGE, TILE " cluster_m=2 cluster_n=4");
    CHECK(grids.grids[MULTIPLY].cluster == 8 && grids.grids[MULTIPLY].blocks[0] == 15 * 8);
    CHECK(grids.maps[LEFT].box[1] == 32 && grids.maps[RIGHT].box[1] == 64);
    // Split-K in a cluster: all blocks at once, and no scratch.
    grids = launches("nt", "M=640 N=4096 K=4096 T=f16", TILE " split_k=8");
    CHECK(grids.grids[MULTIPLY].cluster == 8 && grids.grids[MULTIPLY].blocks[0] == 5 * 32 * 8);
    CHECK(grids.scratch == 0 && grids.grids[FOLD].blocks[0] == 0 && grids.maps[OUT].rank == 0);
    // More slices: through memory.
    grids = launches("nt", "M=60 N=100 K=4096 T=f16", TILE " split_k=16");
    CHECK(grids.grids[MULTIPLY].cluster <= 1 && grids.grids[MULTIPLY].blocks[0] == 16);
    CHECK(grids.scratch == 16 * 60 * 100 * 4 && grids.grids[FOLD].blocks[0] == 24);
}

// Of 256 threads, each of which copies eight elements of a line.
static int pack_blocks(int lines, int length)
{
    return (lines * ((length + 7) / 8) + 255) / 256;
}

static void operands_are_packed(void)
{
    // Lines of 203 and of 131 elements are not aligned to 16 bytes.
    struct kg_grids grids = launches("nn", "M=77 N=131 K=203 T=f16", TILE);
    CHECK(grids.grids[PACK_A].blocks[0] == pack_blocks(77, 203));
    CHECK(grids.grids[PACK_B].blocks[0] == pack_blocks(203, 131));
    CHECK(grids.maps[LEFT].tensor == KG_MAP_SCRATCH && grids.maps[LEFT].offset == 0);
    CHECK(grids.maps[LEFT].stride[1] >= 203 * 2 && grids.maps[RIGHT].stride[1] >= 131 * 2);
    CHECK(has_box(&grids.maps[LEFT], 203, 77, 64, 128));
    CHECK(has_box(&grids.maps[RIGHT], 131, 203, 64, 64));
    CHECK(grids.maps[OUT].rank == 0);
    // Only one of them is unaligned.
    grids = launches("nn", "M=77 N=131 K=200 T=f16", TILE);
    CHECK(grids.grids[PACK_A].blocks[0] == 0);
    CHECK(grids.grids[PACK_B].blocks[0] == pack_blocks(200, 131));
    CHECK(grids.maps[LEFT].tensor == 0 && grids.maps[RIGHT].tensor == KG_MAP_SCRATCH);
    grids = launches("nt", "M=77 N=131 K=203 T=f16", TILE " swap=1");
    CHECK(grids.maps[LEFT].offset > grids.maps[RIGHT].offset);
    CHECK(grids.grids[PACK_A].blocks[0] == pack_blocks(77, 203));
    CHECK(grids.grids[PACK_B].blocks[0] == pack_blocks(131, 203));
    // Packed operands come after the partial sums of all batches.
    grids = launches("nn", "M=77 N=131 K=2003 T=f16", TILE " split_k=16");
    CHECK(grids.maps[LEFT].offset >= 16 * 77 * 131 * 4);
    grids = launches("batches", "B=5 M=70 N=33 K=71 T=f16", TILE);
    CHECK(grids.grids[PACK_A].blocks[0] == pack_blocks(5 * 70, 71));
    CHECK(grids.maps[LEFT].shape[2] == 5);
    // Strides: of whole vectors, of others, and a transposed matrix.
    grids = launches_of("nn", "M=64 N=64 K=64 T=f16", TILE,
                        (int64_t[3][KG_MAX_RANK]){{72, 1}, {68, 1}, {80, 1}});
    CHECK(are_grids(&grids, 0) && grids.maps[LEFT].stride[1] == 144);
    CHECK(grids.grids[PACK_B].blocks[0] == pack_blocks(64, 64));
    CHECK(grids.maps[OUT].stride[1] == 160);
    grids = launches_of("nn", "M=64 N=64 K=64 T=f16", TILE,
                        (int64_t[3][KG_MAX_RANK]){{1, 64}, {0, 1}, {64, 1}});
    CHECK(are_grids(&grids, 0) && grids.grids[PACK_A].blocks[0] == pack_blocks(64, 64));
    CHECK(grids.grids[PACK_B].blocks[0] == pack_blocks(64, 64));
}

// Tiles that overlap by 16 columns: how many there are, what remains for the last one, and the
// memory for 64 lines of each consumer.
static void lines_are_stored_by_sector(void)
{
    static const char refused[] =
        "only whole sums overlap, in tiles of at least 32 columns that are not swapped";
    static const char aligned[] =
        "tiles overlap only where TMA cannot store lines of 16-bit results";
    check_reason("nt", "M=300 N=1317 K=200 T=f16", TILE " overlap=16", "");
    check_reason("nt", "M=300 N=1317 K=200 T=f16", TILE " overlap=8", NULL);
    check_reason("nt", "M=1300 N=1701 K=200 T=f16", TILE " overlap=16 split_k=0", "");
    check_reason("nt", "M=300 N=1317 K=200 T=f16", TILE " overlap=16 split_k=2", refused);
    check_reason("nt", "M=300 N=1317 K=200 T=f16", TILE " overlap=16 swap=1", refused);
    check_reason("nt", "M=300 N=1317 K=200 T=f16",
                 "tile_m=128 tile_n=16 tile_k=64 stages=4 overlap=16", refused);
    check_reason("nt", "M=300 N=1320 K=200 T=f16", TILE " overlap=16", aligned);
    check_reason("wide", "M=300 N=1317 K=200 T=f16", TILE " overlap=16", aligned);
    check_reason("batches", "B=2 M=1300 N=1701 K=200 T=f16", TILE " overlap=16", "");
    check_reason("batches", "B=2 M=1300 N=1701 K=200 T=f16", TILE " overlap=16 split_k=0",
                 "with stream-K, tiles overlap only if the epilogue stores one output");
    static const struct {
        int n;
        const char *values;
        int blocks, last; // columns of the last box
    } cases[] = {
        {1317, TILE " overlap=16", 3 * 12, 85},
        {1317, TILE " cluster_n=2 overlap=16", 3 * 12, 85},
        {343, TILE " cluster_n=2 overlap=16", 3 * 4, 119},
        {343, TILE " overlap=16", 3 * 3, 119},
        {127, TILE " overlap=16", 3, 127},
        {129, TILE " overlap=16", 3 * 2, 17},
        {13, TILE " overlap=16", 3, 13},
        {1317, TILE " cluster_m=2 overlap=16", 4 * 12, 21},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sizes[64];
        snprintf(sizes, sizeof sizes, "M=300 N=%d K=200 T=f16", cases[i].n);
        struct kg_grids grids = launches_of("nt", sizes, cases[i].values, NULL);
        CHECK(are_grids(&grids, columns_again(cases[i].values, cases[i].n)));
        CHECK(grids.grids[MULTIPLY].blocks[0] == cases[i].blocks);
        CHECK(grids.maps[LAST_RIGHT].box[1] == cases[i].last);
        CHECK(grids.maps[OUT].rank == 0);
        CHECK(grids.grids[MULTIPLY].shared == 1024 + 4 * 256 * 128 + 2 * 64 * (256 + 16) + 64);
    }
    // Lines whose elements are not adjacent.
    struct made made = make_strided(definitions, "nt", "M=300 N=1317 K=200 T=f16",
                                    (int64_t[3][KG_MAX_RANK]){{200, 1}, {200, 1}, {1, 301}});
    const struct kg_match *match = match_all(&made);
    struct kg_config config = configure(match, TILE " overlap=16");
    CHECK(!is_valid(match, &config));
    unmake(&made);
    // Executed at sizes that need no overlap, the kernel stores likewise.
    made = make_strided(definitions, "nt", "M=300 N=1320 K=200 T=f16", NULL);
    match = match_all(&made);
    config = configure(match, TILE " overlap=16");
    struct kg_grids grids;
    family->grids(match, &config, &grids);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 3 * 12 && grids.maps[OUT].rank == 0);
    unmake(&made);
}

// Stream-K: a partial tile per block, with a flag for each consumer, comes before packed operands.
static void stream_k_is_launched(void)
{
    struct kg_grids grids = launches("nt", "M=3072 N=3072 K=3072 T=f16", TILE " split_k=0");
    CHECK(grids.grids[MULTIPLY].blocks[0] == 132 && grids.grids[FOLD].blocks[0] == 0);
    CHECK(grids.scratch == 132 * (128 * 128 * 4 + 16) / 256 * 256 + 256);
    CHECK(has_box(&grids.maps[OUT], 3072, 3072, 64, 64));
    // As many blocks as run at once, even if there are fewer tiles.
    grids = launches("nt", "M=500 N=500 K=4096 T=f16",
                     "tile_m=64 tile_n=128 tile_k=64 stages=3 split_k=0");
    CHECK(grids.grids[MULTIPLY].blocks[0] == 132 * 2);
    grids = launches("nn", "M=333 N=7777 K=1025 T=f16", TILE " split_k=0");
    int copied = grids.maps[LEFT].offset == 0 ? RIGHT : LEFT;
    CHECK(grids.maps[copied].offset >= 132 * (128 * 128 * 4 + 16));
}

static bool runs_only(const struct kg_grid *grids, int function, int64_t blocks)
{
    bool only = true;
    for (int i = 0; i <= FOLD; i++)
        only = only && grids[i].blocks[0] == (i == function ? blocks : 0);
    return only;
}

static void empty_products(void)
{
    static const char *const sizes[] = {"M=0 N=64 K=64 T=f16", "M=64 N=0 K=64 T=f16",
                                        "M=64 N=100 K=0 T=f16"};
    for (int i = 0; i < 3; i++) {
        struct kg_grids grids = launches_of("nn", sizes[i], TILE, NULL);
        CHECK(runs_only(grids.grids, FOLD, i == 2 ? 25 : 0));
        CHECK(runs_only(grids.unaligned, FOLD, i == 2 ? 25 : 0));
        CHECK(grids.scratch == 0);
        for (int map = 0; map < grids.map_count; map++)
            CHECK(grids.maps[map].rank == 0 && grids.unaligned_maps[map].rank == 0);
    }
    struct kg_grids grids = launches("nn", "M=1 N=1 K=1 T=f16", TILE);
    CHECK(grids.grids[MULTIPLY].blocks[0] == 1);
}

// ---- The rule ----

// The family's own rule, whatever other forms expect.
static bool is_chosen_well(const struct made *made, int64_t n)
{
    const struct kg_match *match = match_all(made);
    struct kg_space space;
    struct kg_config config, again;
    struct kg_text text = {0}, reason = {0};
    struct kg_grids grids;
    if (!match)
        return false;
    family->space(match, &space);
    family->guess(match, &config);
    kg_config_print(&space, &config, &text);
    bool fine = kg_match_is_advised(match, &reason);
    fine = fine && kg_config_read(&space, kg_text_string(&text),
                                  &again); // values are choices of their parameters
    fine = fine && is_valid(match, &config);
    family->grids(match, &config, &grids);
    fine = fine && are_grids(&grids, columns_again(kg_text_string(&text), n));
    if (!fine)
        fprintf(stderr, "%s %s\n", kg_text_string(&text), kg_text_string(&reason));
    kg_text_free(&text);
    kg_text_free(&reason);
    return fine;
}

static void rule_takes_all_sizes(void)
{
    static const int sizes[] = {1, 7, 8, 33, 64, 100, 129, 1000, 1023, 4096, 8191, 8192};
    static const char *const ops[] = {"nn", "nt", "tn", "tt"};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES * SIZES * SIZES; i++) {
        const char *op = ops[(i + i / SIZES) % 4], *type = i / SIZES % 3 ? "f16" : "bf16";
        int m = sizes[i % SIZES], n = sizes[i / SIZES % SIZES], k = sizes[i / SIZES / SIZES];
        char text[80];
        snprintf(text, sizeof text, "M=%d N=%d K=%d T=%s", m, n, k, type);
        struct made made = make_strided(definitions, op, text, NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        bool fine = made.status == KG_OK && is_chosen_well(&made, n);
        CHECK(fine);
        if (!fine)
            fprintf(stderr, "%s %s\n", op, text);
        unmake(&made);
    }
}

static void rule_leaves_the_rest(void)
{
    static const struct {
        const char *op, *sizes;
    } cases[] = {{"nn", "M=512 N=512 K=512 T=f32"},
                 {"nt", "M=512 N=512 K=512 T=f64"},
                 {"whole", "M=512 N=512 K=512"},
                 {"scaled", LARGE},
                 {"mixed", "M=512 N=512 K=512"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = make_strided(definitions, cases[i].op, cases[i].sizes, NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        if (made.status == KG_OK) {
            struct kg_choice choice;
            CHECK(match_all(&made) == NULL);
            kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
            CHECK(choice.count == 1 && choice.matches[0]->family != family);
            CHECK(is_valid(choice.matches[0], &choice.configs[0]));
        }
        unmake(&made);
    }
}

// ---- Source ----

// Per-row and per-column values are loaded by methods of their own; value() reads the rest.
static void epilogue_values_are_separate(void)
{
    static const struct {
        const char *op, *flags, *value;
    } cases[] = {
        {"nt", "USES_POSITION = 0, PER_ROW = 0, PER_COLUMN = 0, PER_ELEMENT = 0", "v2 = total;"},
        {"bias", "USES_POSITION = 0, PER_ROW = 0, PER_COLUMN = 1, PER_ELEMENT = 0",
         "kg_gelu_narrow_f32((v4) + kg_unpack_f16(in_column.e0));"},
        {"own", "USES_POSITION = 0, PER_ROW = 1, PER_COLUMN = 1, PER_ELEMENT = 0",
         "kg_gelu_tanh_f32((v6) * in_row.e0 + kg_unpack_f16(in_column.e1)) *"},
        // The residual is per element.
        {"linear", "USES_POSITION = 0, PER_ROW = 0, PER_COLUMN = 1, PER_ELEMENT = 1",
         "kg_unpack_f16(in_element);"},
        {"turned", "USES_POSITION = 1, PER_ROW = 0, PER_COLUMN = 1, PER_ELEMENT = 0", "i1 <= i0"},
        {"batches", "USES_POSITION = 1, PER_ROW = 0, PER_COLUMN = 0, PER_ELEMENT = 0",
         "kg_relu_f32("},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = make_strided(definitions, cases[i].op, LARGE " B=2", NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        struct kg_choice choice;
        struct kg_text source = {0};
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(kg_choice_source(&choice, 0, "kernel", &source));
        const char *text = kg_text_string(&source);
        bool fine = strstr(text, cases[i].flags) && strstr(text, cases[i].value);
        CHECK(fine);
        if (!fine)
            fprintf(stderr, "%s:\n%s\n", cases[i].op, strstr(text, "struct kernel_job"));
        kg_text_free(&source);
        unmake(&made);
    }
}

// Rows and columns of the output have one stride each, unless several axes lie apart in memory.
static void outputs_have_strides(void)
{
    static const struct {
        const char *text;
        bool has_strides;
    } cases[] = {
        {"op f(x: f16[M, K], w: f16[K, N]) -> (y: f16[M, N])\n"
         "{ y[m, n] = sum(k) x[m, k] * w[k, n] }",
         true},
        {"op f(x: f16[M, K], w: f16[K, H, N]) -> (y: f16[M, H, N])\n"
         "{ y[m, h, n] = sum(k) x[m, k] * w[k, h, n] }",
         true},
        {"op f(x: f16[M, K], w: f16[K, H, N]) -> (y: f16[H, M, N])\n"
         "{ y[h, m, n] = sum(k) x[m, k] * w[k, h, n] }",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct made made = make_strided(cases[i].text, "f", "M=512 N=512 K=512 H=3", NULL);
        CHECK_STATUS(made.status, KG_OK, &made.error);
        struct kg_choice choice;
        struct kg_text source = {0};
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        CHECK(choice.matches[0]->family == family);
        CHECK(kg_choice_source(&choice, 0, "kernel", &source));
        CHECK(strstr(kg_text_string(&source),
                     cases[i].has_strides ? "HAS_STRIDES_OUT = 1" : "HAS_STRIDES_OUT = 0"));
        kg_text_free(&source);
        unmake(&made);
    }
}

TEST_MAIN(operands_are_refused, tiles_are_refused, operands_are_mapped, clusters_are_launched,
          operands_are_packed, lines_are_stored_by_sector, stream_k_is_launched, empty_products,
          rule_takes_all_sizes, rule_leaves_the_rest, epilogue_values_are_separate,
          outputs_have_strides)
