// Which configs of element-wise ops a host refuses, whatever is known of it.

#include "gen/families.h"
#include "support/config_text.h"
#include "support/sample_problem.h"
#include "test.h"

static const struct kg_device_facts facts = {
    .units = 2, .vector_bytes = 64, .isa = "x86-64 avx512f avx2"};

// Why the family refuses the values, "" if it does not.
static void check_reason(const char *text, const char *sizes, const char *values,
                         const char *wanted)
{
    struct made made = make(text, sizes);
    struct kg_text reason = {0};
    struct kg_space space;
    struct kg_config config;
    CHECK_STATUS(made.status, KG_OK, &made.error);
    const struct kg_group group = {made.problem, 0, made.problem->nest_count};
    const struct kg_match *match = kg_match_find(&kg_host_pointwise, &group, &facts, NULL);
    CHECK(match != NULL);
    if (match) {
        kg_host_pointwise.space(match, &space);
        CHECK(config_with(&space, values, &config));
        CHECK(kg_host_pointwise.valid(match, &config, &reason) == !*wanted);
    }
    CHECK_TEXT(kg_text_string(&reason), wanted);
    kg_text_free(&reason);
    unmake(&made);
}

// Their pieces begin at lines, and indices that are divided are walked in runs.
static void streams_take_plain_indices(void)
{
    static const char why[] = "an index is divided: streamed pieces are not walked in runs";
    static const char unpack[] = "op unpack(w: u8[P, B]) -> (y: u8[P, 2*B])\n"
                                 "{ y[p, d] = w[p, d/2] >> 4 * (d % 2) & 15 }";
    static const char twice[] = "op twice(x: f32[P, B]) -> (y: f32[P, 2*B])\n"
                                "{ y[p, d] = x[p, d/2] }";
    static const char rows[] = "op rows(x: f32[P, B]) -> (y: f32[2*P, B])\n"
                               "{ y[p, d] = x[p/2, d] }";
    check_reason(unpack, "P=1024 B=2048", "block=4096 stream=64", why);
    check_reason(unpack, "P=1024 B=2048", "block=4096 stream=0", "");
    check_reason(twice, "P=1024 B=2048", "block=4096 stream=1024", why);
    check_reason(rows, "P=1024 B=2048", "block=4096 stream=64", "");
}

static void values_that_exclude_each_other(void)
{
    static const char copy[] = "op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }";
    check_reason(copy, "N=100000", "block=4096 stream=64 ways=2", "");
    check_reason(copy, "N=100000", "block=4096 stream=0 ways=2",
                 "only items whose results are streamed are walked alternately");
    check_reason(copy, "N=1000", "block=16384 stream=0", "the block is longer than the inner axis");
}

TEST_MAIN(streams_take_plain_indices, values_that_exclude_each_other)
