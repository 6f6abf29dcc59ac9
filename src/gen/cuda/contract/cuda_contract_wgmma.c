// Products on the tensor cores of sm_90a: kernels/cuda/contract_wgmma*.cuh. Functions 0 and 1 copy
// sides that the copy engine cannot reach where they lie, 2 multiplies, 3 folds pieces of the sum.

#include "gen/cuda/contract/cuda_contract_wgmma.h"

#include "gen/cuda/cuda_frame.h"
#include "gen/families.h"

#include <string.h>

enum { GROUP = 128, ROUND = 1024, MOST_IN_CLUSTER = 8 };
enum { REGISTER_FILE = 65536, MOST_REGISTERS = 255 };
enum { MOVED_REGISTERS = 232 }; // those of a consumer to which registers move

static bool takes(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum kg_dtype dtype = kg_cuda_contract_dtype(plan, 0);
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    if (!plan->plain[0] || !plan->plain[1])
        return kg_cuda_contract_refuse(reason, "tensor cores multiply tensors as they stand");
    return (dtype == kg_cuda_contract_dtype(plan, 1) && kg_dtype_is_half(dtype)) ||
           kg_cuda_contract_refuse(reason, "both operands have to be f16, or both bf16");
}

// ---- The shape of a block, as the skeleton has it ----

static int consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.rows == KG_WGMMA_ATOM && !plan->set.pingpong ? 1 : 2;
}

int kg_cuda_wgmma_threads(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (consumers(plan) + 1);
}

// Registers that hold a thread's sums.
int kg_cuda_wgmma_sums(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->set.pingpong ? plan->set.rows : plan->set.rows / consumers(plan);
    return rows / KG_WGMMA_ATOM * plan->set.columns / 2;
}

static bool moves_registers(const struct kg_cuda_contract_plan *plan)
{
    return consumers(plan) == 2 && kg_cuda_wgmma_sums(plan) > 96;
}

bool kg_cuda_wgmma_folds(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.split > 1 && plan->set.split <= MOST_IN_CLUSTER;
}

bool kg_cuda_wgmma_shares(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.split == 0;
}

// Pieces whose sums go through memory.
int kg_cuda_wgmma_pieces(const struct kg_cuda_contract_plan *plan)
{
    return kg_cuda_wgmma_folds(plan) || kg_cuda_wgmma_shares(plan) ? 1 : plan->set.split;
}

// Columns of what leaves through shared memory at once.
int kg_cuda_wgmma_leaving(const struct kg_cuda_contract_plan *plan)
{
    if (plan->set.swap)
        return plan->set.columns;
    int columns = KG_WGMMA_ATOM;
    while (plan->set.columns % columns != 0)
        columns /= 2;
    return columns;
}

static int64_t rounded(int64_t bytes, int64_t to)
{
    return kg_ceil_div(bytes, to) * to;
}

int64_t kg_cuda_wgmma_shared(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->set.rows, columns = plan->set.columns;
    int64_t stage = (int64_t)(rows + columns) * plan->set.depth * KG_WGMMA_ELEMENT;
    int64_t ring = stage * plan->set.stages;
    if (kg_cuda_wgmma_folds(plan)) {
        int64_t lines = plan->set.swap ? columns : rows, length = plan->set.swap ? rows : columns;
        int64_t folded = lines * (length + 4) * 4;
        ring = folded > ring ? folded : ring;
    }
    int own = plan->set.pingpong ? rows : rows / consumers(plan);
    int leaving = own / KG_WGMMA_ATOM * (columns / kg_cuda_wgmma_leaving(plan));
    int64_t buffer =
        rounded((int64_t)KG_WGMMA_ATOM * kg_cuda_wgmma_leaving(plan) * KG_WGMMA_ELEMENT, ROUND);
    return ROUND + ring + consumers(plan) * (leaving > 1 ? 2 : 1) * buffer + 16 * plan->set.stages;
}

// Blocks that a unit runs at once.
int kg_cuda_wgmma_blocks(const struct kg_cuda_contract_plan *plan)
{
    int others = kg_cuda_contract_epilogue_is_heavy(plan) ? 72 : 56;
    return moves_registers(plan) ? 1
                                 : kg_cuda_contract_blocks(plan, kg_cuda_wgmma_threads(plan),
                                                           kg_cuda_wgmma_sums(plan) + others,
                                                           kg_cuda_wgmma_shared(plan));
}

int64_t kg_cuda_wgmma_tiles(const struct kg_cuda_contract_plan *plan)
{
    int64_t wide = (int64_t)plan->set.columns * plan->set.across;
    int64_t tall = (int64_t)plan->set.rows * plan->set.down;
    return plan->batches * kg_ceil_div(kg_cuda_contract_m_after_swap(plan), tall) *
           kg_ceil_div(kg_cuda_contract_n_after_swap(plan), wide);
}

