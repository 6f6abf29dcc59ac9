# What 'kernelgen pack' lists, writes and refuses.
corpus="$ROOT/tests/fuzz/corpus"
try() { kernelgen "$@" 2>err; echo "exit $?"; sed "s|$ROOT|ROOT|" err; }
echo "-- listed"
try pack "$corpus/gguf/plain"
echo "-- packed"
try pack "$corpus/safetensors/gptq" --out packed
ls packed
wc -c <packed/q.kgw
head -c 8 packed/q.kgw; echo
try pack "$corpus/safetensors/gptq" --out again --json
cmp packed/q.kgw again/q.kgw && cat again/layers.json
echo "-- refused: nothing is written"
printf 'no model' >none
try pack none --out no
try pack "$corpus/safetensors/two" --out no
try pack . --out no
try pack missing --out no
mkfifo pipe
try pack pipe --out no
head -c 500 "$corpus/safetensors/gptq" >cut
try pack cut --out no
sed 's|q.qweight|/.qweight|g; s|q.qzeros|/.qzeros|g; s|q.scales|/.scales|g; s|q.g_idx|/.g_idx|g' "$corpus/safetensors/gptq" >slash
try pack slash --out no
try pack none --out none
ls no 2>&1
