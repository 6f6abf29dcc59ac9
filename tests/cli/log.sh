# `kernelgen log`: in both languages, to a file, and to a folder with the definition document beside it.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
cat >add.kg <<'KG'
# Adds a constant.
op add(x: f32[P, D]) -> (y: f32[P, D]) param G = 2
{ y[p, d] = x[p, d] + G }
goal { speedup 1000
rounds 1
verify P D = 3 5
tune P D = 8 8 }
KG
try() { "$@" >out 2>err; echo "exit $?"; cat err; }
build() { kernelgen build add.kg --device host --rigor measure --time 2 "$@" >/dev/null 2>&1; } # which misses its goal
change() { python3 -c "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute(sys.argv[2]); d.commit()" "$KERNELGEN_HOME/records.db" "$1"; }

echo "-- nothing on record"
try kernelgen log add --out made/
ls
echo "-- two languages"
build --out bundle
try kernelgen log add
grep '^#' out | sed 's/20.*Z/DATE/' | head -n 5
try kernelgen log add --lang zh
grep '^#' out | sed 's/20.*Z/DATE/' | head -n 5
try kernelgen log add --lang fr
kernelgen log add | cmp - bundle/add_optimization_log.md
build --out chinese --lang zh
kernelgen log add --lang zh | cmp - chinese/add_optimization_log.md
echo "-- a file and folders"
try kernelgen log add --out log.md
kernelgen log add | cmp - log.md
try kernelgen log add --out some/folder/
cat out
kernelgen log add | cmp - some/folder/optimization_log.md
kernelgen check add.kg --device host --size P=8,D=8 | cmp - some/folder/definition.md
mkdir existing
try kernelgen log add --lang zh --out existing
cat out
kernelgen check add.kg --device host --size P=8,D=8 --lang zh | cmp - existing/definition.md
echo "-- what cannot be"
try kernelgen log --out existing
try kernelgen log ad --out new/
try kernelgen log add --out log.md/
mkdir existing/optimization_log.md.d && mv existing/optimization_log.md existing/kept.md && mkdir existing/optimization_log.md
try kernelgen log add --out existing
ls
echo "-- a problem whose text does not say all, and one of earlier versions"
build --param G=3 --size P=4,D=4
try kernelgen log add --out with_params/
kernelgen check add.kg --device host --size P=8,D=8 | cmp - with_params/definition.md
change "DELETE FROM texts"
try kernelgen log add --out without/
ls without
echo "-- damaged rows"
change "UPDATE rounds SET after = 'abc', baseline = -1e999, choice = x'00ff0a', number = 'x', difference = x'60606060ff', tried = -7, kind = '%s%n', bottleneck = 'none|' WHERE number > 0"
change "UPDATE outcomes SET median = 9e999, samples = 'many'"
change "UPDATE costs SET memory_seconds = 'fast', compute_seconds = -1"
try kernelgen log add
grep -c '^## add' out
grep -i 'nan\|inf us' out; true
