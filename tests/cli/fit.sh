# Samples of kernels, and what a fit to them says. The times are invented.
data=$ROOT/tests/data/asm
number=1
for grid in 132 1000 5000 20000; do
    for kernel in counted spilling product window shared_sum table; do
        number=$(((number * 7919 + 13) % 1000))
        time=$(awk "BEGIN { print $grid * 4e-8 * (1 + $number / 500) }")
        kernelgen asm "$data/small.sm_90a.cubin" --kernel $kernel --grid $grid \
            --read-bytes ${grid}00000 --sample demo/$grid=$time
    done
done >samples.jsonl
head -n 1 samples.jsonl | cut -c1-120
kernelgen fit samples.jsonl
kernelgen fit - --json <samples.jsonl | grep -o '"orders": {"bound": {"ordered": [0-9.]*'
kernelgen fit samples.jsonl --out page; echo "exit $?, $(wc -l <page) lines"

echo "-- refused"
kernelgen fit; echo "exit $?"
kernelgen fit missing.jsonl; echo "exit $?"
: >empty; kernelgen fit empty; echo "exit $?"
sed '3s/"warm": false/"warm": 1/' samples.jsonl | kernelgen fit -; echo "exit $?"
cubin=$data/small.sm_90a.cubin
kernelgen asm "$cubin" --grid 4 --sample demo/1=1e-3; echo "exit $?"
kernelgen asm "$cubin" --kernel table --sample demo/1=1e-3; echo "exit $?"
kernelgen asm "$cubin" --kernel table --grid 4 --sample demo; echo "exit $?"
kernelgen asm "$cubin" --kernel table --grid 4 --sample demo=fast; echo "exit $?"

echo "-- the fit in use"
kernelgen fit samples.jsonl --json >fitted.json
estimate() { kernelgen asm "$cubin" --kernel table --grid 1000 --read-bytes 1e8 "$@" | grep time; }
estimate
estimate --model fitted.json
estimate --model fitted.json --family demo
estimate --model fitted.json --device h200 # of which it says nothing
kernelgen asm "$cubin" --model fitted.json --family other; echo "exit $?"
kernelgen asm "$cubin" --model samples.jsonl; echo "exit $?"
kernelgen asm "$cubin" --family demo; echo "exit $?"
sed 's|"family": "demo"|"family": "other"|' samples.jsonl | cat - samples.jsonl | kernelgen fit - --json >two.json
kernelgen asm "$cubin" --model two.json; echo "exit $?"

echo "-- records"
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { speedup 1
verify P D = 3 5
tune P D = 32 64 }
op total(x: f32[P, D]) -> (y: f32[P])
{ y[p] = sum(d) x[p, d] }
goal { speedup 1
verify P D = 3 5
tune P D = 32 64 }
KG
# One kernel of each is enough, and a slow one, as long as it is compiled at once.
printf '#!/bin/sh\nexec cc "$@" -O0\n' >compiler
chmod +x compiler
for op in scale total; do
    CC=$PWD/compiler kernelgen explain scale.kg --op $op --device host --rigor measure --time 3 \
        >explanation
done
# What was measured varies; that it is there, and what of, does not.
kernelgen fit >page; echo "exit $?"
grep -c ' samples* of 1 problem, ' page
grep -A1 'no features' page | sort -u | grep -v -e --
kernelgen fit --json | grep -o '"held_out": null\|"points": {\|"coefficients": [^,}]*' | sort -u
kernelgen fit --op scale --json | grep -o '"family": "[a-z]*", "samples"'
kernelgen fit --op scael; echo "exit $?"
kernelgen fit --device h100; echo "exit $?"
kernelgen fit --export here.jsonl; echo "exit $?"
kernelgen fit --export - --device "$(sed -n '1s/.*"device": "\([^,]*\),.*/\1/p' here.jsonl)" | cmp - here.jsonl && echo same
sed 's/"[^"]*": "[^"]*"/"T"/g; s/: [0-9][-+.e0-9]*/: N/g' here.jsonl | sort -u
KERNELGEN_HOME=$PWD/elsewhere kernelgen fit here.jsonl >other; cmp page other && echo "the same there"
kernelgen fit here.jsonl --export there.jsonl; echo "exit $?"
kernelgen fit --export none/here.jsonl; echo "exit $?"
