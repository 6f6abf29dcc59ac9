// What the planner makes of patterns: an estimate follows them, and says so; without any it is the
// rule's.

#include "flow/planner.h"
#include "store/lessons.h"
#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>

static struct kg_error error;
static char folder[SAMPLE_FOLDER];
static struct kg_device device = {.facts = {.name = "Some CPU",
                                            .isa = "avx2",
                                            .units = 2,
                                            .clock = 2e9,
                                            .bandwidth = 1e10,
                                            .flops = {[KG_TYPE_F32] = 1e11, [KG_TYPE_F64] = 5e10},
                                            .cache = {0, 32 << 10, 1 << 20, 8 << 20},
                                            .vector_bytes = 32},
                                  .compiler = "cc 12",
                                  .driver = "6.1"};
static struct kg_session session;
static struct made here;
static struct kg_choice rule;

static void begin(void)
{
    device.backend = kg_backend_find("host", 4);
    sample_folder(folder);
    session = (struct kg_session){.store = sample_open(folder), .protocol = kg_protocol_default};
    here = make("op softmax(x: f32[P, D]) -> (y: f32[P, D])\n{\n    m[p] = max(d) x[p, d]\n"
                "    e[p, d] = exp(x[p, d] - m[p])\n    y[p, d] = e[p, d] / (sum(d) e[p, d])\n}\n",
                "P=4096 D=1024");
    CHECK_STATUS(here.status, KG_OK, &here.error);
    kg_choice_guess(here.problem, &device.facts, &kg_target_host, &rule);
    CHECK(rule.count == 1);
}

static void end(void)
{
    unmake(&here);
    kg_store_close(session.store);
    sample_remove(folder);
}

static struct kg_plan *plan(void)
{
    const struct kg_request request = {.session = &session,
                                       .problem = here.problem,
                                       .device = &device,
                                       .rigor = KG_RIGOR_ESTIMATE,
                                       .source_only = true};
    struct kg_plan *made;
    CHECK_STATUS(kg_flow_plan(&request, &made, &error), KG_OK, &error);
    return made;
}

// The rule's config with another value of one parameter, if that is valid.
static bool find_other(struct kg_choice *other, const char **parameter, int64_t *value)
{
    struct kg_space space;
    const struct kg_match *match = rule.matches[0];
    match->family->space(match, &space);
    for (int i = 0; i < space.count; i++)
        for (int at = 0; at < space.parameters[i].count; at++) {
            struct kg_text reason = {0};
            *other = rule;
            *parameter = space.parameters[i].name;
            *value = other->configs[0].value[i] = space.parameters[i].choices[at];
            bool fits = *value != rule.configs[0].value[i] &&
                        match->family->valid(match, &other->configs[0], &reason);
            kg_text_free(&reason);
            if (fits)
                return true;
        }
    return false;
}

// `count` problems of other sizes in which the value won by a factor of e.
static void teach(int count, const char *isa, const char *parameter, int64_t value)
{
    struct kg_traits traits;
    kg_traits_of(here.problem, &traits);
    CHECK_STATUS(kg_store_begin(session.store, &error), KG_OK, &error);
    for (int i = 0; i < count; i++) {
        char problem[16];
        snprintf(problem, sizeof problem, "%s %d", isa, i);
        const struct kg_lesson lesson = {.problem = problem,
                                         .op = "other",
                                         .class = traits.class,
                                         .dtype = traits.dtype,
                                         .bucket = traits.bucket,
                                         .isa = isa,
                                         .date = "2026-01-01T00:00:00Z",
                                         .subject = KG_SUBJECT_VALUE,
                                         .family = rule.matches[0]->family->name,
                                         .parameter = parameter,
                                         .value = value,
                                         .tried = 2,
                                         .competed = true,
                                         .ratio = -1};
        CHECK_STATUS(kg_store_add_lesson(session.store, &lesson, &error), KG_OK, &error);
    }
    CHECK_STATUS(kg_store_commit(session.store, &error), KG_OK, &error);
}

static void expect(const struct kg_choice *choice, enum kg_origin origin)
{
    struct kg_text text = {0};
    struct kg_plan *made = plan();
    kg_choice_print(choice, &text);
    CHECK_TEXT(made->choice, kg_text_string(&text));
    CHECK(made->origin == origin && !made->verified && made->seconds == 0);
    kg_flow_plan_free(made);
    kg_text_free(&text);
}

static void test_estimates(void)
{
    struct kg_choice other;
    const char *parameter = "";
    int64_t value = 0;
    begin();
    CHECK(find_other(&other, &parameter, &value));
    expect(&rule, KG_ORIGIN_RULE);
    teach(9, "avx512", parameter, value); // another device
    expect(&rule, KG_ORIGIN_RULE);
    teach(2, "avx2", parameter, value); // too few problems
    expect(&rule, KG_ORIGIN_RULE);
    teach(9, "avx2", parameter, value);
    expect(&other, KG_ORIGIN_PATTERNS);
    end();
}

TEST_MAIN(test_estimates)
