# Integers of 16 and 32 bits from .npy files and into them: sums that wrap, bits, places.
cat >integers.kg <<'KG'
op add(x: T[N], z: T[N]) -> (y: T[N]) where T in u16 i16 u32
{ y[n] = x[n] + z[n] }
op words(x: u16[N], z: i16[N]) -> (y: u32[N])
{ y[n] = x[n] << 16 | z[n] & 0xffff }
op place(x: T[P, D]) -> (y: u16[]) where T in i16 u32
{ y[] = argmax(p, d) x[p, d] }
op narrow_place(x: i16[P, D]) -> (y: T[]) where T in i8 u8
{ y[] = argmin(p, d) x[p, d] }
KG
array() { # array TYPE SHAPE BYTES...
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    shift 2
    for byte; do printf "\\x$byte"; done
}
try() { # try ARGUMENTS: what was said, if anything, and the status
    kernelgen run integers.kg --device host --rigor estimate --output y=y.npy "$@" >out 2>err
    echo "exit $?$(sed 's/^/: /' err)"
}
show() { # the type of an array, and its bytes
    LC_ALL=C sed -n "1s/.*'descr': '\([^']*\)'.*/\1/p" "$1" | tr '\n' ' '
    tail -c "$2" "$1" | od -An -v -tx1
}
# 65535 and 1, or -1 and 1; 32768 twice, or -32768.
array '<u2' '4,' ff ff 01 00 00 80 34 12 >u16.npy
array '<i2' '4,' 01 00 ff ff 00 80 78 56 >i16.npy
array '>u4' '2,' ff ff ff ff 80 00 00 00 >u32.npy
echo "-- sums"
try --op add --input x=u16.npy --input z=u16.npy
show y.npy 8
try --op add --input x=i16.npy --input z=i16.npy
show y.npy 8
try --op add --input x=u32.npy --input z=u32.npy
show y.npy 8
try --op add --input x=u16.npy --input z=i16.npy
echo "-- bits"
try --op words --input x=u16.npy --input z=i16.npy
show y.npy 16
echo "-- places"
array '<i2' '2, 3' 01 00 02 00 ff ff 07 00 03 00 07 00 >rows.npy
array '<u4' '3, 2' 01 00 00 00 ff ff ff ff 02 00 00 00 ff ff ff ff 00 00 00 80 00 00 00 00 >words.npy
try --op place --input x=rows.npy
show y.npy 2
try --op place --input x=words.npy
show y.npy 2
# 200 places, and a dtype that holds 127 of them.
{ array '<i2' '1, 200'; head -c 400 /dev/zero; } >wide.npy
try --op narrow_place --input x=wide.npy
try --op narrow_place --dtype T=u8 --input x=wide.npy
show y.npy 1
