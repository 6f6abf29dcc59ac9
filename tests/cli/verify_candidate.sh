# A kernel from outside: the right one passes, wrong ones are refused, broken ones are explained.
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { verify P D = 3 5, 17 64 }
KG
cat >right.c <<'C'
void scale(const float *x, const float *s, float *y, int64_t P, int64_t D)
{
    for (int64_t p = 0; p < P; p++)
        for (int64_t d = 0; d < D; d++)
            y[p * D + d] = x[p * D + d] * s[p];
}
C
sed 's/d < D;/d + 1 < D;/' right.c >tail.c
sed 's/\* s\[p\]/* s[d]/' right.c >reads_wrong.c
sed 's/for (int64_t p = 0/((volatile float *)0)[p_zero()] = 1; for (int64_t p = 0/; 1i static long p_zero(void) { return 0; }' right.c >crash.c
sed 's/float \*y/double *y/' right.c | sed 's/;$/; oops/' >broken.c
first() { sed -e 's/seed [0-9]*/seed N/' -e 's/worst error [0-9.]*/worst error E/' -e '/seed N/d' -e '/^kernel /d' | head -n "$1"; }
kernelgen verify scale.kg --candidate right.c --seed 7 | cut -d, -f1 | first 1; echo "exit ${PIPESTATUS[0]}"
kernelgen verify scale.kg --candidate tail.c --seed 7 | cut -c1-17 | first 1; echo "exit ${PIPESTATUS[0]}"
kernelgen verify scale.kg --candidate reads_wrong.c --seed 7 | cut -c1-17 | first 1; echo "exit ${PIPESTATUS[0]}"
kernelgen verify scale.kg --candidate crash.c --seed 7 | cut -c1-17 | first 1; echo "exit ${PIPESTATUS[0]}"
kernelgen verify scale.kg --candidate broken.c --seed 7 2>&1 | grep -c 'broken.c:'; echo "exit ${PIPESTATUS[0]}"
kernelgen verify scale.kg --candidate none.c --seed 7; echo "exit $?"
kernelgen verify scale.kg --candidate right.c --seed 7 | head -n 1
# What emit wrote is a candidate as it stands.
kernelgen emit scale.kg --target host --out emitted.c
kernelgen verify scale.kg --candidate emitted.c --seed 7 | cut -d, -f1 | first 1; echo "exit ${PIPESTATUS[0]}"
# What was judged is in the log, as foreign.
kernelgen log scale | grep foreign: | cut -d'|' -f3-6,10- | sed -e 's/[0-9]* cases/N cases/' -e 's/seed 7.*/seed 7/'
