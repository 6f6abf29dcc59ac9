# A packed input takes the panels that another op wrote, and refuses what is not packed.
cat >product.kg <<'KG'
op product(x: i32[M, K], w: packed u4[K, N], s: i32[N]) -> (y: i32[M, N])
{ y[m, n] = s[n] + sum(k) x[m, k] * w[k, n] }
KG
array() { # array DTYPE SHAPE BYTES...
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    for byte; do printf "\\x$byte"; done
}
run() { # run OUTPUT ARGUMENTS: the status, and what was said
    output=$1
    shift
    rm -f "$output.npy"
    kernelgen run "$@" --device host --rigor estimate --output "$output=$output.npy" >out 2>err
    echo "exit $?$(sed 's/^/: /' err)"
}
array '|u1' '3, 2' 21 43 65 87 a9 cb >w.npy # rows 1 2 3 4, 5 6 7 8, 9 10 11 12
array '<i4' '1, 3' 01 00 00 00 0a 00 00 00 64 00 00 00 >x.npy
array '<i4' '4,' 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 >s.npy
echo "-- packed, multiplied, unpacked"
run p "$ROOT/ops/quantised.kg" --op pack_weights --input w=w.npy
LC_ALL=C sed -n "1s/.*'shape': (\([^)]*\)).*/\1/p" p.npy
run y product.kg --input x=x.npy --input s=s.npy --input w=p.npy
tail -c +129 y.npy | od -An -v -td4
mv w.npy before.npy
run w "$ROOT/ops/quantised.kg" --op unpack_weights --input p=p.npy --size K=3,N=4
cmp w.npy before.npy
echo "-- refused"
run w "$ROOT/ops/quantised.kg" --op unpack_weights --input p=p.npy --size K=65,N=4
run w "$ROOT/ops/quantised.kg" --op unpack_weights --input p=p.npy --size N=4
run y product.kg --input x=x.npy --input s=s.npy --input w=before.npy
kernelgen diff product.kg <(sed 's/packed //' product.kg) 2>&1 | sed 's|/dev/fd/[0-9]*|plain.kg|'
