// What instructions promise of plans for a GPU that is not at hand: one launch says what the model
// says of it, several are joined, and a plan for the host promises nothing.

#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"
#include "tune/forecast.h"

#include <math.h>

static const char definitions[] =
    "op scale(x: f32[P, D]) -> (y: f32[P, D])\n{\n    y[p, d] = 2 * x[p, d]\n}\n"
    "op all(x: f32[P, D]) -> (y: f32[])\n{\n    y[] = sum(p, d) x[p, d]\n}\n"
    "op both(x: f32[P, D]) -> (y: f32[P, D], z: f32[])\n"
    "{\n    y[p, d] = 2 * x[p, d]\n    z[] = sum(p, d) x[p, d]\n}\n";

static char folder[] = "/tmp/kg-test-forecast-XXXXXX";
static struct kg_error error;

// False where there is no compiler for the device.
static bool forecast_of(const char *device_name, const char *op, struct kg_forecast *forecast)
{
    struct kg_device *device;
    struct kg_choice choice;
    struct kg_built *built = NULL;
    struct made made = make_strided(definitions, op, "P=8192 D=8192", NULL);
    CHECK_STATUS(made.status, KG_OK, &made.error);
    CHECK_STATUS(kg_device_open(device_name, folder, 1, &device, &error), KG_OK, &error);
    bool is_host = strcmp(device_name, "host") == 0;
    kg_choice_guess(made.problem, &device->facts, is_host ? &kg_target_host : &kg_target_cuda,
                    &choice);
    enum kg_status status = kg_built_make(device, made.problem, &choice, 60, &built, &error);
    *forecast = (struct kg_forecast){0};
    if (status == KG_OK)
        kg_forecast_make(built, made.problem, false, forecast);
    else
        CHECK_STATUS(status, KG_ERROR_MISSING, &error);
    kg_built_free(built);
    kg_device_close(device);
    unmake(&made);
    return status == KG_OK;
}

static void check_sane(const struct kg_forecast *forecast, int launches)
{
    CHECK(forecast->known && !forecast->refusal[0] && forecast->launches == launches);
    // 256 MiB are read, at 3.35 TB/s.
    CHECK(forecast->bound > 5e-5 && forecast->bound < 5e-4);
    CHECK(forecast->estimate >= forecast->bound && isfinite(forecast->estimate));
    CHECK(isfinite(forecast->points));
    CHECK(fabs(forecast->feature[KG_FEATURE_BASE] - 1) < 1e-9);
    for (int f = 0; f < KG_FEATURE_COUNT; f++)
        CHECK(fabs(forecast->feature[f]) < 100);
    CHECK(forecast->longest.grid > 1 && forecast->longest.threads >= 32);
}

static void test_gpu(void)
{
    struct kg_forecast one, two, both;
    CHECK(folder_make(folder));
    if (!forecast_of("sm_90a", "scale", &one)) {
        folder_remove(folder);
        fprintf(stderr, "skipped: %s\n", error.text);
        exit(77);
    }
    check_sane(&one, 1);
    CHECK(forecast_of("sm_90a", "all", &two)); // parts, and their sum
    check_sane(&two, 2);
    CHECK(forecast_of("sm_90a", "both", &both));
    CHECK(both.known && both.launches == 3 && both.bound > 0);
    // The last launch of one block is over before it counts.
    CHECK(two.longest.grid > 16 && two.feature[KG_FEATURE_TAIL] < 0.9);
}

static void test_host(void)
{
    struct kg_forecast forecast;
    if (forecast_of("host", "scale", &forecast))
        CHECK(!forecast.known && forecast.bound == 0);
    folder_remove(folder);
}

TEST_MAIN(test_gpu, test_host)
