# What the machine can do to a build: no compiler, a bad one, no place to write, a full disk, damaged
# records and objects, Ctrl-C. Each is told in a line or two, and the next build works.
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { speedup 0.01
rounds 1
verify P D = 3 5
tune P D = 32 64 }
KG
export TMPDIR=$PWD/temporary
mkdir "$TMPDIR"
home=$KERNELGEN_HOME
# The paths of this run and the compiler's name vary; the rest is exact.
shown() { sed -e "s|$PWD|HERE|g" -e "s|$home|HOME|g" -e 's/build-[A-Za-z0-9]*/build-N/' -e 's/compiler ([^:]*)/compiler (CC)/' -e '/^$/d' "$1"; }
build() { kernelgen build scale.kg --rigor measure "$@" >out 2>err; status=$?; shown err; echo "exit $status, $(grep -c ^chosen out) chosen"; }
strays() { ps -o stat=,args= -s "$(cat session)" 2>/dev/null | grep -v ^Z; } # but for the dead
left() { find "$home" "$TMPDIR" . \( -name 'build-*' -o -name '.kernelgen-*' -o -path "$TMPDIR/*" \) -print; }

echo "-- no compiler"
CC=/nonexistent build
printf '#!/bin/sh\necho "no license" >&2\nexit 1\n' >silent; chmod +x silent
CC=$PWD/silent build
printf '#!/bin/sh\ncase "$*" in *-shared*) echo "oops at line 7" >&2; exit 1;; esac\nexec cc "$@"\n' >picky; chmod +x picky
CC=$PWD/picky build

echo "-- a compiler that hangs"
printf '#!/bin/sh\ncase "$*" in *-shared*) touch hangs; mv hangs %s; exec sleep 1000;; esac\nexec cc "$@"\n' \
    "$PWD" >slow; chmod +x slow
CC=$PWD/slow setsid sh -c 'echo $$ >session; exec kernelgen build scale.kg --rigor measure' >out 2>err &
while [ ! -e hangs ]; do sleep 0.01; done
kill -INT "$(cat session)"
SECONDS=0
wait $!
echo "exit $?, soon: $((SECONDS < 60))"
cat err
strays

echo "-- no place to write"
touch file
build --out file/out
KERNELGEN_HOME=$PWD/file build
KERNELGEN_HOME=/proc/none build
for blocks in 8 64; do # of 1024 bytes: neither holds the records, and 8 end the linker
    home=$PWD/small
    ( ulimit -f $blocks; KERNELGEN_HOME=$home kernelgen build scale.kg --rigor measure >out 2>err; echo "exit $?" )
    grep -c 'records.db: ' err
    grep -o 'could not do its work.*It said:$' err
done
KERNELGEN_HOME=$home build
home=$KERNELGEN_HOME

echo "-- damage"
build --out bundle
head -c 30000 /dev/urandom >"$home/records.db"
build
rm "$home"/records.db.corrupt-1
for object in "$home"/cache/*.so; do
    printf 'garbage' | dd of="$object" bs=1 seek=3000 conv=notrunc 2>/dev/null
done
build
for object in "$home"/cache/*; do : >"$object"; done
build

echo "-- Ctrl-C"
for moment in 0.05 0.4 0.9 1.6; do
    rm -rf "$home" session
    setsid sh -c 'echo $$ >session; exec kernelgen build scale.kg --rigor measure' >out 2>err &
    while [ ! -s session ]; do sleep 0.01; done
    sleep "$moment"
    kill -INT "$(cat session)" 2>/dev/null
    wait $!
    status=$?
    case $status in
    130) grep -qx 'kernelgen: interrupted; what was measured is kept' err || cat err ;;
    0) grep -q ^chosen out || cat out err ;;
    *) echo "exit $status"; cat out err ;;
    esac
    strays
done
build
echo "-- left behind"
left
