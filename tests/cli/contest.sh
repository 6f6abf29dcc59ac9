# A folder of kernels from outside beside the generated one: each is judged and timed alone, whatever
# it does costs nobody else, what is on record is not measured again, and the ranking says who won.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
# Sums of equal terms: a kernel that knows algebra beats every loop.
cat >spread.kg <<'KG'
op spread(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = sum(k in 0..512) x[p, d] * 0.25 }
goal { verify P D = 3 5, 17 64  tune P D = 64 1000 }
KG
mkdir drafts
cat >drafts/fast.c <<'C'
void spread(const float *x, float *y, int64_t P, int64_t D)
{
    for (int64_t i = 0; i < P * D; i++)
        y[i] = x[i] * 128;
}
C
cat >drafts/slow.c <<'C'
void spread(const float *x, float *y, int64_t P, int64_t D)
{
    for (int64_t i = 0; i < P * D; i++) {
        volatile double sum = 0;
        for (int k = 0; k < 512; k++)
            sum += x[i] * 0.25;
        y[i] = (float)sum;
    }
}
C
with() { # NAME CODE: fast.c with code before its loop
    { printf '#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n'
      sed "s/^{/{ $2/" drafts/fast.c; } >"drafts/$1.c"
}
sed 's/i < P \* D;/i + 1 < P * D;/' drafts/fast.c >drafts/tail.c
with crash '*(volatile int *)8 = 1;'
with fork 'if (fork() == 0) _exit(0);'
with exit 'exit(0);'
# Right in the gate's few calls at these sizes, and gone, or wrong, in the middle of the race.
with late 'static int calls; if (P * D == 64000 \&\& ++calls > 20) abort();'
with drift 'static int calls; if (P * D == 64000 \&\& ++calls > 20) { y[0] = 1; return; }'
{ cat drafts/fast.c; echo '#include <unistd.h>'
  echo '__attribute__((constructor)) static void load(void) { for (;;) pause(); }'; } >drafts/hang.c
sed 's/;$/; oops/' drafts/fast.c >drafts/broken.c
cp drafts/fast.c drafts/twin.c
echo '__global__ void k() { }' >drafts/k.cu
echo 'import triton' >drafts/k.py
echo 'not a kernel' >drafts/README
mkdir drafts/folder.c
mkfifo drafts/pipe.c
ln -s /etc/passwd drafts/link.c

words="contest spread.kg drafts --device host --rigor estimate"
show() { # what does not vary of a ranking in JSON
    python3 - "$1" <<'PY'
import json, sys
told = json.load(open(sys.argv[1]))
print("winner", told["winner"])
for row in told["ranking"]:
    if row["file"]: # on a busy machine the others may stand anywhere
        print(row["file"], row["against_generated"], row.get("same_as", ""),
              "on record" if row["on_record"] else "")
    assert row["seconds"] > 0 and (row["file"] is None or row["cases"] > 50 and row["samples"] >= 3)
    assert abs(row["vs_generated"] - 1) < 1e-9 or row["kind"] != "generated"
assert [row["place"] for row in told["ranking"]] == list(range(1, len(told["ranking"]) + 1))
assert sorted(row["kind"] for row in told["ranking"])[:2] == ["baseline", "foreign"]
for row in told["failed"]:
    print(row["file"], row["outcome"], "on record" if row["on_record"] else "")
for row in told["not_judged"]:
    print(row["file"], row["outcome"], row["reason"].split(",")[0])
print(told["left_out"], "left out,", told["other_files"], "others")
PY
}
echo "-- each alone"
kernelgen $words --json >first 2>err; echo "exit $?"
show first | sed 's/ *$//'
pgrep -f "contest spread.kg" | wc -l # nothing is left behind
grep -v '^kernelgen: note' err

echo "-- nothing is measured twice"
kernelgen $words --json >second 2>err; echo "exit $?"
show second | sed 's/ *$//' | grep -v "on record"
python3 - <<'PY'
import json
first, second = json.load(open("first")), json.load(open("second"))
times = lambda told: {row["file"]: (row["seconds"], row["seed"]) for row in told["ranking"] if row["file"]}
print(times(first) == times(second))
PY

echo "-- a file that changed is another one, beside other kernels it is raced anew"
echo '// new' >>drafts/fast.c
rm drafts/twin.c drafts/hang.c
kernelgen $words --json >third
python3 -c 'import json; print([row["file"] for row in json.load(open("third"))["ranking"] if row["file"] and not row["on_record"]])'
kernelgen $words --protocol warm --json >fourth
python3 -c 'import json; print(sum(row["on_record"] for row in json.load(open("fourth"))["ranking"] if row["file"]))'

