// Products on the tensor cores of sm_90a: kernels/cuda/contract_wgmma.cuh. Functions 0 and 1 copy
// sides that the copy engine cannot reach where they lie, 2 multiplies, 3 folds pieces of the sum.
//
// The engine reaches what begins at multiples of 16 bytes and goes on by such multiples. Strides
// are known when a plan is made, so that there is room for copies where they are needed. Where only
// the places turn out wrong, when the plan is run, there may be none, and function 3 does it all.

#include "gen/cuda/cuda_contract.h"

#include "gen/axes.h"
#include "gen/cuda/cuda_frame.h"
#include "gen/emit.h"
#include "gen/skeleton.h"

#include <math.h>
#include <string.h>

enum { PACK_A, PACK_B, MULTIPLY, FOLD, FUNCTIONS };
enum { LEFT, RIGHT, OUT, MAPS };
enum { ELEMENT = 2, ACCESS = 16, ATOM = 64, GROUP = 128, ROUND = 1024 };
enum { REGISTER_FILE = 65536, MOST_REGISTERS = 255, SHARED_OF_UNIT = 228 << 10 };
enum { MOVED_REGISTERS = 232 }; // those of a consumer to which registers move
enum { FOLD_THREADS = 256, MOST_BLOCKS = 1 << 20, MOST_IN_CLUSTER = 8 };

static bool owns(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.mma == 64;
}

// ---- The shape of a block, as the skeleton has it ----

static int consumers(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.rows == ATOM && !plan->set.pingpong ? 1 : 2;
}

static int threads_of(const struct kg_cuda_contract_plan *plan)
{
    return GROUP * (consumers(plan) + 1);
}

// Registers that hold a thread's sums.
static int sums_of(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->set.pingpong ? plan->set.rows : plan->set.rows / consumers(plan);
    return rows / ATOM * plan->set.columns / 2;
}

static bool moves_registers(const struct kg_cuda_contract_plan *plan)
{
    return consumers(plan) == 2 && sums_of(plan) > 96;
}

static bool folds_in_cluster(const struct kg_cuda_contract_plan *plan)
{
    return plan->set.split > 1 && plan->set.split <= MOST_IN_CLUSTER;
}

// Pieces whose sums go through memory.
static int pieces(const struct kg_cuda_contract_plan *plan)
{
    return folds_in_cluster(plan) ? 1 : plan->set.split;
}

static int cluster_of(const struct kg_cuda_contract_plan *plan)
{
    return folds_in_cluster(plan) ? plan->set.split : plan->set.pair ? 2 : 1;
}

// Columns of what leaves through shared memory at once.
static int piece_columns(const struct kg_cuda_contract_plan *plan)
{
    if (plan->set.swap)
        return plan->set.columns;
    int columns = ATOM;
    while (plan->set.columns % columns != 0)
        columns /= 2;
    return columns;
}

static int64_t rounded(int64_t bytes, int64_t to)
{
    return kg_ceil_div(bytes, to) * to;
}

static int64_t shared_bytes(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->set.rows, columns = plan->set.columns;
    int64_t stage = (int64_t)(rows + columns) * plan->set.depth * ELEMENT;
    int64_t ring = stage * plan->set.stages;
    if (folds_in_cluster(plan)) {
        int64_t lines = plan->set.swap ? columns : rows, length = plan->set.swap ? rows : columns;
        int64_t folded = lines * (length + 4) * 4;
        ring = folded > ring ? folded : ring;
    }
    int own = plan->set.pingpong ? rows : rows / consumers(plan);
    int leaving = own / ATOM * (columns / piece_columns(plan));
    int64_t buffer = rounded((int64_t)ATOM * piece_columns(plan) * ELEMENT, ROUND);
    return ROUND + ring + consumers(plan) * (leaving > 1 ? 2 : 1) * buffer + 16 * plan->set.stages;
}

