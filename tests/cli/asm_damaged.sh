# Files that are empty, cut short, flipped, or of an architecture that is not read: each gives an exit
# status and a message with the offset, whatever the kind of file.
data=$ROOT/tests/data/asm
damaged() { kernelgen asm "$1" >out 2>err; status=$?; cat out err; echo "exit $status"; }
flip() { cp "$1" "$2"; printf "$4" | dd of="$2" bs=1 seek="$3" conv=notrunc status=none; }

echo "-- empty"
for kind in ptx cubin o; do : >empty.$kind; damaged empty.$kind; done
echo "-- cut short"
for length in 3 20 3000; do head -c $length "$data/small.sm_90a.cubin" >short.cubin; damaged short.cubin; done
for length in 40 2000; do head -c $length "$data/control.ptx" >short.ptx; damaged short.ptx; done
echo "-- flipped"
flip "$data/small.sm_90a.cubin" flipped.cubin 41 '\377'
damaged flipped.cubin
flip "$data/small.sm_90a.cubin" flipped.cubin 4 '\001'
damaged flipped.cubin
sed '0,/ret;/s//ret[/' "$data/control.ptx" >flipped.ptx
damaged flipped.ptx
# Whatever bit it is: read, or refused with the place.
for at in $(seq 0 997 25000); do
    flip "$data/small.sm_90a.cubin" flipped.cubin "$at" '\252'
    kernelgen asm flipped.cubin >out 2>err || grep -q 'offset [0-9]' err || { echo "byte $at"; cat err; }
done
echo "-- of another architecture"
flip "$data/small.sm_90a.cubin" other.cubin 49 '\060'
damaged other.cubin
flip "$data/small.sm_90a.cubin" other.o 18 '\267'
damaged other.o
sed 's/^.target .*/.target gfx90a/' "$data/control.ptx" >other.ptx
damaged other.ptx
