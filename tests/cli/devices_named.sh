# A device has the same names in every command: described ones, by architecture or by name, and what
# is there. What lacks the GPU itself says so with exit status 3.
soft="$OPS/softmax.kg --op softmax --dtype T=f16 --size P=64,D=128"
code="$ROOT/tests/data/asm/small.sm_90a.cubin"
try() {
    timeout 240 kernelgen "$@" >said 2>err
    status=$?
    echo "exit $status$([ $status = 2 ] && head -n 1 err | sed 's/;.*//; s/^/: /')"
}
for device in h100 H100 sm_90a nosuch; do
    echo "-- $device"
    for command in check "emit --target cuda" profile "explain --rigor estimate" "build --rigor estimate" verify bench; do
        echo -n "$command: "
        try ${command%% *} $soft $(echo "$command" | cut -s -d' ' -f2-) --device $device
    done
    echo -n "asm: "
    try asm "$code" --device $device
done
kernelgen emit $soft --target cuda --device h100 >a.cu
kernelgen emit $soft --target cuda --device sm_90a | cmp - a.cu && echo "one GPU, one kernel"
kernelgen asm "$code" --grid 100 --device h100 >a.txt
kernelgen asm "$code" --grid 100 --device sm_90a | cmp - a.txt && echo "one GPU, one estimate"
echo "-- host"
try check $soft --device host
try asm "$code" --device host
