# Arrays of what NumPy has no type for: their bits, as unsigned integers or as the raw bytes that
# ml_dtypes writes. The definition says what they are, or else --dtype.
cat >twice.kg <<'KG'
op twice(x: T[N]) -> (y: T[N]) where T in f8e4m3 f8e5m2 bf16 u16
{ y[n] = x[n] * 2 }
op scaled(q: f8e4m3[N], s: bf16[]) -> (y: f32[N])
{ y[n] = q[n] * s[] }
KG
array() { # array TYPE SHAPE BYTES...
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    for byte; do printf "\\x$byte"; done
}
try() { # try ARGUMENTS: what was said, if anything, and the status
    kernelgen run twice.kg --device host --rigor estimate --output y=y.npy "$@" >out 2>err
    echo "exit $?$(sed 's/^/: /' err)"
}
show() { # the type of an array, and its bytes
    LC_ALL=C sed -n "1s/.*'descr': '\([^']*\)'.*/\1/p" "$1" | tr '\n' ' '
    tail -c "$2" "$1" | od -An -v -tx1
}
# 1, 256, 448, a denormal, NaN; as f8e5m2 other numbers, and infinity.
array '|u1' '6,' 38 78 7e 03 7f fc >bytes.npy
array '|V1' '6,' 38 78 7e 03 7f fc >raw.npy
array '<u2' '2,' 80 3f 40 c0 >words.npy
array '<V2' '' 40 40 >three.npy
for file in bytes raw; do
    for dtype in f8e4m3 f8e5m2; do
        try --op twice --dtype T=$dtype --input x=$file.npy
        show y.npy 6
    done
done

echo "-- it could be either"
try --op twice --input x=bytes.npy
echo "-- what NumPy knows goes first"
try --op twice --input x=words.npy
show y.npy 4
try --op twice --dtype T=bf16 --input x=words.npy
show y.npy 4
echo "-- the definition says"
try --op scaled --input q=bytes.npy --input s=three.npy
show y.npy 24
try --op scaled --input q=words.npy --input s=three.npy
