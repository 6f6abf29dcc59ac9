// The contract families for CUDA: which products they take, why they refuse configs, what they
// launch and, if there is NVRTC, that each form compiles for every kind of operand.

#include "base/files.h"
#include "cuda_choice.h"
#include "support/config_text.h"
#include "support/folder.h"

static const char definitions[] =
    "op nn(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op nt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[m, k] * b[n, k] }\n"
    "op tn(a: T[K, M], b: T[K, N]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[k, m] * b[k, n] }\n"
    "op tt(a: T[K, M], b: T[N, K]) -> (c: T[M, N]) where T in f32 f16 bf16 f64\n"
    "{ c[m, n] = sum(k) a[k, m] * b[n, k] }\n"
    "op batched(a: T[B, M, K], b: T[B, K, N]) -> (c: T[B, M, N]) where T in f16 f32\n"
    "{ c[i, m, n] = sum(k) a[i, m, k] * b[i, k, n] }\n"
    "op layer(x: T[B, M, K], w: T[N, K], bias: T[N], r: T[B, M, N]) -> (s: T[B, M, N], y: T[B, M, "
    "N]) where T in f16 f32\n"
    "{ s[i, m, n] = sum(k) x[i, m, k] * w[n, k]\n"
    "  y[i, m, n] = gelu(s[i, m, n] + bias[n]) + r[i, m, n] }\n"
    "op integers(a: i8[M, K], b: i8[K, N]) -> (c: i32[M, N])\n"
    "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n"
    "op w4(x: T[M, K], w: u4[K, N], s: T[ceil(K/G), N], z: u4[ceil(K/G), N]) -> (y: T[M, N])\n"
    "param G = 128\nwhere T in f16 bf16\n"
    "{ y[m, n] = sum(k) x[m, k] * ((w[k, n] - z[k/G, n]) * s[k/G, n]) }\n"
    "op vector(a: T[M, K], x: T[K]) -> (y: T[M]) where T in f16 f32 f64\n"
    "{ y[m] = sum(k) a[m, k] * x[k] }\n"
    // Names that the job uses itself.
    "op names(rows: f32[M, depth], a_at: f32[depth, N], element: f32[N]) -> (given: f32[M, N], "
    "job: "
    "f32[M, N])\n"
    "{ given[m, n] = (sum(k) rows[m, k] * a_at[k, n]) * element[n]\n"
    "  job[m, n] = relu(given[m, n]) }\n"
    "op gated(x: T[M, K], g: T[N, K], u: T[N, K]) -> (y: T[M, N]) where T in f16 f32\n"
    "{ p[m, n] = sum(k) x[m, k] * g[n, k]\n"
    "  q[m, n] = sum(k) x[m, k] * u[n, k]\n"
    "  y[m, n] = silu(p[m, n]) * q[m, n] }\n"
    "op ahead(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N])\n"
    "{ h[m, k] = relu(x[m, k])\n  y[m, n] = sum(k) h[m, k] * w[k, n] }\n"
    "op triangle(a: f32[M, M], b: f32[M, M]) -> (c: f32[M, M])\n"
    "{ c[m, n] = sum(k <= m) a[m, k] * b[k, n] }\n";

static char folder[] = "/tmp/kg-test-cuda-contract-XXXXXX";

static void describe_device(void)
{
    describe_gpu("h100", "sm_90a");
    facts.flops[KG_TYPE_F32] = 67e12;
}

static void check_choice(const char *op, const char *sizes, const char *wanted)
{
    check_choice_of(definitions, op, sizes, wanted);
}

