# `--sanitize` refuses kernels that are right in every result, and do what no kernel may.
grep -q -e __asan_init -e __tsan_init "$(readlink -f "$(command -v kernelgen)")" &&
    { echo "sanitizers do not run under sanitizers"; exit 77; }
cat >copy.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] }
goal { verify P D = 3 5 }
KG
judge() { # NAME STATEMENT [OPTION...]
    cat >"$1.c" <<C
static volatile int one = 1, four = 4;
void copy(const float *x, float *y, int64_t P, int64_t D)
{
    $2;
    for (int64_t i = 0; i < P * D; i++)
        y[i] = x[i];
}
C
    kernelgen verify copy.kg --candidate "$1.c" --seed 7 "${@:3}" >out 2>err
    echo "exit $?: $(sed -n -e 's/case [0-9]* ([^)]*)/case N/' -e 's/([0-9]* cases)/(N cases)/' \
        -e '1d' -e 's/^ *//' -e '/seed 7/d' -e '/^verify/d' -e p out) $(head -n 1 err)"
}
judge right ';' --sanitize
judge local 'volatile int row[4]; row[four - one] = 1; (void)row[four]' --sanitize
judge unasked 'volatile int row[4]; row[four - one] = 1; (void)row[four]'
judge sum 'volatile int most = 0x7fffffff; most = most + one' --sanitize
judge far 'if (P == 3) (void)((volatile const float *)x)[P * D + 2]' --sanitize
judge shift '(void)(one << (four * 8))' --sanitize
# A generated kernel, verified and built.
kernelgen verify copy.kg --rigor estimate --sanitize | sed -n 's/([0-9]* cases)/(N cases)/; s/^ *nothing/nothing/p'
kernelgen build copy.kg --rigor estimate --sanitize --json |
    sed 's/.*"sanitized": "\([^(]*\).*/build: \1/'
# A compiler without the sanitizers, and a program that is not there.
cat >plain <<'SH'
#!/bin/sh
case "$*" in *-print-file-name=*) echo none ;; *) exec cc "$@" ;; esac
SH
chmod +x plain
CC=$PWD/plain kernelgen verify copy.kg --candidate right.c --sanitize >out 2>err
echo "exit $?: $(sed 's/.* has no library/COMPILER has no library/' err)"
KERNELGEN_WORKER=/nothing kernelgen verify copy.kg --candidate right.c --sanitize >out 2>err
echo "exit $?: $(cat err)"
kernelgen bench copy.kg --sanitize 2>&1 | head -n 1
