// The family on CUDA that takes any statement: which items a thread makes, which function counts
// them, and that windows go to it. Results are judged where there is a GPU (tests/device).

#include "cuda_choice.h"

static const char definitions[] =
    "op blur(x: T[N, H, W]) -> (y: T[N, H, W]) where T in f16 f32\n"
    "{ y[n, h, w] = mean(r in 0..3, t in 0..3) pad(x[n, h+r-1, w+t-1], 0) }\n"
    "op smooth(x: T[L]) -> (y: T[L]) where T in f16 f32\n"
    "{ y[l] = mean(r in 0..5) pad(x[l+r-2], 0) }\n"
    "op pool(x: T[N, C, L]) -> (y: T[N, C, (L+2-3)/2+1]) where T in f16 f32\n"
    "{ y[n, c, l] = max(r in 0..3) pad(x[n, c, l*2+r-1], -inf) }\n"
    "op take(x: T[P], at: i32[N, H]) -> (y: T[N]) where T in f16 f32\n"
    "{ y[n] = sum(h) x[at[n, h]] }\n";

// Windows, which other families read element by element.
static void windows(void)
{
    check_choice_of(definitions, "blur", "N=16 H=1024 W=1024 T=f16",
                    "direct: threads=128 maxnreg=0 items=8");
    check_choice_of(definitions, "blur", "N=3 H=517 W=333 T=f16",
                    "direct: threads=256 maxnreg=0 items=0");
    check_choice_of(definitions, "pool", "N=64 C=256 L=4096 T=f16",
                    "direct: threads=128 maxnreg=0 items=8");
    check_choice_of(definitions, "smooth", "L=3000000 T=f32",
                    "direct: threads=128 maxnreg=0 items=8");
}

// `blocks` of the function that counts in 64 bits, and of the one that counts in 32.
static void check_launch(const char *op, const char *sizes, const char *words, int64_t wide,
                         int64_t narrow)
{
    struct kg_grids grids = launches_of(definitions, op, sizes, words);
    bool right = grids.grids[0].blocks[0] == wide &&
                 (grids.count == 1 ? narrow == 0 : grids.grids[1].blocks[0] == narrow);
    CHECK(right);
    if (!right)
        fprintf(stderr, "%s %s %s: %lld, %lld\n", op, sizes, words,
                (long long)grids.grids[0].blocks[0], (long long)grids.grids[1].blocks[0]);
}

static void launches(void)
{
    check_launch("blur", "N=2 H=7 W=300 T=f16", "direct: threads=256 maxnreg=0 items=0", 0, 17);
    check_launch("blur", "N=2 H=7 W=300 T=f16", "direct: threads=64 maxnreg=0 items=2", 0, 42);
    check_launch("smooth", "L=1000 T=f16", "direct: threads=128 maxnreg=0 items=8", 0, 1);
    check_launch("blur", "N=0 H=7 W=300 T=f16", "direct: threads=64 maxnreg=0 items=2", 0, 0);
    // As records of before have it.
    check_launch("blur", "N=2 H=7 W=300 T=f16", "direct: threads=256 maxnreg=0", 0, 17);
    // More elements than 32 bits count, and places that are read from a tensor.
    check_launch("blur", "N=3 H=32768 W=32768 T=f16", "direct: threads=256 maxnreg=0 items=0",
                 12582912, 0);
    check_launch("take", "P=100 N=1000 H=4 T=f16", "direct: threads=256 maxnreg=0", 4, 0);
}

static void test_direct(void)
{
    describe_gpu("h100", "sm_90a");
    windows();
    launches();
}

TEST_MAIN(test_direct)
