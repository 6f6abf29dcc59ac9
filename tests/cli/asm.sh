# Assembly files: what is shown of them, and what is refused.
data=$ROOT/tests/data/asm
show() { sed -e "s|$data/||g"; }
asm() { kernelgen asm "$@" >out 2>err; status=$?; show <out; show <err; [ $status = 0 ] || echo "exit $status"; }

echo "-- many kernels"
asm "$data/small.sm_90a.cubin"
echo "-- one, by a part of its name"
asm "$data/small.sm_90a.cubin" --kernel spill
kernelgen asm "$data/small.sm_90a.cubin" --kernel 7 | sed -n 3p
echo "-- in a launch"
asm "$data/small.sm_80.cubin" --kernel counted --device a100 --grid 108,2 --block 64,4 --read-bytes 1e9
asm "$data/small.sm_90a.cubin" --kernel counted --grid 100 --smem 65536 | grep -A4 advice
asm "$data/small.sm_90a.cubin" --kernel counted --grid 2113 | grep -A2 advice
echo "-- PTX has no registers, until a log tells them"
printf '%s\n' "ptxas info    : Compiling entry function 'bulk_copies' for 'sm_90a'" \
    "ptxas info    : Function properties for bulk_copies" \
    "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads" \
    "ptxas info    : Used 168 registers, used 1 barriers" \
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized in function 'bulk_copies'" >log
asm "$data/hopper.ptx" --kernel bulk_copies --log log | grep -A9 -e ^bulk -e advice
echo "-- it does not fit"
asm "$data/small.sm_75.cubin" --kernel shared_sum --smem 65536 | grep -A1 occupancy
echo "-- standard input"
kernelgen asm - --kernel window <"$data/small.sm_120a.cubin" | head -n 3
echo "-- JSON"
kernelgen asm "$data/small.sm_90a.cubin" --kernel product --json | sed "s|$data/||; s|, .kernels.*||" | show

echo "-- two side by side"
asm --compare "$data/small.sm_80.cubin" "$data/small.sm_90a.cubin"
asm --compare "$data/small.sm_80.cubin" "$data/small.sm_90a.cubin" --kernel spilling
asm --compare "$data/small.sm_90a.cubin" - --kernel product <"$data/small.sm_120a.cubin" | head -n 12
kernelgen asm --compare "$data/small.sm_80.cubin" "$data/small.sm_90a.cubin" --kernel product --json |
    grep -o '"differences": .*'

echo "-- refused"
asm --compare "$data/small.sm_80.cubin"
asm "$data/small.sm_80.cubin" "$data/small.sm_90a.cubin"
asm --compare "$data/small.sm_80.cubin" "$data/hopper.ptx"
asm --compare "$data/small.sm_80.cubin" "$data/small.sm_90a.cubin" --device h100 --kernel product
asm "$data/small.sm_90a.cubin" --kernel spiling
asm "$data/small.sm_90a.cubin" --kernel l
asm "$data/small.sm_90a.cubin" --device h300
asm "$data/small.sm_90a.cubin" --device a100
asm "$data/small.sm_90a.cubin" --kernel shared_sum --block 256
asm "$data/small.sm_90a.cubin" --kernel 8
asm "$data/small.sm_90a.cubin" --grid 0
asm "$data/small.sm_90a.cubin" --block 32,2,1,1
asm "$data/small.sm_90a.cubin" --grid 4 --flops much
asm "$data/small.sm_90a.cubin" --flops 1e9
asm "$data/small.sm_90a.cubin" --smem 0.5
asm "$data/small.sm_90a.cubin" --log "$data/control.ptx" | sed 's|[^ ]*/control|control|'
asm missing.cubin
asm .
: >empty.ptx
asm empty.ptx
head -c 3000 "$data/small.sm_90a.cubin" >short.cubin
asm short.cubin
printf 'nothing of the kind' >text
asm text
printf '.version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n  add.f32 %%f1, %%f2\n' >broken.ptx
asm broken.ptx
printf '.version 8.0\n.target sm_80\n.address_size 64\n' >none.ptx
asm none.ptx
printf '\x50\xed\x55\xba\x01\x00\x10\x00' >k.fatbin
asm k.fatbin
printf '!<arch>\n' >k.a
asm k.a
kernelgen asm "$data/small.sm_90a.cubin" >/dev/full; echo "exit $?"
echo "-- no place for records is needed"
touch file
KERNELGEN_HOME=$PWD/file/none kernelgen asm "$data/small.sm_90a.cubin" --kernel table | head -n 1 | show
