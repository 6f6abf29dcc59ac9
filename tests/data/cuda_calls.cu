// Names every function of kernels/cuda/*.cuh once; they stand before this text when it is compiled.
// Never run: tests/unit/gen/test_cuda_prelude.c has it compiled for several architectures.

template <typename T, int N>
KG_INLINE void copy(const char *from, char *to)
{
    kg_store_vec((T *)to, kg_load_vec<N>((const T *)from));
    kg_store_vec((T *)to + 2 * N, kg_elements(kg_load_raw<N>((const T *)from + 2 * N)));
    kg_store_shifted<true>((T *)to + N, kg_elements(kg_load_shifted<N, true>((const T *)from, 3, N)), 2, N);
    kg_store_vec_stream((T *)to + N, kg_load_vec_stream<N>((const T *)from + N));
    kg_store_vec((T *)to + 2 * N, kg_load_vec_evict_first<N>((const T *)from + 2 * N));
    kg_store_vec((T *)to + 3 * N,
                 kg_load_vec_policy<N>((const T *)from + 3 * N, kg_policy_here(kg_evict_first())));
    kg_vec<uint16_t, N> halves = kg_load_vec<N>((const uint16_t *)from);
    kg_store_vec((uint16_t *)to, kg_unique_zeros_bf16<true>(kg_unique_zeros_f16<true>(halves)));
    kg_store_vec((T *)to + 4 * N, kg_load_vec_evict_last<N>((const T *)from + 4 * N));
}

template <typename FOLD>
KG_INLINE void fold(char *memory, int &turn)
{
    typename FOLD::type *values = (typename FOLD::type *)memory + kg_block_here() + threadIdx.x;
    *values = FOLD::both(kg_warp_fold<FOLD, 8>(*values), kg_block_fold<FOLD, 128>(*values, turn));
    *values =
        FOLD::both(kg_row_fold<FOLD, 16>(*values, turn), kg_row_fold<FOLD, 128>(*values, turn));
    kg_start_next();
    kg_start_next_of_few();
    kg_wait_before();
    kg_groups_fold<FOLD>((typename FOLD::type *)kg_after(memory), 32, blockDim.y);
#if __CUDA_ARCH__ >= 900
    __shared__ uint64_t meetings[2];
    kg_copy_bulk(memory, values, 16, meetings);
    *values = FOLD::both(*values, kg_cluster_fold<FOLD, 128, 2>(*values, meetings, turn));
    *values = kg_cluster_rank() > 0 ? kg_cluster_total<FOLD, 2>(values) : *kg_of_block(values, 0);
    kg_cluster_wait();
#endif
}

template <typename FOLD, typename CARRY>
KG_INLINE void running(char *memory, int &turn)
{
    typename FOLD::type *to = (typename FOLD::type *)memory + threadIdx.x,
                        values[2] = {to[0], to[1]}, totals[2];
    CARRY *carry = (CARRY *)memory;
    kg_carry_on<FOLD>(*carry, kg_row_before<FOLD, 128, 1>(values, *to, turn));
    kg_warp_running<FOLD, 8>(values);
    to[0] = kg_from_below<8>(kg_of_lane<8>(values[0], 3), 1);
    to[1] = FOLD::both(kg_carried(*carry), values[1]);
    kg_column_before<FOLD, 8, 16>(values, totals, *to, turn);
    to[2] = totals[kg_left(turn, 2) > 1];
#if __CUDA_ARCH__ >= 900
    *to = kg_row_before<FOLD, 128, 2>(values, *to, turn);
    kg_cluster_arrive_relaxed();
    kg_cluster_await();
#endif
}

