// Reading, reporting, comparing and fitting through the public functions, with allocations that
// fail: out of memory is reported, nothing is lost, and the same context works afterwards.

#include "faults/fail_alloc.h"
#include "kernelgen.h"
#include "test.h"

#include <stdlib.h>

static char cubin[1 << 16], ptx[1 << 16], samples[1 << 14];
static size_t cubin_length, ptx_length, samples_length;

static size_t load(const char *path, char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(bytes, 1, room, file) : 0;
    if (file)
        fclose(file);
    CHECK(length > 0 && length < room);
    return length;
}

static enum kg_status go(struct kg_context *context)
{
    static const char log[] = "ptxas info    : Compiling entry function 'product' for 'sm_90a'\n"
                              "ptxas info    : (C7510) serialized in function 'product'\n";
    struct kg_assembly *a = NULL, *b = NULL;
    struct kg_assembly_launch launch = {.grid = {1000}, .block = {64}, .read_bytes = 1e6};
    char *texts[5] = {0};
    int index;
    enum kg_status status = kg_assembly_read(context, "a", cubin, cubin_length, &a);
    if (status == KG_OK)
        status = kg_assembly_read(context, "b", ptx, ptx_length, &b);
    if (status == KG_OK)
        status = kg_assembly_add_log(a, log, sizeof log - 1, NULL);
    if (status == KG_OK)
        status = kg_assembly_find(a, "product", &index);
    for (int json = 0; json < 2 && status == KG_OK; json++)
        status = kg_assembly_report(a, -1, &launch, json, &texts[json]);
    for (int json = 0; json < 2 && status == KG_OK; json++)
        status = kg_assembly_compare(a, index, b, 0, NULL, json, &texts[2 + json]);
    if (status == KG_OK)
        status = kg_fit(context, "samples", samples, samples_length, NULL, false, &texts[4]);
    for (int t = 0; t < 5; t++) {
        CHECK(status != KG_OK || texts[t]);
        kg_text_release(texts[t]);
    }
    kg_assembly_destroy(a);
    kg_assembly_destroy(b);
    return status;
}

static void test_assembly(void)
{
    struct kg_options options = {.home = "/dev/null/none"};
    struct kg_context *context = NULL;
    CHECK(kg_context_create(&options, &context) == KG_OK && context);
    cubin_length = load(KG_SOURCE_DIR "/tests/data/asm/small.sm_90a.cubin", cubin, sizeof cubin);
    ptx_length = load(KG_SOURCE_DIR "/tests/data/asm/handmade.ptx", ptx, sizeof ptx);
    samples_length =
        load(KG_SOURCE_DIR "/tests/fuzz/corpus/samples/four.jsonl", samples, sizeof samples);
    CHECK(go(context) == KG_OK);
    int failed = 0;
    for (long n = 1; fail_alloc_sweep(n); n++) {
        fail_alloc_at(n);
        enum kg_status status = go(context);
        fail_alloc_never();
        // libelf has errors of its own for it.
        CHECK(status == KG_OK || status == KG_ERROR_MEMORY || status == KG_ERROR_CORRUPT);
        CHECK(status == KG_OK || *kg_context_error(context));
        if (status != KG_OK && status != KG_ERROR_MEMORY)
            fprintf(stderr, "allocation %ld: %s\n", n, kg_context_error(context));
        failed += status != KG_OK;
    }
    CHECK(failed > 50);
    fail_alloc_from(20);
    CHECK(go(context) != KG_OK);
    fail_alloc_never();
    CHECK(go(context) == KG_OK);
    kg_context_destroy(context);
}

TEST_MAIN(test_assembly)
