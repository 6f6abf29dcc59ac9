# Ctrl-C in the middle of a search: the exit status is 130 and the command says so; what is known by
# then is shown and kept.
cat >total.kg <<'KG'
op total(x: f32[P, D]) -> (y: f32[P])
{ y[p] = sum(d) x[p, d] }
goal { speedup 1000000
rounds 1
verify P D = 3 5
tune P D = 64 256 }
KG
home=$KERNELGEN_HOME
# Compiles some kernels, and hangs when asked for more.
cat >compiler <<CC
#!/bin/sh
case "\$*" in *-shared*)
    echo >>$PWD/asked
    if [ "\$(wc -l <$PWD/asked)" -gt \$COMPILED ]; then
        touch $PWD/hangs
        exec sleep 1000
    fi ;;
esac
exec cc "\$@"
CC
chmod +x compiler
# stop COMPILED COMMAND...: Ctrl-C once the compiler hangs.
stop() {
    rm -f asked hangs session
    [ "$1" = 0 ] || rm -rf "$home"
    COMPILED=$1 CC=$PWD/compiler setsid \
        sh -c 'echo $$ >session; exec kernelgen "$@"' sh "${@:2}" >out 2>err &
    while [ ! -e hangs ] && kill -0 $! 2>/dev/null; do sleep 0.02; done
    kill -INT "$(cat session)"
    wait $!
    echo "$2: exit $?"
    cat err
}
lines() { echo "  $(grep -c "$@" out) lines: ${*: -1}"; }

echo "-- a search"
stop 1 profile total.kg --device host
lines '^Chosen: '
lines '^## All'
kernelgen wisdom list | grep -o '^total'
stop 1 explain total.kg --device host --rigor exhaustive
lines '^Chosen: '
stop 1 emit total.kg --target host --rigor exhaustive
lines '^int total_('
stop 3 build total.kg --device host --rigor exhaustive
lines '^chosen'
stop 1 bench total.kg --device host --rigor exhaustive
stop 1 verify total.kg --device host --rigor exhaustive

echo "-- before anything was found"
rm -rf "$home"
stop 0 profile total.kg --device host
lines ''
stop 1 profile total.kg --device host
rm -rf "$home/cache"
stop 0 profile total.kg --device host --json
lines '"measured"'

echo "-- waiting for a file"
mkfifo pipe.kg pipe.npy
kernelgen run total.kg --input x=pipe.npy --output y=y.npy
echo "exit $?"
for signal in TERM INT; do
    setsid sh -c 'echo $$ >session; exec kernelgen check pipe.kg' 2>err &
    while [ ! -s session ] || ! grep -qs kernelgen "/proc/$(cat session)/cmdline"; do sleep 0.02; done
    sleep 0.2
    kill -$signal "$(cat session)"
    timeout 5 tail --pid="$(cat session)" -f /dev/null && wait $!
    echo "exit $?"
    cat err
    rm session
done