extern "C" __global__ void call_0(double *out, kg_f16 *halves, uint8_t *bytes, float f, double d,
                                  int64_t i, bool b, uint16_t h)
{
    const double values[] = {
        (double)kg_bits_f32(f),
        (double)kg_from_bits_f32((uint32_t)i),
        (double)kg_odd_f32(d),
        (double)kg_unpack_f16(h),
        (double)kg_pack_f16(f),
        (double)kg_pack_f16_f64(d),
        (double)kg_unpack_bf16(h),
        (double)kg_pack_bf16(f),
        (double)kg_pack_bf16_f64(d),
        (double)kg_load_f16(halves, i),
        (double)kg_load_bf16(halves, i),
        (double)kg_load_u4(bytes, i),
        (double)kg_load_i4(bytes, i),
        (double)kg_cast_f16(f),
        (double)kg_cast_f16_f64(d),
        (double)kg_cast_bf16(f),
        (double)kg_cast_bf16_f64(d),
        (double)kg_cast_i8(i),
        (double)kg_cast_u8(i),
        (double)kg_cast_i32(i),
        (double)kg_cast_i16(i),
        (double)kg_cast_u16(i),
        (double)kg_cast_u32(i),
        (double)kg_load_f8e4m3(bytes, i),
        (double)kg_cast_f8e4m3(f),
        (double)kg_cast_f8e4m3_f64(d),
        (double)kg_load_f8e5m2(bytes, i),
        (double)kg_cast_f8e5m2(f),
        (double)kg_cast_f8e5m2_f64(d),
        (double)kg_cast_u4(i),
        (double)kg_cast_i4(i),
        (double)kg_truncate_f64(d),
        (double)kg_truncate_f32(f),
        (double)kg_add_i64(i, i),
        (double)kg_sub_i64(i, i),
        (double)kg_mul_i64(i, i),
        (double)kg_neg_i64(i),
        (double)kg_div_i64(i, i),
        (double)kg_mod_i64(i, i),
        (double)kg_bit_and_i64(i, i),
        (double)kg_bit_or_i64(i, i),
        (double)kg_bit_xor_i64(i, i),
        (double)kg_bit_not_i64(i),
        (double)kg_shift_left_i64(i, i),
        (double)kg_shift_right_i64(i, i),
        (double)kg_ceildiv_i64(i, i),
        (double)kg_min_i64(i, i),
        (double)kg_max_i64(i, i),
        (double)kg_relu_i64(i),
        (double)kg_abs_i64(i),
        (double)kg_sign_i64(i),
        (double)kg_floor_i64(i),
        (double)kg_ceil_i64(i),
        (double)kg_round_i64(i),
        (double)kg_clamp(i, i),
        (double)kg_inside(i, i),
        (double)kg_and(b, b),
        (double)kg_or(b, b),
        (double)kg_where_f32(b, f, f),
        (double)kg_where_f64(b, d, d),
        (double)kg_where_i64(b, i, i),
        (double)kg_where_bool(b, b, b),
        (double)kg_isnan_f32(f),
        (double)kg_isnan_f64(d),
        (double)kg_isnan_i64(i),
        (double)kg_isnan_bool(b),
        (double)kg_min_f32(f, f),
        (double)kg_max_f32(f, f),
        (double)kg_min_f64(d, d),
        (double)kg_max_f64(d, d),
        (double)kg_beats_max_f32(f, f),
        (double)kg_beats_max_f64(d, d),
        (double)kg_beats_max_i64(i, i),
        (double)kg_beats_min_f32(f, f),
        (double)kg_beats_min_f64(d, d),
        (double)kg_beats_min_i64(i, i),
        (double)kg_relu_f32(f),
        (double)kg_relu_f64(d),
        (double)kg_sign_f32(f),
        (double)kg_sign_f64(d),
        (double)kg_unpack_f32(f),
        (double)kg_pack_f32(f),
        (double)kg_unpack_f64(d),
        (double)kg_pack_f64(d),
        (double)kg_unpack_i64(i),
        (double)kg_pack_i64(i),
        (double)kg_unpack_bool(b),
        (double)kg_pack_bool(b),
        (double)kg_unpack_i32((int)i),
        (double)kg_pack_i32(i),
        (double)kg_unpack_i8((int8_t)i),
        (double)kg_pack_i8(i),
        (double)kg_unpack_u8((uint8_t)i),
        (double)kg_pack_u8(i),
        (double)kg_abs_f32(f),
        (double)kg_abs_f64(d),
        (double)kg_floor_f32(f),
        (double)kg_floor_f64(d),
        (double)kg_ceil_f32(f),
        (double)kg_ceil_f64(d),
        (double)kg_round_f32(f),
        (double)kg_round_f64(d),
        (double)kg_sqrt_f32(f),
        (double)kg_sqrt_f64(d),
        (double)kg_rsqrt_f32(f),
        (double)kg_rsqrt_f64(d),
        (double)kg_mod_f32(f, f),
        (double)kg_mod_f64(d, d),
        (double)kg_over_f32(f, kg_divisor_f32(f)),
        (double)kg_mean_f32(f, kg_denominator_f32(f)),
        (double)kg_exp_f32(f),
        (double)kg_exp_narrow_f32(f),
        (double)kg_sigmoid_narrow_f32(f),
        (double)kg_silu_narrow_f32(f),
        (double)kg_gelu_narrow_f32(f),
        (double)kg_gelu_tanh_narrow_f32(f),
        (double)kg_times_below(f, 0.25f),
        (double)kg_from_zero(f),
        (double)kg_exp_f64(d),
        (double)kg_exp2_f32(f),
        (double)kg_exp2_f64(d),
        (double)kg_expm1_f32(f),
        (double)kg_expm1_f64(d),
        (double)kg_log_f32(f),
        (double)kg_log_f64(d),
        (double)kg_log2_f32(f),
        (double)kg_log2_f64(d),
        (double)kg_log1p_f32(f),
        (double)kg_log1p_f64(d),
        (double)kg_sin_f32(f),
        (double)kg_sin_f64(d),
        (double)kg_cos_f32(f),
        (double)kg_cos_f64(d),
        (double)kg_tanh_f32(f),
        (double)kg_tanh_f64(d),
        (double)kg_erf_f32(f),
        (double)kg_erf_f64(d),
        (double)kg_pow_f32(f, f),
        (double)kg_pow_f64(d, d),
        (double)kg_power_of_two(f),
        (double)kg_reciprocal(f),
        (double)kg_sigmoid_f32(f),
        (double)kg_sigmoid_f64(d),
        (double)kg_silu_f32(f),
        (double)kg_silu_f64(d),
        (double)kg_softplus_f32(f),
        (double)kg_softplus_f64(d),
        (double)kg_tail_f32(f),
        (double)kg_gelu_f32(f),
        (double)kg_gelu_f64(d),
        (double)kg_gelu_tanh_f32(f),
        (double)kg_gelu_tanh_f64(d),
        (double)INFINITY,
        (double)NAN,
        (double)INT64_MIN,
        (double)INT64_C(4294967296),
    };
    for (int n = 0; n < (int)(sizeof values / sizeof values[0]); n++)
        out[n] = values[n];
    kg_store_f16(halves, i, f);
    kg_store_f16_f64(halves, i, d);
    kg_store_bf16(halves, i, f);
    kg_store_bf16_f64(halves, i, d);
    kg_store_f8e4m3(bytes, i, f);
    kg_store_f8e4m3_f64(bytes, i, d);
    kg_store_f8e5m2(bytes, i, f);
    kg_store_f8e5m2_f64(bytes, i, d);
    kg_widen_f8e4m3(bytes, (float *)out, i);
    kg_narrow_f8e4m3((float *)out, bytes, i);
    kg_widen_f8e5m2(bytes, (float *)out, i);
    kg_narrow_f8e5m2((float *)out, bytes, i);
    kg_store_u4(bytes, i, i);
    kg_store_i4(bytes, i, i);
}

