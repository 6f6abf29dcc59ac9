// What is chosen by rule for a host with vectors of 32 bytes, where races on two AVX2 cores left no
// doubt, and that vectors of 64 bytes keep their choices.

#include "gen/families.h"
#include "gen/grouping.h"
#include "support/sample_problem.h"
#include "test.h"

static struct kg_device_facts facts = {.units = 2,
                                       .clock = 2e9,
                                       .bandwidth = 2.8e10,
                                       .cache = {0, 32768, 524288, 8 << 20},
                                       .flops = {[KG_TYPE_F32] = 1.26e11, [KG_TYPE_F64] = 6.3e10},
                                       .isa = "x86-64 avx2 avx fma f16c"};

// The choice as text.
static void check_choice(int vector_bytes, const char *text, const char *choices,
                         const char *expected)
{
    struct made made = make(text, choices);
    struct kg_choice choice;
    struct kg_text words = {0};
    CHECK(made.status == KG_OK);
    facts.vector_bytes = vector_bytes;
    kg_choice_guess(made.problem, &facts, &kg_target_host, &choice);
    kg_choice_print(&choice, &words);
    CHECK_TEXT(kg_text_string(&words), expected);
    kg_text_free(&words);
    unmake(&made);
}

// Measured, in blocks of 128, of 256 and in plain loops: the maximum of 1024 rows of 1024 0.81,
// 1.01 and 0.92 ms; of 1000 rows of 1001 0.84, 0.91 and 0.74 ms; sums of f64 2.3, 2.1 and 1.3 ms.
static void test_scans(void)
{
    static const char most[] = "op most(x: T[P, D]) -> (y: T[P, D]) where T in f32 f64\n"
                               "{ y[p, d] = max(j <= d) x[p, j] }";
    static const char sum[] = "op sums(x: T[P, D]) -> (y: T[P, D]) where T in f32 f64\n"
                              "{ y[p, d] = sum(j <= d) x[p, j] }";
    const char *plain = "direct: block=256 lanes=1";
    check_choice(32, most, "T=f32 P=1024 D=1024", "scan: width=128 chunk=0 stream=0");
    check_choice(32, most, "T=f32 P=1000 D=1001", plain);
    check_choice(32, sum, "T=f32 P=1000 D=1001", "scan: width=128 chunk=0 stream=0");
    check_choice(32, sum, "T=f64 P=1000 D=1001", plain);
    check_choice(64, most, "T=f32 P=1000 D=1001", "scan: width=256 chunk=0 stream=0");
    check_choice(64, sum, "T=f64 P=1000 D=1001", "scan: width=256 chunk=0 stream=0");
}

// Measured: windows that do not overlap 0.83 ms copied, 0.72 ms by lanes, 0.47 ms one by one; those
// that overlap 0.23 ms copied, 0.78 ms by lanes.
static void test_windows(void)
{
    static const char apart[] =
        "op apart(x: f32[C, D, H, W]) -> (y: f32[C, D/2, H/2, W/2])\n"
        "{ y[c, d, h, w] = max(q in 0..2, r in 0..2, t in 0..2) x[c, 2*d+q, 2*h+r, 2*w+t] }";
    static const char overlapping[] =
        "op over(x: f32[C, H, W]) -> (y: f32[C, (H-1)/2+1, (W-1)/2+1])\n"
        "{ y[c, h, w] = max(r in 0..3, v in 0..3) pad(x[c, h*2+r-1, w*2+v-1], -inf) }";
    check_choice(32, apart, "C=4 D=64 H=64 W=80", "direct: block=256 lanes=1");
    check_choice(64, apart, "C=4 D=64 H=64 W=80", "window: block=256 lanes=64");
    check_choice(32, overlapping, "C=16 H=128 W=128", "window: block=256 lanes=64");
}

int main(void)
{
    test_scans();
    test_windows();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return test_failures != 0;
}
