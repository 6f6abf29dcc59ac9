#include "flow/small.h"
#include "support/sample_problem.h"
#include "test.h"

static const char copies[] = "op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] + 1 }\n";
static const char multiplies[] = "op matmul(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N])\n"
                                 "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n";

static bool covers(double bytes, double operations, const char *text, const char *sizes)
{
    struct kg_small limit = {bytes, operations};
    struct made made = make(text, sizes);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    bool small = kg_small_covers(&limit, made.problem);
    unmake(&made);
    return small;
}

static void both_limits_count(void)
{
    CHECK(covers(8001, 1001, copies, "N=1000"));
    CHECK(!covers(8000, 1001, copies, "N=1000"));
    CHECK(!covers(8001, 1000, copies, "N=1000"));
    CHECK(covers(1, 1, copies, "N=0"));
    // Few bytes, and much to compute with them.
    CHECK(!covers(1 << 16, 1e5, multiplies, "M=64 N=64 K=64"));
    CHECK(covers(1 << 16, 1e6, multiplies, "M=64 N=64 K=64"));
    CHECK(!covers(0, 0, copies, "N=1"));
}

static void what_is_asked_for_is_done(void)
{
    struct kg_device device = {.backend = kg_backend_find("host", 4)};
    struct made made = make(copies, "N=1");
    CHECK_STATUS(made.status, KG_OK, &made.error);
    for (int i = 0; i < KG_RIGOR_DEFAULT; i++)
        CHECK(kg_flow_rigor(made.problem, &device, (enum kg_rigor)i) == (enum kg_rigor)i);
    enum kg_rigor rigor = kg_flow_rigor(made.problem, &device, KG_RIGOR_DEFAULT);
    CHECK(rigor ==
          (kg_flow_is_small(made.problem, &device) ? KG_RIGOR_ESTIMATE : KG_RIGOR_MEASURE));
    unmake(&made);
}

TEST_MAIN(both_limits_count, what_is_asked_for_is_done)
