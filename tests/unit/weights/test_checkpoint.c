// Checkpoints in files and folders: what is found in them, and what is said of those that are none.

#include "weights/checkpoint.h"

#include "base/files.h"
#include "support/folder.h"
#include "test.h"
#include "unit/weights/checkpoint_bytes.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/kernelgen-weights-XXXXXX";

// A path below the test's folder, in one of a few buffers.
static const char *below(const char *name)
{
    static char paths[4][256];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const char *bytes, size_t length)
{
    struct kg_error error = {0};
    CHECK_STATUS(kg_files_publish(below(name), bytes, length, &error), KG_OK, &error);
}

static void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

// One tensor of four bytes for each letter.
static void write_safetensors(const char *name, const char *letters)
{
    struct kg_text header = {0}, text = {0};
    kg_text_add(&header, "{\"__metadata__\": {}");
    for (int i = 0; letters[i]; i++)
        kg_text_format(&header,
                       ", \"%c\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": [%d, %d]}",
                       letters[i], 4 * i, 4 * i + 4);
    kg_text_add(&header, "}");
    put_safetensors(&text, header.data, 4 * strlen(letters));
    write_bytes(name, text.data, text.length);
    kg_text_free(&header);
    kg_text_free(&text);
}

static void write_gguf(const char *name, const char *tensor, const char *other)
{
    struct kg_text text = {0};
    put_gguf_head(&text, 3, 2, 0);
    put_gguf_tensor(&text, tensor, 8, 1, 0, 0);
    put_gguf_tensor(&text, other, 8, 1, 0, 32);
    put_gguf_padding(&text, 32);
    put_data(&text, 64);
    write_bytes(name, text.data, text.length);
    kg_text_free(&text);
}

static struct kg_checkpoint *open_good(const char *path)
{
    struct kg_error error = {0};
    struct kg_checkpoint *checkpoint;
    CHECK_STATUS(kg_checkpoint_open(path, &checkpoint, &error), KG_OK, &error);
    return checkpoint;
}

// The message without the test's folder.
static void check_refused(const char *path, enum kg_status status, const char *message)
{
    struct kg_error error = {0};
    struct kg_checkpoint *checkpoint = (struct kg_checkpoint *)folder;
    CHECK_STATUS(kg_checkpoint_open(path, &checkpoint, &error), status, &error);
    CHECK(!checkpoint);
    struct kg_text shown = {0};
    const char *at = error.text;
    for (const char *found; (found = strstr(at, folder)); at = found + strlen(folder))
        kg_text_add_bytes(&shown, at, (size_t)(found - at));
    kg_text_add(&shown, at);
    CHECK_TEXT(kg_text_string(&shown), message);
    kg_text_free(&shown);
}

// The names in their order, and what the first data byte of each is.
static void check_tensors(const struct kg_checkpoint *checkpoint, const char *expected)
{
    struct kg_text text = {0};
    for (int i = 0; checkpoint && i < kg_checkpoint_count(checkpoint); i++) {
        const struct kg_stored *tensor = kg_checkpoint_tensor(checkpoint, i);
        CHECK(kg_checkpoint_find(checkpoint, tensor->name) == tensor);
        kg_text_format(&text, "%s%s %s@%d", i ? ", " : "", tensor->name,
                       kg_stored_names[tensor->type], *(const unsigned char *)tensor->data);
    }
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
}

static void test_safetensors_file(void)
{
    CHECK(folder_make(folder));
    write_safetensors("named.whatever", "zaZ");
    struct kg_checkpoint *checkpoint = open_good(below("named.whatever"));
    check_tensors(checkpoint, "Z F32@8, a F32@4, z F32@0");
    CHECK(!kg_checkpoint_find(checkpoint, "b") && !kg_checkpoint_find(checkpoint, ""));
    CHECK_TEXT(kg_checkpoint_tensor(checkpoint, 0)->file, below("named.whatever"));
    CHECK_TEXT(kg_checkpoint_label(checkpoint)->method, "");
    kg_checkpoint_close(checkpoint);
    write_safetensors("named.whatever", "");
    checkpoint = open_good(below("named.whatever"));
    check_tensors(checkpoint, "");
    CHECK(kg_checkpoint_count(checkpoint) == 0 && !kg_checkpoint_find(checkpoint, "a"));
    kg_checkpoint_close(checkpoint);
    kg_checkpoint_close(NULL);
}

