# A kernel from outside that takes memory without end is refused before the machine runs out of it.
grep -q -e __asan_init -e __tsan_init "$(readlink -f "$(command -v kernelgen)")" &&
    { echo "sanitizers map terabytes: no limit is set there"; exit 77; }
cat >copy.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] }
goal { verify P D = 3 5 }
KG
judge() { # NAME STATEMENT
    cat >"$1.c" <<C
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
static void *other(void *unused) { return pause(), unused; }
void copy(const float *x, float *y, int64_t P, int64_t D)
{
    (void)other;
    $2;
    for (int64_t i = 0; i < P * D; i++)
        y[i] = x[i];
}
C
    timeout 300 kernelgen verify copy.kg --candidate "$1.c" --seed 7 >out 2>err
    echo "exit $?: $(sed -n -e '4s/case [0-9]* ([^)]*)/case N/' -e '4s/^ *//p' out) $(head -n 1 err)"
}
judge touches 'for (;;) *(volatile char *)malloc(1 << 26) = 1'
judge shares 'for (;;) *(volatile char *)mmap(0, 1 << 26, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) = 1'
judge reserves 'while (malloc(1 << 20)) { } while (malloc(64)) { }' | sed 's|exit [01]:.*|a verdict|'
judge threads 'pthread_t t; while (pthread_create(&t, NULL, other, NULL) == 0) { } abort()'
# What it has room for it may take.
judge modest 'char *more = malloc((size_t)3 << 30); if (!more) abort(); more[1] = 1; free(more)'
