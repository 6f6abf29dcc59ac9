// The bound on biased rounding: stores that prefer one side are noticed, correct stores never are,
// whatever the values, and nor are coarse ones whose errors go either way.

#include "test.h"
#include "verify/random.h"
#include "verify/roundings.h"

#define TRIALS 2000

enum store { NEAREST, TRUNCATED, OUTWARD, DOWN, HALVES_OUTWARD, COARSE, APPROXIMATE };

// Of f16, for values in [1, 2).
#define STEP 0x1p-10

static double store(double value, enum store how, struct kg_random *random)
{
    double magnitude = fabs(value), sign = value < 0 ? -1 : 1;
    switch (how) {
    case TRUNCATED:
        return sign * floor(magnitude / STEP) * STEP;
    case OUTWARD:
        return sign * ceil(magnitude / STEP) * STEP;
    case DOWN:
        return floor(value / STEP) * STEP;
    case HALVES_OUTWARD:
        return sign * floor(magnitude / STEP + 0.5) * STEP;
    case APPROXIMATE: // of a function that is a quarter of a half step too small
        return kg_dtype_round(KG_F16, value - STEP / 8);
    case COARSE: // rounded a second time, after an error of up to a step
        return kg_dtype_round(KG_F16, value + STEP * kg_random_between(random, -1, 1));
    default:
        return kg_dtype_round(KG_F16, value);
    }
}

static double draw(struct kg_random *random)
{
    double sign = kg_random_below(random, 2) ? 1 : -1;
    return sign * kg_random_between(random, 1, 2);
}

// In how many of TRIALS trials `count` values, of which as many differ, look biased.
static int biased(enum store how, int count, int different, double slack)
{
    int found = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct kg_random random = kg_random_make((uint64_t)trial, (uint64_t)count);
        struct kg_roundings roundings = {0};
        double values[1024];
        for (int i = 0; i < different; i++)
            values[i] = draw(&random);
        for (int i = 0; i < count; i++) {
            double value = values[i % different];
            kg_roundings_note(&roundings, KG_F16, value, slack, store(value, how, &random));
        }
        found += kg_roundings_biased(&roundings, NULL, NULL);
    }
    return found;
}

static void one_sided_stores(void)
{
    for (int how = TRUNCATED; how <= DOWN; how++) {
        CHECK(biased((enum store)how, 256, 256, 0) == TRIALS);
        CHECK(biased((enum store)how, 256, 256, STEP / 16) == TRIALS);
        CHECK(biased((enum store)how, 64, 64, 0) > TRIALS * 9 / 10);
    }
}

static void correct_stores(void)
{
    static const int counts[] = {1, 2, 32, 64, 1000};
    for (int c = 0; c < 5; c++)
        for (int d = 0; d <= c; d++) {
            CHECK(biased(NEAREST, counts[c], counts[d], 0) == 0);
            CHECK(biased(NEAREST, counts[c], counts[d], STEP / 8) == 0);
            CHECK(biased(HALVES_OUTWARD, counts[c], counts[d], 0) == 0); // no halves among them
        }
}

// Errors to both sides are a matter of tolerances.
static void coarse_stores(void)
{
    CHECK(biased(COARSE, 1000, 1000, 0) == 0);
    CHECK(biased(COARSE, 64, 64, 0) <= TRIALS / 1000);
    CHECK(biased(COARSE, 1000, 8, 0) == 0); // too few values to tell
}

// Just above a tie, an approximation stores all values a step too far down.
static void values_above_ties(void)
{
    struct kg_roundings roundings = {0};
    struct kg_random random = kg_random_make(7, 7);
    for (int i = 0; i < 1000; i++) {
        double value = 1 + (i + 0.51) * STEP;
        kg_roundings_note(&roundings, KG_F16, value, 0, store(value, APPROXIMATE, &random));
    }
    CHECK(!kg_roundings_biased(&roundings, NULL, NULL));
    CHECK(biased(APPROXIMATE, 1000, 1000, 0) == 0);
}

// Values that the dtype holds, ties, and slack that leaves the rounding open count for nothing.
static void undecided_values(void)
{
    struct kg_roundings roundings = {0};
    for (int i = 0; i < 100; i++) {
        double value = 1 + i * STEP;
        kg_roundings_note(&roundings, KG_F16, value, 0, value);
        kg_roundings_note(&roundings, KG_F16, value + 0.5 * STEP, 0, value);
        kg_roundings_note(&roundings, KG_F16, value + 0.4 * STEP, 0.1 * STEP, value + STEP);
        kg_roundings_note(&roundings, KG_F16, value + 0.4 * STEP, STEP, value + STEP);
        kg_roundings_note(&roundings, KG_F16, value + 0.01 * STEP, 0.02 * STEP, value - STEP);
        kg_roundings_note(&roundings, KG_F16, 65520 + i, 0, 65504);
        kg_roundings_note(&roundings, KG_F32, value + 0.4 * STEP, 0x1p-24 * value, 0);
    }
    CHECK(roundings.count == 0 && roundings.distinct == 0);
    kg_roundings_note(&roundings, KG_F16, 1.3 * STEP + 1, 0.1 * STEP, 1 + STEP);
    CHECK(roundings.count == 1 && roundings.distinct == 1);
    CHECK(roundings.inward == 0 && roundings.downward == 0);
}

static void sides_and_sums(void)
{
    struct kg_roundings total = {0};
    struct kg_random random = kg_random_make(5, 5);
    double part;
    const char *side;
    for (int output = 0; output < 30; output++) { // of four values each
        struct kg_roundings few = {0};
        for (int i = 0; i < 4; i++) {
            double value = draw(&random);
            kg_roundings_note(&few, KG_F16, value, 0, store(value, DOWN, &random));
        }
        CHECK(!kg_roundings_biased(&few, NULL, NULL));
        kg_roundings_add(&total, &few);
    }
    CHECK(total.count > 80 && total.distinct > 70);
    CHECK(kg_roundings_biased(&total, &part, &side));
    CHECK(part > 0.35 && part < 0.65 && strcmp(side, "down") == 0);
    // The same values again bring no evidence.
    struct kg_roundings twice = total;
    kg_roundings_add(&twice, &total);
    CHECK(twice.distinct == total.distinct && twice.count == 2 * total.count);
    struct kg_roundings inward = {0};
    for (int i = 0; i < 100; i++) {
        double value = draw(&random);
        kg_roundings_note(&inward, KG_F16, value, 0, store(value, TRUNCATED, &random));
    }
    CHECK(kg_roundings_biased(&inward, &part, &side));
    CHECK(part > 0 && strcmp(side, "towards zero") == 0);
}

TEST_MAIN(one_sided_stores, correct_stores, coarse_stores, values_above_ties, undecided_values,
          sides_and_sums)
