// Every allocation of opening a checkpoint fails once, and once with all that follow.

#include "base/files.h"
#include "faults/fail_alloc.h"
#include "support/folder.h"
#include "test.h"
#include "unit/weights/checkpoint_bytes.h"
#include "weights/checkpoint.h"

static char folder[] = "/tmp/kernelgen-weights-XXXXXX";

static void publish(const char *name, struct kg_text *text)
{
    char path[64];
    struct kg_error error = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_STATUS(kg_files_publish(path, text->data, text->length, &error), KG_OK, &error);
    kg_text_free(text);
}

static void make_checkpoints(void)
{
    struct kg_text text = {0};
    CHECK(folder_make(folder));
    put_safetensors(&text, "{\"a\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}",
                    4);
    publish("good.safetensors", &text);
    kg_text_add(&text, "{\"bits\": 4}");
    publish("quantize_config.json", &text);
    put_gguf_head(&text, 3, 1, 0);
    put_gguf_tensor(&text, "b", 8, 1, 0, 0);
    put_gguf_padding(&text, 32);
    put_data(&text, 32);
    publish("good.gguf", &text);
    put_safetensors(&text, "{\"a\": {\"dtype\": \"F5\"}}", 4);
    publish("bad", &text);
}

static void sweep(const char *name, enum kg_status wanted)
{
    char path[64];
    snprintf(path, sizeof path, "%s%s", folder, name);
    for (int all = 0; all < 2; all++)
        for (long n = 1; fail_alloc_sweep(n); n++) {
            struct kg_checkpoint *checkpoint;
            struct kg_error error = {0};
            if (all)
                fail_alloc_from(n);
            else
                fail_alloc_at(n);
            enum kg_status status = kg_checkpoint_open(path, &checkpoint, &error);
            fail_alloc_never();
            CHECK(status == KG_ERROR_MEMORY || status == wanted);
            CHECK((status == KG_OK) == (checkpoint != NULL));
            CHECK((status == KG_OK) == (error.text[0] == '\0'));
            kg_checkpoint_close(checkpoint);
        }
}

static void test_open(void)
{
    make_checkpoints();
    sweep("", KG_OK);
    sweep("/good.gguf", KG_OK);
    sweep("/bad", KG_ERROR_CORRUPT);
    folder_remove(folder);
}

TEST_MAIN(test_open)
