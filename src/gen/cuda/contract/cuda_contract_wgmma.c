// Products on the tensor cores of sm_90a: kernels/cuda/contract_wgmma*.cuh. Functions 0 and 1 pack
// operands that TMA cannot load in place, 2 multiplies, 3 adds up K slices from memory.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

#include <string.h>

enum { GROUP = 128, ROUND = 1024, MAX_IN_CLUSTER = 8 };
enum { MOVED_REGISTERS = 232 }; // of a consumer thread, after setmaxnreg

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum kg_dtype dtype = kg_cuda_contract_dtype(plan, 0);
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    if (!plan->plain[0] || !plan->plain[1])
        return kg_cuda_contract_refuse(reason, "both operands have to be arrays");
    return (dtype == kg_cuda_contract_dtype(plan, 1) && kg_dtype_is_half(dtype)) ||
           kg_cuda_contract_refuse(reason, "both operands have to be f16, or both bf16");
}

// ---- The shape of a block, as the skeleton has it ----

static int consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.tile_m == KG_WGMMA_ATOM && !plan->config.pingpong ? 1 : 2;
}

int kg_cuda_wgmma_threads(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (consumers(plan) + 1);
}

int kg_cuda_wgmma_accumulators(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->config.pingpong ? plan->config.tile_m : plan->config.tile_m / consumers(plan);
    return rows / KG_WGMMA_ATOM * plan->config.tile_n / 2;
}

static bool moves_registers(const struct kg_cuda_contract_plan *plan)
{
    return consumers(plan) == 2 && kg_cuda_wgmma_accumulators(plan) > 96;
}

bool kg_cuda_wgmma_folds_in_cluster(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.split_k > 1 && plan->config.split_k <= MAX_IN_CLUSTER;
}

bool kg_cuda_wgmma_is_stream_k(const struct kg_cuda_contract_plan *plan)
{
    return plan->config.split_k == 0;
}

int kg_cuda_wgmma_memory_slices(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_wgmma_folds_in_cluster(plan) || kg_cuda_wgmma_is_stream_k(plan)
               ? 1
               : plan->config.split_k;
}

int kg_cuda_wgmma_store_columns(const struct kg_cuda_contract_plan *plan)
{
    if (plan->config.swap)
        return plan->config.tile_n;
    int columns = KG_WGMMA_ATOM;
    while (plan->config.tile_n % columns != 0)
        columns /= 2;
    return columns;
}

static int64_t rounded(int64_t bytes, int64_t to)
{
    return kg_ceil_div(bytes, to) * to;
}

// Of a consumer's buffers for results.
static int64_t buffer_bytes(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->config.pingpong ? plan->config.tile_m : plan->config.tile_m / consumers(plan);
    int columns = kg_cuda_wgmma_store_columns(plan);
    int chunks = rows / KG_WGMMA_ATOM * (plan->config.tile_n / columns);
    if (plan->config.overlap > 0)
        return (int64_t)KG_WGMMA_ATOM * (plan->config.tile_n * KG_WGMMA_ELEMENT + KG_WGMMA_ACCESS);
    return (chunks > 1 ? 2 : 1) *
           rounded((int64_t)KG_WGMMA_ATOM * columns * KG_WGMMA_ELEMENT, ROUND);
}

int64_t kg_cuda_wgmma_shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->config.tile_m, columns = plan->config.tile_n;
    int64_t stage = (int64_t)(rows + columns) * plan->config.tile_k * KG_WGMMA_ELEMENT;
    int64_t ring = stage * plan->config.stages;
    if (kg_cuda_wgmma_folds_in_cluster(plan)) {
        int64_t lines = plan->config.swap ? columns : rows,
                length = plan->config.swap ? rows : columns;
        int64_t folded = lines * (length + 4) * 4;
        ring = folded > ring ? folded : ring;
    }
    return ROUND + ring + consumers(plan) * buffer_bytes(plan) + 16 * plan->config.stages;
}

