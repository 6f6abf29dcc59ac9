# What `kernelgen report` writes, and says of it: with nothing on record, with something, and for an op
# that has no records.
cat >add.kg <<'KG'
op add(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] + 1 }
goal { speedup 0.01
rounds 1
verify P D = 3 5
tune P D = 8 8 }
KG
sed 's/op add/op add_one/' add.kg >add_one.kg
try() { "$@" >out 2>err; echo "exit $?"; grep -v '^<' out | head -n 1; cat err; }

echo "-- nothing on record"
try kernelgen report --out page.html
grep -o 'nothing is recorded.*' page.html
kernelgen report 2>/dev/null | head -n 1
try kernelgen report add
echo "-- two ops"
for op in add add_one; do kernelgen build $op.kg --device host --rigor measure --time 2 >/dev/null 2>&1 || echo "exit $?"; done
try kernelgen report --out page.html
kernelgen report add_one 2>said | grep -c '<details class="card"'
cat said
try kernelgen report add --out add.html
try kernelgen report ad_one --out none.html
try kernelgen report matmul
try kernelgen report --out no/such/folder.html
ls
echo "-- the log requires records, too"
try kernelgen log matmul
try kernelgen log add_one
echo "-- as text"
cat >sums.kg <<'KG'
op sums(x: f32[P, D]) -> (y: f32[P])
{ y[p] = sum(d) exp(x[p, d]) }
goal { tune P D = 500 1500 }
KG
kernelgen build sums.kg --device host --rigor measure --time 2 >/dev/null 2>&1 || echo "exit $?"
text() { COLUMNS=$1 LC_ALL=$2 kernelgen report --text; }
any() { sed 's/^[1-9][0-9]*$/some/'; }
text 60 C | head -n 1
text 60 C | LC_ALL=C grep -c '[^ -~]'
text 60 xy_ZZ.utf8 | grep -c '│' | any
COLUMNS=many LC_ALL=C kernelgen report --text | awk '/[+]--/ {print length; exit}'
kernelgen report add_one --text --out add_one.txt && grep -c 'round 0' add_one.txt
try kernelgen report matmul --text
try kernelgen report --text --json
try kernelgen report --text --against old.jsonl
echo "-- colours on a terminal alone"
on_terminal() {
    if command -v script >/dev/null; then script -qec "kernelgen report --text" /dev/null; else printf "$1"; fi |
        grep -c "$(printf '\033\\[3')" | any
}
TERM=xterm on_terminal '\033[3'
NO_COLOR=1 on_terminal ''
kernelgen report --text | grep -c "$(printf '\033')"; true
