// What is found out of plans for their diagnosis: of kernels of this machine, and of kernels that
// are compiled for a GPU that is not here.

#include "flow/evidence.h"

#include "flow/planner.h"
#include "gen/grouping.h"
#include "support/sample_problem.h"
#include "support/sample_records.h"
#include "test.h"

#include <math.h>
#include <string.h>

static const char softmax[] =
    "op softmax(x: f32[P, D]) -> (y: f32[P, D])\n{\n    m[p] = max(d) x[p, d]\n"
    "    e[p, d] = exp(x[p, d] - m[p])\n    y[p, d] = e[p, d] / (sum(d) e[p, d])\n}\n";

static struct kg_error error;
static char folder[SAMPLE_FOLDER];
static struct kg_session session;
static struct kg_device *device;
static struct made here;
static struct kg_plan *plan;
static struct kg_evidence evidence;

// False if the device's compiler is missing.
static bool begin(const char *name)
{
    sample_folder(folder);
    session = (struct kg_session){.store = sample_open(folder), .protocol = kg_protocol_default};
    return kg_device_open(name, folder, 0, &device, &error) == KG_OK;
}

static void end(void)
{
    kg_device_close(device);
    kg_store_close(session.store);
    sample_remove(folder);
}

// The evidence of a choice that is said to have taken 1 ms: plain loops, or the rule's.
static bool look(const char *text, const char *sizes, bool plain)
{
    here = make(text, sizes);
    CHECK_STATUS(here.status, KG_OK, &here.error);
    const struct kg_request request = {
        .session = &session, .problem = here.problem, .device = device};
    const struct kg_target *target = kg_target_of(device);
    struct kg_choice choice;
    if (plain)
        kg_choice_plain(here.problem, &device->facts, target, &choice);
    else
        kg_choice_guess(here.problem, &device->facts, target, &choice);
    plan = NULL;
    bool made = kg_flow_plan_of(&request, &choice, &plan, &error) == KG_OK;
    if (made)
        kg_flow_evidence(plan, 1e-3, &evidence);
    return made;
}

static void leave(void)
{
    kg_flow_plan_free(plan);
    unmake(&here);
}

static void host_kernels(void)
{
    CHECK(begin("host"));
    CHECK_STATUS(look(softmax, "P=512 D=1024", true) ? KG_OK : error.status, KG_OK, &error);
    CHECK(evidence.host && evidence.seconds == 1e-3 && evidence.launches == 4);
    CHECK(evidence.has_code && evidence.units == device->facts.units);
    CHECK(evidence.widest_bits == 8 * device->facts.vector_bytes);
    CHECK(evidence.blocks >= 1 && evidence.idle >= 0 && evidence.idle < 1);
    CHECK(evidence.compulsory == 2.0 * 512 * 1024 * 4);
    CHECK(evidence.moved >= 2 * evidence.compulsory); // e is written, and read twice
    CHECK(evidence.term[KG_TERM_SPECIAL] > 0 && evidence.spill_bytes == 0);
    leave();
    CHECK_STATUS(look(softmax, "P=512 D=1024", false) ? KG_OK : error.status, KG_OK, &error);
    CHECK(evidence.launches < 4 && evidence.moved == evidence.compulsory);
    leave();
    // One range of items keeps all threads but one idle.
    look("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=64", true);
    CHECK(evidence.blocks == 1 && evidence.launch_seconds == 0);
    CHECK(fabs(evidence.idle - (1 - 1.0 / evidence.units)) < 1e-9);
    leave();
    end();
}

static void gpu_kernels(void)
{
    bool compiles = begin("sm_90a") && look(softmax, "P=4096 D=1024", false);
    if (!compiles) {
        printf("no compiler for GPUs: %s\n", error.text);
        return;
    }
    CHECK(!evidence.host && evidence.launches == 1 && evidence.has_code);
    CHECK(evidence.units > 100 && evidence.blocks > 0 && evidence.waves > 0);
    CHECK(evidence.idle >= 0 && evidence.idle < 1);
    CHECK(evidence.occupancy > 0 && evidence.occupancy <= 1);
    CHECK(evidence.term[KG_TERM_ISSUE] > 0 && evidence.term[KG_TERM_SPECIAL] > 0);
    CHECK(evidence.term[KG_TERM_MEMORY] == 0); // the bytes moved stand for it
    CHECK(evidence.in_flight > 0 && evidence.in_flight_needed > 1024);
    CHECK(evidence.launch_seconds > 0 && evidence.launch_seconds < 1e-4);
    CHECK(evidence.spill_bytes == 0 && !evidence.on_matrix_units);
    leave();
    CHECK(look("op product(a: f16[M, K], b: f16[K, N]) -> (c: f16[M, N])\n"
               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n",
               "M=1024 K=1024 N=1024", false));
    // 2^31 operations at 989 Tflop/s, although no loop's length stands in the code.
    CHECK(evidence.on_matrix_units && evidence.term[KG_TERM_TENSOR] > 2.0e-6);
    CHECK(evidence.term[KG_TERM_TENSOR] < 4.5e-6);
    leave();
    CHECK(look("op product(a: f16[M, K], b: f16[K, N]) -> (c: f16[M, N])\n"
               "{ c[m, n] = sum(k) a[m, k] * b[k, n] }\n",
               "M=1024 K=1024 N=1024", true));
    CHECK(evidence.on_matrix_units && evidence.term[KG_TERM_TENSOR] == 0);
    struct kg_diagnosed diagnosed;
    kg_flow_diagnose_plan(plan, 1, &diagnosed);
    CHECK(diagnosed.bottleneck != KG_BOTTLENECK_NONE && diagnosed.evidence[0]);
    leave();
    end();
}

TEST_MAIN(host_kernels, gpu_kernels)