static void test_takers(void)
{
    check_choice("nn", "T=f64 M=256 N=256 K=64", "contract/tile: tile_m=32 tile_n=32 tile_k=32");
    check_choice("nn", "T=f64 M=128 N=128 K=65536",
                 "contract/tile: tile_m=32 tile_n=32 tile_k=32 split_k=16");
    check_choice("nn", "M=0 N=5 K=7", "direct: ");
    check_choice("nn", "M=5 N=5 K=0", "direct: ");
    check_choice("nn", "T=f64 M=4096 N=4096 K=4096",
                 "contract/tile: tile_m=64 tile_n=64 tile_k=16");
    check_choice("nt", "T=f16 M=1 N=4096 K=4096", "contract/thin: tile_m=1 tile_n=4 tile_k=2048");
    check_choice("nn", "T=f16 M=7 N=28672 K=8192", "contract/thin: tile_m=8 tile_n=128 tile_k=16");
    check_choice("nt", "T=f16 M=4096 N=2 K=4096",
                 "contract/thin: tile_m=2 tile_n=4 tile_k=2048 stages=2 split_k=1 swap=1");
    check_choice("vector", "T=f16 M=4096 K=4096", "contract/thin: tile_m=1 tile_n=4 tile_k=2048");
    check_choice("layer", "M=512 N=512 K=512 B=2", "contract/mma*3: ");
    check_choice("integers", "M=512 N=512 K=512", "contract/mma_i8: ");
    check_choice("w4", "T=f16 M=512 N=512 K=512", "contract/scaled_wgmma: ");
    check_choice("gated", "M=512 N=512 K=512", "contract/mma: ");
    check_choice("ahead", "M=512 N=512 K=512", "pointwise: ");
    check_choice("triangle", "M=64", "direct: ");
}

// A NULL reason: the form has no such parameter or no such value.
static const struct {
    const char *op, *sizes, *family, *config, *reason;
} refused[] = {
    {"nn", "M=512 N=512 K=512", "contract/tile",
     "tile_m=128 tile_n=128 tile_k=16 split_k=1 cluster_m=2", NULL},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=64 tile_n=64 tile_k=16 split_k=1 stages=2",
     NULL},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=64 tile_n=64 tile_k=16 split_k=1 swap=1",
     NULL},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=128 tile_n=128 tile_k=64 split_k=1", NULL},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=8 tile_n=128 tile_k=16 split_k=1", NULL},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=16 tile_n=16 tile_k=16 split_k=1",
     "the threads of a block cannot divide such a tile"},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=128 tile_n=128 tile_k=32 split_k=1",
     "a block would need more shared memory than there is"},
    {"nn", "M=512 N=512 K=512", "contract/tile", "tile_m=64 tile_n=64 tile_k=16 split_k=64",
     "split_k is larger than the number of K tiles"},
    {"nt", "M=2 N=512 K=5120", "contract/thin",
     "tile_m=2 tile_n=4 tile_k=1024 stages=2 split_k=1 pingpong=1", NULL},
    {"nt", "M=2 N=512 K=5120", "contract/thin",
     "tile_m=2 tile_n=4 tile_k=1024 stages=2 split_k=1 raster=1", NULL},
    {"nn", "M=512 N=512 K=512", "contract/thin", "tile_m=8 tile_n=64 tile_k=16 stages=1 split_k=1",
     "the larger operand would be read more than twice"},
    {"nn", "M=2 N=512 K=512", "contract/thin", "tile_m=8 tile_n=64 tile_k=16 stages=1 split_k=1",
     "half of the rows cover the output"},
    {"nn", "M=2 N=512 K=512", "contract/thin", "tile_m=2 tile_n=1 tile_k=16 stages=1 split_k=1",
     "such a tile takes too few threads, or too many"},
    {"nt", "M=2 N=512 K=512", "contract/thin", "tile_m=2 tile_n=1 tile_k=128 stages=1 split_k=1",
     "the threads of a block cannot divide such a tile"},
    {"nt", "M=2 N=512 K=5120", "contract/thin", "tile_m=2 tile_n=8 tile_k=1024 stages=4 split_k=1",
     "a thread would have too many loads in flight"},
};

static void test_refusals(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct made made = make_strided(definitions, refused[i].op, refused[i].sizes, NULL);
        const struct kg_family *family = kg_target_family(&kg_target_cuda, refused[i].family);
        const struct kg_group group = {made.problem, 0, 1};
        struct kg_space space;
        struct kg_config config;
        struct kg_text reason = {0};
        CHECK_STATUS(made.status, KG_OK, &made.error);
        const struct kg_match *match = kg_match_find(family, &group, &facts, NULL);
        CHECK(match != NULL);
        family->space(match, &space);
        bool read = config_with(&space, refused[i].config, &config);
        CHECK(read == (refused[i].reason != NULL));
        if (read) {
            CHECK(!family->valid(match, &config, &reason));
            CHECK_TEXT(kg_text_string(&reason), refused[i].reason);
        }
        kg_text_free(&reason);
        unmake(&made);
    }
}