int kg_cuda_wgmma_blocks_per_sm(const struct kg_cuda_contract_plan *plan)
{
    int others = kg_cuda_contract_epilogue_is_heavy(plan) ? 72 : 56;
    return moves_registers(plan)
               ? 1
               : kg_cuda_contract_blocks_per_sm(plan, kg_cuda_wgmma_threads(plan),
                                                kg_cuda_wgmma_accumulators(plan) + others,
                                                kg_cuda_wgmma_shared_bytes(plan));
}

int64_t kg_cuda_wgmma_tiles(const struct kg_cuda_contract_plan *plan)
{
    int64_t tall = (int64_t)plan->config.tile_m * plan->config.cluster_m;
    return plan->batches * kg_ceil_div(kg_cuda_contract_m_after_swap(plan), tall) *
           kg_ceil_div(kg_cuda_contract_tiles_across(plan), plan->config.cluster_n);
}

// Clusters of more than two blocks do not find room on all SMs.
int64_t kg_cuda_wgmma_max_resident_clusters(const struct kg_cuda_contract_plan *plan)
{
    int64_t cluster = plan->config.cluster_m * plan->config.cluster_n, units = plan->facts->units;
    int64_t reached = cluster > 2 ? units * 10 / 11 : units;
    int64_t resident =
        cluster > 1 ? reached / cluster : reached * kg_cuda_wgmma_blocks_per_sm(plan);
    return resident > 0 ? resident : 1;
}

bool kg_cuda_wgmma_steps_fit_int32(const struct kg_cuda_contract_plan *plan)
{
    int64_t tiles = kg_cuda_wgmma_tiles(plan),
            limit = 2 * kg_cuda_wgmma_max_resident_clusters(plan);
    int64_t steps = kg_ceil_div(plan->k, plan->config.tile_k);
    return (tiles < limit ? tiles : limit) * steps <= INT32_MAX;
}

// One partial tile per block, with a flag for each consumer that writes some of it.
int64_t kg_cuda_wgmma_partial_tile_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t blocks = kg_cuda_wgmma_max_resident_clusters(plan);
    int64_t sums = (int64_t)plan->config.tile_m * plan->config.tile_n * 4;
    int flags = 8 * (plan->config.pingpong ? 1 : consumers(plan));
    return kg_cuda_wgmma_is_stream_k(plan) ? rounded(blocks * (sums + flags), 256) : 0;
}

static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_unit_limits *unit = &plan->facts->unit;
    int limit =
        unit->registers / (kg_cuda_wgmma_threads(plan) * kg_cuda_wgmma_blocks_per_sm(plan)) / 8 * 8;
    limit = limit < unit->thread_registers ? limit : unit->thread_registers;
    bool less = plan->config.maxnreg > 0 && plan->config.maxnreg < limit;
    return less ? plan->config.maxnreg : limit;
}

// Registers of a thread besides its accumulators.
static int other_registers(const struct kg_cuda_contract_plan *plan)
{
    int m_tiles = kg_cuda_wgmma_accumulators(plan) * 2 / plan->config.tile_n;
    bool worked_on = kg_cuda_contract_has_epilogue(plan);
    int shared = kg_cuda_wgmma_is_stream_k(plan) && (plan->config.pingpong || worked_on) ? 8 : 0;
    if (!worked_on)
        return 40 + shared;
    return (kg_cuda_contract_epilogue_is_heavy(plan) ? 61 : 37) + shared +
           kg_cuda_contract_epilogue_registers(plan, m_tiles * 2, plan->config.tile_n);
}

int kg_cuda_wgmma_operand(const struct kg_cuda_contract_plan *plan, int which)
{
    return plan->config.swap ? 1 - which : which;
}

static bool valid_stream_k(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { MIN_STEPS = 2 };
    int64_t tiles = kg_cuda_wgmma_tiles(plan), resident = kg_cuda_wgmma_max_resident_clusters(plan);
    if (kg_cuda_contract_is_clustered(plan))
        return kg_cuda_contract_refuse(reason,
                                       "stream-K and multicast clusters exclude each other");
    if (tiles % resident == 0)
        return kg_cuda_contract_refuse(
            reason, "the tiles fill whole waves: stream-K has nothing to divide");
    if (tiles * kg_ceil_div(plan->k, plan->config.tile_k) < MIN_STEPS * resident)
        return kg_cuda_contract_refuse(reason, "too few K tiles for stream-K");
    return kg_cuda_wgmma_steps_fit_int32(plan) ||
           kg_cuda_contract_refuse(reason, "too many K tiles for stream-K");
}

