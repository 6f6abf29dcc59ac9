// Expected times of products on the host: see host_times.h. What a product takes is counted by its
// register tiles, by what is packed for them, and by the epilogue.

#include "gen/host/host_times.h"

#include "gen/host/contract_writer.h"
#include "gen/host/host_work.h"
#include "gen/shared/axes.h"
#include "gen/shared/contract_operands.h"

#include <math.h>

#define MULTIPLY_SHARE 0.85 // of the peak that the register tile reaches
#define INTEGER_SHARE 0.62  // the same of integers, which multiply in halves
// Of integers with vectors of 32 bytes, measured on two AVX2 cores: products of 64 bits, of factors
// of 32 bits, and of pairs of 16 bits, which are four times as many; and cycles to pack one.
#define LONG_SHARE 0.13
#define WORD_SHARE 0.33
#define SHORT_SHARE 0.4
#define SHORT_PACK 0.7
#define WORD_PACK 1.0
#define PAIR_SHARE 0.4       // and of pairs of narrow floats
#define PACK_STEP 0.3        // cycles to pack an element that lies as it is
#define TILE_CALL 25.0       // around a register tile, for a block of k
#define ITEM_CYCLES 2500.0   // around a product: what is worked out before the first tile
#define EPILOGUE_SHARE 1.6   // of what its formula takes in a loop of its own
#define PANEL_ELEMENTS 6.0   // of operands that come from a far cache in a cycle
#define ITEM_ROWS 1024.0     // of an item at most: KG_ITEM_ROWS of kernels/host/contract_entry.h
#define LINES_LEAST 512.0    // steps of k of quantised lines: KG_LINES_LEAST there
#define LINE_ROWS 8.0        // rows that multiply them in place, at most: KG_SCALED_ROWS
#define SHORT_LINE_ROWS 24.0 // the same with vectors of less than 64 bytes

static double count_part(const struct kg_contract *contract, enum kg_contract_role part)
{
    double count = 1;
    for (int i = 0; i < contract->axis_count[part]; i++)
        count *= (double)contract->nest->extent[contract->axes[part][i]];
    return count;
}

static double pack_cycles(const struct kg_host_work *work, const struct kg_contract *contract,
                          int index, const struct kg_contract_shorts *narrow, bool takes_shorts)
{
    const struct kg_contract_operand *operand = &contract->operands[index];
    int part = index ? KG_CONTRACT_N : KG_CONTRACT_M;
    int count = contract->axis_count[operand->k_major ? KG_CONTRACT_K : part];
    int along = operand->k_major ? KG_CONTRACT_K : part;
    int vector = count > 0 ? contract->axes[along][count - 1] : -1;
    struct kg_host_loop loop = kg_host_work_loop(work, contract->nest, vector);
    double cycles = takes_shorts                       ? SHORT_PACK * (1 + narrow->parts[index])
                    : narrow->words && !operand->plain ? PACK_STEP + WORD_PACK
                                                       : PACK_STEP;
    loop.inlines = true;
    for (int i = 0; i < operand->count && !operand->plain; i++)
        cycles += kg_host_expr_cycles(&loop, operand->factors[i].expr);
    return cycles;
}

// Operations of a core in a cycle, of a product in the register tile.
static double contract_peak(const struct kg_contract *contract, const struct kg_device_facts *facts,
                            const struct kg_contract_shorts *shorts, bool takes_shorts)
{
    double lanes = kg_host_lanes(facts, contract->type);
    if (contract->type == KG_TYPE_F32 || contract->type == KG_TYPE_F64)
        return 2 * lanes * MULTIPLY_SHARE;
    if (takes_shorts)
        return 2 * 4 * lanes * SHORT_SHARE / (shorts->parts[0] * shorts->parts[1]);
    if (facts->vector_bytes >= 64)
        return 2 * lanes * INTEGER_SHARE;
    return 2 * lanes * (shorts->words == KG_CONTRACT_LONG ? LONG_SHARE : WORD_SHARE);
}

