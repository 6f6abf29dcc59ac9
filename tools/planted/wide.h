// An op of narrow floats, computed in f32 by a second kernel: the results before their rounding.

static void siege_wide_results(const struct siege_tensor *t, const int64_t *size,
                               struct siege_tensor *results)
{
    for (int i = 0; i < TENSORS; i++) {
        results[i] = t[i];
        results[i].kind = siege_wide_kinds[i];
        siege_measure(&results[i]);
        results[i].data = malloc((size_t)results[i].bytes + 1);
        for (int64_t n = 0; n < t[i].elements && i < INPUTS; n++)
            if (siege_is_real(t[i].kind))
                siege_set_real(&results[i], n, siege_real(&t[i], n), SIEGE_TO_EVEN);
            else
                siege_set_bits(&results[i], n, siege_bits(&t[i], n));
    }
    if (siege_call_wide(results, size) != 0)
        abort();
}

static void siege_store_wide(const struct siege_tensor *t, struct siege_tensor *results,
                             int rounding)
{
    for (int i = 0; i < TENSORS; i++) {
        for (int64_t n = 0; n < t[i].elements && i >= INPUTS; n++)
            if (t[i].kind == SIEGE_f16 || t[i].kind == SIEGE_bf16)
                siege_set_real(&t[i], n, siege_real(&results[i], n), rounding);
        free(results[i].data);
    }
}
