// Products with quantised weights on tensor cores: what is refused, what is launched, what the rule
// chooses and, if there is NVRTC, the compiled code: products are not serialised, and the main loop
// is lean.

#include "wgmma_code.h"

#include "lang/lang.h"

#define TYPES "where T in f16 bf16\n"
static const char definitions[] =
    "op column(x: T[M, K], w: u4[K, N], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[n]) }\n"
    "op runs(x: T[M, K], w: u4[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/128, n]) }\n"
    "op zeros(x: T[M, K], w: u4[K, N], s: T[ceil(K/32), N], z: u4[ceil(K/32), N])\n"
    " -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/32, n]) * s[k/32, n]) }\n"
    "op signs(x: T[M, K], w: i4[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n]) }\n"
    "op brief(x: T[M, K], w: u4[K, N], s: T[ceil(K/8), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/8, n]) }\n"
    "op vast(x: T[M, K], w: u4[K, N], s: T[ceil(K/4294967296), N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - 8) * s[k/4294967296, n]) }\n"
    "op far(x: T[M, K], w: u4[K, N], s: T[N], z: i8[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[n]) * s[n]) }\n"
    "op along(x: T[M, K], w: u4[N, K], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - 8) * s[n]) }\n"
    "op lines(x: T[M, K], w: E[N, K], s: T[N, ceil(K/128)], z: E[N, ceil(K/128)])\n"
    " -> (y: T[M, N]) where T in f16 bf16, E in u4 i8 u8\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[n, k] - z[n, k/128]) * s[n, k/128]) }\n"
    "op float_lines(x: T[M, K], w: E[N, K], s: T[N, ceil(K/128)]) -> (y: T[M, N])\n"
    "where T in f16 bf16, E in f8e4m3 f8e5m2\n"
    "{ y[m, n] = sum(k) x[m, k] * (w[n, k] * s[n, k/128]) }\n"
    "op turned(x: T[K, M], w: u4[K, N], s: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[k, m] * ((w[k, n] - 8) * s[n]) }\n"
    "op bytes(x: T[M, K], w: E[K, N], s: T[N]) -> (y: T[M, N])\n"
    "where T in f16 bf16, E in i8 u8 f8e4m3 f8e5m2\n"
    "{ y[m, n] = (sum(k) x[m, k] * w[k, n]) * s[n] }\n"
    "op byte_runs(x: T[M, K], w: E[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N])\n"
    "where T in f16 bf16, E in i8 u8 f8e4m3 f8e5m2\n"
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n]) }\n"
    "op byte_zeros(x: T[M, K], w: E[K, N], s: T[ceil(K/32), N], z: E[ceil(K/32), N])\n"
    " -> (y: T[M, N]) where T in f16 bf16, E in i8 u8\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/32, n]) * s[k/32, n]) }\n"
    "op offset(x: T[M, K], w: u4[K, N], s: T[ceil(K/128), N], o: T[ceil(K/128), N])\n"
    " -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n] + o[k/128, n]) }\n"
    "op column_offset(x: T[M, K], w: u4[K, N], s: T[N], o: T[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - o[n]) * s[n]) }\n"
    "op byte_far(x: T[M, K], w: u8[K, N], s: T[N], z: i8[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[n]) * s[n]) }\n"
    "op experts(x: T[B, M, K], e: i32[B], w: u4[E, K, N], s: T[E, ceil(K/128), N],\n"
    "           z: u4[E, ceil(K/128), N]) -> (y: T[B, M, N]) " TYPES
    "{ y[b, m, n] = sum(k) x[b, m, k] *\n"
    "  ((w[e[b], k, n] - z[e[b], k/128, n]) * s[e[b], k/128, n]) }\n"
    "op tokens(x: T[B, M, K], e: i32[B, J], w: u4[E, K, N], s: T[E, ceil(K/128), N],\n"
    "          o: T[E, ceil(K/128), N]) -> (y: T[B, J, M, N]) " TYPES
    "{ y[b, j, m, n] = sum(k) x[b, m, k] *\n"
    "  (w[e[b, j], k, n] * s[e[b, j], k/128, n] + o[e[b, j], k/128, n]) }\n"
    "op expert_lines(x: T[B, M, K], e: i32[B], w: i8[E, N, K], s: T[E, N]) -> (y: T[B, N, "
    "M]) " TYPES "{ y[b, n, m] = (sum(k) x[b, m, k] * w[e[b], n, k]) * s[e[b], n] }\n"
    "op others(x: T[B, M, K], e: i32[B], f: i32[B], w: u4[E, K, N], s: T[E, ceil(K/128), N])\n"
    " -> (y: T[B, M, N]) " TYPES
    "{ y[b, m, n] = sum(k) x[b, m, k] * (w[e[b], k, n] * s[f[b], k/128, n]) }\n"
    "op panel_signs(x: T[M, K], w: packed i4[K, N], s: T[ceil(K/128), N]) -> (y: T[M, N])\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n]) }\n"
    "op panel_shorts(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/16), N], z: u4[ceil(K/16), N])\n"
    " -> (y: T[M, N])\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/16, n]) * s[k/16, n]) }\n"
    "op panel_offset(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/128), N], z: T[ceil(K/128), N])\n"
    " -> (y: T[M, N])\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * (w[k, n] * s[k/128, n] + z[k/128, n]) }\n"
    "op panels(x: T[M, K], w: packed u4[K, N], s: T[ceil(K/128), N], z: u4[ceil(K/128), N])\n"
    " -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/128, n]) * s[k/128, n]) }\n"
    "op rounded(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N])\n"
    " -> (y: T[M, N])\nparam G = 128\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * cast(T, (w[k, n] - z[k/G, n]) * s[k/G, n]) }\n"
    "op rounded_panels(x: T[M, K], w: packed i4[K, N], s: T[ceil(K/32), N]) -> (y: T[M, N])\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * cast(T, w[k, n] * s[k/32, n]) }\n"
    "op rounded_lines(x: T[M, K], w: i8[N, K], s: f32[N], o: T[N]) -> (y: T[M, N])\n" TYPES
    "{ y[m, n] = sum(k) x[m, k] * cast(T, w[n, k] * s[n] + o[n]) }\n"
    "op rounded_otherwise(x: f16[M, K], w: u4[K, N], s: f16[N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * cast(bf16, w[k, n] * s[n]) }\n"
    "op plain(x: T[M, K], w: T[K, N]) -> (y: T[M, N]) " TYPES
    "{ y[m, n] = sum(k) x[m, k] * w[k, n] }\n";

