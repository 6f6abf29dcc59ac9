// kg_pack_weights and kg_unpack_weights: what they refuse, and that a plan takes what is packed.

#include "support/folder.h"
#include "test.h"

#include <kernelgen.h>

#include <stddef.h>
#include <string.h>

static char home[] = "/tmp/kg-test-pack-XXXXXX";
static struct kg_context *context;
static unsigned char codes[65 * 17 / 2 + 1], packed[2 * 2 * 512], back[sizeof codes];
static struct kg_weights weights = {.size = sizeof weights, .batch = 1, .rows = 65, .columns = 17};

static void set_up(void)
{
    CHECK(folder_make(home));
    struct kg_options options = {.size = sizeof options, .home = home, .threads = 1, .wisdom = ""};
    CHECK(kg_context_create(&options, &context) == KG_OK);
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (unsigned char)(i * 2654435761u >> 13);
    codes[sizeof codes - 1] &= 15;
}

static void there_and_back(void)
{
    CHECK(kg_pack_weights(context, &weights, codes, sizeof codes, packed, sizeof packed) == KG_OK);
    CHECK(kg_unpack_weights(context, &weights, packed, sizeof packed, back, sizeof back) == KG_OK);
    CHECK(memcmp(codes, back, sizeof codes) == 0);
    struct kg_weights first = weights; // as it was first published
    first.size = 0;
    memset(packed, 0, sizeof packed);
    CHECK(kg_pack_weights(context, &first, codes, sizeof codes, packed, sizeof packed) == KG_OK);
    CHECK(kg_unpack_weights(context, &first, packed, sizeof packed, back, sizeof back) == KG_OK);
    CHECK(memcmp(codes, back, sizeof codes) == 0);
}

static void check_refused(enum kg_status status, enum kg_status expected, const char *message)
{
    CHECK(status == expected);
    CHECK_TEXT(kg_context_error(context), message);
}

static void what_does_not_fit(void)
{
    struct kg_weights other = weights;
    check_refused(
        kg_pack_weights(context, &weights, codes, sizeof codes - 1, packed, sizeof packed),
        KG_ERROR_SHAPE, "1 matrix of 65 x 17 codes: the codes need 553 bytes, not 552");
    check_refused(
        kg_unpack_weights(context, &weights, packed, sizeof packed + 512, back, sizeof back),
        KG_ERROR_SHAPE, "1 matrix of 65 x 17 codes: the packed tensor needs 2048 bytes, not 2560");
    other.batch = 2;
    check_refused(kg_pack_weights(context, &other, codes, sizeof codes, packed, sizeof packed),
                  KG_ERROR_SHAPE,
                  "2 matrices of 65 x 17 codes: the codes need 1105 bytes, not 553");
    other.columns = -1;
    check_refused(
        kg_pack_weights(context, &other, codes, sizeof codes, packed, sizeof packed),
        KG_ERROR_SHAPE,
        "2 matrices of 65 x -1 codes: sizes are not negative, and memory has to hold all");
    other.size = 3;
    CHECK(kg_pack_weights(context, &other, codes, sizeof codes, packed, sizeof packed) ==
          KG_ERROR_ARGUMENT);
    CHECK(kg_pack_weights(context, NULL, codes, sizeof codes, packed, sizeof packed) ==
          KG_ERROR_ARGUMENT);
    CHECK_TEXT(kg_context_error(context), "kg_pack_weights: weights is NULL");
}

// y[n] = sum(k) w[k, n], by the definition and by hand.
static void plans_take_panels(void)
{
    static const char definition[] =
        "op columns(x: i32[K], s: i32[N], w: packed u4[K, N]) -> (y: i32[N])\n"
        "{ y[n] = s[n] + sum(k) x[k] * w[k, n] }\n";
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    struct kg_device *device = NULL;
    struct kg_plan *plan = NULL;
    struct kg_binding sizes[] = {{"K", "65"}, {"N", "17"}};
    int32_t x[65], s[17] = {0}, y[17], wrong = 0;
    for (int k = 0; k < 65; k++)
        x[k] = k * k;
    CHECK(kg_op_parse(context, "t.kg", definition, strlen(definition), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, sizes, 2, &problem) == KG_OK);
    struct kg_tensor_info info = {.size = sizeof info};
    CHECK(kg_problem_tensor(problem, 2, &info) == KG_OK);
    CHECK(info.rank == 3 && info.shape[0] == 2 && info.shape[1] == 2 && info.shape[2] == 1024);
    CHECK(info.bytes == sizeof packed && info.is_packed);
    CHECK(kg_context_device(context, "host", &device) == KG_OK);
    CHECK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
    for (int transposed = 0; transposed < 2; transposed++) {
        struct kg_weights given = weights;
        given.transposed = transposed;
        CHECK(kg_pack_weights(context, &given, codes, sizeof codes, packed, sizeof packed) ==
              KG_OK);
        void *buffers[] = {x, s, packed, y};
        memset(y, 0, sizeof y);
        CHECK(kg_plan_execute(plan, buffers, NULL) == KG_OK);
        for (int n = 0; n < 17; n++) {
            int32_t sum = 0;
            for (int k = 0; k < 65; k++) {
                int place = transposed ? n * 65 + k : k * 17 + n;
                sum += x[k] * (codes[place / 2] >> (place % 2 * 4) & 15);
            }
            wrong += y[n] != sum;
        }
    }
    CHECK(wrong == 0);
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
}

static void tear_down(void)
{
    kg_context_destroy(context);
    folder_remove(home);
}

TEST_MAIN(set_up, there_and_back, what_does_not_fit, plans_take_panels, tear_down)
