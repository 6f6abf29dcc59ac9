// A plan as tvm-ffi calls it, with the two services of its library played by this program.

#include "support/folder.h"
#include "test.h"

#include <kernelgen.h>

#include <stdint.h>
#include <string.h>

struct any {
    int32_t type;
    uint32_t padding;
    union {
        int64_t integer;
        void *pointer;
    };
};
struct tensor {
    void *data;
    int32_t device_type, device_id, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct object {
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void *deleter;
    struct tensor tensor;
};
enum { INTEGER = 1, TENSOR_POINTER = 7, TENSOR_OBJECT = 70 };

int __tvm_ffi_kernelgen_execute(void *self, const struct any *arguments, int32_t count,
                                struct any *result);

static char said[512];

KG_API void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text);
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *text)
{
    snprintf(said, sizeof said, "%s: %s", kind, text);
}

static char home[] = "/tmp/kg-test-tvm-XXXXXX";
static struct kg_context *context;
static struct kg_op *op;
static struct kg_problem *problem;
static struct kg_plan *plan;

static const char definition[] = "op scale(x: f32[N, M], w: u4[M]) -> (y: f32[N, M])\n"
                                 "{ y[n, m] = x[n, m] * w[m] }\n";

static float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
static uint8_t w[2] = {0x21, 0x03};
static int64_t shape[] = {2, 3}, bytes[] = {2}, strides[] = {3, 1};
static struct tensor tx, tw, ty;

static void set_up(void)
{
    CHECK(folder_make(home));
    struct kg_options options = {.size = sizeof options, .home = home, .threads = 1, .wisdom = ""};
    struct kg_binding bindings[] = {{"N", "2"}, {"M", "3"}};
    struct kg_device *device;
    CHECK(kg_context_create(&options, &context) == KG_OK);
    CHECK(kg_context_device(context, "host", &device) == KG_OK);
    CHECK(kg_op_parse(context, "scale.kg", definition, strlen(definition), NULL, &op) == KG_OK);
    CHECK(kg_problem_create(context, op, bindings, 2, &problem) == KG_OK);
    CHECK(kg_plan_create(problem, device, KG_RIGOR_ESTIMATE, 0, &plan) == KG_OK);
}

static void lay_out(void)
{
    tx = (struct tensor){x, 1, 0, 2, 2, 32, 1, shape, NULL, 0};
    tw = (struct tensor){w, 1, 0, 1, 1, 8, 1, bytes, NULL, 0};
    ty = (struct tensor){y, 1, 0, 2, 2, 32, 1, shape, strides, 0};
    memset(y, 0, sizeof y);
    said[0] = '\0';
}

static int call(int count)
{
    struct any arguments[] = {{.type = INTEGER, .pointer = plan},
                              {.type = TENSOR_POINTER, .pointer = &tx},
                              {.type = TENSOR_POINTER, .pointer = &tw},
                              {.type = TENSOR_POINTER, .pointer = &ty}};
    struct any result = {.type = 99};
    int status = __tvm_ffi_kernelgen_execute(NULL, arguments, count, &result);
    CHECK(result.type == 0);
    return status;
}

static void plans_are_executed(void)
{
    lay_out();
    CHECK(call(4) == 0);
    CHECK(y[0] == 1 && y[1] == 4 && y[2] == 9 && y[5] == 18);
    struct object object = {.type = TENSOR_OBJECT, .tensor = tx};
    struct any arguments[] = {{.type = INTEGER, .pointer = plan},
                              {.type = TENSOR_OBJECT, .pointer = &object},
                              {.type = TENSOR_POINTER, .pointer = &tw},
                              {.type = TENSOR_POINTER, .pointer = &ty}};
    struct any result;
    lay_out();
    CHECK(__tvm_ffi_kernelgen_execute(NULL, arguments, 4, &result) == 0 && y[5] == 18);
    lay_out();
    float behind[8] = {0};
    memcpy(behind + 2, x, sizeof x);
    tx.data = behind;
    tx.byte_offset = 8;
    CHECK(call(4) == 0 && y[5] == 18);
}

#define REFUSED(change, expected)                                                                  \
    do {                                                                                           \
        lay_out();                                                                                 \
        change;                                                                                    \
        CHECK(call(4) == -1);                                                                      \
        CHECK_TEXT(said, expected);                                                                \
        CHECK(y[0] == 0);                                                                          \
    } while (0)

static void others_are_refused(void)
{
    int64_t other[] = {3, 2}, apart[] = {6, 2}, three[] = {3};
    REFUSED(tx.bits = 16, "ValueError: op scale: x has another dtype than the plan");
    REFUSED(tx.code = 0, "ValueError: op scale: x has another dtype than the plan");
    REFUSED(tx.lanes = 2, "ValueError: op scale: x has vectors as elements");
    REFUSED(tx.shape = other, "ValueError: op scale: x has other sizes or strides than the plan");
    REFUSED(tx.rank = 1, "ValueError: op scale: x has other sizes or strides than the plan");
    REFUSED(tw.shape = three, "ValueError: op scale: w has other sizes or strides than the plan");
    REFUSED(ty.strides = apart, "ValueError: op scale: y has other sizes or strides than the plan");
    REFUSED(ty.device_type = 2, "ValueError: op scale: y is on another device than the plan");
    REFUSED(ty.device_id = 1, "ValueError: op scale: y is on another device than the plan");
    lay_out();
    CHECK(call(3) == -1);
    CHECK_TEXT(said, "TypeError: a plan of op scale takes its handle and 3 tensors, not 2");
    CHECK(call(0) == -1);
    CHECK_TEXT(said, "TypeError: the first argument is the handle of a plan");
}

static void clean_up(void)
{
    kg_plan_destroy(plan);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    kg_context_destroy(context);
    folder_remove(home);
}

TEST_MAIN(set_up, plans_are_executed, others_are_refused, clean_up)
