# What is known of other shapes and what others ship: which of it is used, and what is said of it.
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { verify P D = 3 5
tune P D = 64 64 }
KG
cpu=$(kernelgen devices --json | grep -o '"device": "host", "name": "[^"]*"' | cut -d'"' -f8)
said() { sed -e "s|$cpu|CPU|" -e "s|$PWD|HERE|" -e 's/^kernelgen: //'; }
# Of a plan, where it comes from; and whatever is said on standard error.
explain() {
    kernelgen explain scale.kg --device host --threads 1 "$@" >out 2>err
    echo "exit $?"
    grep -E '^Chosen' out | sed 's/`[^`]*`/CHOICE/'
    grep -E 'nearest shape known|not measured|nothing was' out | sed -E 's/the best is .*/the best is .../'
    said <err
}
echo "-- nothing is known"
explain --rigor wisdom
explain --rigor wisdom --nearest
explain --rigor estimate --nearest
echo "-- one shape is"
explain --rigor measure --time 60
explain --rigor wisdom
explain --rigor wisdom --size P=96
explain --rigor wisdom --size P=96 --nearest
explain --rigor estimate --size P=96 --nearest
explain --rigor wisdom --size P=96,D=63 --nearest
explain --rigor wisdom --size P=200 --nearest
explain --rigor measure --time 60 --size P=96
explain --rigor wisdom --size P=96
kernelgen explain scale.kg --device host --threads 1 --rigor estimate --size P=100 --nearest --json |
    grep -o '"origin": "[^"]*"\|"nearest": {"sizes": "[^"]*"\|"from_file": [a-z]*'

echo "-- shipped"
kernelgen wisdom export shipped.jsonl
cp shipped.jsonl before
export KERNELGEN_HOME=$HOME/other KERNELGEN_WISDOM=$PWD/shipped.jsonl
explain --rigor wisdom
explain --rigor wisdom --size P=100 --nearest
kernelgen wisdom list
cmp shipped.jsonl before
echo "-- shipped, and not for this machine"
kernelgen emit scale.kg --target host --device host --threads 2 2>&1 >out | said
kernelgen explain scale.kg --rigor wisdom --device host --threads 2 2>&1 | said
echo "-- shipped, and broken"
head -c -40 before >shipped.jsonl
explain --rigor estimate
export KERNELGEN_WISDOM=missing.jsonl
explain --rigor estimate