static void test_gguf_file(void)
{
    write_gguf("model.gguf", "y", "x");
    struct kg_checkpoint *checkpoint = open_good(below("model.gguf"));
    check_tensors(checkpoint, "x F32@32, y F32@0");
    kg_checkpoint_close(checkpoint);
    write_gguf("model.gguf", "y", "y");
    check_refused(below("model.gguf"), KG_ERROR_CORRUPT,
                  "/model.gguf: offset 160: tensor \"y\": another one of this name is in "
                  "/model.gguf at offset 128");
}

static void test_no_checkpoint(void)
{
    write_text("empty", "");
    check_refused(below("empty"), KG_ERROR_CORRUPT, "/empty: offset 0: the file is empty");
    write_text("other", "PK\003\004 an archive");
    check_refused(below("other"), KG_ERROR_CORRUPT,
                  "/other: offset 0: neither a safetensors nor a GGUF file: the first begins with "
                  "the length of its header and '{', the second with \"GGUF\". Files of other "
                  "formats must be converted first");
    check_refused(below("none"), KG_ERROR_IO, "cannot read /none: No such file or directory");
    CHECK(mkfifo(below("pipe"), 0600) == 0);
    check_refused(below("pipe"), KG_ERROR_IO, "cannot read /pipe: it is not a regular file");
    CHECK(mkdir(below("bare"), 0700) == 0);
    check_refused(below("bare"), KG_ERROR_IO,
                  "/bare: no *.safetensors is in this folder; of GGUF, name the file");
}

static void test_folder(void)
{
    CHECK(mkdir(below("model"), 0700) == 0);
    write_safetensors("model/part-2.safetensors", "bd");
    write_safetensors("model/part-1.safetensors", "ca");
    write_text("model/.part-0.safetensors", "hidden");
    write_text("model/readme.md", "words");
    struct kg_checkpoint *checkpoint = open_good(below("model"));
    check_tensors(checkpoint, "a F32@4, b F32@0, c F32@0, d F32@4");
    CHECK_TEXT(kg_checkpoint_tensor(checkpoint, 1)->file, below("model/part-2.safetensors"));
    kg_checkpoint_close(checkpoint);
    write_safetensors("model/part-3.safetensors", "ea");
    check_refused(below("model"), KG_ERROR_CORRUPT,
                  "/model/part-3.safetensors: offset 154: tensor \"a\": another one of this name "
                  "is in /model/part-1.safetensors at offset 154");
    unlink(below("model/part-3.safetensors"));
    write_text("model/part-3.safetensors", "short");
    check_refused(below("model"), KG_ERROR_CORRUPT,
                  "/model/part-3.safetensors: offset 0: neither a safetensors nor a GGUF file: the "
                  "first begins with the length of its header and '{', the second with \"GGUF\". "
                  "Files of other formats must be converted first");
    unlink(below("model/part-3.safetensors"));
    CHECK(mkfifo(below("model/part-3.safetensors"), 0600) == 0);
    check_refused(below("model"), KG_ERROR_IO,
                  "cannot read /model/part-3.safetensors: it is not a regular file");
    unlink(below("model/part-3.safetensors"));
}

static void check_label(const char *expected)
{
    struct kg_checkpoint *checkpoint = open_good(below("model"));
    if (!checkpoint)
        return;
    const struct kg_quantisation_label *label = kg_checkpoint_label(checkpoint);
    struct kg_text text = {0};
    kg_text_format(&text, "%s %d %d %s%s", label->method, label->bits, label->group,
                   !label->symmetric_given ? "?"
                   : label->symmetric      ? "symmetric"
                                           : "asymmetric",
                   label->act_order ? " act-order" : "");
    CHECK_TEXT(kg_text_string(&text), expected);
    kg_text_free(&text);
    kg_checkpoint_close(checkpoint);
}

static void test_label_files(void)
{
    check_label(" 0 0 ?");
    write_text(
        "model/quant_config.json",
        "{\"zero_point\": true, \"q_group_size\": 128, \"w_bit\": 4, \"version\": \"GEMM\"}");
    check_label(" 4 128 ?");
    write_text("model/quantize_config.json", "{\"bits\": 3, \"group_size\": -1, \"sym\": false}");
    check_label(" 3 -1 asymmetric");
    write_text("model/config.json", "{\"hidden_size\": 64}");
    check_label(" 3 -1 asymmetric");
    write_text("model/config.json", "{\"quantization_config\": null}");
    check_label(" 3 -1 asymmetric");
    write_text(
        "model/config.json",
        "{\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": "
        "128, \"desc_act\": true, \"sym\": true, \"checkpoint_format\": \"gptq\"}}");
    check_label("gptq 4 128 symmetric act-order");
    write_text("model/config.json", "{\"quantization_config\": {\"quant_method\": \"gptq\","
                                    " \"checkpoint_format\": \"gptq_v2\", \"bits\": 8}}");
    check_label("gptq_v2 8 0 ?");
    write_text("model/config.json", "{\"quantization_config\": {\"quant_method\": \"awq\","
                                    " \"bits\": 4, \"group_size\": 64, \"zero_point\": true}}");
    check_label("awq 4 64 ?");
}

