// Prints the facts of assembly files as JSON, one line per file: for tools/ptx_evidence.py, which
// compares them with counts of its own.

#include "asm/facts.h"
#include "base/files.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

static void print_loops(struct kg_json *json, const struct kg_asm_kernel *kernel)
{
    kg_json_begin_array(json, "loops");
    for (int32_t l = 0; l < kernel->flow.loop_count; l++) {
        const struct kg_asm_loop *loop = &kernel->loops[l];
        kg_json_begin_object(json, NULL);
        kg_json_integer(json, "first", loop->first);
        kg_json_integer(json, "last", loop->last);
        kg_json_integer(json, "kind", loop->kind);
        kg_json_number(json, "trips", loop->trips);
        kg_json_text(json, "symbol", loop->symbol);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
}

static void print_kernel(struct kg_json *json, const struct kg_asm_kernel *kernel)
{
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "name", kernel->name);
    kg_json_text(json, "arch", kernel->arch);
    kg_json_integer(json, "instructions", kernel->instructions);
    kg_json_integer(json, "shared_bytes", kernel->shared_bytes);
    kg_json_integer(json, "parameter_bytes", kernel->parameter_bytes);
    kg_json_integer(json, "max_threads", kernel->max_threads[0]);
    kg_json_integer(json, "required_threads", kernel->required_threads[0]);
    kg_json_hash(json, "hash", kernel->normal_hash);
    kg_json_number(json, "tensor_flops", kernel->mix.tensor_flops);
    kg_json_begin_object(json, "opcodes");
    for (int i = 0; i < kernel->opcode_count; i++)
        kg_json_integer(json, kernel->opcodes[i].name, kernel->opcodes[i].count);
    kg_json_end_object(json);
    kg_json_begin_object(json, "work");
    for (int w = 0; w < KG_WORK_COUNT; w++)
        kg_json_number(json, kg_work_name((enum kg_work)w), kernel->mix.count[w]);
    kg_json_end_object(json);
    kg_json_begin_object(json, "bytes");
    for (int w = 0; w < KG_WORK_COUNT; w++)
        kg_json_number(json, kg_work_name((enum kg_work)w), kernel->mix.bytes[w]);
    kg_json_end_object(json);
    print_loops(json, kernel);
    kg_json_end_object(json);
}

static int print_file(const char *path)
{
    struct kg_error error = {0};
    struct kg_arena arena = {0};
    struct kg_text text = {0};
    struct kg_json json = {.text = &text};
    struct kg_asm_file file = {0};
    char *bytes = NULL;
    size_t length;
    enum kg_status status = kg_files_read(path, (size_t)1 << 30, &bytes, &length, &error);
    if (status == KG_OK)
        status = kg_asm_read(bytes, length, &arena, &file, &error);
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "file", path);
    kg_json_text(&json, "error", status == KG_OK ? NULL : error.text);
    kg_json_begin_array(&json, "kernels");
    for (int k = 0; k < file.kernel_count; k++)
        print_kernel(&json, &file.kernels[k]);
    kg_json_end_array(&json);
    kg_json_end_object(&json);
    puts(kg_text_string(&text));
    kg_text_free(&text);
    kg_arena_free(&arena);
    free(bytes);
    return status != KG_OK;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= print_file(argv[i]);
    return failed;
}