// Not all units of a device can be in pairs, and fewer in larger clusters.
int64_t kg_cuda_wgmma_most(const struct kg_cuda_contract_plan *plan)
{
    int64_t cluster = plan->set.down * plan->set.across, units = plan->facts->units;
    int64_t reached = cluster > 2 ? units * 10 / 11 : units;
    int64_t most = cluster > 1 ? reached / cluster : reached * kg_cuda_wgmma_blocks(plan);
    return most > 0 ? most : 1;
}

bool kg_cuda_wgmma_is_counted(const struct kg_cuda_contract_plan *plan)
{
    int64_t tiles = kg_cuda_wgmma_tiles(plan), most = 2 * kg_cuda_wgmma_most(plan);
    int64_t steps = kg_ceil_div(plan->depth, plan->set.depth);
    return (tiles < most ? tiles : most) * steps <= INT32_MAX;
}

// A part of each block, with a flag of each consumer that makes some of it.
int64_t kg_cuda_wgmma_part_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t blocks = kg_cuda_wgmma_most(plan);
    int64_t sums = (int64_t)plan->set.rows * plan->set.columns * 4;
    int flags = 8 * (plan->set.pingpong ? 1 : consumers(plan));
    return kg_cuda_wgmma_shares(plan) ? rounded(blocks * (sums + flags), 256) : 0;
}

static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    int most = REGISTER_FILE / (kg_cuda_wgmma_threads(plan) * kg_cuda_wgmma_blocks(plan)) / 8 * 8;
    most = most < MOST_REGISTERS ? most : MOST_REGISTERS;
    bool less = plan->set.registers > 0 && plan->set.registers < most;
    return less ? plan->set.registers : most;
}

// What a thread needs beside its sums.
static int other_registers(const struct kg_cuda_contract_plan *plan)
{
    int parts = kg_cuda_wgmma_sums(plan) * 2 / plan->set.columns;
    bool worked_on = kg_cuda_contract_has_epilogue(plan);
    int shared = kg_cuda_wgmma_shares(plan) && (plan->set.pingpong || worked_on) ? 8 : 0;
    if (!worked_on)
        return 40 + shared;
    return (kg_cuda_contract_epilogue_is_heavy(plan) ? 61 : 37) + shared +
           kg_cuda_contract_epilogue_registers(plan, parts * 2, plan->set.columns);
}

// The side, 0 for A, that is copied as left or right, and as which of them a side is.
int kg_cuda_wgmma_side(const struct kg_cuda_contract_plan *plan, int which)
{
    return plan->set.swap ? 1 - which : which;
}

static bool can_share(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    enum { LEAST_STEPS = 2 };
    int64_t tiles = kg_cuda_wgmma_tiles(plan), most = kg_cuda_wgmma_most(plan);
    if (kg_cuda_contract_is_clustered(plan))
        return kg_cuda_contract_refuse(reason, "blocks of clusters do not share tiles evenly");
    if (tiles % most == 0)
        return kg_cuda_contract_refuse(reason, "all blocks have as many tiles: none is shared");
    if (tiles * kg_ceil_div(plan->depth, plan->set.depth) < LEAST_STEPS * most)
        return kg_cuda_contract_refuse(reason, "too few steps for blocks to share");
    return kg_cuda_wgmma_is_counted(plan) ||
           kg_cuda_contract_refuse(reason, "too many steps for blocks to share");
}

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int rows = plan->set.rows, columns = plan->set.columns;
    if (plan->rows > INT32_MAX / 2 || plan->columns > INT32_MAX / 2 ||
        plan->depth > INT32_MAX / 2 || plan->batches > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "maps count to 2^30");
    if (rows != KG_WGMMA_ATOM && rows != 128 && rows != 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 64, 128 or 256 rows");
    if (columns % 8 != 0 || columns > 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 8 to 256 columns");
    if (plan->set.depth != KG_WGMMA_ATOM && plan->set.depth != 128)
        return kg_cuda_contract_refuse(reason, "tiles of this form are 64 or 128 steps deep");
    if (!plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_RIGHT)] &&
        columns % (KG_WGMMA_ATOM * plan->set.down) != 0)
        return kg_cuda_contract_refuse(reason, "columns that are neighbours in memory come by 64");
    if (!plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_LEFT)] &&
        rows % (KG_WGMMA_ATOM * plan->set.across) != 0)
        return kg_cuda_contract_refuse(reason, "rows that are neighbours in memory come by 64");
    if (columns % plan->set.down != 0)
        return kg_cuda_contract_refuse(reason, "the blocks of a cluster cannot share the columns");
    if (plan->set.down * plan->set.across > MOST_IN_CLUSTER)
        return kg_cuda_contract_refuse(reason, "a cluster has 8 blocks at most");
    if (kg_cuda_contract_is_clustered(plan) && plan->set.split > 1)
        return kg_cuda_contract_refuse(reason, "a cluster has one purpose");
    if (plan->set.pingpong && (rows == 256 || plan->set.split > 1))
        return kg_cuda_contract_refuse(reason, "consumers take turns with whole tiles");
    if (plan->set.stages < 2)
        return kg_cuda_contract_refuse(reason, "one tile is copied while another is multiplied");
    if (kg_cuda_wgmma_sums(plan) > 192)
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (kg_cuda_wgmma_shared(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (moves_registers(plan) && plan->set.registers > 0)
        return kg_cuda_contract_refuse(reason, "registers move between warps as it is");
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) <
        kg_cuda_wgmma_sums(plan) + other_registers(plan))
        return kg_cuda_contract_refuse(reason, "holds more than a thread may have registers");
    if (kg_cuda_contract_tiles(plan) * (plan->set.split > 1 ? plan->set.split : 1) > INT32_MAX)
        return kg_cuda_contract_refuse(reason, "too many tiles");
    return !kg_cuda_wgmma_shares(plan) || can_share(plan, reason);
}

