# Records that cannot be opened stop nothing but what is about them.
cat >add.kg <<'KG'
op add(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] + 1 }
goal { speedup 0.01 rounds 1
verify P D = 3 5
tune P D = 8 8 }
KG
home=$KERNELGEN_HOME
: >nothing.jsonl
try() { "$@" >out 2>err; echo "exit $?, $(grep -c . out) lines: $2"; sed "s|$home|HOME|; /the first plan took/d" err; }
# Of two lines or more: what they say is of this machine.
some() { try "$@" | sed -e 's/exit 0, [0-9]\{2,\} lines/exit 0, some lines/' -e 's/exit 0, [2-9] lines/exit 0, some lines/'; }
all() {
    some kernelgen check add.kg
    some kernelgen devices
    some kernelgen asm "$ROOT/tests/data/asm/small.sm_90a.cubin" --kernel table
    some kernelgen emit add.kg --target host
    some kernelgen emit add.kg --target host --rigor measure --time 2
    some kernelgen build add.kg --device host --rigor measure --time 2 --out bundle
    grep -q '^| 20' bundle/*log.md || echo "the log has no rounds"
    try kernelgen wisdom list
    try kernelgen wisdom import nothing.jsonl
    try kernelgen wisdom forget all
    try kernelgen log
    try kernelgen report
    try kernelgen fit
}

echo "-- a folder where they belong"
mkdir -p "$KERNELGEN_HOME/records.db"
all
echo "-- no place for them"
(unset KERNELGEN_HOME HOME; all)
