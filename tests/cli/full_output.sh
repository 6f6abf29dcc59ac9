# Output that does not arrive: standard output and files on a device that is always full, and a limit
# on the size of files. Each is told with what to do, exit status 3, and what was there before stays.
shown() { sed -e "s|$PWD|HERE|g"; }
try() { "$@" 2>&1 >/dev/null | shown; echo "exit ${PIPESTATUS[0]}"; }
full() { "$@" 2>&1 >/dev/full | shown; echo "exit ${PIPESTATUS[0]}"; }
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { verify P D = 3 5 }
KG
# Arrays of ones: 300 x 1000, and 300.
array() { # array SHAPE COUNT
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    yes 'AAAA' | head -n "$2" | tr -d '\n'
}
array '300, 1000' 300000 >x.npy
array '300,' 300 >s.npy

echo "-- standard output"
full kernelgen --help
full kernelgen --version
full kernelgen build --help
full kernelgen devices
full kernelgen check scale.kg
full kernelgen emit scale.kg --target host
full kernelgen asm "$ROOT/tests/data/asm/small.sm_90a.cubin" # larger than a buffer
full kernelgen report
echo "-- a device"
try kernelgen check scale.kg --out /dev/full
try kernelgen wisdom export /dev/full
try kernelgen run scale.kg --input x=x.npy --input s=s.npy --output y=/dev/full
echo "-- a limit on the size of files"
mkdir below
cd below || exit
echo "what was there" >here
(ulimit -f 512; try kernelgen run ../scale.kg --input x=../x.npy --input s=../s.npy --output y=here)
ls -A
cat here
