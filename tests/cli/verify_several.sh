# Several candidates of one command: one gate judges each as it would alone, in the order given, and
# what is wrong with one says nothing of the others.
cat >scale.kg <<'KG'
op scale(x: f32[P, D], s: f32[P]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] * s[p] }
goal { verify P D = 3 5, 17 64 }
KG
cat >right.c <<'C'
#include <stdio.h>
#include <stdlib.h>
void scale(const float *x, const float *s, float *y, int64_t P, int64_t D)
{
    for (int64_t p = 0; p < P; p++)
        for (int64_t d = 0; d < D; d++)
            y[p * D + d] = x[p * D + d] * s[p];
}
C
sed 's/d < D;/d + 1 < D;/' right.c >tail.c
sed 's/^{/{ *(volatile int *)8 = 1;/' right.c >crash.c
{ cat right.c; echo '__attribute__((constructor)) static void load(void) { exit(0); }'; } >ends.c
sed 's/^{/{ printf("noise\\n"); fflush(NULL); exit(0);/' right.c >prints.c
sed 's/^{/{ static int calls; if (calls++ > 20) *(volatile float *)x = 1;/' right.c >writes.c
sed 's/;$/; oops/' right.c >broken.c
sed 's/scale/other/' right.c >other.c
all="right.c tail.c crash.c ends.c prints.c writes.c broken.c other.c none.c mine.txt right.c"
words() { for file; do printf -- '--candidate %s ' "$file"; done; }

echo "-- each as it would be alone"
kernelgen verify scale.kg $(words $all) --seed 7 >together 2>errors; echo "exit $?"
for file in $all; do
    kernelgen verify scale.kg --candidate $file --seed 7 2>/dev/null ||
        case $file in broken.c | other.c | none.c | mine.txt) printf 'kernel    foreign: %s\nverify    NOT JUDGED\n' $file ;; esac
done >alone
diff alone together && grep -c '^verify' together
grep -c noise errors
grep -cE '^(kernel|verify) ' errors # what was printed of others is not printed again
grep -E '^kernelgen: ' errors | sed -e 's/ (.*) / /' -e 's/kernel: .*so:/kernel:/'
kernelgen log scale | grep -c foreign:

echo "-- as JSON"
kernelgen verify scale.kg $(words $all) --seed 7 --json >json 2>errors; echo "exit $?"
for file in $all; do
    kernelgen verify scale.kg --candidate $file --seed 7 --json 2>/dev/null | sed "s/^{/{\"candidate\": \"$file\", /"
done >alone.json
{ echo "["; sed '$!s/$/,/' alone.json; echo "]"; } | diff - json && grep -c '"passed"' json
python3 -c 'import json; print([item["candidate"] for item in json.load(open("json"))])'

echo "-- exit statuses"
for some in "right.c right.c" "right.c tail.c" "tail.c right.c" "tail.c none.c right.c" "none.c none.c"; do
    kernelgen verify scale.kg $(words $some) >/dev/null 2>&1; echo "$some: $?"
done

echo "-- inputs are the same for all, and fresh"
kernelgen verify scale.kg $(words right.c right.c) >fresh
grep -o 'seed .*' fresh | sort -u | wc -l

echo "-- more than are compiled at once"
kernelgen verify scale.kg $(words $(yes right.c | head -n 100) tail.c) --json >many; echo "exit $?"
grep -c '"passed": true' many

echo "-- what is wrong with all"
kernelgen verify none.kg $(words right.c tail.c) --json
kernelgen verify scale.kg $(words right.c tail.c) --override mine.ptx
kernelgen verify scale.kg --candidate right.c --candidate