// Blocks that a unit runs at once.
static int blocks_of_unit(const struct kg_cuda_contract_plan *plan)
{
    if (moves_registers(plan))
        return 1;
    int64_t by_shared = SHARED_OF_UNIT / (shared_bytes(plan) + ROUND);
    int64_t by_registers = REGISTER_FILE / (threads_of(plan) * (sums_of(plan) + 56));
    int64_t blocks = by_shared < by_registers ? by_shared : by_registers;
    return blocks < 1 ? 1 : (int)blocks;
}

static int registers_of(const struct kg_cuda_contract_plan *plan)
{
    int most = REGISTER_FILE / (threads_of(plan) * blocks_of_unit(plan)) / 8 * 8;
    most = most < MOST_REGISTERS ? most : MOST_REGISTERS;
    bool less = plan->set.registers > 0 && plan->set.registers < most;
    return less ? plan->set.registers : most;
}

// ---- Maps ----

// Elements from one position of a part to the next in the tensor: `access` of it, or, NULL, the
// output. False where they are not evenly spaced from the first on.
static bool find_step(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                      const struct kg_tensor *tensor, enum kg_contract_part part, int64_t *step)
{
    const struct kg_contract *contract = &plan->contract;
    const struct kg_layout *layout = &plan->group->problem->layouts[tensor->id];
    int64_t run = 1;
    *step = 0;
    for (int i = contract->axis_count[part] - 1; i >= 0; i--) {
        int axis = contract->axes[part][i];
        int64_t extent = contract->nest->extent[axis], stride = access ? 0 : layout->stride[axis];
        for (int dim = 0; access && dim < tensor->rank; dim++)
            stride += access->map[dim].coefficient[axis] * layout->stride[dim];
        if (!kg_axes_from_zero(contract->nest->axes[axis]))
            return false;
        if (extent == 1)
            continue;
        if (run == 1)
            *step = stride;
        else if (stride != *step * run)
            return false;
        run *= extent;
    }
    return true;
}

// Lines of neighbours along `inner`, one for each position of `outer`, as boxes of `width` by
// `height`. False where lines do not begin at multiples of 16 bytes.
static bool map_lines(const struct kg_cuda_contract_plan *plan, const struct kg_access *access,
                      const struct kg_tensor *tensor, enum kg_contract_part inner,
                      enum kg_contract_part outer, int width, int height, struct kg_map *map)
{
    const int64_t counts[KG_CONTRACT_PARTS] = {
        [KG_CONTRACT_BATCH] = plan->batches,
        [KG_CONTRACT_M] = plan->rows,
        [KG_CONTRACT_N] = plan->columns,
        [KG_CONTRACT_K] = plan->depth,
    };
    const enum kg_contract_part parts[] = {inner, outer, KG_CONTRACT_BATCH};
    *map = (struct kg_map){.tensor = tensor->id, .element = ELEMENT, .rank = 3};
    for (int dim = 0; access && dim < tensor->rank; dim++)
        if (access->map[dim].offset != 0 || access->map[dim].base)
            return false;
    for (int i = 0; i < 3; i++) {
        int64_t step;
        if (!find_step(plan, access, tensor, parts[i], &step))
            return false;
        map->shape[i] = counts[parts[i]];
        map->stride[i] = counts[parts[i]] == 1 ? ACCESS : step * ELEMENT;
        if (i == 0 ? counts[inner] > 1 && step != 1 : map->stride[i] % ACCESS != 0)
            return false;
        if (i > 0 && map->stride[i] == 0)
            return false;
    }
    map->box[0] = width;
    map->box[1] = height;
    map->box[2] = 1;
    map->swizzle = width * ELEMENT;
    return true;
}

static enum kg_contract_part lines_of(int side)
{
    return side ? KG_CONTRACT_N : KG_CONTRACT_M;
}

// The side, 0 for A, that is copied as `left` or right.
static int side_of(const struct kg_cuda_contract_plan *plan, int place)
{
    return plan->set.swap ? 1 - place : place;
}

static int place_of(const struct kg_cuda_contract_plan *plan, int side)
{
    return side_of(plan, side);
}

// Lines of a box of a side that lies along the sum; a pair copies half of what it shares each.
static int box_lines(const struct kg_cuda_contract_plan *plan, int side)
{
    int place = place_of(plan, side);
    int lines = place == LEFT ? plan->set.rows : plan->set.columns;
    bool shared = plan->set.pair == (place == LEFT ? 2 : 1);
    return shared ? lines / 2 : lines;
}