// ---- Source ----

void kg_cuda_wgmma_emit_instruction(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    int columns = plan->set.columns, sums = columns / 2;
    enum kg_dtype dtype = kg_cuda_contract_dtype(plan, 0);
    const char *type = kg_dtype_is_half(dtype) ? kg_dtypes[dtype].name : "bf16"; // parts of f32
    kg_code_line(code, "struct %s_instruction {", plan->entry);
    code->depth++;
    kg_code_open(code,
                 "KG_METHOD static void multiply(float (&d)[%d], uint64_t left, uint64_t right, "
                 "int more)",
                 sums);
    kg_code_line(code, "asm volatile(");
    code->depth++;
    kg_code_line(code, "\"{\\n\"");
    kg_code_line(code, "\".reg .pred more;\\n\"");
    kg_code_line(code, "\"setp.ne.b32 more, %%%d, 0;\\n\"", sums + 2);
    kg_code_line(code, "\"wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {\"", columns, type,
                 type);
    for (int i = 0; i < sums; i += 8) {
        kg_code_begin(code);
        kg_text_add(code->text, "\"");
        for (int j = i; j < i + 8 && j < sums; j++)
            kg_text_format(code->text, "%%%d%s", j, j + 1 < sums ? ", " : "");
        kg_text_add(code->text, "\"");
        kg_code_end(code);
    }
    kg_code_line(code, "\"}, %%%d, %%%d, more, 1, 1, %d, %d;\\n\"", sums, sums + 1,
                 !plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_LEFT)],
                 !plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_RIGHT)]);
    kg_code_line(code, "\"}\"");
    for (int i = 0; i < sums; i += 4) {
        kg_code_begin(code);
        kg_text_add(code->text, i == 0 ? ": " : "  ");
        for (int j = i; j < i + 4; j++)
            kg_text_format(code->text, "\"+f\"(d[%d])%s", j, j + 1 < sums ? ", " : "");
        kg_code_end(code);
    }
    kg_code_line(code, ": \"l\"(left), \"l\"(right), \"r\"(more));");
    code->depth--;
    kg_code_close(code);
    code->depth--;
    kg_code_line(code, "};\n");
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

