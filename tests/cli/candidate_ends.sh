# Whatever a kernel from outside does to its process is a verdict, which says what it did and when:
# the tool does not end with it, and nothing that it started stays behind.
grep -q Seccomp_filters /proc/self/status || { echo "this system cannot forbid calls"; exit 77; }
cat >copy.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] }
goal { verify P D = 3 5, 17 64 }
KG
# A kernel with code at the places given: at load, in the kernel, at unload.
candidate() { # NAME LOAD RUN UNLOAD
    cat >"$1.c" <<C
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *other(void *unused) { return unused; }
__attribute__((constructor)) static void at_load(void) { $2; }
__attribute__((destructor)) static void at_unload(void) { $4; }
void copy(const float *x, float *y, int64_t P, int64_t D)
{
    $3;
    for (int64_t i = 0; i < P * D; i++)
        y[i] = x[i];
    (void)other;
}
C
}
judge() { # NAME...: verdicts, with the reason of a refusal
    for name; do
        timeout 300 kernelgen verify copy.kg --candidate "$name.c" --seed 7 >"$name.out" 2>"$name.err" </dev/null
        echo "exit $?: $(sed -n -e 's/^verify *\([^:]*\):.*/\1/p' "$name.out") $(sed -n -e '4s/case [0-9]* ([^)]*)/case N/' -e '4s/^ *//p' "$name.out") $(head -n 1 "$name.err")"
    done
}

echo "-- at load, in the kernel, at unload"
for what in 'exit(0)' '_exit(0)' 'quick_exit(3)' 'abort()' '*(volatile int *)8 = 0' 'raise(SIGTERM)' 'kill(getpid(), SIGKILL)'; do
    number=$((number + 1))
    candidate load$number "$what" "" ""
    candidate run$number "" "$what" ""
    candidate unload$number "" "" "$what"
    judge load$number run$number unload$number
done
# Both loops take as long as a load or unload may.
candidate loads 'for (;;) { }' "" ""
candidate unloads "" "" 'for (;;) pause()'
judge loads >loads.said & judge unloads >unloads.said & wait
cat loads.said unloads.said

echo "-- processes"
candidate forks "" 'for (int i = 0; i < 1000; i++) if (fork() == 0) for (;;) pause()' ""
candidate vforks "" 'if (vfork() == 0) _exit(0)' ""
candidate clones "" 'syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)' ""
candidate loaders 'if (fork() == 0) for (;;) pause()' "" ""
candidate daemons "" 'if (daemon(1, 1) == 0) sleep(1000)' ""
candidate shells "" 'if (system("sleep 1234 &")) abort()' ""
candidate runs "" 'execl("/bin/true", "true", (char *)0)' ""
candidate sessions "" 'setsid()' ""
candidate groups "" 'setpgid(0, 0)' ""
candidate kills "" 'kill(getppid(), SIGKILL)' ""
candidate killsall "" 'kill(-1, 0)' ""
candidate deaf "" 'signal(SIGSYS, SIG_IGN); fork()' ""
candidate unload_forks "" "" 'fork()'
judge forks vforks clones loaders daemons shells runs sessions groups kills killsall deaf unload_forks
candidate threads "" 'pthread_t t; if (pthread_create(&t, NULL, other, NULL)) abort(); pthread_join(t, NULL)' ""
judge threads

echo "-- what it would use up"
candidate opens "" 'while (open("/dev/null", O_RDONLY) >= 0) { } if (errno != EMFILE) abort()' ""
candidate writes "" 'int fd = open("big", O_CREAT | O_WRONLY, 0600); char b[4096] = {1}; while (write(fd, b, 4096) > 0) { }' ""
candidate grows "" 'int fd = memfd_create("big", 0); char b[4096] = {1}; while (write(fd, b, 4096) > 0) { }' ""
candidate segments "" 'shmget(IPC_PRIVATE, 4096, 0600)' ""
candidate raises "" 'struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}; if (setrlimit(RLIMIT_AS, &all) == 0) _exit(9)' ""
judge opens writes grows segments raises
ls big 2>&1

echo "-- what it leaves"
candidate blocks "" 'sigset_t all; sigfillset(&all); sigprocmask(SIG_SETMASK, &all, NULL)' ""
candidate closes "" 'for (int fd = 0; fd < 256; fd++) close(fd)' ""
candidate answers "" 'for (int fd = 3; fd < 256; fd++) if (write(fd, "nonsense, and a lot of it", 25) > 0) break; _exit(0)' ""
candidate prints "" 'printf("Y"); fflush(stdout); exit(0)' ""
judge blocks closes answers prints
cat prints.err
ps -eo args= | grep -c '[s]leep 1234'

echo "-- what it returns"
sed 's/^void copy/int copy/; s/^}$/    return 0;\n}/' deaf.c | sed '/fork/d' >done.c
sed 's/return 0/return P == 17 ? -3 : 0/' done.c >fails.c
sed 's/return 0/return P == 17 ? 1LL << 40 : 0/; s/^int copy/long long copy/' done.c >far.c
sed 's/return 0/return P == 17/; s/^int copy/_Bool copy/' done.c >says.c
sed 's/return 0/return 2.5/; s/^int copy/double copy/' done.c >other.c
judge done fails far says other

echo "-- the shape of its symbols"
printf 'static void copy(void) { }\n' >shape.c
printf 'void missing(void); void copy(const float *x, float *y, int64_t P, int64_t D) { missing(); }\n' >lacks.c
judge shape lacks | cut -d'(' -f1 | cut -d/ -f1