static int64_t copy_bytes(const struct kg_cuda_contract_plan *plan, int side)
{
    int64_t across = side ? plan->columns : plan->rows;
    int64_t lines = plan->along[side] ? across : plan->depth;
    int64_t length = plan->along[side] ? plan->depth : across;
    return rounded(plan->batches * lines * rounded(length, ACCESS / ELEMENT) * ELEMENT, 256);
}

static int64_t partial_bytes(const struct kg_cuda_contract_plan *plan)
{
    int64_t outputs = plan->batches * plan->rows * plan->columns;
    return pieces(plan) > 1 ? rounded(pieces(plan) * outputs * 4, 256) : 0;
}

static void map_copy(const struct kg_cuda_contract_plan *plan, int side, struct kg_map *map)
{
    int64_t across = side ? plan->columns : plan->rows;
    int64_t lines = plan->along[side] ? across : plan->depth;
    int64_t length = plan->along[side] ? plan->depth : across;
    int64_t pitch = rounded(length * ELEMENT, ACCESS);
    *map = (struct kg_map){
        .tensor = KG_MAP_SCRATCH,
        .offset = (size_t)(partial_bytes(plan) + (side ? copy_bytes(plan, 0) : 0)),
        .element = ELEMENT,
        .rank = 3,
        .shape = {length, lines, plan->batches},
        .stride = {0, pitch, pitch * lines},
        .box = {ATOM, plan->along[side] ? box_lines(plan, side) : plan->set.depth, 1},
        .swizzle = ATOM * ELEMENT,
    };
}

// False where the side has to be copied.
static bool map_side(const struct kg_cuda_contract_plan *plan, int side, struct kg_map *map)
{
    const struct kg_access *access = plan->plain[side];
    enum kg_contract_part lines = lines_of(side);
    if (plan->along[side])
        return map_lines(plan, access, access->tensor, KG_CONTRACT_K, lines, ATOM,
                         box_lines(plan, side), map);
    return map_lines(plan, access, access->tensor, lines, KG_CONTRACT_K, ATOM, plan->set.depth,
                     map);
}

static bool map_output(const struct kg_cuda_contract_plan *plan, struct kg_map *map)
{
    const struct kg_tensor *tensor = kg_cuda_contract_output(plan);
    int piece = piece_columns(plan);
    if (kg_dtypes[kg_emit_tensor_dtype(tensor)].bits != 16 || plan->set.split > 1)
        return false;
    if (!map_lines(plan, NULL, tensor, KG_CONTRACT_N, KG_CONTRACT_M, plan->set.swap ? ATOM : piece,
                   plan->set.swap ? piece : ATOM, map))
        return false;
    if (map->swizzle < 32)
        map->swizzle = 0;
    return plan->columns * ELEMENT % ACCESS == 0; // the engine stores whole pieces of 16 bytes
}

// ---- The anatomy ----