extern "C" __global__ void copy_0(const char *from, char *to)
{
    copy<int8_t, 1>(from, to);
    copy<bool, 2>(from, to);
    copy<uint8_t, 16>(from, to);
    copy<kg_f16, 1>(from, to);
    copy<kg_f16, 8>(from, to);
    copy<float, 1>(from, to);
    copy<float, 4>(from, to);
    copy<double, 1>(from, to);
    copy<int64_t, 2>(from, to);
    copy<double, 4>(from, to);
}

extern "C" __global__ void fold_0(char *memory, double *out)
{
    int turn = 0;
    running<kg_fold_sum_f32, kg_two<float>>(memory, turn);
    running<kg_fold_prod_f64, double>(memory, turn);
    running<kg_fold_max_i64, int64_t>(memory, turn);
    running<kg_fold_any_bool, int>(memory, turn);
    running<kg_fold_place<kg_fold_min_f32, int64_t>, kg_found<float>>(memory, turn);
    fold<kg_fold_sum_f32>(memory, turn);
    fold<kg_fold_sum_f64>(memory, turn);
    fold<kg_fold_sum_i64>(memory, turn);
    fold<kg_fold_prod_f32>(memory, turn);
    fold<kg_fold_prod_f64>(memory, turn);
    fold<kg_fold_prod_i64>(memory, turn);
    fold<kg_fold_max_f32>(memory, turn);
    fold<kg_fold_max_f64>(memory, turn);
    fold<kg_fold_max_i64>(memory, turn);
    fold<kg_fold_min_f32>(memory, turn);
    fold<kg_fold_min_f64>(memory, turn);
    fold<kg_fold_min_i64>(memory, turn);
    fold<kg_fold_any_bool>(memory, turn);
    fold<kg_fold_all_bool>(memory, turn);
    fold<kg_fold_place<kg_fold_max_f32, int64_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_min_f32, int32_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_max_f64, int64_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_max_i64, int64_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_min_f32, int64_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_min_f64, int64_t>>(memory, turn);
    fold<kg_fold_place<kg_fold_min_i64, int64_t>>(memory, turn);
    fold<kg_fold_two_f32>(memory, turn);
    fold<kg_fold_two_f64>(memory, turn);
    *out = kg_two_value(*out, *out);
}

extern "C" __global__ void own_0(const char *from, char *to)
{
    __shared__ kg_vec<char, 16> own[32];
    kg_copy_vec(own + threadIdx.x, from + 16 * threadIdx.x);
    kg_copies_wait();
    kg_store_vec(to + 16 * threadIdx.x, own[threadIdx.x]);
}
