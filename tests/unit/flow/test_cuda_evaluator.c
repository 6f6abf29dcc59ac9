// What is compiled while a place is made ready, on a CUDA device whose driver is a fake: all that a
// build needs first is in the cache when the place is open, and no limit of registers is among it.

#include "flow/companions.h"
#include "flow/evaluator.h"
#include "support/fake_driver.h"
#include "support/folder.h"
#include "support/sample_problem.h"
#include "test.h"

#include <dirent.h>

static char folder[] = "/tmp/kg-test-cuda-place-XXXXXX";
static struct kg_session session;
static struct kg_session_key key;
static struct kg_device *cuda;
static struct made sample;
static struct kg_error error;

static void set_up(void)
{
    CHECK(folder_make(folder));
    CHECK(fake_driver_open() != NULL);
    sample = make("op copy(x: f32[N]) -> (y: f32[N])\n{ y[n] = x[n] }\n", "N=300000");
    CHECK_STATUS(sample.status, KG_OK, &sample.error);
    CHECK_STATUS(kg_store_open(folder, &session.store, NULL, &error), KG_OK, &error);
    CHECK_STATUS(kg_device_open("cuda:0", folder, 0, &cuda, &error), KG_OK, &error);
    session.protocol = kg_protocol_default;
    CHECK_STATUS(kg_session_key_make(sample.problem, cuda, &session.protocol, &key, &error), KG_OK,
                 &error);
}

static int count_objects(void)
{
    int count = 0;
    DIR *here = opendir(folder);
    for (struct dirent *entry; here && (entry = readdir(here));)
        count += strstr(entry->d_name, ".cubin") != NULL;
    if (here)
        closedir(here);
    return count;
}

static void check_cached(const struct kg_problem *problem, const struct kg_choice *choice)
{
    struct kg_built *built;
    CHECK_STATUS(kg_built_make(cuda, problem, choice, 60, &built, &error), KG_OK, &error);
    CHECK(built && built->binaries[0].from_cache);
    CHECK(built && built->compile_seconds > 0 && built->compile_work == 0);
    kg_built_free(built);
}

static void check_file_is_cached(const struct kg_choice *choice)
{
    struct kg_text source = {0};
    struct kg_binary binary;
    CHECK_STATUS(kg_flow_compile_file(sample.problem, cuda, choice, &source, &binary, &error),
                 KG_OK, &error);
    CHECK(binary.from_cache && strstr(source.data, "// Choice:") && binary.ptx);
    kg_binary_free(&binary);
    kg_text_free(&source);
}

static void what_comes_first_is_compiled_ahead(void)
{
    struct kg_choice foreseen[KG_MAX_FORESEEN], choice;
    struct kg_ahead ahead = {&key.key, true, true};
    struct kg_request request = {
        .session = &session, .problem = sample.problem, .device = cuda, .rigor = KG_RIGOR_MEASURE};
    struct kg_evaluator *evaluator;
    CHECK_STATUS(kg_evaluator_open(&request, true, &ahead, &evaluator, &error), KG_OK, &error);
    if (!evaluator)
        return;
    struct kg_search search = evaluator->terms;
    search.rigor = KG_RIGOR_MEASURE;
    int count = kg_search_foresee(&search, foreseen), before = count_objects();
    CHECK(evaluator->gate && evaluator->judge && evaluator->counterpart && count > 8);
    for (int i = 0; i < count; i++) {
        struct kg_text text = {0};
        check_cached(sample.problem, &foreseen[i]);
        kg_choice_print(&foreseen[i], &text);
        CHECK(strstr(kg_text_string(&text), "maxnreg=0") != NULL);
        kg_text_free(&text);
    }
    kg_flow_choose_baseline(cuda, sample.problem, &choice);
    check_cached(sample.problem, &choice);
    cuda->backend->compile_own(cuda);
    check_file_is_cached(&foreseen[0]);
    CHECK(count_objects() == before); // they were there too
    CHECK(session.times.of[KG_ACTIVITY_COMPILE].count > 0);
    kg_evaluator_close(evaluator);
}

static void nothing_is_ahead_of_a_race(void)
{
    struct kg_evaluator *evaluator;
    int before = count_objects();
    struct kg_request request = {.session = &session, .problem = sample.problem, .device = cuda};
    CHECK_STATUS(kg_evaluator_open(&request, false, NULL, &evaluator, &error), KG_OK, &error);
    CHECK(evaluator && !evaluator->gate && count_objects() == before);
    kg_evaluator_close(evaluator);
}

static void clean_up(void)
{
    kg_device_close(cuda);
    kg_session_key_free(&key);
    kg_store_close(session.store);
    unmake(&sample);
    folder_remove(folder);
}

int main(void)
{
    set_up();
    bool able = test_failures == 0 && cuda->compiler[0];
    if (able) {
        nothing_is_ahead_of_a_race();
        what_comes_first_is_compiled_ahead();
    }
    bool skipped = test_failures == 0 && !able; // no NVRTC
    clean_up();
    printf("%d checks, %d failed\n", test_checks, test_failures);
    return skipped ? 77 : test_failures != 0;
}