// Whatever follows may start early: it waits by itself, or is launched when this has ended.
static void open_function(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                          int number, int threads, int registers)
{
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, number, threads, registers,
                                    KG_WGMMA_MAPS);
    kg_cuda_contract_declare_job(code, plan);
    if (number != KG_WGMMA_MULTIPLY) // which says itself when
        kg_code_line(code, "kg_start_next();");
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    enum { PACK_THREADS = 256 };
    struct kg_cuda_contract_plan original = *plan, multiply = *plan;
    original.set.swap = 0;
    original.waits = true;
    // Places that are waited for are held in registers. Sums that leave as they are only write.
    multiply.waits = kg_cuda_contract_has_epilogue(plan);
    kg_cuda_wgmma_emit_instruction(code, plan);
    for (int side = 0; side < 2; side++) {
        open_function(code, &original, KG_WGMMA_PACK_A + side, PACK_THREADS, 0);
        kg_code_line(code, "kg_wait_before();");
        kg_code_line(code, "kg_wgmma_pack<%d, %lld, %d>(job, kg_after(scratch));",
                     kg_cuda_wgmma_pieces(plan), (long long)kg_cuda_wgmma_part_bytes(plan), side);
        kg_code_close(code);
    }
    open_function(code, &multiply, KG_WGMMA_MULTIPLY, kg_cuda_wgmma_threads(plan),
                  registers_of(plan));
    kg_code_line(code,
                 "using block = kg_wgmma_block<%d, %d, %d, %d, %d, %d, %s, %d, %s, %s, %s, %d, "
                 "%d, %d, %s_instruction>;",
                 plan->set.rows, plan->set.columns, plan->set.depth, plan->set.stages,
                 plan->set.down, plan->set.across, truth(plan->set.pingpong), plan->set.split,
                 truth(plan->set.swap), truth(plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_LEFT)]),
                 truth(plan->along[kg_cuda_wgmma_side(plan, KG_WGMMA_RIGHT)]), plan->set.order,
                 KG_WGMMA_LEAST_PASSING, KG_WGMMA_MOST_PASSING, plan->entry);
    kg_code_line(code,
                 "kg_contract_wgmma<block>(job, {&map_%d, &map_%d}, {&map_%d, &map_%d}, &map_%d, "
                 "scratch);",
                 KG_WGMMA_LEFT, KG_WGMMA_LAST_LEFT, KG_WGMMA_RIGHT, KG_WGMMA_LAST_RIGHT,
                 KG_WGMMA_OUT);
    kg_code_close(code);
    open_function(code, &original, KG_WGMMA_FOLD, KG_WGMMA_FOLD_THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_wgmma_rest<%d>(job, kg_after(scratch), kg_map_is_there(map_%d));",
                 kg_cuda_wgmma_pieces(plan), KG_WGMMA_LEFT);
    kg_code_close(code);
}

static const struct kg_cuda_contract_form form =
    {
        .usual = {.mma = KG_WGMMA_ATOM,
                  .rows = 128,
                  .columns = 128,
                  .depth = 16,
                  .stages = 1,
                  .down = 1,
                  .across = 1,
                  .split = 1},
        .parameters =
            {
                {"tile_m", KG_CONTRACT_TILE(rows, 128, 64, 256)},
                {"tile_n", KG_CONTRACT_TILE(columns, 128, 64, 32, 16, 256, 8, 192, 96, 160, 224, 48,
                                            24, 80, 112, 144, 176, 208, 240)},
                {"tile_k", KG_CONTRACT_TILE(depth, 64, 128)},
                {"stages", KG_CONTRACT_TILE(stages, 2, 4, 8, 3, 5, 6, 7, 10, 12, 9, 14, 16)},
                {"cluster_m", KG_CONTRACT_TILE(down, 1, 2, 4)},
                {"cluster_n", KG_CONTRACT_TILE(across, 1, 2, 4)},
                {"pingpong", KG_CONTRACT_TILE(pingpong, 0, 1)},
                {"split_k",
                 KG_CONTRACT_TILE(split, 1, 2, 4, 8, 16, 32, 64, 128, 3, 6, 12, 24, 48, 0)},
                {"swap", KG_CONTRACT_TILE(swap, 0, 1)},
                {KG_CONTRACT_RASTER},
                {KG_CONTRACT_MAXNREG},
            },
        .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/wgmma.cuh",
                      "cuda/contract_shares.cuh", "cuda/contract_wgmma.cuh",
                      "cuda/contract_wgmma_feed.cuh", "cuda/contract_wgmma_block.cuh"},
        .takes = takes,
        .guess = kg_cuda_wgmma_guess,
        .valid = valid,
        .list = kg_cuda_wgmma_list,
        .cost_terms = kg_cuda_wgmma_pace,
        .emit = emit,
        .grids = kg_cuda_wgmma_grids,
        .rate = kg_cuda_wgmma_rate,
};

static const void *match(const struct kg_group *group, const struct kg_device_facts *facts,
                         struct kg_arena *arena, struct kg_text *reason)
{
    return kg_cuda_contract_match(&form, group, facts, arena, reason);
}

const struct kg_family kg_cuda_contract_wgmma = {
    .name = "contract/wgmma",
    .summary = "matrix products of 16-bit operands on the tensor cores of sm_90a",
    .match = match,
    .advised = kg_cuda_contract_advised,
    .space = kg_cuda_contract_space,
    .valid = kg_cuda_contract_valid,
    .guess = kg_cuda_contract_guess,
    .bound = kg_cuda_contract_bound,
    .expected = kg_cuda_contract_expected,
    .orders_configs = true,
    .list = kg_cuda_contract_list,
    .emit = kg_cuda_contract_emit,
    .grids = kg_cuda_contract_grids,
};
