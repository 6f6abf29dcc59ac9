// Spaces of configs: how they are made, what happens when there is too much, and configs as text.

#include "gen/family.h"
#include "test.h"

static const struct kg_space sample = {.count = 2,
                                       .parameters = {{"tile", KG_CHANGE_BLOCK, 3, {64, 16, 256}},
                                                      {"unroll", KG_CHANGE_BLOCK, 2, {1, 4}}}};

static void test_every_config_reads_back(void)
{
    CHECK(kg_space_size(&sample) == 6);
    for (int64_t n = 0; n < kg_space_size(&sample); n++) {
        struct kg_config config = kg_space_config(&sample, n), back;
        struct kg_text text = {0};
        kg_config_print(&sample, &config, &text);
        CHECK(kg_config_read(&sample, kg_text_string(&text), &back));
        CHECK(memcmp(&config, &back, sizeof config) == 0);
        kg_text_free(&text);
    }
}

static void test_configs_as_text(void)
{
    struct kg_config config = kg_space_config(&sample, 0);
    struct kg_text text = {0};
    kg_config_print(&sample, &config, &text);
    CHECK_TEXT(kg_text_string(&text), "tile=64 unroll=1");
    kg_text_free(&text);
    CHECK(kg_config_read(&sample, "unroll=4   tile=16 ", &config));
    CHECK(config.value[0] == 16 && config.value[1] == 4);
    static const char *const wrong[] = {
        "",
        "tile=64",                  // not all
        "tile=65 unroll=1",         // not a choice
        "tile=64 unroll=1 tile=64", // twice
        "tile=64 unroll=1 depth=2", // unknown
        "tile=64 unroll",           // no value
        "tile=64 unroll= 1",        // no number
        "tile=64x unroll=1",        // more than a number
        "tile=99999999999999999999 unroll=1",
        "til=64 unroll=1",
        "=64 unroll=1",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!kg_config_read(&sample, wrong[i], &config));
    static const struct kg_space empty = {0};
    CHECK(kg_config_read(&empty, "", &config) && kg_config_read(&empty, "  ", &config));
    CHECK(!kg_config_read(&empty, "tile=64", &config));
}

// Records from before a parameter existed mean its first choice.
static void test_optional_parameters(void)
{
    struct kg_space space = sample;
    struct kg_config config;
    kg_space_add_optional(&space, "depth", KG_CHANGE_BLOCK, 2, (int64_t[]){3, 5});
    CHECK(kg_config_read(&space, "tile=64 unroll=4", &config));
    CHECK(config.value[0] == 64 && config.value[1] == 4 && config.value[2] == 3);
    CHECK(kg_config_read(&space, "depth=5 tile=64 unroll=4", &config) && config.value[2] == 5);
    CHECK(!kg_config_read(&space, "tile=64 depth=5", &config)); // unroll is not optional
    CHECK(!kg_config_read(&space, "tile=64 unroll=4 depth=4", &config));
}

// ---- Making a space ----

static const int64_t many[KG_MAX_CHOICES + 1] = {1, 2, 3};

static void test_parameters(void)
{
    struct kg_space space = {0};
    CHECK(kg_space_size(&space) == 1); // the empty config
    kg_space_add(&space, "tile", KG_CHANGE_BLOCK, 3, (int64_t[]){64, 16, 256});
    kg_space_add(&space, "unroll", KG_CHANGE_BLOCK, 2, (int64_t[]){1, 4});
    CHECK(!space.failed && space.count == 2 && kg_space_size(&space) == 6);
    CHECK_TEXT(space.parameters[1].name, "unroll");
    CHECK(space.parameters[0].choices[2] == 256 && space.parameters[1].count == 2);
    kg_space_add(&space, "most", KG_CHANGE_BLOCK, KG_MAX_CHOICES, many);
    CHECK(!space.failed && space.parameters[2].count == KG_MAX_CHOICES);
}

// A space with guards behind it.
struct guarded {
    struct kg_space space;
    unsigned char guard[64];
};

static bool is_whole(const struct guarded *guarded)
{
    for (size_t i = 0; i < sizeof guarded->guard; i++)
        if (guarded->guard[i] != 0xa5)
            return false;
    return true;
}

static struct guarded make_guarded(int parameters)
{
    struct guarded guarded = {.space = {0}};
    memset(guarded.guard, 0xa5, sizeof guarded.guard);
    for (int i = 0; i < parameters; i++)
        kg_space_add(&guarded.space, "p", KG_CHANGE_BLOCK, 2, many);
    return guarded;
}

static void test_too_many_parameters(void)
{
    struct guarded guarded = make_guarded(KG_MAX_PARAMETERS);
    CHECK(!guarded.space.failed && guarded.space.count == KG_MAX_PARAMETERS);
    guarded = make_guarded(KG_MAX_PARAMETERS + 3);
    CHECK(guarded.space.failed && guarded.space.count == KG_MAX_PARAMETERS);
    CHECK(is_whole(&guarded) && kg_space_size(&guarded.space) == 1 << KG_MAX_PARAMETERS);
}

// Nothing is written over the parameter that comes behind, and what failed stays so.
static void test_too_many_choices(void)
{
    struct guarded guarded = make_guarded(KG_MAX_PARAMETERS - 1);
    const struct kg_space before = guarded.space;
    kg_space_add(&guarded.space, "q", KG_CHANGE_BLOCK, KG_MAX_CHOICES + 1, many);
    CHECK(guarded.space.failed && is_whole(&guarded));
    CHECK(guarded.space.count == before.count);
    CHECK(memcmp(guarded.space.parameters, before.parameters, sizeof before.parameters) == 0);
    kg_space_add(&guarded.space, "r", KG_CHANGE_BLOCK, 1, many);
    CHECK(guarded.space.failed && guarded.space.count == before.count);
}

TEST_MAIN(test_every_config_reads_back, test_configs_as_text, test_optional_parameters,
          test_parameters, test_too_many_parameters, test_too_many_choices)
