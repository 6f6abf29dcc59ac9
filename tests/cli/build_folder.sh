# Every op of a folder's definitions, each in a process of its own: one that fails costs no other.
figures() { sed -E 's/ +[0-9.]+ [mun]?s +[0-9.]+ of its baseline +[0-9]+% of the roofline/ TIMES/; s/ in [0-9]+ s/ in N s/'; }
mkdir ops
cat >ops/sums.kg <<'KG'
op total(x: f32[N]) -> (y: f32[])
{ y[] = sum(n) x[n] }
goal { tune N = 4096  speedup 0.001 }
op mean_row(x: f32[P, D]) -> (y: f32[P])
{ y[p] = mean(d) x[p, d] }
goal { tune P D = 64 64  speedup 1000000  rounds 1 }
KG
cat >ops/twice.kg <<'KG'
op twice(x: f32[N]) -> (y: f32[N])
{ y[n] = 2 * x[n] }
goal { tune N = 4096  speedup 0.001 }
KG
echo "not a definition" >ops/readme.txt
kernelgen build ops --device host --rigor estimate --out built | figures
echo "exit ${PIPESTATUS[0]}"
ls built built/total

echo "-- JSON"
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
kernelgen build ops/ --device host --rigor estimate --json >all.json
echo "exit $?"
python3 - <<'PY'
import json
for op in json.load(open("all.json"))["ops"]:
    print(op["op"], op["file"], op["exit"], op["goal_met"], op["verify"]["passed"])
PY

echo "-- a compiler that fails for one of them"
cat >compiler <<'CC'
#!/bin/sh
for word; do
    case $word in
    *.c) grep -q twice "$word" && { printf 'compiler: \377 not today\n' >&2; exit 1; } ;;
    esac
done
exec cc "$@"
CC
chmod +x compiler
rm -rf "$KERNELGEN_HOME"
CC=$PWD/compiler kernelgen build ops --device host --rigor estimate 2>&1 | figures |
    sed -E 's/the compiler .*/the compiler .../'
echo "exit ${PIPESTATUS[0]}"
CC=$PWD/compiler kernelgen build ops --device host --rigor estimate --json >all.json 2>/dev/null
python3 - <<'PY'
import json
for op in json.load(open("all.json"))["ops"]:
    print(op["op"], op["exit"], op.get("error", "").split(" ")[-3:])
PY

echo "-- what is refused, before anything is built"
mkdir none
kernelgen build none; echo "exit $?"
kernelgen build missing/; echo "exit $?"
kernelgen build ops --op total; echo "exit $?"
kernelgen build ops --size N=8; echo "exit $?"
cp ops/twice.kg ops/again.kg
kernelgen build ops --device host --out built; echo "exit $?"
echo "op twice(x: f32[N]" >ops/again.kg
kernelgen build ops --device host; echo "exit $?"

echo "-- Ctrl-C goes to what is being built"
rm ops/again.kg
cat >compiler <<'CC'
#!/bin/sh
for word; do
    case $word in
    *.c) grep -q twice "$word" && touch "$HANGS" && exec sleep 60 ;;
    esac
done
exec cc "$@"
CC
export HANGS=$PWD/hangs
rm -rf "$KERNELGEN_HOME"
CC=$PWD/compiler kernelgen build ops --device host --rigor estimate >out 2>err &
while [ ! -e hangs ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
kill -INT $!
wait $!
echo "exit $?"
figures <out | sed -E 's/ goals, .*, / goals, ..., /'