// One group of layers of compressed-tensors, or two.
static void write_groups(const char *weights, const char *other)
{
    struct kg_text text = {0};
    kg_text_format(&text,
                   "{\"quantization_config\": {\"quant_method\": \"compressed-tensors\","
                   " \"config_groups\": {\"group_0\": {\"weights\": %s}",
                   weights);
    if (other)
        kg_text_format(&text, ", \"group_1\": {\"weights\": %s}", other);
    kg_text_add(&text, "}}}");
    write_bytes("model/config.json", text.data, text.length);
    kg_text_free(&text);
}

static void test_label_groups(void)
{
    static const char four[] = "{\"num_bits\": 4, \"group_size\": 128, \"symmetric\": true,"
                               " \"actorder\": \"group\"}";
    static const char eight[] = "{\"num_bits\": 8, \"group_size\": null, \"symmetric\": true,"
                                " \"strategy\": \"channel\", \"actorder\": \"weight\"}";
    write_groups(four, NULL);
    check_label("compressed-tensors 4 128 symmetric act-order");
    write_groups(eight, NULL);
    check_label("compressed-tensors 8 -1 symmetric");
    write_groups(four, four);
    check_label("compressed-tensors 4 128 symmetric act-order");
    write_groups(four, eight);
    check_label("compressed-tensors 0 0 symmetric act-order");
    write_groups(four, "{\"num_bits\": 4, \"group_size\": 128, \"symmetric\": false}");
    check_label("compressed-tensors 4 128 ? act-order");
    write_groups(eight, four);
    check_label("compressed-tensors 0 0 symmetric act-order");
    write_groups("null", eight);
    check_label("compressed-tensors 8 -1 symmetric");
    write_groups("3", NULL);
    check_label("compressed-tensors 0 0 ?");
}

static void test_malformed_labels(void)
{
    static const struct {
        const char *label, *message;
    } cases[] = {
        {"[]", "quantization_config must be an object"},
        {"{\"bits\": \"4\"}", "\"bits\" must be an integer from 1 to 64"},
        {"{\"bits\": 65}", "\"bits\" must be an integer from 1 to 64"},
        {"{\"bits\": 4.5}", "\"bits\" must be an integer from 1 to 64"},
        {"{\"group_size\": -2}", "\"group_size\" must be an integer from -1 to 1073741824"},
        {"{\"sym\": 1}", "\"sym\" must be true or false"},
        {"{\"desc_act\": \"no\"}", "\"desc_act\" must be true or false"},
        {"{\"quant_method\": 1}", "\"quant_method\" must be a text of at most 31 bytes"},
        {"{\"quant_method\": \"\\n\"}", "\"quant_method\" must be a text of at most 31 bytes"},
        {"{\"quant_method\": \"a name that has more than 31 bytes\"}",
         "\"quant_method\" must be a text of at most 31 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256], message[256];
        snprintf(text, sizeof text, "{\"quantization_config\": %s}", cases[i].label);
        snprintf(message, sizeof message, "/model/config.json: %s", cases[i].message);
        write_text("model/config.json", text);
        check_refused(below("model"), KG_ERROR_CORRUPT, message);
    }
    write_text("model/config.json", "{\n\"a\": 1, \"a\": 2}");
    check_refused(below("model"), KG_ERROR_CORRUPT,
                  "/model/config.json:2:11: is no JSON: duplicate object key near '\"a\"'");
    unlink(below("model/config.json"));
    CHECK(mkfifo(below("model/config.json"), 0600) == 0);
    check_refused(below("model"), KG_ERROR_IO,
                  "cannot read /model/config.json: it is not a regular file");
    folder_remove(folder);
}

TEST_MAIN(test_safetensors_file, test_gguf_file, test_no_checkpoint, test_folder, test_label_files,
          test_label_groups, test_malformed_labels)
