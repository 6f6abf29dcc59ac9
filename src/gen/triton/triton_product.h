// A product of two operands in a Triton kernel: what contract's kernels and their main loop share.

#ifndef KG_GEN_TRITON_PRODUCT_H
#define KG_GEN_TRITON_PRODUCT_H

#include "gen/shared/contract_operands.h"
#include "gen/shared/scaled_operand.h"
#include "gen/triton/triton_host.h"

struct kg_triton_product {
    struct kg_triton_plan plan;
    struct kg_contract contract;
    struct kg_group group;
    int block;     // the summed axis that is walked in blocks
    bool integers; // i8 by i8: summed in i32, parts of the sum in i64
    int scaled;    // the operand whose elements are multiplied before they are scaled; -1: none
    struct kg_scaled_operand scale;
};

static inline const struct kg_nest *kg_triton_product_nest(const struct kg_triton_product *product)
{
    return kg_group_nest(&product->group, 0);
}

// Recognises an operand of few bits with scales, which sets `scaled` and `scale`.
void kg_triton_product_find_scaled(struct kg_triton_product *product);
// The longest block of K that has the same scales: a power of two; 0: any.
int kg_triton_product_block(const struct kg_triton_product *product);
// Whether both operands are i8 and so many are summed that 32 bits hold the parts.
bool kg_triton_product_has_integers(const struct kg_triton_product *product);
// Bytes of an element of the tiles that are multiplied, as Python: "4", "x.element_size()".
void kg_triton_product_bytes(struct kg_text *text, const struct kg_triton_host *host,
                             const struct kg_triton_product *product);
// A step of the main loop: adds the products at `k`, a vector that begins with `start` and is in
// range where `inside` is, to `total`.
void kg_triton_product_step(struct kg_triton_kernel *kernel,
                            const struct kg_triton_product *product, const char *k,
                            const char *inside, const char *start, const char *total);

#endif