static bool valid(const struct kg_cuda_contract_plan *plan, struct kg_text *reason)
{
    int rows = plan->set.rows, columns = plan->set.columns;
    enum kg_dtype dtype = kg_cuda_contract_dtype(plan, 0);
    if (strcmp(plan->facts->isa, "sm_90a") != 0)
        return kg_cuda_contract_refuse(reason, "wgmma is an instruction of sm_90a");
    if (!plan->plain[0] || !plan->plain[1])
        return kg_cuda_contract_refuse(reason, "tensor cores multiply tensors as they stand");
    if (dtype != kg_cuda_contract_dtype(plan, 1) || (dtype != KG_F16 && dtype != KG_BF16))
        return kg_cuda_contract_refuse(reason, "both sides have to be f16, or both bf16");
    if (plan->rows > INT32_MAX / 2 || plan->columns > INT32_MAX / 2 ||
        plan->depth > INT32_MAX / 2 || plan->batches > INT32_MAX / 2)
        return kg_cuda_contract_refuse(reason, "maps count to 2^30");
    if (rows != ATOM && rows != 128 && rows != 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 64, 128 or 256 rows");
    if (columns % 8 != 0 || columns > 256)
        return kg_cuda_contract_refuse(reason, "tiles of this form have 8 to 256 columns");
    if (plan->set.depth != ATOM && plan->set.depth != 128)
        return kg_cuda_contract_refuse(reason, "tiles of this form are 64 or 128 steps deep");
    if (!plan->along[side_of(plan, RIGHT)] && columns % (plan->set.pair == 1 ? 128 : ATOM) != 0)
        return kg_cuda_contract_refuse(reason, "columns that are neighbours in memory come by 64");
    if (!plan->along[side_of(plan, LEFT)] && plan->set.pair == 2 && rows % 128 != 0)
        return kg_cuda_contract_refuse(reason, "rows that are neighbours in memory come by 64");
    if (plan->set.pair == 1 && columns % 16 != 0)
        return kg_cuda_contract_refuse(reason, "the columns cannot be halved");
    if (plan->set.pair && plan->set.split > 1)
        return kg_cuda_contract_refuse(reason, "a cluster has one purpose");
    if (plan->set.pingpong && (rows == 256 || plan->set.split > 1))
        return kg_cuda_contract_refuse(reason, "consumers take turns with whole tiles");
    if (plan->set.stages < 2)
        return kg_cuda_contract_refuse(reason, "one tile is copied while another is multiplied");
    if (sums_of(plan) > 192)
        return kg_cuda_contract_refuse(reason, "holds more than a thread has registers");
    if (shared_bytes(plan) > plan->facts->shared_bytes)
        return kg_cuda_contract_refuse(reason,
                                       "a block would need more shared memory than there is");
    if (moves_registers(plan) && plan->set.registers > 0)
        return kg_cuda_contract_refuse(reason, "registers move between warps as it is");
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) < sums_of(plan) + 40)
        return kg_cuda_contract_refuse(reason, "holds more than a thread may have registers");
    return kg_cuda_contract_tiles(plan) * plan->set.split <= INT32_MAX ||
           kg_cuda_contract_refuse(reason, "too many tiles");
}

// ---- The config by rule ----

// How long a kernel takes, as fitted to 121 configs on 43 shapes by an H100 (80 GB, SXM5, driver
// 580, f16, cold L2): what the rule chooses is 1.2 % slower in the mean than the best of them.
// Rates are of a unit, times in seconds.
static const struct {
    double units;    // of that device, by whose number shared rates scale
    double matrix;   // of the peak that tiles reach
    double columns;  // fewer of them cost as much
    double operands; // that the matrix unit reads from shared memory, seconds a byte
    double fill;     // of shared memory, bytes a second
    double uneven;   // fills take so much longer where lines do not begin at multiples of 128 bytes
    double delay;    // of a copy
    double memory;   // of the bandwidth that is reached
    double begin;    // until memory is busy
    double again;    // what is read more than once, of the time of a fill
    double finish;   // of a tile, and
    double leave;    // of 128 x 128 sums
    double shown;    // of both, where another tile is multiplied meanwhile
    double cluster;  // folding there
    double pieces;   // folding in memory: a launch, and the bytes
    double pair;     // what pairs cost
    double both;     // of the shorter of two things at once
} measured = {132,   0.94,    86,     0.67e-12, 144e9,  2.26,   1.15e-6, 0.86, 1.2e-6,
              0.137, 0.91e-6, 0.3e-6, 1.22,     2.7e-6, 5.2e-6, 0.053,   0.12};

// The time of a stage in a block whose unit it shares with others.
static double stage_seconds(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_device_facts *facts = plan->facts;
    int rows = plan->set.rows, columns = plan->set.columns, depth = plan->set.depth;
    int readers = rows > ATOM && !plan->set.pingpong ? 2 : 1;
    double width = columns > measured.columns ? columns : measured.columns;
    double rate = facts->matrix_flops[kg_cuda_contract_dtype(plan, 0)] / facts->units;
    double multiply = 2.0 * rows * width * depth / (rate * measured.matrix) +
                      measured.operands * ELEMENT * depth * (rows + readers * columns);
    double fill = (double)(rows + columns) * depth * ELEMENT / measured.fill;
    if (plan->depth * ELEMENT % 128 != 0)
        fill *= measured.uneven;
    return multiply > fill ? multiply : fill;
}

