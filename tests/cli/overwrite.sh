# Nothing that a command reads is written over, by whatever name; and no output is lost to another.
cat >two.kg <<'KG'
op two(x: f32[P, D]) -> (y: f32[P, D], z: f32[P, D])
{ y[p, d] = x[p, d] + 1
  z[p, d] = x[p, d] + 2 }
goal { tune P D = 4 8 }
KG
array() { # array TYPE SHAPE BYTES
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
    head -c "$3" /dev/zero
}
array '<f4' '4, 8' 128 >x.npy
ln -s x.npy link.npy
ln x.npy hard.npy
mkdir folder out
cp "$ROOT/tests/data/asm/small.sm_90a.cubin" code.cubin
echo '// mine' >mine.c
echo 'void two(void);' >>mine.c
echo '{}' >model.json
cp mine.c out/two.ptx
find . -type f -exec cksum {} + | sort >before
try() {
    timeout 240 kernelgen "$@" >said 2>err
    echo "exit $?: $(head -n 1 err)"
}
for output in x.npy ./x.npy folder/../x.npy link.npy hard.npy; do
    try run two.kg --input x=x.npy --output y=$output
done
try run two.kg --input x=x.npy --output y=new.npy --output z=new.npy
try check two.kg --out two.kg
try check two.kg --out ./two.kg --json
try emit two.kg --target host --out two.kg
try explain two.kg --out two.kg
try asm code.cubin --out code.cubin
try asm code.cubin --model model.json --out model.json
try asm code.cubin --log mine.c --out mine.c
try fit model.json --out model.json
try build two.kg --override out/two.ptx --out out/two.ptx
find . -type f ! -name said ! -name err ! -name before -exec cksum {} + | sort |
    diff - <(grep -v ' ./before$' before) && echo "nothing is lost"
echo "--- a file of the bundle"
cp out/two.ptx kept.ptx
try build two.kg --device sm_90a --override out/two.ptx --out out
cmp kept.ptx out/two.ptx && echo "nothing is lost"
echo "--- names of ops, devices and new files are none of these"
touch two
try report two --out two
try check two.kg --out /dev/null
try run two.kg --input x=x.npy --output y=y.npy --output z=z.npy
try wisdom export lines.jsonl
try wisdom import lines.jsonl
try wisdom export lines.jsonl
