# A plan for a GPU runs on copies of the files' arrays: above a driver without a GPU, which breaks
# when it is given memory of the program.
fake=$(dirname "$(readlink -f "$(command -v kernelgen)")")/tests/fake_driver
export LD_LIBRARY_PATH=$fake KG_FAKE_COPIES=1
kernelgen devices | grep -q 'compiler: NVRTC' || exit 77
cat >copy.kg <<'KG'
op copy(x: f32[N]) -> (y: f32[N])
{ y[n] = x[n] }
KG
{
    printf '\x93NUMPY\x01\x00\x76\x00'
    printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
    printf '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40'
} >x.npy
kernelgen run copy.kg --device cuda:0 --input x=x.npy --output y=y.npy
tail -c 12 y.npy | od -An -f
echo "-- a GPU that is not there"
kernelgen run copy.kg --device sm_90a --input x=x.npy --output y=z.npy
echo "exit $?"
