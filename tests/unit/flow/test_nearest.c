#include "flow/nearest.h"
#include "gen/built.h"
#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"

static const char definition[] = "op scale(x: T[P, D], s: T[P]) -> (y: T[P, D])\n"
                                 "where T in f32 f16\n{ y[p, d] = x[p, d] * s[p] }\n";

static struct kg_error error;
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

// Records and a wisdom file's in folders of their own, and a problem nothing is known of.
static char folders[2][SAMPLE_FOLDER];
static struct kg_store *file;
static struct kg_session session;
static struct made here;
static struct kg_session_key key;
static char guess[1024], other[1024]; // choices valid for `here`; `other` is bound no worse

static double bound_of(const struct kg_choice *choice)
{
    return choice->matches[0]->family->bound(choice->matches[0], &choice->configs[0]);
}

static void print(const struct kg_choice *choice, char out[1024])
{
    struct kg_text text = {0};
    kg_choice_print(choice, &text);
    snprintf(out, 1024, "%s", kg_text_string(&text));
    kg_text_free(&text);
}

static void choose(void)
{
    struct kg_choice rule, choice;
    struct kg_space space = {0};
    kg_choice_guess(here.problem, &device.facts, &kg_target_host, &rule);
    rule.matches[0]->family->space(rule.matches[0], &space);
    print(&rule, guess);
    other[0] = '\0';
    for (int64_t n = 0; !other[0] && n < kg_space_size(&space); n++) {
        choice = rule;
        choice.configs[0] = kg_space_config(&space, n);
        char text[1024];
        print(&choice, text);
        if (bound_of(&choice) <= bound_of(&rule) && strcmp(text, guess) != 0 &&
            kg_choice_read(here.problem, &device.facts, &kg_target_host, text, &choice))
            snprintf(other, sizeof other, "%s", text);
    }
    if (!other[0]) // strided views leave no choice
        snprintf(other, sizeof other, "%s", guess);
}

static void begin(const char *sizes, const int64_t (*strides)[KG_MAX_RANK])
{
    device.backend = kg_backend_find("host", 4);
    for (int i = 0; i < 2; i++)
        sample_folder(folders[i]);
    session =
        (struct kg_session){.store = sample_open(folders[0]), .protocol = kg_protocol_default};
    file = sample_open(folders[1]);
    here = make_strided(definition, NULL, sizes, strides);
    CHECK_STATUS(here.status, KG_OK, &here.error);
    CHECK_STATUS(kg_session_key_make(here.problem, &device, &session.protocol, &key, &error), KG_OK,
                 &error);
    choose();
}

static void end(void)
{
    kg_session_key_free(&key);
    unmake(&here);
    kg_store_close(session.store);
    kg_store_close(file);
    for (int i = 0; i < 2; i++)
        sample_remove(folders[i]);
}

static void know(struct kg_store *store, const char *sizes, const char *layout, char *choice)
{
    struct kg_key near = key.key;
    struct kg_wisdom wisdom = sample_wisdom(choice);
    near.sizes = sizes;
    near.layout = layout;
    CHECK_STATUS(kg_store_learn(store, &near, &wisdom, &error), KG_OK, &error);
}

// The sizes of the nearest shape, "" when there is none.
static const char *find(struct kg_nearest *nearest)
{
    static char sizes[128];
    struct kg_request request = {.session = &session, .problem = here.problem, .device = &device};
    CHECK_STATUS(kg_nearest_find(&request, file, &key.key, nearest, &error), KG_OK, &error);
    CHECK((nearest->choice != NULL) == (nearest->sizes != NULL));
    snprintf(sizes, sizeof sizes, "%s", nearest->sizes ? nearest->sizes : "");
    return sizes;
}

static void expect(const char *sizes)
{
    struct kg_nearest nearest;
    CHECK_TEXT(find(&nearest), sizes);
    kg_nearest_free(&nearest);
}

static void the_least_distance_wins(void)
{
    begin("P=64 D=1024", NULL);
    struct kg_nearest nearest;
    expect("");
    know(session.store, "P=64 D=8192", "contiguous", other);
    CHECK_TEXT(find(&nearest), "P=64 D=8192");
    CHECK(!nearest.is_close && !nearest.from_file && !nearest.beat_rules);
    CHECK_TEXT(nearest.choice, other);
    kg_nearest_free(&nearest);
    know(session.store, "P=128 D=512", "contiguous", other); // 1 and 1: less than 3
    expect("P=128 D=512");
    know(session.store, "P=64 D=2048", "contiguous", other);
    know(session.store, "P=64 D=512", "contiguous", other); // as far: the older one stays
    CHECK_TEXT(find(&nearest), "P=64 D=2048");
    CHECK(nearest.is_close);
    kg_nearest_free(&nearest);
    know(file, "P=32 D=1024", "contiguous", other); // as far: the records come first
    expect("P=64 D=2048");
    know(file, "P=64 D=1028", "contiguous", other);
    CHECK_TEXT(find(&nearest), "P=64 D=1028");
    CHECK(nearest.from_file);
    kg_nearest_free(&nearest);
    end();
}