// ---- Launches ----

static struct kg_grids launches(const char *op, const char *sizes, const char *words)
{
    struct kg_grids grids = launches_of(definitions, op, sizes, words);
    CHECK(grids.count > 0);
    return grids;
}

static void test_launches(void)
{
    static const char tile[] =
        "contract/tile: tile_m=64 tile_n=64 tile_k=16 split_k=1 raster=0 maxnreg=0";
    static const char split[] =
        "contract/tile: tile_m=64 tile_n=64 tile_k=16 split_k=4 raster=0 maxnreg=0";
    static const char thin[] =
        "contract/thin: tile_m=2 tile_n=4 tile_k=1024 stages=1 split_k=1 swap=0 maxnreg=0";
    struct kg_grids grids = launches("nn", "M=512 N=256 K=512", tile);
    CHECK(grids.count == 2 && grids.alignment == 16 && grids.scratch == 0);
    CHECK(grids.grids[0].blocks[0] == 32 && grids.grids[1].blocks[0] == 0);
    CHECK(grids.unaligned[0].blocks[0] == 0 && grids.unaligned[1].blocks[0] == 32);
    grids = launches("nn", "M=513 N=255 K=512", tile); // lines of b are not aligned
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 9 * 4);
    grids = launches("nn", "M=1 N=1 K=1", tile);
    CHECK(grids.grids[1].blocks[0] == 1 && grids.grids[1].threads[0] == 128);
    grids = launches("nn", "M=0 N=64 K=64", split);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 0);
    CHECK(grids.grids[2].blocks[0] == 0 && grids.scratch == 0);
    grids = launches("nn", "M=64 N=64 K=0", tile); // sums over nothing are written too
    CHECK(grids.grids[0].blocks[0] + grids.grids[1].blocks[0] == 1);
    grids = launches("nn", "M=64 N=64 K=64", split);
    CHECK(grids.grids[0].blocks[0] == 4 && grids.unaligned[1].blocks[0] == 4);
    CHECK(grids.grids[2].blocks[0] == 16 && grids.scratch == 64 * 64 * 4 * 4);
    grids = launches("nt", "M=2 N=1001 K=4096", thin);
    CHECK(grids.count == 3 && grids.grids[0].blocks[0] == 251 && grids.grids[0].threads[0] == 256);
    grids = launches("nt", "M=2 N=1001 K=4097", thin);
    CHECK(grids.grids[0].blocks[0] == 0 && grids.grids[1].blocks[0] == 251);
    // With few columns b is not K-major: only a is read in vectors.
    grids = launches("tt", "M=2 N=1001 K=4096", thin);
    CHECK(grids.count == 2 && grids.grids[0].blocks[0] == 251);
    grids = launches(
        "vector", "M=1000 K=4096",
        "contract/thin: tile_m=1 tile_n=4 tile_k=1024 stages=1 split_k=2 swap=0 maxnreg=0");
    CHECK(grids.count == 4 && grids.grids[0].blocks[0] == 500 && grids.grids[3].blocks[0] == 4);
    CHECK(grids.scratch == 1000 * 2 * 4);
}

// The bound of a perfect machine: with 132 tiles each SM has one, with 133 one SM has two.
static void test_bound(void)
{
    double seconds[2];
    for (int i = 0; i < 2; i++) {
        struct made made = make_strided(
            definitions, "nn", i == 0 ? "M=1408 N=1536 K=4096" : "M=1409 N=1536 K=4096", NULL);
        struct kg_choice choice;
        CHECK(kg_choice_read(
            made.problem, &facts, &kg_target_cuda,
            "contract/tile: tile_m=128 tile_n=128 tile_k=16 split_k=1 raster=0 maxnreg=0",
            &choice));
        seconds[i] = choice.matches[0]->family->bound(choice.matches[0], &choice.configs[0]);
        unmake(&made);
    }
    double one = 2.0 * 1408 * 1536 * 4096 / 67e12;
    CHECK(seconds[0] > 0.999 * one && seconds[0] < 1.001 * one);
    CHECK(seconds[1] > 1.999 * one && seconds[1] < 2.001 * one);
}