static double seconds_of(const struct kg_cuda_contract_plan *plan)
{
    const struct kg_device_facts *facts = plan->facts;
    int blocks = blocks_of_unit(plan), units = facts->units;
    int64_t work = kg_cuda_contract_tiles(plan) * plan->set.split;
    int64_t steps = kg_ceil_div(kg_ceil_div(plan->depth, plan->set.depth), plan->set.split);
    int64_t turns = kg_ceil_div(work, (int64_t)units * blocks);
    double stage = stage_seconds(plan), alone = measured.delay / plan->set.stages;
    double busy = (double)(kg_ceil_div(work, units) * steps) * stage;
    double one = (double)(turns * steps) * (stage > alone ? stage : alone);
    double finish =
        measured.finish + measured.leave * plan->set.rows * plan->set.columns / (128.0 * 128.0);
    bool hides = plan->set.pingpong || blocks > 1;
    double multiply = (busy > one ? busy : one) +
                      finish * (hides ? 1 + measured.shown * (double)(turns - 1) : (double)turns);
    double sides = (double)(plan->rows + plan->columns) * (double)plan->depth;
    double outputs = (double)plan->rows * (double)plan->columns;
    double bytes = (double)plan->batches * ELEMENT * (sides + outputs);
    double loaded =
        (double)(work * steps) * (plan->set.rows + plan->set.columns) * plan->set.depth * ELEMENT;
    double memory = measured.begin + bytes / (facts->bandwidth * measured.memory);
    if (loaded > bytes)
        memory += measured.again * (loaded - bytes) / (measured.fill * measured.units);
    double longer = multiply > memory ? multiply : memory;
    double seconds = longer + measured.both * (multiply + memory - longer);
    if (folds_in_cluster(plan))
        seconds += measured.cluster;
    else if (plan->set.split > 1)
        seconds += measured.pieces +
                   plan->set.split * outputs * (double)plan->batches * 4 / facts->bandwidth;
    return plan->set.pair ? seconds * (1 + measured.pair) : seconds;
}

// The most stages that leave room for so many blocks in a unit.
static int most_stages(struct kg_cuda_contract_plan *plan, int blocks)
{
    static const int stages[] = {12, 10, 8, 7, 6, 5, 4, 3, 2};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        plan->set.stages = stages[i];
        int64_t bytes = shared_bytes(plan);
        if (bytes <= plan->facts->shared_bytes && (bytes + ROUND) * blocks <= SHARED_OF_UNIT)
            return stages[i];
    }
    return 0;
}

// The tiles that were measured: with so many blocks in a unit, and up to so many pieces of the sum.
static const struct {
    int rows, columns, depth, pingpong, swap, blocks, pieces;
} tiles[] = {
    {128, 256, 64, 0, 1, 1, 1}, {128, 256, 64, 0, 0, 1, 1}, {256, 128, 64, 0, 0, 1, 1},
    {256, 192, 64, 0, 0, 1, 1}, {128, 192, 64, 1, 0, 1, 1}, {128, 192, 64, 0, 0, 1, 1},
    {128, 160, 64, 0, 0, 1, 1}, {128, 128, 64, 1, 0, 1, 1}, {128, 128, 64, 0, 0, 1, 2},
    {128, 128, 64, 0, 1, 1, 1}, {64, 256, 64, 1, 0, 1, 1},  {128, 96, 64, 0, 0, 1, 1},
    {64, 128, 64, 0, 0, 1, 1},  {64, 128, 128, 0, 0, 1, 1}, {64, 128, 128, 0, 1, 1, 1},
    {64, 128, 64, 0, 0, 2, 2},  {128, 64, 128, 0, 0, 1, 1}, {128, 64, 64, 0, 0, 2, 2},
    {64, 96, 64, 0, 0, 2, 1},   {64, 64, 128, 0, 0, 1, 2},  {64, 64, 128, 0, 0, 2, 128},
    {128, 64, 128, 0, 1, 1, 2}, {128, 64, 64, 0, 1, 2, 2},  {64, 64, 128, 0, 1, 1, 2},
    {64, 64, 64, 0, 1, 3, 2},   {64, 48, 128, 0, 1, 1, 1},  {64, 32, 128, 0, 0, 2, 1},
    {64, 32, 64, 0, 0, 3, 1},   {64, 32, 128, 0, 1, 1, 2},  {64, 32, 64, 0, 1, 3, 2},
    {128, 32, 128, 0, 1, 1, 2}, {128, 32, 64, 0, 1, 2, 2},  {64, 24, 128, 0, 1, 1, 1},
    {64, 16, 128, 0, 1, 1, 2},  {64, 16, 64, 0, 0, 3, 1},   {64, 16, 64, 0, 1, 3, 2},
    {128, 16, 128, 0, 1, 1, 2}, {128, 16, 64, 0, 1, 2, 2},
};

