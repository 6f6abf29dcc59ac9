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
enum { ELEMENT = 2, ACCESS = 16, LINE = 128, ATOM = 64, GROUP = 128, ROUND = 1024 };
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
    int registers = sums_of(plan) + (kg_cuda_contract_is_pointed(plan) ? 72 : 56),
        limit = plan->set.registers;
    registers = limit > 0 && limit < registers ? limit : registers;
    int64_t by_registers = REGISTER_FILE / (threads_of(plan) * registers);
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
    return rounded(plan->batches * lines * rounded(length * ELEMENT, LINE), 256);
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
    int64_t pitch = rounded(length * ELEMENT, LINE);
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
    int others = kg_cuda_contract_is_pointed(plan) ? 64 : 40;
    if ((moves_registers(plan) ? MOVED_REGISTERS : registers_of(plan)) < sums_of(plan) + others)
        return kg_cuda_contract_refuse(reason, "holds more than a thread may have registers");
    return kg_cuda_contract_tiles(plan) * plan->set.split <= INT32_MAX ||
           kg_cuda_contract_refuse(reason, "too many tiles");
}

// ---- How long it takes ----

// Fitted as cuda_contract_time.c says, which has what is common to all forms.
static const struct {
    double matrix;   // of the peak that tiles reach
    double columns;  // fewer of them cost as much
    double operands; // that the matrix unit reads from shared memory, seconds a byte
    double uneven; // copies take so much longer where lines do not begin at multiples of 128 bytes
    double misses; // and so much longer still what is read more than once
    double pair;   // what pairs cost
    double value;  // of a sum on its way out, where it is worked on, seconds
} measured = {0.932, 107.7, 0.473e-12, 1.3, 14, 0.036, 22e-9};

// Whether boxes are copied from lines that begin in the middle of what memory is read by.
static bool is_uneven(const struct kg_cuda_contract_plan *plan)
{
    for (int side = 0; side < 2; side++) {
        int64_t across = side ? plan->columns : plan->rows;
        int64_t bytes = (plan->along[side] ? plan->depth : across) * ELEMENT;
        if (bytes % ACCESS == 0 && bytes % LINE != 0)
            return true;
    }
    return false;
}

static double rate(const struct kg_cuda_contract_plan *plan)
{
    return plan->facts->matrix_flops[kg_cuda_contract_dtype(plan, 0)];
}

static struct kg_cuda_contract_pace pace(const struct kg_cuda_contract_plan *plan)
{
    int rows = plan->set.rows, columns = plan->set.columns;
    int readers = rows > ATOM && !plan->set.pingpong ? 2 : 1;
    double wider = columns < measured.columns ? measured.columns / columns : 1;
    struct kg_map map;
    struct kg_cuda_contract_pace pace = {
        .blocks = blocks_of_unit(plan),
        .multiply = kg_cuda_contract_stage(plan, rate(plan), measured.matrix) * wider +
                    measured.operands * ELEMENT * plan->set.depth * (rows + readers * columns),
        .fill = is_uneven(plan) ? measured.uneven : 1,
        .again = is_uneven(plan) ? measured.misses : 1,
        .values = kg_cuda_contract_is_pointed(plan) ? measured.value * sums_of(plan) : 0,
        .folds_in_cluster = folds_in_cluster(plan),
        .share = plan->set.pair ? measured.pair : 0,
    };
    for (int side = 0; side < 2; side++)
        if (!map_side(plan, side, &map))
            pace.copied += (double)copy_bytes(plan, side);
    return pace;
}

// ---- The config by rule ----

static const int stages[] = {12, 10, 8, 7, 6, 5, 4, 3, 2};
enum { STAGES = sizeof stages / sizeof *stages };

// The position of the most stages that leave room for so many blocks in a unit; STAGES: none.
static int find_stages(struct kg_cuda_contract_plan *plan, int blocks)
{
    for (int i = 0; i < STAGES; i++) {
        plan->set.stages = stages[i];
        int64_t bytes = shared_bytes(plan);
        if (bytes <= plan->facts->shared_bytes && (bytes + ROUND) * blocks <= SHARED_OF_UNIT)
            return i;
    }
    return STAGES;
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

// A vector by a matrix of rows that has to come from memory: for the form that is made for it.
static bool is_long_vector(const struct kg_cuda_contract_plan *plan)
{
    int side = plan->rows == 1 ? 1 : 0;
    double lines = (double)(side ? plan->columns : plan->rows);
    return (plan->rows == 1 || plan->columns == 1) && plan->along[side] &&
           lines * (double)plan->depth * ELEMENT > (double)plan->facts->cache[3];
}

static bool guess(struct kg_cuda_contract_plan *plan)
{
    struct kg_cuda_contract_plan tried = *plan;
    double least = INFINITY;
    if (rate(plan) == 0 || plan->facts->units == 0 || plan->facts->bandwidth == 0 ||
        is_long_vector(plan))
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
            if (find_stages(&tried, tiles[i].blocks) == STAGES ||
                !kg_cuda_contract_check(&tried, NULL))
                continue;
            const struct kg_cuda_contract_pace its = pace(&tried);
            double seconds = kg_cuda_contract_seconds(&tried, &its);
            if (seconds < least) {
                least = seconds;
                plan->set = tried.set;
            }
        }
    return least < INFINITY;
}

// ---- Configs for searches ----

