# What is wrong with options, definitions, arrays, wisdom and the environment, each in words of its
# own. Exit status 2, unless it is the machine that lacks something (3).
cat >add.kg <<'KG'
op add(x: T[P, D]) -> (y: T[P, D]) where T in f32 f16
{ y[p, d] = x[p, d] + 1 }
goal { speedup 1000
verify P D = 3 5
tune P D = 8 8 }
KG
cat >matmul.kg <<'KG'
op matmul(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])
{ c[m, n] = sum(k) a[m, k] * b[k, n] }
KG
array() { # array TYPE SHAPE BYTES
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    head -c "$3" /dev/zero
}
array '<f4' '4, 8' 128 >x.npy
array '<f4' '4, 8' 100 >short.npy
array '<f4' '4,' 16 >flat.npy
array '<f8' '4, 8' 256 >f64.npy
array '<c8' '4, 8' 256 >c8.npy
array '<f4' '0, 8' 0 >none.npy
array '<f4' '99999999999, 99999999999' 4 >huge.npy
array '<f4' '4, 5' 80 >b.npy
printf 'op \000\377 garbage' >garbage
: >empty
mkdir folder
long=$(printf 'a%.0s' $(seq 5000))
shown() { sed -e "s|$PWD|HERE|g" -e "s|$HOME|HOME|g" -e 's/aaaaaaaa*/LONG/g' -e 's/LONG.*/LONG/'; }
try() { # try ARGUMENTS: on one line what was said, at the end the status
    timeout 240 kernelgen "$@" >out 2>err
    echo "exit $?: $(grep -v '^ *^*$' err | shown | head -n 3 | paste -sd '|')"
}

echo "-- sizes, dtypes and params"
for size in P=-1 P=99999999999999999999 P=9223372036854775807 P=4294967296,D=4294967296 P=1e6 "P= 4" \
    P= =4 P=4,,D=3 P=4,P=5 Q=3; do
    try check add.kg --size "$size"
done
try check add.kg --size P=4 --size P=4
for dtype in T=f99 T=f64 U=f32 f32 T=f32,T=f16; do try check add.kg --dtype "$dtype"; done
try check add.kg --param G=1
try build add.kg --size P=0 --rigor estimate

echo "-- other options"
for rigor in "" fast 5; do try build add.kg --rigor "$rigor"; done
for time in 0 -1 nan inf 5s 1e99; do try build add.kg --time "$time"; done
for protocol in hot "cold warm" "warm graph launch"; do try bench add.kg --protocol "$protocol"; done
for device in tpu host:1 cuda:-1 sm_1 "$long"; do try check add.kg --device "$device"; done
for threads in -1 4097 abc 99999999999999999999; do try devices --threads "$threads"; done
for seed in 0 -5 abc 18446744073709551616; do try verify add.kg --seed "$seed"; done
try build add.kg --lang fr --out bundle
try check add.kg --lang fr
ls -d bundle 2>/dev/null
try emit add.kg --target host --device sm_90a
try check add.kg --op sub

echo "-- files that are not what they should be"
for file in garbage empty folder missing /proc/self/mem ""; do
    try check "$file"
    try asm "$file"
    try fit "$file"
    try wisdom import "$file"
    try run add.kg --input x="$file" --output y=y.npy
    try asm "$ROOT/tests/data/asm/small.sm_90a.cubin" --model "$file"
done

echo "-- arrays"
for file in short flat f64 c8 huge; do try run add.kg --input x=$file.npy --output y=y.npy; done
try run matmul.kg --input a=x.npy --input b=b.npy --output c=c.npy
try run add.kg --input x=x.npy --output y=y.npy --size P=5
try run add.kg --input x=x.npy --output y=y.npy --dtype T=f16
try run add.kg --input x=x.npy --input x=x.npy --output y=y.npy
try run add.kg --input q=x.npy --output y=y.npy
try run add.kg --output y=y.npy
try run add.kg --input x=x.npy --output x=y.npy
try run add.kg --input x=none.npy --output y=y.npy
ls y.npy

echo "-- places that cannot be written"
for place in /proc/none folder missing/file x.npy/file "$long"; do
    try run add.kg --input x=x.npy --output y="$place"
    try wisdom export "$place"
done
for place in /proc/none x.npy x.npy/folder "$long"; do try build add.kg --out "$place"; done

echo "-- the environment"
for home in "$PWD/x.npy" /proc/none "/tmp/$long"; do KERNELGEN_HOME=$home try wisdom list; done
(unset KERNELGEN_HOME HOME; PATH=$PATH try wisdom list)
for compiler in /nonexistent "$PWD/x.npy" "$PWD" "$long"; do
    CC=$compiler try build add.kg
done
TMPDIR=/nonexistent try verify add.kg
