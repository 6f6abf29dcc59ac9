# `kernelgen report --against`: the records beside wisdom of an earlier date.
cat >twice.kg <<'KG'
op twice(x: f32[P]) -> (y: f32[P])
{ y[p] = x[p] * 2 }
goal { tune P = 3000 }
KG
try() { "$@" >out 2>&1; echo "exit $?"; sed -E 's/on .*: [0-9.]+ us.*/on a CPU: .../' out; }
kernelgen build twice.kg --device host --rigor measure --time 2 >/dev/null 2>&1 || echo "not built"
kernelgen wisdom export >old.jsonl
echo "-- nothing changed"
try kernelgen report --against old.jsonl
try kernelgen report twice --against old.jsonl
kernelgen report --against old.jsonl --json | grep -o '"slower": 0\|"state": "same"'
echo "-- what cannot be compared"
try kernelgen report softmax --against old.jsonl
try kernelgen report --against none.jsonl
sed 's/"seconds": /"seconds": 9/' old.jsonl >changed.jsonl
try kernelgen report --against changed.jsonl
try kernelgen report --json
try kernelgen report --against old.jsonl --out old.jsonl
grep -c kernelgen old.jsonl
echo "-- in the page"
kernelgen report --against old.jsonl --out page.html; echo "exit $?"
grep -o 'data-since="[a-z]*"' page.html
mkdir folder
kernelgen report --out folder; echo "exit $?"
grep -c data-since folder/index.html
kernelgen report --out new/ | grep -o '^new/index.html'
kernelgen report --out new/none/none/; echo "exit $?"
kernelgen report --against none.jsonl --out page.html; echo "exit $?"
kernelgen report --against old.jsonl --json --out page.json; grep -c '"same": 1' page.json
