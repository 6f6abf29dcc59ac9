# With --json every command that takes it prints one JSON value and nothing else on standard output,
# when it fails too.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
cat >strict.py <<'PY'
import json, sys

def refuse(name):
    raise ValueError(f"{name} is not JSON")

def unique(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a member occurs twice")
    return dict(pairs)

value = json.loads(sys.stdin.buffer.read().decode(), parse_constant=refuse, object_pairs_hook=unique)
if isinstance(value, dict) and "error" in value:
    print("error:", value["error"].splitlines()[0])
else:
    print(", ".join(sorted(value)[:4]) if isinstance(value, dict) else "elements")
PY
try() {
    kernelgen "$@" --json >out 2>err
    status=$?
    case "$status $1" in "4 build" | "4 bench") status=0 ;; esac # a goal that was missed
    echo "$1: exit $status: $(python3 strict.py <out 2>&1 | tail -n 1)"
}
cat >one.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] }
goal { verify P D = 3 5 }
KG
cat >broken.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, e] }
KG
cat >infinite.c <<'C'
void copy(const float *x, float *y, int64_t P, int64_t D)
{
    for (int64_t i = 0; i < P * D; i++)
        y[i] = 1 / 0.0f;
}
C
mkdir drafts
cp infinite.c drafts
sed 's|1 / 0.0f|"a \\" quote\\n"[0] + x[i]|' infinite.c >wrong.c
echo "What works."
try check one.kg
try check "$OPS/softmax.kg"
try verify one.kg
try build one.kg --rigor estimate
try bench one.kg --rigor estimate
try explain one.kg
try profile one.kg --time 1
try contest one.kg drafts --rigor estimate
try devices
try wisdom list
try asm "$ROOT/tests/data/asm/hopper.ptx"
try pack "$ROOT/tests/fuzz/corpus/safetensors/gptq"
echo "What is refused."
try verify one.kg --candidate infinite.c
try verify one.kg --candidate wrong.c
echo "What fails."
try check broken.kg
try check missing.kg
try check $'no\xff\x1b[31m"name\\.kg'
try verify one.kg --candidate missing.c
try verify one.kg --candidate one.kg
try verify one.kg --seed many
try bench one.kg --rigor often
try build one.kg --size P=x
try explain one.kg --device nothing
try contest one.kg missing --rigor estimate
try profile one.kg --time never
try asm missing.ptx
try pack missing.gguf
try wisdom forget all
try wisdom nothing
try fit missing.txt
try fit --export samples
try check one.kg --unknown
try check
KERNELGEN_WORKER=/nothing try verify one.kg --sanitize
echo "What has no JSON."
for command in $(kernelgen help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    kernelgen help $command | grep -q -- --json && continue
    kernelgen $command one.kg --json 2>&1 | head -n 1
done