static bool guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tried = *plan;
    double least = INFINITY;
    if (plan->facts->units == 0 || plan->facts->bandwidth == 0)
        return false;
    tried.set.mma = 64;
    tried.set.pair = tried.set.order = tried.set.registers = 0;
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        for (int pieces = 1; pieces <= tiles[i].pieces; pieces *= 2) {
            tried.set.rows = tiles[i].rows;
            tried.set.columns = tiles[i].columns;
            tried.set.depth = tiles[i].depth;
            tried.set.pingpong = tiles[i].pingpong;
            tried.set.swap = tiles[i].swap;
            tried.set.split = pieces;
            tried.set.stages = most_stages(&tried, tiles[i].blocks);
            if (tried.set.stages == 0 || !kg_cuda_contract_check(&tried, NULL))
                continue;
            double seconds = seconds_of(&tried);
            if (seconds < least) {
                least = seconds;
                plan->set = tried.set;
            }
        }
    return least < INFINITY;
}

// ---- Source ----

// The instruction for the columns of the tile.
static void emit_instruction(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    int columns = plan->set.columns, sums = columns / 2;
    const char *type = kg_cuda_contract_dtype(plan, 0) == KG_F16 ? "f16" : "bf16";
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
                 !plan->along[side_of(plan, LEFT)], !plan->along[side_of(plan, RIGHT)]);
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

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    enum { PACK_THREADS = 256 };
    struct kg_cuda_contract_plan original = *plan;
    original.set.swap = 0;
    emit_instruction(code, plan);
    for (int side = 0; side < 2; side++) {
        kg_cuda_open_function_with_maps(code, plan->group, plan->entry, PACK_A + side, PACK_THREADS,
                                        0, MAPS);
        kg_cuda_contract_open_job(code, &original);
        kg_code_line(code, "kg_wgmma_pack<%d, %d>(job, scratch);", pieces(plan), side);
        kg_code_close(code);
    }
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, MULTIPLY, threads_of(plan),
                                    registers_of(plan), MAPS);
    kg_cuda_contract_open_job(code, plan);
    kg_code_line(code,
                 "using block = kg_wgmma_block<%d, %d, %d, %d, %d, %s, %d, %s, %s, %s, %d, "
                 "%s_instruction>;",
                 plan->set.rows, plan->set.columns, plan->set.depth, plan->set.stages,
                 plan->set.pair, truth(plan->set.pingpong), plan->set.split, truth(plan->set.swap),
                 truth(plan->along[side_of(plan, LEFT)]), truth(plan->along[side_of(plan, RIGHT)]),
                 plan->set.order, plan->entry);
    kg_code_line(code, "kg_contract_wgmma<block>(job, &map_%d, &map_%d, &map_%d, scratch);", LEFT,
                 RIGHT, OUT);
    kg_code_close(code);
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, FOLD, FOLD_THREADS, 0, MAPS);
    kg_cuda_contract_open_job(code, &original);
    kg_code_line(code, "kg_wgmma_rest<%d>(job, scratch, kg_map_is_there(map_%d));", pieces(plan),
                 LEFT);
    kg_code_close(code);
}