static void shapes_must_be_alike(void)
{
    begin("P=64 D=1024", NULL);
    know(session.store, "P=64 D=1023", "contiguous", other); // rows begin anywhere
    know(session.store, "P=64 D=1025", "contiguous", other);
    know(session.store, "P=64 D=1022", "contiguous", other);
    know(session.store, "P=64 D=1020", "x:2048,1 s:1 y:1020,1", other);
    know(session.store, "P=0 D=1024", "contiguous", other);
    expect("");
    know(session.store, "P=64 D=1020", "contiguous", other);
    expect("P=64 D=1020");
    end();

    static const int64_t strides[][KG_MAX_RANK] = {{2000, 1}, {1}, {1000, 1}};
    begin("P=64 D=1000", strides);
    know(session.store, "P=64 D=1000", "contiguous", other);
    know(session.store, "P=64 D=1000", "x:1,64 s:1 y:1000,1", other);
    know(session.store, "P=64 D=1000", "x:2001,1 s:1 y:1000,1", other);
    expect("");
    know(session.store, "P=64 D=1000", "x:3000,1 s:1 y:1000,1", other);
    expect("P=64 D=1000");
    end();
}

static void what_is_for_others_is_not_seen(void)
{
    begin("P=64 D=1024", NULL);
    struct kg_key mine = key.key;
    const char **const fields[] = {&key.key.op,      &key.key.dtypes, &key.key.device,
                                   &key.key.isa,     &key.key.driver, &key.key.compiler,
                                   &key.key.protocol};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        *fields[i] = "another";
        know(session.store, "P=64 D=2048", "contiguous", other);
        know(file, "P=64 D=2048", "contiguous", other);
        key.key = mine;
    }
    key.key.units++;
    know(session.store, "P=64 D=2048", "contiguous", other);
    key.key = mine;
    key.key.definition.low++;
    know(session.store, "P=64 D=2048", "contiguous", other);
    key.key = mine;
    expect("");
    end();
}

static void hostile_texts_are_nothing(void)
{
    static const char *const sizes[] = {"",
                                        "P",
                                        "P=",
                                        "P=64",
                                        "P=64 D=",
                                        "P=64 D=2048 ",
                                        "P=64 D=2048 E=1",
                                        "D=2048 P=64",
                                        "P=64  D=2048",
                                        "P=-64 D=2048",
                                        "P=64 D=99999999999999999999",
                                        "P=64 D=x",
                                        "P=0x40 D=2048",
                                        "P=999999999999999999 D=999999999999999999"};
    static const char *const layouts[] = {"",
                                          "x",
                                          "x:",
                                          "x:1",
                                          "x:2048,1",
                                          "x:2048,1 s:1 y:2048,1 ",
                                          "x:2048,1,1 s:1 y:2048,1",
                                          "contiguous ",
                                          "x:2048,-1 s:1 y:2048,1",
                                          "x:2048,1 s:1 y:1,1"};
    char nonsense[] = "no such family: a=1", empty_values[] = "pointwise: ", garbage[] = ";;;:=";
    begin("P=64 D=1024", NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        know(file, sizes[i], "contiguous", other);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
        know(file, "P=64 D=2048", layouts[i], other);
    know(file, "P=65 D=2048", "contiguous", nonsense);
    know(file, "P=66 D=2048", "contiguous", garbage);
    expect("");
    know(file, "P=67 D=2048", "contiguous", empty_values);
    end();
}

// What the rules choose here, measured at the nearest shape.
static void measured_there(double seconds)
{
    struct kg_key near = key.key;
    struct kg_outcome outcome = sample_outcome(guess);
    near.sizes = "P=64 D=2048";
    outcome.timing.median = seconds;
    CHECK_STATUS(kg_store_append(session.store, &near, &outcome, &error), KG_OK, &error);
}

static bool may_stand(bool asked)
{
    struct kg_nearest nearest;
    find(&nearest);
    bool may = kg_nearest_may_stand(&nearest, here.problem, &device, asked);
    kg_nearest_free(&nearest);
    return may;
}

// Unmeasured it stands only where it beat the rules, or where the caller asks; far off it never
// does.
static void the_guard(void)
{
    begin("P=64 D=1024", NULL);
    CHECK(strcmp(other, guess) != 0);
    CHECK(!may_stand(true)); // nothing is known
    know(session.store, "P=64 D=4096", "contiguous", other);
    CHECK(!may_stand(true));
    know(session.store, "P=64 D=2048", "contiguous", other); // takes 12.5 us there
    CHECK(!may_stand(false));
    CHECK(may_stand(true));
    measured_there(1.25e-5);
    CHECK(!may_stand(false));
    measured_there(1.2e-5);
    CHECK(!may_stand(false));
    measured_there(2e-5);
    CHECK(may_stand(false));
    end();

    begin("P=64 D=1024", NULL);
    know(session.store, "P=64 D=2048", "contiguous", guess); // what the rules say anyway
    measured_there(2e-5);
    CHECK(!may_stand(false));
    end();
}

TEST_MAIN(the_least_distance_wins, shapes_must_be_alike, what_is_for_others_is_not_seen,
          hostile_texts_are_nothing, the_guard)
