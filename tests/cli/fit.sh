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