// What is done with the sums, in vectors as wide as the register tile; where it is cut, the
// elements that are left go one by one.
static void add_epilogue(struct kg_host_work *work, double rest)
{
    for (int i = 1; i < work->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(work->group, i);
        struct kg_host_loop loop = kg_host_work_loop(work, nest, nest->output_axes - 1);
        double all = kg_axes_count(nest, 0, nest->output_axes - 1);
        bool stored = !kg_group_is_private(work->group, nest->output);
        double whole = kg_host_body_cycles(&loop) + (stored ? kg_host_store_cycles(&loop) : 0);
        loop.scalar = true;
        double alone = kg_host_body_cycles(&loop) + (stored ? kg_host_store_cycles(&loop) : 0);
        work->cycles += all * ((1 - rest) * whole * EPILOGUE_SHARE + rest * alone);
    }
}

double kg_host_expect_contract(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_group *group = &match->group;
    const struct kg_device_facts *facts = match->facts;
    const struct kg_contract *contract = match->analysis;
    struct kg_host_work work = {group, facts, 0, 0, 0};
    double batch = count_part(contract, KG_CONTRACT_BATCH), m = count_part(contract, KG_CONTRACT_M);
    double n = count_part(contract, KG_CONTRACT_N), k = count_part(contract, KG_CONTRACT_K);
    double lanes = kg_host_lanes(facts, contract->type),
           rows = (double)config->value[KG_CONTRACT_ROWS];
    struct kg_contract_shorts narrow = kg_contract_shorts(contract, facts);
    bool shorts = kg_contract_takes_shorts(&narrow, m, n, k);
    double columns = (double)config->value[KG_CONTRACT_VECTORS] * lanes * (shorts ? 2 : 1);
    double peak = contract_peak(contract, facts, &narrow, shorts);
    double few = fmin(m, n);
    if (few * batch <= 0 || k <= 0)
        return KG_HOST_CALL_SECONDS;
    struct kg_scaled_operand operand;
    enum kg_contract_layout layout = kg_contract_scaled(contract, &operand);
    const double most = lanes < 16 ? SHORT_LINE_ROWS : LINE_ROWS;
    const bool tiles = m >= KG_CONTRACT_TILE_ROWS && n >= 4 * lanes &&
                       kg_contract_tiles(contract, facts, layout, &operand);
    bool scaled = layout == KG_CONTRACT_ALONG_N || layout == KG_CONTRACT_PANELS ? n >= 4 * lanes
                  : layout == KG_CONTRACT_ALONG_K
                      ? tiles || (m <= most && m <= n && k >= LINES_LEAST)
                      : false;
    bool dots = !scaled && !shorts && few <= columns / 2 && k >= 4 * lanes;
    double tall = ceil(m / rows) * rows, wide = ceil(n / columns) * columns;
    double depth = (double)config->value[KG_CONTRACT_DEPTH];
    if (tiles) {
        work.cycles = batch * kg_contract_tile_cycles(contract, m, n * k);
    } else if (scaled) {
        work.cycles = batch * kg_contract_scaled_cycles(m, n * k, lanes, peak);
    } else if (dots) {
        work.cycles = batch * fmax(m, n) * few * (k / peak * 2 + 4);
    } else {
        work.cycles = batch * tall * wide * k / peak;
        work.cycles += batch * tall / rows * wide / columns * ceil(k / depth) * TILE_CALL;
        work.cycles += batch * m * k * pack_cycles(&work, contract, 0, &narrow, shorts) *
                       ceil(n / (double)config->value[KG_CONTRACT_COLUMNS]);
    }
    if (!scaled)
        work.cycles +=
            batch * n * k * pack_cycles(&work, contract, 1, &narrow, shorts) * ceil(m / ITEM_ROWS);
    work.cycles += ITEM_CYCLES + batch * 200;
    double read = scaled ? kg_dtypes[kg_emit_tensor_dtype(operand.element->tensor)].bits / 32.0 : 1;
    work.waits = batch * (m * k + n * k * read + m * n) / PANEL_ELEMENTS;
    work.items = batch * ceil(m / ITEM_ROWS) * ceil(n / 128);
    work.items = fmax(work.items, fmin(batch * m * n / 16384, 4.0 * facts->units));
    add_epilogue(&work, fmod(n, columns) / n);
    if (group->count == 1)
        work.cycles +=
            batch * m * n *
            kg_host_store_cycles(&(struct kg_host_loop){.group = group,
                                                        .facts = facts,
                                                        .nest = contract->nest,
                                                        .vector = contract->nest->output_axes - 1});
    return kg_host_work_seconds(&work);
}
