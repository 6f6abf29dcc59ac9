# Full disks: one for what is written, one for the records, one for the cache alone, and disks that
# become full in the middle of a search, which ends with what it has. Each is a small tmpfs in a
# namespace of this test; where there can be none, the test is skipped.
if [ -z "${INSIDE:-}" ]; then
    for namespace in "unshare --mount" "unshare --map-root-user --mount"; do
        $namespace mount -t tmpfs none "$PWD" 2>/dev/null && INSIDE=1 exec $namespace bash "$0"
    done
    echo "no small file system can be mounted here"
    exit 77
fi

cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { speedup 0.01
rounds 1
verify P D = 3 5
tune P D = 32 64 }
KG
array() { # array SHAPE COUNT: a file of ones
    printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    yes 'AAAA' | head -n "$2" | tr -d '\n'
}
array '300, 1000' 300000 >x.npy
array '300,' 300 >s.npy
export TMPDIR=$PWD/temporary
mkdir "$TMPDIR"
home=$KERNELGEN_HOME
# Room is made by removing what fills a disk: changing its size is for root alone.
disk() { # disk PLACE KIB: with that much room
    mkdir -p "$1"
    mount -t tmpfs -o size=16m none "$1"
    head -c $((16 * 1024 * 1024 - $2 * 1024)) /dev/zero >"$1/filling"
}
fill() { cat /dev/zero >"$1/fill" 2>/dev/null; }
shown() { sed -e "s|$home|HOME|g" -e "s|$PWD|HERE|g" -e 's/kernelgen-[A-Za-z0-9]*/kernelgen-N/'; }
try() { "$@" >out 2>err; echo "exit $?, $(grep -c ^chosen out) chosen"; shown <err | eval "${only:-cat}"; }

echo "-- for what is written"
try kernelgen build scale.kg --rigor measure
disk small 16
echo "what was there" >small/old
fill small
try kernelgen run scale.kg --input x=x.npy --input s=s.npy --output y=small/old
try kernelgen wisdom export small/old
try kernelgen report --out small/old
try kernelgen log --out small/new
try kernelgen check scale.kg --out small/new
try kernelgen emit scale.kg --target host --out small/new
try kernelgen explain scale.kg --rigor measure --out small/new
try kernelgen profile scale.kg --time 1 --out small/new
try kernelgen build scale.kg --rigor measure --out small/new
rmdir small/new
ls -A --ignore=filling small
cat small/old

echo "-- for the records, from the start"
try env KERNELGEN_HOME="$PWD/small" kernelgen build scale.kg --rigor measure
rm small/fill
# 48 KiB are too few for the records. 208 KiB hold them, or all but the last ones: how many there are
# depends on the machine, and so does whether that is said.
for size in 48 208; do
    home=$PWD/records-$size
    export KERNELGEN_HOME=$home
    disk "$home" "$size"
    [ "$size" = 48 ] || only='grep -v "not all of it is recorded"'
    try kernelgen build scale.kg --rigor measure
    only=
    rm "$home/filling"
    try kernelgen build scale.kg --rigor measure
    kernelgen log | grep -q '^| 20' || echo "nothing was recorded"
done

echo "-- in the middle of a search: for the records, for all that is compiled"
filler() { # filler FILE...: a compiler that makes room for nothing from its third kernel on
    rm -f kernels
    {
        echo '#!/bin/sh'
        echo "case \"\$*\" in *-shared*) echo >>$PWD/kernels"
        echo "[ \$(wc -l <$PWD/kernels) -lt 3 ] || for file in $*; do cat /dev/zero >\$file 2>/dev/null; done;; esac"
        echo 'exec cc "$@"'
    } >filler
    chmod +x filler
}
home=$PWD/middle
export KERNELGEN_HOME=$home
disk "$home" 8192
filler "$home/fill"
try env CC="$PWD/filler" kernelgen explain scale.kg --rigor exhaustive
grep -c '^Chosen.*by search' out
rm -rf "${home:?}"/[!f]* "$home/fill" # so that there are three kernels to compile again
disk "$TMPDIR" 8192
filler "$home/fill" "$TMPDIR/fill"
CC=$PWD/filler kernelgen explain scale.kg --rigor exhaustive >out 2>err
echo "exit $?, $(grep -c '^Chosen.*by search' out) chosen"
grep -o 'the search ended early, with .*measured:' err # where it struck varies
umount "$TMPDIR"
home=$KERNELGEN_HOME

echo "-- for the cache alone"
home=$PWD/other
export KERNELGEN_HOME=$home
disk "$home/cache" 48
fill "$home/cache"
try kernelgen build scale.kg --rigor measure
rm "$home/cache/fill"
try kernelgen run scale.kg --input x=x.npy --input s=s.npy --output y=y.npy
rm "$home/cache/filling"
try kernelgen build scale.kg --rigor measure
printf '#!/bin/sh\ncase "$*" in *-shared*) cat /dev/zero >%s/fill 2>/dev/null;; esac\nexec cc "$@"\n' \
    "$home/cache" >filler # while it compiles
chmod +x filler
try env CC="$PWD/filler" kernelgen build scale.kg --rigor measure

echo "-- left behind"
find . \( -name 'build-*' -o -name '.kernelgen-*' -o -path "./temporary/*" \) -print