// With as many stages as leave room for one, two or three blocks in a unit, or the next fewer.
// Pairs and the other order are for many tiles, and with the most stages.
static void list_stages(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    bool many = plan->set.split == 1 && kg_cuda_contract_tiles(plan) > plan->facts->units;
    int most = find_stages(plan, 1), next = most;
    for (int blocks = 1; blocks <= 3; blocks++)
        for (int at = find_stages(plan, blocks), last = at + 1; at <= last && at < STAGES; at++) {
            if (at < next)
                continue;
            next = at + 1;
            plan->set.stages = stages[at];
            kg_cuda_contract_take(listing, plan);
        }
    for (int way = 1; many && most < STAGES && way < 4; way++) {
        plan->set.stages = stages[most];
        plan->set.pair = way < 3 ? way : 0;
        plan->set.order = way == 3;
        kg_cuda_contract_take(listing, plan);
    }
    plan->set.pair = plan->set.order = 0;
}

// In pieces as long as units are without work.
static void list_pieces(struct kg_cuda_contract_plan *plan,
                        struct kg_cuda_contract_listing *listing)
{
    enum { MOST_PIECES = 128 };
    int64_t whole = kg_cuda_contract_tiles(plan);
    for (int pieces = 1; pieces <= MOST_PIECES; pieces *= 2) {
        plan->set.split = pieces;
        if (pieces == 1 || (!plan->set.pingpong && whole * pieces <= 4 * plan->facts->units))
            list_stages(plan, listing);
    }
}

static void list(struct kg_cuda_contract_plan *plan, struct kg_cuda_contract_listing *listing)
{
    static const int rows[] = {64, 128, 256};
    static const int columns[] = {8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256};
    enum { ROWS = sizeof rows / sizeof *rows, COLUMNS = sizeof columns / sizeof *columns };
    enum { WAYS = 8 };
    plan->set.mma = ATOM;
    for (int i = 0; i < WAYS * ROWS * COLUMNS; i++) {
        plan->set.swap = i & 1;
        plan->set.pingpong = i >> 1 & 1;
        plan->set.depth = i & 4 ? 2 * ATOM : ATOM;
        plan->set.rows = rows[i / WAYS % ROWS];
        plan->set.columns = columns[i / WAYS / ROWS];
        bool halves =
            (plan->set.rows > ATOM && plan->set.rows / 2 >= kg_cuda_contract_tall(plan)) ||
            (plan->set.columns > 16 && plan->set.columns / 2 >= kg_cuda_contract_wide(plan));
        if (!halves) // half the tile would be enough
            list_pieces(plan, listing);
    }
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

// Whatever follows may start early: it waits by itself, or is launched when this has ended.
static void open_function(struct kg_code *code, const struct kg_cuda_contract_plan *plan,
                          int number, int threads, int registers)
{
    kg_cuda_open_function_with_maps(code, plan->group, plan->entry, number, threads, registers,
                                    MAPS);
    kg_cuda_contract_open_job(code, plan);
    kg_code_line(code, "kg_start_next();");
}

static void emit(struct kg_code *code, const struct kg_cuda_contract_plan *plan)
{
    enum { PACK_THREADS = 256 };
    struct kg_cuda_contract_plan original = *plan, multiply = *plan;
    original.set.swap = 0;
    original.waits = true;
    // Places that are waited for are held in registers. A job that is not pointed only writes.
    multiply.waits = kg_cuda_contract_is_pointed(plan);
    emit_instruction(code, plan);
    for (int side = 0; side < 2; side++) {
        open_function(code, &original, PACK_A + side, PACK_THREADS, 0);
        kg_code_line(code, "kg_wait_before();");
        kg_code_line(code, "kg_wgmma_pack<%d, %d>(job, kg_after(scratch));", pieces(plan), side);
        kg_code_close(code);
    }
    open_function(code, &multiply, MULTIPLY, threads_of(plan), registers_of(plan));
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
    open_function(code, &original, FOLD, FOLD_THREADS, 0);
    kg_code_line(code, "kg_wait_before();");
    kg_code_line(code, "kg_wgmma_rest<%d>(job, kg_after(scratch), kg_map_is_there(map_%d));",
                 pieces(plan), LEFT);
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

static void make_grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
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

// What comes after another of these functions waits for it by itself; of small problems, the first
// one too.
static void grids(const struct kg_cuda_contract_plan *plan, struct kg_grids *grids)
{
    make_grids(plan, grids);
    for (int unaligned = 0; unaligned < 2; unaligned++) {
        struct kg_grid *all = unaligned ? grids->unaligned : grids->grids;
        bool packs = all[PACK_A].blocks[0] > 0 || all[PACK_B].blocks[0] > 0;
        all[PACK_B].early = all[PACK_A].blocks[0] > 0;
        all[MULTIPLY].early = packs;
        all[FOLD].early = all[MULTIPLY].blocks[0] > 0;
    }
    kg_cuda_start_early(plan->group, plan->facts, grids);
}

const struct kg_cuda_contract_form kg_cuda_contract_wgmma = {
    .skeletons = {"cuda/lanes.cuh", "cuda/tensor_map.cuh", "cuda/contract_wgmma.cuh"},
    .owns = owns,
    .guess = guess,
    .valid = valid,
    .list = list,
    .pace = pace,
    .emit = emit,
    .grids = grids,
    .rate = rate,
};
