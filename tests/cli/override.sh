# PTX in the place of a generated kernel, as far as that goes without a GPU: what is wrong with a file
# is said before it is said that nothing can run it.
kernelgen emit "$OPS/bias_relu.kg" --device sm_90a --target ptx >/dev/null 2>&1 || exit 77 # no NVRTC
OP="$OPS/bias_relu.kg --dtype T=f32 --rigor estimate"
try() {
    kernelgen "$1" $OP --device "${3:-sm_90a}" --override "$2" >out 2>&1
    echo "$1 $2: exit $?"
    sed "s|$OPS|OPS|" out
}
kernelgen emit $OP --device sm_90a --target ptx >mine.ptx
for command in build bench verify; do
    try $command mine.ptx
done
# Without a choice of its own it stands for the one that is chosen.
grep -v '^//' mine.ptx >bare.ptx
try bench bare.ptx
sed 's/Choice:  .*/Choice:  pointwise: threads=7/' mine.ptx >stale.ptx
sed 's/.visible .entry [a-z_]*0(/.visible .entry gone(/' mine.ptx >gone.ptx
sed 's/^.target sm_90a/.target sm_100a/' mine.ptx >later.ptx
sed 's/^.target sm_90a/.target sm_80/' mine.ptx >earlier.ptx
cp mine.ptx mine.cu
for file in stale.ptx gone.ptx later.ptx earlier.ptx mine.cu none.ptx; do
    try bench $file
done
try build gone.ptx
try bench mine.ptx host
kernelgen verify $OP --override mine.ptx --candidate mine.ptx; echo "exit $?"
kernelgen profile "$OPS/bias_relu.kg" --override mine.ptx 2>&1; echo "exit $?"
# Nothing is on record.
kernelgen wisdom list
kernelgen log bias_relu
