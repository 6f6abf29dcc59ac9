# CUDA kernels from outside, as far as that goes without a GPU: what is wrong with a file is said
# before it is said that nothing can run it.
kernelgen emit "$OPS/bias_relu.kg" --device sm_90a --target ptx >/dev/null 2>&1 || exit 77 # no NVRTC
OP="$OPS/bias_relu.kg --dtype T=f32"
try() {
    kernelgen verify $OP --device "${2:-sm_90a}" --candidate "$1" --seed 7 >out 2>&1
    echo "$1: exit $?"
    sed -e 's/NVRTC [0-9.]*/NVRTC/' -e "s|$OPS|OPS|" out
}
# Round trips: what emit writes, changed or not, is a candidate.
kernelgen emit $OP --device sm_90a --target cuda >round.cu
kernelgen emit $OP --device sm_90a --target ptx >round.ptx
head -n 5 round.cu | cut -c1-60
diff <(head -n 5 round.cu) <(head -n 5 round.ptx) && echo "the same heading"
try round.cu
try round.ptx
sed 's/= kg_relu_f32(/&2 * /' round.cu >edited.cu
try edited.cu
for op in softmax.kg:softmax scans.kg:cumsum reductions.kg:sum_first; do
    kernelgen emit "$OPS/${op%:*}" --op "${op#*:}" --device sm_90a --target cuda >"${op#*:}.cu"
    kernelgen verify "$OPS/${op%:*}" --op "${op#*:}" --device sm_90a --candidate "${op#*:}.cu" >out 2>&1
    echo "${op#*:}.cu: exit $?"
done
# Written by hand.
cat >mine.cu <<'CU'
// Launch:  bias_relu, ceil(P * D / 256) blocks of 256 threads
extern "C" __global__ void bias_relu(const float *x, const float *bias, float *y, int P, long long D)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < P * D) {
        float v = x[i] + bias[i % D];
        y[i] = v < 0 ? 0 : v;
    }
}
CU
try mine.cu
try mine.cu host
sed 's/void bias_relu/void other/' mine.cu >renamed.cu
sed 's/int P, //; s/i < P \* D/i < 8/' mine.cu >fewer.cu
sed 's/int P/float P/' mine.cu >real.cu
sed 's/ceil(P/ceil(Q/' mine.cu >unknown.cu
sed 1d mine.cu >silent.cu
sed 's/y\[i\] = v/y[i] = w/' mine.cu >broken.cu
sed 's/Choice:  .*/Choice:  pointwise: threads=7/' round.cu >stale.cu
sed 's/.visible .entry [a-z_]*0(/.visible .entry gone(/' round.ptx >gone.ptx
for file in renamed.cu fewer.cu real.cu unknown.cu silent.cu stale.cu gone.ptx none.cu; do
    try $file
done
try broken.cu | grep -e exit -e 'broken.cu('
kernelgen verify $OP --candidate mine.txt 2>&1
echo "exit $?"