echo "-- interrupted, it keeps what it has"
mkdir two
cp drafts/fast.c two/a.c
echo '// other bytes' >>two/a.c
{ cat drafts/slow.c; echo '__attribute__((constructor)) static void load(void) { for (;;) ; }'; } >two/b.c
kernelgen contest spread.kg two --device host --rigor estimate >out 2>err &
until kernelgen log spread | grep -q 'foreign: a.c'; do sleep 0.2; done
kill -INT $!
wait $!; echo "exit $?"
rm two/b.c
kernelgen contest spread.kg two --device host --rigor estimate | grep -c 'a.c .*faster.*on record'

echo "-- as text"
kernelgen $words >text
grep -E '^(place|winner) ' text | sed -E 's/[0-9.]+ times/N times/; s/noise;.*/noise/'
sed -n '/^failed/,/^$/p' text | sed -E -e 's/case [0-9]+ \([^)]*\)/case N/g' -e 's/y\[.*/y[...]/' -e 's/of [0-9]+ cases/of N cases/' | head -c 1500
sed -n '/^not judged/,/^$/p' text

echo "-- on record, and no wisdom"
kernelgen log spread | grep -oE 'foreign: [a-z]+\.c' | sort | uniq -c | sed 's/^ *//'
kernelgen log spread | grep -E 'best known|^\| version' # no foreign one
kernelgen wisdom list
kernelgen explain spread.kg --device host --rigor estimate --json | grep -c foreign

echo "-- names"
mkdir names
cp drafts/tail.c "names/a"$'\033[31m\n'"b.c"
cp drafts/tail.c "names/c"$'\351'".c"
kernelgen contest spread.kg names --device host --rigor estimate 2>&1 | sed -n '/^failed/,/^$/p' | sed -E 's/ +wrong .*\(the/ wrong (the/; s/ +wrong .*\(on record/ wrong (on record/' | cat -v
kernelgen contest spread.kg names --device host --rigor estimate --json | python3 -c 'import json, sys; print([row["file"] for row in json.load(sys.stdin)["failed"]])'

echo "-- OpenMP"
mkdir threads
cat >threads/omp.c <<'C'
#include <omp.h>
void spread(const float *x, float *y, int64_t P, int64_t D)
{
    int threads = 0;
#pragma omp parallel
#pragma omp atomic
    threads++;
    for (int64_t i = 0; i < P * D; i++)
        y[i] = threads == 2 && omp_get_max_threads() == 2 ? x[i] * 128 : 0;
}
C
kernelgen contest spread.kg threads --device host --threads 2 --rigor estimate | grep -c faster
kernelgen contest spread.kg threads --device host --threads 1 --rigor estimate | grep -c wrong

echo "-- wrong for the inputs of the race, which are not those of the gate"
cat >scale.kg <<'KG'
op scale(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * 128 }
goal { verify P D = 3 5  tune P D = 64 100 }
KG
mkdir probe inputs
sed 's/spread/scale/' drafts/fast.c >scale.c
{ echo '#include <stdio.h>'; sed 's/^{/{ if (P * D == 6400) fprintf(stderr, "%a\\n", x[0]);/' scale.c; } >probe/a.c
kernelgen contest scale.kg probe --device host --rigor estimate 2>&1 >out | grep 0x | sort | uniq -c | sort -rn >values
value=$(awk 'NR == 1 { print $2 }' values)
sed "s/^{/{ if (P * D == 6400 \&\& x[0] == ${value}f) { y[0] = 7; return; }/" scale.c >inputs/a.c
kernelgen contest scale.kg inputs --device host --rigor estimate | grep -E '^ +a.c' | sed -E 's/expected .*//'

echo "-- in a build"
mkdir rivals
cp drafts/fast.c drafts/tail.c rivals
export KERNELGEN_HOME=$PWD/apart # where no contest was before
kernelgen build spread.kg --device host --rigor estimate --contest rivals --out built >built.txt; echo "exit $?"
grep -oE '^(winner|speed-up|written) |fast.c .* faster|tail.c +wrong' built.txt | sed -E 's/ +/ /g; s/fast.c .* /fast.c /'
ls built | grep contest; grep -c 'winner     fast.c' built/spread_contest.txt
grep -oE '\| foreign: [a-z]+\.c' built/spread_optimization_log.md | sort -u
kernelgen build spread.kg --device host --rigor estimate --contest rivals --json >built.json
python3 -c 'import json; print(json.load(open("built.json"))["contest"]["winner"])'
kernelgen build spread.kg --device host --rigor estimate --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["contest"])'

echo "-- nothing to judge"
mkdir empty gpu
cp drafts/k.cu gpu
for folder in empty missing spread.kg gpu; do
    kernelgen contest spread.kg $folder --device host --rigor estimate; echo "exit $?"
done
kernelgen contest spread.kg; echo "exit $?"
for folder in empty missing gpu; do
    kernelgen build spread.kg --device host --contest $folder; echo "exit $?"
done
kernelgen build spread.kg --device host --contest rivals --override mine.ptx; echo "exit $?"
