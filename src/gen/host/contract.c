// The family of matrix products: a sum over products of two operands, with whatever is done to each
// element of the result afterwards. See kernels/host/contract.h for how it is computed, and
// contract_operands.h for how a nest is read as a product.
//
// Its kernels decide by the sizes they are called with how they go about it; parameters are the
// tile in registers and the blocks that are meant to fit the caches.

#include "gen/shared/contract_operands.h"

#include "gen/families.h"
#include "gen/host/contract_writer.h"
#include "gen/host/host_times.h"
#include "gen/shared/bound.h"
#include "gen/shared/emit.h"

#include <string.h>

static const void *match_product(const struct kg_group *group, const struct kg_device_facts *facts,
                                 struct kg_arena *arena, struct kg_text *reason)
{
    (void)facts;
    struct kg_contract *contract = KG_NEW(arena, struct kg_contract);
    return contract && kg_contract_read(group, contract, reason) ? contract : NULL;
}

static void space(const struct kg_match *match, struct kg_space *space)
{
    (void)match;
    static const int64_t rows[] = {6, 4, 8, 12, 14};
    static const int64_t vectors[] = {2, 3, 4, 1};
    static const int64_t depths[] = {384, 256, 512};
    static const int64_t block_rows[] = {96, 192};
    static const int64_t columns[] = {1024, 512, 2048};
    *space = (struct kg_space){0};
    kg_space_add(space, "rows", KG_CHANGE_REUSE, 5, rows);
    kg_space_add(space, "vectors", KG_CHANGE_REUSE, 4, vectors);
    kg_space_add(space, "depth", KG_CHANGE_REUSE, 3, depths);
    kg_space_add(space, "block", KG_CHANGE_BLOCK, 2, block_rows);
    kg_space_add(space, "columns", KG_CHANGE_BLOCK, 3, columns);
}

static bool valid(const struct kg_match *match, const struct kg_config *config,
                  struct kg_text *reason)
{
    const struct kg_device_facts *facts = match->facts;
    int64_t rows = config->value[KG_CONTRACT_ROWS], vectors = config->value[KG_CONTRACT_VECTORS];
    int64_t registers = kg_contract_registers(facts);
    if (rows * vectors + vectors + 1 > registers) {
        kg_text_add(reason, "the tile does not fit the registers");
        return false;
    }
    if (2 * rows * vectors < registers) {
        kg_text_add(reason, "the tile leaves half of the registers idle");
        return false;
    }
    return true;
}

// The tile that reads least for what it computes, among those that fit. Sums of more than 384 are
// up to 3 % faster where registers are many, but of equal products they lose too many digits.
static void guess(const struct kg_match *match, struct kg_config *config)
{
    const struct kg_device_facts *facts = match->facts;
    *config = (struct kg_config){{6, 2, 384, 96, 1024}};
    bool many = kg_contract_registers(facts) == 32;
    if (many && facts->vector_bytes >= 64) // measured on Sapphire Rapids
        *config = (struct kg_config){{14, 2, 384, 96, 1024}};
    else if (many)
        *config = (struct kg_config){{8, 3, 384, 96, 1024}};
    if (many && kg_contract_pairs(match->analysis, facts))
        config->value[KG_CONTRACT_DEPTH] = 512;
}

// Products of 16 bits in an instruction, where it has one of 64 bits.
enum { SHORTS_OF_VECTOR = 4 };

// Products of pairs are faster than the type of the computation lets expect.
static double bound(const struct kg_match *match, const struct kg_config *config)
{
    const struct kg_contract *contract = match->analysis;
    struct kg_device_facts faster = *match->facts;
    struct kg_match with_pairs = *match;
    with_pairs.facts = &faster;
    if (kg_contract_pairs(contract, match->facts))
        faster.flops[KG_TYPE_F32] = faster.matrix_flops[contract->half];
    if (kg_contract_shorts(contract, match->facts).parts[0] > 0)
        faster.flops[KG_TYPE_I64] *= SHORTS_OF_VECTOR;
    return kg_group_bound(&with_pairs, config);
}

static bool emit(const struct kg_match *match, const struct kg_config *config, const char *entry,
                 struct kg_text *source)
{
    struct kg_space choices;
    space(match, &choices);
    return kg_contract_emit(match->analysis, match->facts, config, &choices, entry, source);
}

const struct kg_family kg_host_contract = {
    .name = "contract",
    .summary = "matrix products: register tiles over packed panels, rows of dots for thin ones",
    .match = match_product,
    .space = space,
    .valid = valid,
    .guess = guess,
    .bound = bound,
    .expected = kg_host_expect_contract,
    .emit = emit,
};