bool kg_cuda_wgmma_may_overlap(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    if (plan->config.swap || plan->config.split_k > 1 ||
        plan->config.tile_n < 2 * plan->config.overlap)
        return kg_cuda_contract_refuse(
            reason,
            "only whole sums overlap, in tiles of at least 32 columns that are not swapped");
    // Other outputs are stored by both tiles, and stream-K may add up their sums in another order.
    if (kg_cuda_wgmma_is_stream_k(plan) && kg_cuda_contract_epilogue_uses_position(plan))
        return kg_cuda_contract_refuse(
            reason, "with stream-K, tiles overlap only if the epilogue stores one output");
    return kg_cuda_wgmma_has_odd_lines(plan) ||
           kg_cuda_contract_refuse(
               reason, "tiles overlap only where TMA cannot store lines of 16-bit results");
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int rows = plan->config.tile_m, columns = plan->config.tile_n;
    if (plan->m > INT32_MAX / 2 || plan->n > INT32_MAX / 2 || plan->k > INT32_MAX / 2 ||
        plan->batches > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "sizes are larger than 2^30");
    if (rows != KG_WGMMA_ATOM && rows != 128 && rows != 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 64, 128 or 256 rows");
    if (columns % 8 != 0 || columns > 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 8 to 256 columns");
    if (plan->config.tile_k != KG_WGMMA_ATOM && plan->config.tile_k != 128)
        return kg_cuda_contract_refuse(reason, "tiles of this form are 64 or 128 steps deep");
    if (!plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_RIGHT)] &&
        columns % (KG_WGMMA_ATOM * plan->config.cluster_m) != 0)
        return kg_cuda_contract_refuse(
            reason, "an N-major operand needs a multiple of 64 columns per block");
    if (!plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_LEFT)] &&
        rows % (KG_WGMMA_ATOM * plan->config.cluster_n) != 0)
        return kg_cuda_contract_refuse(reason,
                                       "an M-major operand needs a multiple of 64 rows per block");
    if (columns % plan->config.cluster_m != 0)
        return kg_cuda_contract_refuse(reason, "cluster_m does not divide tile_n");
    if (plan->config.cluster_m * plan->config.cluster_n > MAX_IN_CLUSTER)
        return kg_cuda_contract_refuse(reason, "a cluster has at most 8 blocks");
    if (kg_cuda_contract_is_clustered(plan) && plan->config.split_k > 1)
        return kg_cuda_contract_refuse(reason, "multicast clusters and split-K exclude each other");
    if (plan->config.pingpong && (rows == 256 || plan->config.split_k > 1))
        return kg_cuda_contract_refuse(reason, "pingpong needs whole tiles of at most 128 rows");
    if (plan->config.overlap > 0 && !kg_cuda_wgmma_may_overlap(plan, reason))
        return false;
    if (plan->config.stages < 2)
        return kg_cuda_contract_refuse(reason, "this form has at least two stages");
    if (kg_cuda_wgmma_accumulators(plan) > 192)
        return kg_cuda_contract_refuse(reason,
                                       "the accumulators need more registers than a thread has");
    if (kg_cuda_wgmma_shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (moves_registers(plan) && plan->config.maxnreg > 0)
        return kg_cuda_contract_refuse(reason,
                                       "setmaxnreg already divides the registers among the warps");
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) <
        kg_cuda_wgmma_accumulators(plan) + other_registers(plan))
        return kg_cuda_contract_refuse(reason,
                                       "a thread would need more registers than it can have");
    if (kg_cuda_contract_tiles(plan) * (plan->config.split_k > 1 ? plan->config.split_k : 1) >
        INT32_MAX)
        return kg_cuda_contract_refuse(reason, "too many tiles");
    return !kg_cuda_wgmma_is_stream_k(plan) || valid_stream_k(plan, reason);
}

// ---- Source ----