#define LARGE "M=64 N=4096 K=4096 T=f16"
#define SMALL_TILE "tile_m=16 tile_n=128 tile_k=64 words=2 warps=4"
#define TALL_TILE "tile_m=64 tile_n=256 stages=8"

static void what_is_refused(void)
{
    static const char no_weights[] =
        "one operand has to be an array of f16 or bf16, the other one of integers of 4 or 8 "
        "bits, less an integer and times scales, or of 8-bit floats";
    static const struct {
        const char *op, *sizes, *reason; // of either form
    } ops[] = {
        {"column", LARGE, ""},
        {"runs", LARGE, ""},
        {"zeros", LARGE, ""},
        {"signs", "M=64 N=4096 K=4096 T=bf16", ""},
        {"plain", LARGE, no_weights},
        {"brief", LARGE, "scales and zero points change within 16 steps of the sum"},
        {"vast", LARGE, "groups of more than 2^30 steps of the sum"},
        {"far", LARGE, ""},
        {"far", "M=64 N=4096 K=4096 T=bf16", "zero points are too large for 16-bit operands"},
        {"bytes", LARGE " E=i8", ""},
        {"byte_runs", LARGE " E=f8e5m2", ""},
        {"byte_runs", LARGE " E=u8", ""},
        {"column_offset", LARGE, ""},
        {"byte_far", LARGE, ""},
        {"byte_far", "M=64 N=4096 K=4096 T=bf16", "zero points are too large for 16-bit operands"},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        family = &kg_cuda_contract_scaled;
        check_reason_on("sm_80", definitions, ops[i].op, ops[i].sizes,
                        i == 2 ? "tile_m=16 tile_n=128 tile_k=32 words=2 warps=4" : SMALL_TILE,
                        ops[i].reason);
        family = &kg_cuda_contract_scaled_wgmma;
        check_reason_on("sm_90a", definitions, ops[i].op, ops[i].sizes, TALL_TILE, ops[i].reason);
    }
    check_reason_on("sm_90", definitions, "runs", LARGE, TALL_TILE,
                    "wgmma is an instruction of sm_90a");
    check_reason_on("sm_90a", definitions, "turned", LARGE, TALL_TILE,
                    "rows are not adjacent along the sum");
    check_reason_on("sm_90a", definitions, "runs", LARGE, "tile_m=64 tile_n=128 stages=8",
                    "tiles of fewer columns need weights in panels");
    check_reason_on("sm_90a", definitions, "panels", "M=512 N=4096 K=4096 T=f16",
                    "tile_m=224 tile_n=128 stages=5",
                    "a thread would need more registers than it has");
    check_reason_on("sm_90a", definitions, "panels", "M=512 N=4096 K=4096 T=bf16",
                    "tile_m=256 tile_n=128 stages=5", "");
    check_reason_on("sm_90a", definitions, "runs", LARGE, "tile_m=72 tile_n=256 stages=8",
                    "a smaller tile covers the output");
    // Tiles of more than 144 rows are not 8 rows apart.
    check_reason_on("sm_90a", definitions, "panels", "M=161 N=4096 K=4096 T=bf16",
                    "tile_m=192 tile_n=128 stages=6", "");
    check_reason_on("sm_90a", definitions, "panels", "M=160 N=4096 K=4096 T=bf16",
                    "tile_m=192 tile_n=128 stages=6", "a smaller tile covers the output");
    check_reason_on("sm_90a", definitions, "column", "M=512 N=4096 K=4096 T=f16",
                    "tile_m=128 tile_n=256 stages=12",
                    "a block would need more shared memory than there is");
    check_reason_on("sm_90a", definitions, "runs", LARGE, TALL_TILE " split_k=9",
                    "more K slices than units of work or SMs");
    check_reason_on("sm_90a", definitions, "runs", LARGE, TALL_TILE " buffered=1", "");
    check_reason_on("sm_90a", definitions, "runs", LARGE, TALL_TILE " split_k=4 buffered=1",
                    "slices of K are finished from registers");
    check_reason_on("sm_90a", definitions, "runs", LARGE,
                    "tile_m=32 tile_n=256 stages=8 buffered=1",
                    "two teams of consumers leave no room for a tile");
    check_reason_on("sm_90a", definitions, "column", "M=64 N=4100 K=4096 T=f16",
                    TALL_TILE " buffered=1", "TMA cannot store the output");
    // With one scale for a column, units are stages, and with runs of 128 two stages.
    check_reason_on("sm_90a", definitions, "runs", LARGE, "tile_m=32 tile_n=256 stages=10",
                    "a stage would be another team's in its next turn");
    check_reason_on("sm_90a", definitions, "runs", LARGE, "tile_m=32 tile_n=256 stages=12", "");
    check_reason_on("sm_90a", definitions, "column", LARGE, "tile_m=32 tile_n=256 stages=9",
                    "a stage would be another team's in its next turn");
    check_reason_on("sm_90a", definitions, "column", LARGE, "tile_m=32 tile_n=256 stages=10", "");
    check_reason_on("sm_90a", definitions, "column", LARGE, "tile_m=40 tile_n=256 stages=9", "");
    family = &kg_cuda_contract_scaled;
    check_reason_on("sm_75", definitions, "runs", LARGE, SMALL_TILE,
                    "this form needs tensor cores of sm_80 or newer");
    check_reason_on("sm_80", definitions, "offset", LARGE,
                    "tile_m=8 tile_n=128 tile_k=64 words=2 warps=4", "");
    check_reason_on("sm_80", definitions, "rounded_otherwise", LARGE, SMALL_TILE,
                    "weights are rounded to another type than that of the other operand");
    check_reason_on("sm_80", definitions, "rounded", LARGE, SMALL_TILE, "");
    check_reason_on("sm_89", definitions, "bytes", LARGE " E=f8e4m3", SMALL_TILE, "");
    check_reason_on("sm_80", definitions, "bytes", LARGE " E=f8e4m3", SMALL_TILE,
                    "before sm_89, no instruction converts f8e4m3");
    check_reason_on("sm_80", definitions, "zeros", LARGE, SMALL_TILE,
                    "scales change while a tile is multiplied");
    check_reason_on("sm_80", definitions, "turned", LARGE, SMALL_TILE, "");
    check_reason_on("sm_80", definitions, "along", LARGE, SMALL_TILE,
                    "weights that are adjacent along the sum");
    family = &kg_cuda_contract_scaled_wgmma;
    check_reason_on("sm_90a", definitions, "along", LARGE, TALL_TILE, "");
    check_reason_on("sm_90a", definitions, "lines", "M=512 N=4096 K=4096 T=f16 E=u4",
                    "tile_m=128 tile_n=256 stages=6",
                    "a thread would need more registers than it has");
    check_reason_on("sm_90a", definitions, "lines", LARGE " E=u8", "tile_m=64 tile_n=256 stages=6",
                    "");
}