// ---- Compilation ----

#define TILE "tile_m=64 tile_n=64 tile_k=16 split_k=2 raster=0 maxnreg=0"

static const struct {
    const char *device, *op, *sizes, *config; // a NULL config: the rule's
} compiled[] = {
    {"sm_80", "nn", "T=bf16 M=512 N=512 K=512", "contract/tile: " TILE},
    {"sm_80", "tt", "T=f32 M=512 N=512 K=512", "contract/tile: " TILE},
    {"sm_90a", "tn", "T=f16 M=512 N=512 K=512", "contract/tile: " TILE},
    {"sm_90a", "nt", "T=f64 M=4096 N=4096 K=512", NULL},
    {"sm_80", "batched", "T=f16 M=77 N=77 K=77 B=3", "contract/tile: " TILE},
    {"sm_90a", "layer", "T=f16 M=512 N=512 K=512 B=2", "contract/tile*3: " TILE},
    {"sm_75", "tn", "T=f16 M=512 N=512 K=512", NULL},
    {"sm_75", "layer", "T=f32 M=2 N=512 K=4096 B=2",
     "contract/thin*3: tile_m=4 tile_n=4 tile_k=1024 stages=2 split_k=2 swap=0 maxnreg=0"},
    {"sm_90a", "integers", "M=512 N=512 K=512", NULL},
    {"sm_80", "integers", "M=2 N=512 K=512", NULL},
    {"sm_90a", "w4", "T=f16 M=512 N=512 K=512", NULL},
    {"sm_90a", "w4", "T=bf16 M=1 N=4096 K=4096", NULL},
    {"sm_75", "vector", "T=f16 M=4096 K=4096", NULL},
    {"sm_90a", "vector", "T=f64 M=4096 K=4096", NULL},
    {"sm_90a", "nn", "T=f16 M=8 N=4096 K=4096", NULL},
    {"sm_90a", "nt", "T=bf16 M=8 N=4096 K=4096", NULL},
    {"sm_90a", "nn", "T=f16 M=4096 N=2 K=4096", NULL},
    {"sm_90a", "names", "M=512 N=512 depth=512", NULL},
    {"sm_90a", "names", "M=512 N=512 depth=512", "contract/tile*4: " TILE},
};

// Returns false if there is no NVRTC.
static bool compile(size_t i)
{
    struct kg_error error = {0};
    struct kg_device *device = NULL;
    struct kg_binary binary = {0};
    struct kg_choice choice;
    struct kg_text text = {0};
    struct made made = make_strided(definitions, compiled[i].op, compiled[i].sizes, NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK_STATUS(kg_device_open(compiled[i].device, folder, 0, &device, &error), KG_OK, &error);
    kg_choice_guess(made.problem, &device->facts, &kg_target_cuda, &choice);
    if (compiled[i].config)
        CHECK(kg_choice_read(made.problem, &device->facts, &kg_target_cuda, compiled[i].config,
                             &choice));
    CHECK(strncmp(choice.matches[0]->family->name, "contract/", 9) == 0);
    CHECK(kg_choice_source(&choice, 0, "kernel", &text));
    const struct kg_source source = {.text = text.data, .entry = "kernel", .options = ""};
    enum kg_status status = device->backend->compile(device, &source, 60, &binary, &error);
    if (status != KG_ERROR_MISSING) {
        CHECK_STATUS(status, KG_OK, &error);
        CHECK(binary.length > 0 && !(binary.log && strstr(binary.log, "warning")));
    }
    kg_binary_free(&binary);
    kg_text_free(&text);
    kg_device_close(device);
    unmake(&made);
    return status != KG_ERROR_MISSING;
}

static void test_compilation(void)
{
    CHECK(folder_make(folder));
    for (size_t i = 0; i < sizeof compiled / sizeof *compiled; i++)
        if (!compile(i)) {
            printf("NVRTC is not installed: nothing was compiled\n");
            break;
        }
    folder_remove(folder);
}

TEST_MAIN(describe_device, test_takers, test_refusals, test_launches, test_bound, test_compilation)
