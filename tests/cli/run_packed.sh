# Two 4-bit elements share a byte. What `run` writes it can read, also where the last dimension is odd:
# then the file has one dimension, and the tensor's shape follows from --size or from other inputs.
cat >pack.kg <<'KG'
op pack(x: i8[P, D]) -> (q: i4[P, D])
{ q[p, d] = x[p, d] }
op unpack(q: i4[P, D]) -> (y: i8[P, D])
{ y[p, d] = q[p, d] }
op unpack_rows(q: i4[P, D], s: i8[P], t: i8[D]) -> (y: i8[P, D])
{ y[p, d] = q[p, d] + s[p] * 0 + t[d] * 0 }
op pack_line(x: i8[N]) -> (q: u4[N])
{ q[n] = x[n] }
op unpack_line(q: u4[N]) -> (y: i8[N])
{ y[n] = q[n] }
op unpack_one(q: u4[]) -> (y: i8[])
{ y[] = q[] }
KG
array() { # array SHAPE BYTES...
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|i1', 'fortran_order': False, 'shape': ($1), }"
    shift
    for byte; do printf "\\x$byte"; done
}
try() { # try OP OUTPUT ARGUMENTS: the status, what was said if anything, and what was written
    op=$1 output=$2
    shift 2
    rm -f "$output.npy"
    kernelgen run pack.kg --op "$op" --device host --rigor estimate --output "$output=$output.npy" "$@" >out 2>err
    echo "$op: exit $?$(sed 's/^/: /' err)"
    [ -e "$output.npy" ] && LC_ALL=C sed -n "1s/.*'shape': (\([^)]*\)).*/\1/p" "$output.npy" | tr '\n' ' ' &&
        tail -c +129 "$output.npy" | od -An -v -td1
    true
}
array '3, 5' 01 02 03 04 05 06 07 08 f9 fa fb fc fd fe ff >x.npy
array '5,' 01 02 03 04 05 >line.npy
array '3,' 00 00 00 >three.npy
array '5,' 00 00 00 00 00 >five.npy
echo "-- written and read again"
try pack q --input x=x.npy
cp q.npy odd.npy
try unpack y --input q=odd.npy --size P=3,D=5
try unpack_rows y --input q=odd.npy --input s=three.npy --input t=five.npy
try pack_line q --input x=line.npy
cp q.npy odd_line.npy
try unpack_line y --input q=odd_line.npy --size N=5
echo "-- nothing says that the last byte holds one element"
try unpack_line y --input q=odd_line.npy
try unpack_line y --input q=odd_line.npy --size N=6
echo "-- it does not fit"
try unpack y --input q=odd.npy
try unpack y --input q=odd.npy --size P=3
try unpack y --input q=odd.npy --size P=3,D=7
try unpack_line y --input q=odd_line.npy --size N=7
try unpack_one y --input q=odd_line.npy