// The text of the instruction: sums, the left operand's places, the right one's, `more`.
static void emit_instruction_text(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                  const struct kg_wgmma_instruction *it)
{
    int sums = it->columns / 2, places = it->left_in_registers ? 4 : 1;
    const char *type = kg_dtypes[it->dtype].name;
    kg_code_line(code, "\"{\\n\"");
    kg_code_line(code, "\".reg .pred more;\\n\"");
    kg_code_line(code, "\"setp.ne.b32 more, %%%d, 0;\\n\"", sums + places + 1);
    kg_code_line(code, "\"wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {\"", it->columns, type,
                 type);
    for (int i = 0; i < sums; i += 8) {
        kg_code_begin(code);
        kg_text_add(code->text, "\"");
        for (int j = i; j < i + 8 && j < sums; j++)
            kg_text_format(code->text, "%%%d%s", j, j + 1 < sums ? ", " : "");
        kg_text_add(code->text, "\"");
        kg_code_end(code);
    }
    bool turns_left = !plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_LEFT)];
    bool turns_right = !plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_RIGHT)];
    if (it->left_in_registers)
        kg_code_line(code, "\"}, {%%%d, %%%d, %%%d, %%%d}, %%%d, more, 1, 1, 0;\\n\"", sums,
                     sums + 1, sums + 2, sums + 3, sums + 4);
    else
        kg_code_line(code, "\"}, %%%d, %%%d, more, 1, 1, %d, %d;\\n\"", sums, sums + 1, turns_left,
                     turns_right);
    kg_code_line(code, "\"}\"");
}

void kg_cuda_wgmma_emit_instruction(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                                    const struct kg_wgmma_instruction *it)
{
    int sums = it->columns / 2;
    kg_code_line(code, "struct %s_instruction {", plan->entry);
    code->depth++;
    kg_code_open(code,
                 "KG_METHOD static void multiply(float (&d)[%d], %s, uint64_t right, int more)",
                 sums, it->left_in_registers ? "const uint32_t (&left)[4]" : "uint64_t left");
    kg_code_line(code, "asm volatile(");
    code->depth++;
    emit_instruction_text(code, plan, it);
    for (int i = 0; i < sums; i += 4) {
        kg_code_begin(code);
        kg_text_add(code->text, i == 0 ? ": " : "  ");
        for (int j = i; j < i + 4; j++)
            kg_text_format(code->text, "\"+f\"(d[%d])%s", j, j + 1 < sums ? ", " : "");
        kg_code_end(code);
    }
    kg_code_line(code, ": %s, \"l\"(right), \"r\"(more));",
                 it->left_in_registers
                     ? "\"r\"(left[0]), \"r\"(left[1]), \"r\"(left[2]), \"r\"(left[3])"
                     : "\"l\"(left)");
    code->depth--;
    kg_code_close(code);
    code->depth--;
    kg_code_line(code, "};\n");
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

// The next kernel may start early (programmatic dependent launch): it waits by itself before it
// reads memory.
static void open_function(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                          int number, int threads, int registers)
{
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, number, threads, registers,
                                    KG_WGMMA_MAPS);
    kg_cuda_contract_declare_job(code, plan);
    if (number != KG_WGMMA_MULTIPLY) // which calls it later
        kg_code_line(code, "kg_start_next();");
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan original = *plan, multiply = *plan;
    original.config.swap = 0;
    original.waits = true;
    // Pointers that are hidden until the wait take registers. Without an epilogue the kernel only
    // writes.
    multiply.waits = kg_cuda_contract_has_epilogue(plan);
    kg_cuda_wgmma_emit_instruction(
        code, plan,
        &(struct kg_wgmma_instruction){.columns = plan->config.tile_n,
                                       .dtype = kg_cuda_contract_dtype(plan, 0)});
    for (int operand = 0; operand < 2; operand++) {
        open_function(code, &original, KG_WGMMA_PACK_A + operand, KG_WGMMA_PACK_THREADS, 0);
        kg_code_line(code, "kg_wait_before();");
        kg_code_line(code, "kg_wgmma_pack<%d, %lld, %d>(job, kg_after(scratch));",
                     kg_cuda_wgmma_memory_slices(plan),
                     (long long)kg_cuda_wgmma_partial_tile_bytes(plan), operand);
        kg_code_close(code);
    }
    open_function(code, &multiply, KG_WGMMA_MULTIPLY, kg_cuda_wgmma_threads(plan),
                  registers_of(plan));
    kg_code_line(code,
                 "using block = kg_wgmma_block<%d, %d, %d, %d, %d, %d, %s, %d, %s, %d, %s, %s, "
                 "%d, %d, %d, %s_instruction>;",
                 plan->config.tile_m, plan->config.tile_n, plan->config.tile_k, plan->config.stages,
                 plan->config.cluster_m, plan->config.cluster_n, truth(plan->config.pingpong),
                 plan->config.split_k, truth(plan->config.swap), plan->config.overlap,
                 truth(plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_LEFT)]),
                 truth(plan->k_major[kg_cuda_wgmma_operand(plan, KG_WGMMA_RIGHT)]),
                 plan->config.raster, KG_WGMMA_MIN_STREAMED_BYTES, KG_WGMMA_MAX_STREAMED_BYTES,
                 plan->entry);
    kg_code_line(code,
                 "kg_contract_wgmma<block>(job, {&map_%d, &map_%d}, {&map_%d, &map_%d}, &map_%d, "
                 "scratch);",
                 KG_WGMMA_LEFT, KG_WGMMA_LAST_LEFT, KG_WGMMA_RIGHT, KG_WGMMA_LAST_RIGHT,
                 KG_WGMMA_OUT);
    kg_code_close(code);
    open_function(code, &original, KG_WGMMA_FOLD, KG_WGMMA_FOLD_THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_wgmma_fold<%d>(job, kg_after(scratch), kg_map_is_there(map_%d));",
                 kg_cuda_wgmma_memory_slices(plan), KG_WGMMA_LEFT);
    kg_code_close(code);
}

