// The types that make numbers of quantised weights: kernels/cuda/scaled_number.cuh,
// scaled_bytes.cuh and scaled_rounded.cuh.

#include "gen/cuda/contract/cuda_contract_scaled.h"

enum { FLIP = 8 }; // what is added to signed integers of 4 bits

static bool has_small_zeros(const struct kg_cuda_contract_plan *plan)
{
    enum { SMALL = 64 };
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    int flip = kg_cuda_scaled_weight_dtype(plan) == KG_I4 ? FLIP : 0;
    return scaled->least_zero + flip >= 0 && scaled->greatest_zero + flip < SMALL;
}

// What makes 16-bit numbers of weights of a dtype.
static const struct number {
    enum kg_dtype dtype;
    const char *name; // of a type for f16, with _f16 behind it, or bf16
    const char *flag; // its first argument: signed, or a float with the exponent of f16
    double f16, bf16; // instructions, as a multiple of those of 4-bit integers in f16
} numbers[] = {
    {KG_U4, "kg_scaled", "false", 1, 1.1},       {KG_I4, "kg_scaled", "true", 1, 1.1},
    {KG_U8, "kg_bytes", "false", 1, 1.5},        {KG_I8, "kg_bytes", "true", 1.1, 1.5},
    {KG_F8E4M3, "kg_floats", "false", 0.8, 1.7}, {KG_F8E5M2, "kg_floats", "true", 0.6, 1.6},
};

static const struct number *number_of(const struct kg_cuda_contract_plan *plan)
{
    const struct number *number = numbers;
    while (number->dtype != kg_cuda_scaled_weight_dtype(plan))
        number++;
    return number;
}

// Whether weights in panels are scaled in the instruction that makes numbers of them: zero points
// times a scale are exact then.
static bool rounds_at_once(const struct kg_cuda_contract_plan *plan, int *zero)
{
    const struct kg_scaled_operand *scaled = kg_cuda_scaled_operand(plan);
    *zero = (int)scaled->least_zero + (kg_cuda_scaled_weight_dtype(plan) == KG_I4 ? FLIP : 0);
    return kg_cuda_scaled_is_packed(plan) && kg_cuda_scaled_bits(plan) == 4 &&
           kg_cuda_scaled_dtype(plan) == KG_BF16 && kg_cuda_scaled_rounds(plan) &&
           kg_cuda_scaled_has_half_scales(plan) && !scaled->offset &&
           scaled->least_zero == scaled->greatest_zero && has_small_zeros(plan) &&
           (*zero & (*zero - 1)) == 0;
}

double kg_cuda_scaled_conversion(const struct kg_cuda_contract_plan *plan)
{
    // What scaling adds for two weights, not fitted; and what is all of it where it is at once.
    const double halves = 0.3, floats = 1, once = 1;
    const struct number *number = number_of(plan);
    int zero;
    if (rounds_at_once(plan, &zero))
        return once;
    return (kg_cuda_scaled_dtype(plan) == KG_F16 ? number->f16 : number->bf16) +
           (!kg_cuda_scaled_rounds(plan)           ? 0
            : kg_cuda_scaled_has_half_scales(plan) ? halves
                                                   : floats);
}

void kg_cuda_scaled_panel_number(struct kg_text *text, const struct kg_cuda_contract_plan *plan)
{
    int zero;
    if (rounds_at_once(plan, &zero))
        kg_text_format(text, "kg_rounded_at_once<%s, %d>", number_of(plan)->flag, zero);
    else
        kg_cuda_scaled_number(text, plan);
}

void kg_cuda_scaled_number(struct kg_text *text, const struct kg_cuda_contract_plan *plan)
{
    const struct number *number = number_of(plan);
    bool has_bytes = kg_cuda_scaled_bits(plan) == 8, rounds = kg_cuda_scaled_rounds(plan);
    kg_text_add(text, rounds ? "kg_rounded<" : "");
    kg_text_format(text, "%s_%s<%s", number->name, kg_dtypes[kg_cuda_scaled_dtype(plan)].name,
                   number->flag);
    if (!kg_dtype_is_narrow_float(kg_cuda_scaled_weight_dtype(plan)))
        kg_text_format(text, ", %s",
                       (has_bytes ? kg_cuda_scaled_has_one_zero(plan) : has_small_zeros(plan))
                           ? "true"
                           : "false");
    kg_text_add(text, ">");
    if (rounds)
        kg_text_format(text, ", %s, %s>", kg_cuda_scaled_has_half_scales(plan) ? "true" : "false",
                       kg_cuda_scaled_operand(plan)->offset ? "true" : "false");
}