// ---- Launches ----

static struct kg_grids launches(const char *op, const char *sizes, const char *values)
{
    return launches_with(definitions, op, sizes, values);
}

static void what_is_launched(void)
{
    enum { PACK, WGMMA, ANY, ROWS = 0, LAST, WEIGHTS, SCALES, ZEROS, OUT, OFFSETS };
    family = &kg_cuda_contract_scaled_wgmma;
    struct kg_grids grids = launches("zeros", "M=200 N=4096 K=4096 T=f16", TALL_TILE " split_k=0");
    CHECK(grids.grids[WGMMA].blocks[0] == 132 && grids.grids[WGMMA].threads[0] == 384);
    CHECK(grids.grids[ANY].blocks[0] == 0 && grids.unaligned[WGMMA].blocks[0] == 0);
    CHECK(grids.unaligned[ANY].blocks[0] > 0);
    CHECK(grids.grids[PACK].blocks[0] == 0);
    CHECK(grids.scratch == (size_t)8451 * 1024); // 132 partial tiles with flags
    CHECK(grids.maps[ROWS].box[1] == 64 && grids.maps[LAST].box[1] == 200 % 64);
    CHECK(grids.maps[WEIGHTS].shape[0] == 1024 && grids.maps[WEIGHTS].shape[1] == 4096 &&
          grids.maps[WEIGHTS].stride[1] == 2048 && grids.maps[WEIGHTS].box[0] == 64);
    CHECK(grids.maps[SCALES].shape[0] == 4096 && grids.maps[SCALES].shape[1] == 128 &&
          grids.maps[SCALES].box[0] == 256 && grids.maps[SCALES].box[1] == 2);
    CHECK(grids.maps[ZEROS].shape[0] == 1024 && grids.maps[ZEROS].box[0] == 64);
    // Tiles that TMA stores have a place in shared memory, and the output a map.
    CHECK(grids.map_count == 5 && grids.grids[WGMMA].shared == 1024 + 8 * (18 * 1024 + 16));
    grids = launches("zeros", "M=200 N=4096 K=4096 T=f16", TALL_TILE " split_k=1 buffered=1");
    CHECK(grids.map_count == 6 &&
          grids.grids[WGMMA].shared == 1024 + 8 * (18 * 1024 + 16) + 64 * 256 * 2);
    CHECK(grids.maps[OUT].shape[0] == 4096 && grids.maps[OUT].shape[1] == 200 &&
          grids.maps[OUT].box[0] == 64 && grids.maps[OUT].box[1] == 64);
    // Whole tiles need no scratch.
    grids = launches("column", "M=200 N=4096 K=4096 T=f16", TALL_TILE " split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 64 && grids.scratch == 0);
    // Slices of equal length.
    grids =
        launches("column", "M=20 N=4096 K=4096 T=f16", "tile_m=24 tile_n=256 stages=8 split_k=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 128);
    // For each of 132 blocks a partial tile and, for each consumer, a flag for each of 8 readers.
    CHECK(grids.scratch == (132 * (24 * 256 * 4 + 2 * 8 * 8) + 1023) / 1024 * 1024);
    // As many slices as there are SMs for, and whole tiles where these are enough.
    grids =
        launches("column", "M=20 N=6144 K=4096 T=f16", "tile_m=24 tile_n=256 stages=8 split_k=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 24 * 5);
    grids =
        launches("column", "M=90 N=6144 K=4096 T=f16", "tile_m=24 tile_n=256 stages=8 split_k=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 24 * 4);
    grids =
        launches("column", "M=200 N=6144 K=4096 T=f16", "tile_m=24 tile_n=256 stages=8 split_k=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 132);
    // So are small products that the gate tries.
    grids = launches("column", "M=3 N=32 K=8 T=f16", "tile_m=24 tile_n=256 stages=8 split_k=8");
    CHECK(grids.grids[WGMMA].blocks[0] == 1 && grids.grids[ANY].blocks[0] == 0);
    // Words of weights that TMA cannot load in place are copied, without a map.
    grids = launches("zeros", "M=200 N=4104 K=4096 T=f16", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 0 && grids.grids[WGMMA].blocks[0] == 68);
    CHECK(grids.scratch == 0 && grids.maps[SCALES].rank == 3);
    CHECK(grids.maps[WEIGHTS].rank == 0 && grids.maps[ZEROS].rank == 0);
    // If their lines are no whole words, they are packed.
    grids = launches("column", "M=200 N=4102 K=4096 T=f16", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 2048 && grids.grids[WGMMA].blocks[0] == 68);
    CHECK(grids.scratch == (size_t)4096 * 17 * 128);
    CHECK(grids.maps[WEIGHTS].tensor == KG_MAP_SCRATCH && grids.maps[WEIGHTS].offset == 0);
    // So is a single line that ends within an element of its map, which TMA would read behind.
    grids = launches("column", "M=1 N=42 K=1 T=f16", "tile_m=8 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 1 && grids.grids[WGMMA].blocks[0] == 1);
    // Bytes: two boxes of 128 columns a line; lines of 16 columns are whole, words have four.
    grids =
        launches("byte_zeros", "M=200 N=4112 K=4096 T=f16 E=u8", "tile_m=64 tile_n=256 stages=6");
    CHECK(grids.grids[WGMMA].blocks[0] == 132 && grids.grids[WGMMA].shared == 1024 + 6 * 26640);
    CHECK(grids.maps[WEIGHTS].shape[0] == 2056 && grids.maps[WEIGHTS].stride[1] == 4112 &&
          grids.maps[WEIGHTS].box[0] == 64 && grids.maps[WEIGHTS].swizzle == 128);
    CHECK(grids.maps[ZEROS].shape[0] == 2056 && grids.maps[ZEROS].box[0] == 128);
    grids = launches("bytes", "M=200 N=4100 K=4096 T=f16 E=i8", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 0 && grids.maps[WEIGHTS].rank == 0);
    grids = launches("bytes", "M=200 N=4102 K=4096 T=f16 E=i8", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 2048 && grids.scratch == (size_t)4096 * 17 * 256);
    // Lines along K: one box of four times 64 columns; lines that TMA cannot load are packed, as
    // many as are a multiple of four.
    grids = launches("along", "M=200 N=4100 K=4096 T=f16", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 0 && grids.maps[WEIGHTS].rank == 4);
    CHECK(grids.maps[WEIGHTS].shape[0] == 1024 && grids.maps[WEIGHTS].shape[1] == 1025 &&
          grids.maps[WEIGHTS].shape[2] == 4 && grids.maps[WEIGHTS].stride[1] == 4 * 2048 &&
          grids.maps[WEIGHTS].stride[2] == 2048 && grids.maps[WEIGHTS].swizzle == 32);
    CHECK(grids.maps[WEIGHTS].box[0] == 16 && grids.maps[WEIGHTS].box[1] == 64 &&
          grids.maps[WEIGHTS].box[2] == 4);
    grids = launches("along", "M=200 N=4102 K=4104 T=f16", TALL_TILE " split_k=1");
    CHECK(grids.grids[PACK].blocks[0] == 2048 && grids.scratch == (size_t)4104 * 2064);
    CHECK(grids.maps[WEIGHTS].tensor == KG_MAP_SCRATCH && grids.maps[WEIGHTS].shape[1] == 1026);
    grids = launches("float_lines", "M=200 N=4096 K=4096 T=f16 E=f8e4m3",
                     "tile_m=64 tile_n=256 stages=6");
    CHECK(grids.maps[WEIGHTS].shape[0] == 2048 && grids.maps[WEIGHTS].box[0] == 32 &&
          grids.maps[WEIGHTS].swizzle == 64);
    // Offsets have a map, behind those that all kernels have.
    grids = launches("offset", "M=200 N=4096 K=4096 T=f16", "tile_m=64 tile_n=256 stages=6");
    CHECK(grids.map_count == 7 && grids.maps[OUT].rank == 0);
    CHECK(grids.maps[OFFSETS].box[0] == 256 && grids.maps[OFFSETS].shape[1] == 32);
    grids = launches("column_offset", "M=200 N=4096 K=4096 T=f16", "tile_m=64 tile_n=256 stages=6");
    CHECK(grids.map_count == 5 && grids.grids[WGMMA].blocks[0] > 0);
    // Matrices that the batch chooses from are the last dimension of weights, scales, zero points
    // and offsets; that of rows has what the batch moves them by.
    grids = launches("experts", "B=6 M=20 N=4096 K=4096 E=9 T=f16",
                     "tile_m=24 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 96 && grids.grids[ANY].blocks[0] == 0);
    CHECK(grids.maps[ROWS].shape[2] == 6 && grids.maps[ROWS].stride[2] == 20 * 4096 * 2);
    CHECK(grids.maps[WEIGHTS].shape[2] == 9 && grids.maps[WEIGHTS].stride[2] == 4096 * 2048);
    CHECK(grids.maps[SCALES].shape[2] == 9 && grids.maps[SCALES].stride[2] == 32 * 4096 * 2);
    CHECK(grids.maps[ZEROS].shape[2] == 9 && grids.maps[ZEROS].stride[2] == 32 * 2048);
    grids = launches("tokens", "B=5 M=1 J=2 N=4096 K=4096 E=9 T=f16",
                     "tile_m=8 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 132 && grids.maps[WEIGHTS].shape[2] == 9);
    CHECK(grids.maps[ROWS].shape[2] == 5 && grids.maps[ROWS].stride[2] == 4096 * 2);
    CHECK(grids.map_count == 7 && grids.maps[OFFSETS].shape[2] == 9);
    grids = launches("expert_lines", "B=6 M=20 N=4096 K=4096 E=9 T=f16",
                     "tile_m=24 tile_n=256 stages=8 split_k=1 swap=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 96 && grids.maps[WEIGHTS].rank == 4 &&
          grids.maps[WEIGHTS].shape[3] == 9 && grids.maps[WEIGHTS].stride[3] == 4096 * 4096);
    // Scales that another index chooses are loaded by lanes.
    grids = launches("others", "B=6 M=20 N=4096 K=4096 E=9 T=f16",
                     "tile_m=24 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 96 && grids.maps[SCALES].rank == 0);
    // They are never packed: a copy for each item would be too much.
    grids = launches("experts", "B=6 M=20 N=4104 K=4096 E=9 T=f16",
                     "tile_m=24 tile_n=256 stages=8 split_k=1");
    CHECK(grids.grids[WGMMA].blocks[0] == 0 && grids.grids[ANY].blocks[0] > 0);
    // What it cannot load at all, and sums of nothing, are another function's.
    static const char *const others[] = {"M=200 N=4101 K=4096 T=f16", "M=200 N=4096 K=4095 T=f16",
                                         "M=200 N=77 K=33 T=f16", "M=200 N=4096 K=0 T=f16"};
    for (int i = 0; i < 4; i++) {
        grids = launches("runs", others[i], TALL_TILE);
        CHECK(grids.grids[WGMMA].blocks[0] == 0 && grids.grids[ANY].blocks[0] > 0);
    }
    grids = launches("runs", "M=0 N=4096 K=4096 T=f16", TALL_TILE);
    CHECK(grids.grids[WGMMA].blocks[0] == 0 && grids.grids[ANY].blocks[0] == 0);
    family = &kg_cuda_contract_scaled;
    grids = launches("runs", "M=16 N=4096 K=4096 T=f16", SMALL_TILE " split_k=4");
    CHECK(grids.count == 3 && grids.grids[0].blocks[0] == 32 * 4 && grids.grids[2].blocks[0] > 0);
    CHECK(grids.scratch == (size_t)4 * 16 * 4096 * 4);
    grids = launches("runs", "M=16 N=4100 K=4096 T=f16", SMALL_TILE " split_k=1");
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 33);
    // Four elements of a row are loaded at once.
    grids = launches("runs", "M=16 N=4096 K=4100 T=f16", SMALL_TILE " split_k=1");
    CHECK(grids.grids[0].blocks[0] == 32 && grids.grids[1].blocks[0] == 0);
    grids = launches("runs", "M=16 N=4096 K=4102 T=f16", SMALL_TILE " split_k=1");
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 32);
}

// ---- The rule ----

// `wanted` NULL: any family will do.
static void check_rule(const char *op, const char *sizes, const struct kg_family *wanted)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    if (made.status == KG_OK) {
        struct kg_choice choice;
        kg_choice_guess(made.problem, &facts, &kg_target_cuda, &choice);
        bool fine = choice.count == 1 && is_valid(choice.matches[0], &choice.configs[0]) &&
                    (!wanted || choice.matches[0]->family == wanted);
        CHECK(fine);
        if (!fine)
            fprintf(stderr, "%s %s: %s\n", op, sizes, choice.matches[0]->family->name);
    }
    unmake(&made);
}

// What the form's rule launches.
static struct kg_grids ruled(const char *op, const char *sizes)
{
    struct made made = make_strided(definitions, op, sizes, NULL);
    const struct kg_match *match = match_all(&made);
    struct kg_config config;
    struct kg_grids grids = {0};
    family->guess(match, &config);
    family->grids(match, &config, &grids);
    unmake(&made);
    return grids;
}

static void what_the_rule_takes(void)
{
    static const char *const ops[] = {"column", "runs", "signs"};
    for (int i = 0; i < 3; i++) {
        check_rule(ops[i], "M=16 N=28672 K=4096 T=f16", &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=64 N=4096 K=4096 T=bf16", &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=4096 N=4096 K=4096 T=f16", &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=4 N=4104 K=4096 T=f16", &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=4 N=4102 K=4096 T=f16",
                   i > 0 ? &kg_cuda_contract_scaled : &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=1024 N=4104 K=4096 T=f16", &kg_cuda_contract_scaled_wgmma);
        check_rule(ops[i], "M=0 N=4096 K=4096 T=f16", NULL);
        check_rule(ops[i], "M=4 N=0 K=4096 T=f16", NULL);
        check_rule(ops[i], "M=4 N=4096 K=0 T=f16", NULL);
    }
    check_rule("bytes", "M=16 N=28672 K=4096 T=f16 E=i8", &kg_cuda_contract_scaled_wgmma);
    check_rule("byte_runs", "M=64 N=4096 K=4096 T=bf16 E=f8e4m3", &kg_cuda_contract_scaled_wgmma);
    check_rule("byte_zeros", "M=1000 N=4104 K=4096 T=f16 E=u8", &kg_cuda_contract_scaled_wgmma);
    check_rule("lines", "M=16 N=28672 K=4096 T=f16 E=u4", &kg_cuda_contract_scaled_wgmma);
    check_rule("float_lines", "M=64 N=4096 K=4096 T=bf16 E=f8e4m3", &kg_cuda_contract_scaled_wgmma);
    check_rule("rounded", "M=16 N=28672 K=4096 T=f16", &kg_cuda_contract_scaled_wgmma);
    check_rule("rounded", "M=1024 N=4096 K=4096 T=bf16", &kg_cuda_contract_scaled_wgmma);
    check_rule("rounded_panels", "M=1 N=28672 K=4096 T=f16", &kg_cuda_contract_packed);
    check_rule("rounded_lines", "M=64 N=4096 K=4096 T=bf16", &kg_cuda_contract_scaled_wgmma);
    check_rule("bytes", "M=0 N=4096 K=4096 T=f16 E=i8", NULL);
    check_rule("experts", "B=8 M=64 N=4096 K=4096 E=8 T=f16", &kg_cuda_contract_scaled_wgmma);
    check_rule("experts", "B=64 M=1 N=4096 K=4096 E=64 T=bf16", &kg_cuda_contract_scaled_wgmma);
    check_rule("tokens", "B=16 M=1 J=2 N=14336 K=4096 E=8 T=f16", &kg_cuda_contract_scaled_wgmma);
    check_rule("tokens", "B=3 M=1 J=2 N=4104 K=4096 E=8 T=f16", &kg_cuda_contract_scaled);
    check_rule("expert_lines", "B=8 M=64 N=4096 K=4096 E=8 T=f16", &kg_cuda_contract_scaled_wgmma);
    check_rule("others", "B=8 M=64 N=4096 K=4096 E=8 T=f16", &kg_cuda_contract_scaled_wgmma);
    // Lanes load whole words where they can.
    static const char *const sizes[] = {"M=1 N=18776 K=15872 T=f16", "M=3 N=2232 K=7584 T=f16",
                                        "M=9 N=1000 K=4096 T=f16", "M=2 N=808 K=30000 T=f16"};
    family = &kg_cuda_contract_scaled;
    for (int i = 0; i < 4; i++) {
        struct kg_grids grids = ruled("signs", sizes[i]);
        CHECK(grids.grids[0].blocks[0] > 0 && grids.grids[1].blocks[0] == 0);
    }
    // Tiles are buffered where TMA can store them, a block's only one too: a sixth map.
    family = &kg_cuda_contract_scaled_wgmma;
    CHECK(ruled("rounded_panels", "M=4096 N=16384 K=640 T=f16").map_count == 6);
    CHECK(ruled("runs", "M=4096 N=16384 K=640 T=bf16").map_count == 6);
    CHECK(ruled("rounded_panels", "M=4096 N=16388 K=640 T=f16").map_count == 5);
    CHECK(ruled("rounded_panels", "M=500 N=3072 K=1024 T=f16").map_count == 6);
    CHECK(ruled("rounded_panels", "M=500 N=3076 K=1024 T=f16").map_count == 5);
}

// Tiles have no more rows than so many of them need. Few of them are cut into slices, for most SMs.
static void tiles_of_the_rule(void)
{
    enum { WGMMA = 1, ROWS = 0 };
    static const int rows[] = {17, 65, 100, 130, 150, 193, 230, 280, 300, 546, 1000};
    family = &kg_cuda_contract_scaled_wgmma;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sizes[64];
        snprintf(sizes, sizeof sizes, "M=%d N=2048 K=4096 T=f16", rows[i]);
        int tile = ruled("rounded_panels", sizes).maps[ROWS].box[1], smaller = tile - 8;
        if (tile > 144)
            smaller = tile == 160 ? 144 : tile - 32;
        CHECK(tile > 0 && (smaller == 0 || (rows[i] - 1) / smaller > (rows[i] - 1) / tile));
    }
    // Rows are most of what tiles of 128 columns load: too much where lines begin within sectors.
    CHECK(ruled("rounded_panels", "M=4316 N=3544 K=10848 T=f16").maps[ROWS].box[1] == 256);
    CHECK(ruled("rounded_panels", "M=4316 N=3544 K=10856 T=f16").maps[ROWS].box[1] == 128);
    struct kg_grids grids = ruled("rounded_panels", "M=100 N=1024 K=8192 T=f16");
    CHECK(grids.grids[WGMMA].blocks[0] >= 112 && grids.scratch > 0);
}

// ---- Compiled code ----

static const struct {
    const char *op, *sizes, *values;
    double most; // instructions for a product, conversion included
} tall[] = {
    {"column", LARGE, "tile_m=64 tile_n=256 stages=8 split_k=1", 21},
    {"column", "M=512 N=4096 K=4096 T=f16", "tile_m=112 tile_n=256 stages=5", 20},
    {"column", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=6", 22},
    {"runs", "M=1 N=4096 K=4096 T=f16", "tile_m=8 tile_n=256 stages=12", 25},
    {"runs", "M=512 N=4096 K=4096 T=f16", "tile_m=96 tile_n=256 stages=6", 28},
    {"runs", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=8", 33},
    {"signs", "M=512 N=4096 K=4096 T=bf16", "tile_m=64 tile_n=256 stages=8", 29},
    {"zeros", "M=512 N=4096 K=4096 T=f16", "tile_m=64 tile_n=256 stages=8 split_k=1", 60},
    {"zeros", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=4 split_k=1", 80},
    {"bytes", LARGE " E=i8", "tile_m=64 tile_n=256 stages=7 split_k=1", 21},
    {"bytes", "M=1 N=4096 K=4096 T=bf16 E=u8", "tile_m=8 tile_n=256 stages=8", 34},
    {"bytes", "M=512 N=4096 K=4096 T=f16 E=f8e4m3", "tile_m=128 tile_n=256 stages=6", 20},
    {"bytes", "M=512 N=4096 K=4096 T=bf16 E=f8e5m2", "tile_m=128 tile_n=256 stages=6", 28},
    {"byte_runs", "M=1 N=4096 K=4096 T=f16 E=f8e4m3", "tile_m=8 tile_n=256 stages=8", 36},
    {"byte_runs", "M=512 N=4096 K=4096 T=f16 E=i8", "tile_m=128 tile_n=256 stages=6", 32},
    {"byte_runs", "M=512 N=4096 K=4096 T=bf16 E=i8", "tile_m=128 tile_n=256 stages=6", 39},
    {"byte_runs", "M=512 N=4096 K=4096 T=bf16 E=f8e4m3", "tile_m=128 tile_n=256 stages=6", 58},
    {"byte_runs", "M=32 N=4096 K=4096 T=bf16 E=f8e5m2", "tile_m=32 tile_n=256 stages=8", 52},
    {"offset", "M=1 N=4096 K=4096 T=f16", "tile_m=8 tile_n=256 stages=8", 33},
    {"offset", "M=512 N=4096 K=4096 T=f16", "tile_m=64 tile_n=256 stages=6", 44},
    {"offset", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=6", 70},
    {"offset", "M=32 N=4096 K=4096 T=bf16", "tile_m=32 tile_n=256 stages=8", 38},
    {"column_offset", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=6", 41},
    {"along", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=6", 31},
    {"lines", "M=1 N=4096 K=4096 T=f16 E=u4", "tile_m=8 tile_n=256 stages=8", 35},
    {"lines", "M=512 N=4096 K=4096 T=f16 E=u4", "tile_m=120 tile_n=256 stages=6", 40},
    {"lines", "M=512 N=4096 K=4096 T=bf16 E=u8", "tile_m=120 tile_n=256 stages=5", 54},
    {"lines", "M=16 N=4096 K=4096 T=f16 E=i8", "tile_m=16 tile_n=256 stages=8", 36},
    {"float_lines", "M=512 N=4096 K=4096 T=f16 E=f8e4m3", "tile_m=128 tile_n=256 stages=6", 60},
    {"float_lines", "M=1 N=4096 K=4096 T=bf16 E=f8e5m2", "tile_m=8 tile_n=256 stages=8", 70},
    {"experts", "B=8 M=512 N=4096 K=4096 E=9 T=f16", "tile_m=64 tile_n=256 stages=8", 40},
    {"tokens", "B=9 J=2 M=64 N=4096 K=4096 E=9 T=bf16", "tile_m=64 tile_n=256 stages=6", 50},
    {"expert_lines", "B=8 M=512 N=4096 K=4096 E=9 T=f16", "tile_m=64 tile_n=256 stages=6 swap=1",
     30},
    {"panels", "M=512 N=4096 K=4096 T=f16", "tile_m=128 tile_n=256 stages=8", 30},
    {"panels", "M=64 N=4096 K=4096 T=bf16", "tile_m=64 tile_n=256 stages=8", 30},
    {"panels", "M=512 N=4096 K=4096 T=f16", "tile_m=192 tile_n=128 stages=6", 50},
    {"panels", "M=512 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 stages=5", 50},
    {"panel_signs", "M=512 N=4096 K=4096 T=f16", "tile_m=192 tile_n=128 stages=6", 50},
    {"panel_shorts", "M=512 N=4096 K=4096 T=f16", "tile_m=192 tile_n=128 stages=5", 170},
    {"panel_shorts", "M=512 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 stages=5", 210},
    {"panel_offset", "M=512 N=4096 K=4096 T=f16", "tile_m=192 tile_n=128 stages=5", 130},
    {"panel_offset", "M=512 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 stages=5", 170},
    {"rounded_panels", "M=512 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 stages=6", 35},
    {"rounded_panels", "M=512 N=4096 K=4096 T=bf16", "tile_m=256 tile_n=128 stages=4 buffered=1",
     35},
    {"panel_signs", "M=512 N=4096 K=4096 T=f16", "tile_m=192 tile_n=128 stages=5 buffered=1", 50},
    {"panels", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=5 buffered=1", 40},
    {"rounded_panels", "M=512 N=4096 K=4096 T=f16", "tile_m=256 tile_n=128 stages=6", 35},
    {"rounded", "M=512 N=4096 K=4096 T=f16", "tile_m=128 tile_n=256 stages=8", 26},
    {"rounded", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=8", 30},
    {"rounded", "M=1 N=4096 K=4096 T=f16", "tile_m=8 tile_n=256 stages=8", 30},
    {"rounded_panels", "M=512 N=4096 K=4096 T=f16", "tile_m=128 tile_n=256 stages=8", 26},
    {"rounded_lines", "M=512 N=4096 K=4096 T=bf16", "tile_m=128 tile_n=256 stages=5", 64},
    {"byte_zeros", "M=512 N=4096 K=4096 T=f16 E=u8", "tile_m=64 tile_n=256 stages=6", 60},
    {"byte_zeros", "M=512 N=4096 K=4096 T=bf16 E=i8", "tile_m=128 tile_n=256 stages=4", 86},
};

// In the smallest loop with products; around it, tiles may spill what they need at their end.
static bool spills_in_main_loop(const struct kg_asm_kernel *kernel)
{
    double least = INFINITY;
    bool spills = false;
    for (int32_t i = 0; i < kernel->flow.loop_count; i++) {
        const struct kg_asm_loop *loop = &kernel->loops[i];
        if (loop->mix.count[KG_WORK_TENSOR] == 0 || kg_mix_total(&loop->mix) >= least)
            continue;
        least = kg_mix_total(&loop->mix);
        spills = loop->spill_loads + loop->spill_stores > 0;
    }
    return spills;
}

static bool tall_compiles(struct kg_device *device, size_t which)
{
    struct kg_binary binary = {0};
    family = &kg_cuda_contract_scaled_wgmma;
    enum kg_status status = compile(device, definitions, tall[which].op, tall[which].sizes,
                                    tall[which].values, &binary);
    if (status != KG_OK)
        return status != KG_ERROR_MISSING;
    struct kg_arena arena = {0};
    struct kg_asm_file code = {0}, log = {0};
    CHECK_STATUS(kg_asm_read(binary.bytes, binary.length, &arena, &code, &error), KG_OK, &error);
    CHECK_STATUS(kg_asm_log_read(binary.log, strlen(binary.log), &arena, &log, &error), KG_OK,
                 &error);
    for (int i = 0; i < log.kernel_count; i++) {
        CHECK(log.kernels[i].advice_count == 0);
        if (log.kernels[i].advice_count > 0)
            fprintf(stderr, "%s: %s\n", tall[which].values, log.kernels[i].advice[0].text);
    }
    CHECK(code.kernel_count == 3);
    const struct kg_asm_kernel *kernel = kg_asm_find(&code, "kernel_1");
    CHECK(kernel && count_of(kernel, "HGMMA") > 0 && count_of(kernel, "UTMALDG") > 0);
    bool spills = is_current && kernel && spills_in_main_loop(kernel);
    CHECK(!spills);
    if (spills)
        fprintf(stderr, "%s %s spills in its main loop\n", tall[which].op, tall[which].values);
    if (kernel) {
        double all, products = products_of(kernel, &all);
        bool lean = products >= 4 && (all <= tall[which].most * products || !is_current);
        CHECK(lean);
        if (!lean)
            fprintf(stderr, "%s %s: %.0f products in %.0f instructions\n", tall[which].op,
                    tall[which].values, products, all);
    }
    kg_arena_free(&arena);
    kg_binary_free(&binary);
    return true;
}

static void tall_tiles_compile(void)
{
    compile_cases(sizeof tall / sizeof *tall, tall_compiles);
}

TEST_MAIN(what_is_refused, what_is_launched, what_the_rule_takes, tiles_of_the_rule,
          tall_tiles_compile)