static const struct kg_cuda_contract_form form =
    {
        .defaults = KG_CONTRACT_DEFAULTS(KG_WGMMA_ATOM, 16),
        .parameters =
            {
                {"tile_m", KG_CONTRACT_CHOICES(tile_m, 128, 64, 256)},
                {"tile_n", KG_CONTRACT_CHOICES(tile_n, 128, 64, 32, 16, 256, 8, 192, 96, 160, 224,
                                               48, 24, 80, 112, 144, 176, 208, 240)},
                {"tile_k", KG_CONTRACT_CHOICES(tile_k, 64, 128)},
                {"stages", KG_CONTRACT_CHOICES(stages, 2, 4, 8, 3, 5, 6, 7, 10, 12, 9, 14, 16)},
                {"cluster_m", KG_CONTRACT_CHOICES(cluster_m, 1, 2, 4)},
                {"cluster_n", KG_CONTRACT_CHOICES(cluster_n, 1, 2, 4)},
                {"pingpong", KG_CONTRACT_CHOICES(pingpong, 0, 1)},
                {"split_k",
                 KG_CONTRACT_CHOICES(split_k, 1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48, 0)},
                {"swap", KG_CONTRACT_CHOICES(swap, 0, 1)},
                {"overlap", KG_CONTRACT_CHOICES(overlap, 0, KG_WGMMA_OVERLAP), .optional = true},
                {KG_CONTRACT_RASTER},
                {KG_CONTRACT_MAXNREG},
            },
        .skeletons = {"cuda/lanes.cuh", "cuda/shifted.cuh", "cuda/tensor_map.cuh", "cuda/wgmma.cuh",
                      "cuda/contract_stream_k.cuh", "cuda/contract_partial.cuh",
                      "cuda/contract_wgmma.cuh", "cuda/contract_wgmma_feed.cuh",
                      "cuda/contract_wgmma_block.cuh"},
        .takes = takes,
        .guess = kg_cuda_wgmma_guess,
        .valid = valid,
        .list = kg_cuda_wgmma_list,
        .cost_terms = kg_cuda_wgmma_cost_terms,
        .emit = emit,
        .grids = kg_cuda_wgmma_grids,
        .rate = kg_cuda_wgmma_rate,
};

KG_CONTRACT_FAMILY(kg_cuda_contract_wgmma, form, "contract/wgmma",
                   "matrix products of 16-bit operands on the tensor cores of sm_90a", true, true);