static struct kg_grid grid_of(int64_t blocks, int threads)
{
    return (struct kg_grid){
        .blocks = {blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS, 1, 1},
        .threads = {threads, 1, 1},
    };
}

// Blocks stay and take one tile after the other, except where a cluster folds: there each has one
// piece of a tile. Not all units of a device can be in pairs.
static struct kg_grid multiply_grid(const struct kg_cuda_contract_plan *plan)
{
    int cluster = cluster_of(plan);
    int64_t wide = plan->set.columns * (plan->set.pair == 2 ? 2 : 1);
    int64_t tall = plan->set.rows * (plan->set.pair == 1 ? 2 : 1);
    int64_t work = plan->batches * kg_ceil_div(kg_cuda_contract_tall(plan), tall) *
                   kg_ceil_div(kg_cuda_contract_wide(plan), wide) * plan->set.split;
    int64_t units = plan->facts->units > 1 ? plan->facts->units : 2;
    int64_t most = plan->set.pair ? units / 2 : units * blocks_of_unit(plan);
    struct kg_grid grid = grid_of(0, threads_of(plan));
    grid.blocks[0] = folds_in_cluster(plan) ? work : (work < most ? work : most) * cluster;
    grid.shared = (int)shared_bytes(plan);
    grid.cluster = cluster;
    return grid;
}

// Maps both sides, and says which of them have to be copied first.
static void map_sides(const struct kg_cuda_contract_plan *plan, struct kg_map *maps, bool *copied)
{
    for (int side = 0; side < 2; side++) {
        struct kg_map *map = &maps[place_of(plan, side)];
        copied[side] = !map_side(plan, side, map);
        if (copied[side])
            map_copy(plan, side, map);
    }
}

static struct kg_grid pack_grid(const struct kg_cuda_contract_plan *plan, int side)
{
    int64_t lines = plan->along[side] ? (side ? plan->columns : plan->rows) : plan->depth;
    return grid_of(plan->batches * lines, FOLD_THREADS);
}

static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    int64_t outputs = plan->batches * plan->rows * plan->columns;
    struct kg_grid rest = grid_of(kg_ceil_div(outputs, FOLD_THREADS), FOLD_THREADS);
    bool copied[2] = {false};
    *grids = (struct kg_grids){.count = FUNCTIONS, .alignment = ACCESS, .map_count = MAPS};
    for (int i = 0; i < FUNCTIONS; i++)
        grids->grids[i] = grids->unaligned[i] = grid_of(0, 1);
    if (outputs == 0 || plan->depth == 0) {
        grids->grids[FOLD] = grids->unaligned[FOLD] = rest;
        return;
    }
    map_sides(plan, grids->maps, copied);
    if (!map_output(plan, &grids->maps[OUT]))
        grids->maps[OUT] = (struct kg_map){0};
    for (int side = 0; side < 2; side++)
        if (copied[side])
            grids->grids[PACK_A + side] = pack_grid(plan, side);
    grids->grids[MULTIPLY] = multiply_grid(plan);
    if (pieces(plan) > 1)
        grids->grids[FOLD] = rest;
    grids->scratch = (size_t)partial_bytes(plan);
    if (!copied[0] && !copied[1]) {
        grids->unaligned[FOLD] = rest;
        return;
    }
    grids->scratch += (size_t)(copy_bytes(plan, 0) + copy_bytes(plan, 1));
    for (int side = 0; side < 2; side++) {
        map_copy(plan, side, &grids->unaligned_maps[place_of(plan, side)]);
        grids->unaligned[PACK_A + side] = pack_grid(plan, side);
    }
    grids->unaligned[MULTIPLY] = grids->grids[MULTIPLY];
    grids->unaligned[FOLD] = grids->grids[FOLD];
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_contract_dtype(plan, 0)];
}

const struct kg_cuda_contract_form kg_cuda_contract_wgmma = {
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/contract_wgmma.cuh"},
    .owns = owns,
    .guess = guess,
    .valid = valid,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};
