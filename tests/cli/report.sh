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
