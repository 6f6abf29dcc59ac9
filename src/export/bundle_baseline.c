// NAME_baseline.py: the definition in PyTorch's own operations, or the goal's words.

#include "export/bundle_parts.h"
#include "export/python_names.h"
#include "export/torch_function.h"

#include <ctype.h>
#include <string.h>

// The goal's expression, where an output's `.dtype` is that of what shows it.
static void add_words(const struct kg_bundle *bundle, struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    const char *words = op->goal.baseline;
    for (const char *c = words; *c;) {
        bool begins =
            c == words || (!isalnum((unsigned char)c[-1]) && c[-1] != '_' && c[-1] != '.');
        size_t length = 0;
        while (isalnum((unsigned char)c[length]) || c[length] == '_')
            length++;
        const struct kg_tensor *output = NULL;
        for (int i = op->input_count; begins && i < op->input_count + op->output_count; i++)
            if (strlen(op->tensors[i]->name) == length &&
                memcmp(op->tensors[i]->name, c, length) == 0 &&
                strncmp(c + length, ".dtype", 6) == 0)
                output = op->tensors[i];
        if (output) {
            struct kg_dtype_set set;
            kg_torch_dtypes(bundle->generic, op, output->id, &set);
            if (set.shown_by) {
                kg_python_name(text, set.shown_by->name);
                kg_text_add(text, ".dtype");
            } else {
                kg_text_add(text,
                            set.variable ? set.variable->name : kg_torch_dtype(set.dtypes[0]));
            }
            c += length + 6;
        } else {
            kg_text_add_bytes(text, c, length ? length : 1);
            c += length ? length : 1;
        }
    }
}

// Does a name of the module stand in the code?
static bool uses(const char *code, const char *module)
{
    for (const char *at = strstr(code, module); at; at = strstr(at + 1, module))
        if (at == code || (!isalnum((unsigned char)at[-1]) && at[-1] != '_' && at[-1] != '.'))
            return true;
    return false;
}

static bool has_words(const struct kg_op *op)
{
    return op->goal.given && op->goal.baseline && strcmp(op->goal.baseline_kind, "torch") == 0;
}

enum kg_status kg_bundle_baseline(const struct kg_bundle *bundle, struct kg_text *text,
                                  struct kg_error *error)
{
    const struct kg_op *op = bundle->instance;
    struct kg_torch_code code = {0};
    struct kg_text function = {0};
    bool words = has_words(op);
    enum kg_status status =
        words ? KG_OK : kg_torch_function(bundle->generic, op, false, &code, error);
    if (status != KG_OK)
        return status;
    kg_bundle_signature(bundle, op->name, &function);
    kg_bundle_checks(bundle, &function);
    if (words) {
        kg_text_add(&function, "    return ");
        add_words(bundle, &function);
        kg_text_add(&function, "\n");
    } else {
        kg_text_add(&function, kg_text_string(&code.body));
    }
    const char *used = kg_text_string(&function);
    kg_bundle_heading(bundle,
                      words ? "Baseline: what the goal names."
                            : "Baseline: the definition in PyTorch's own operations.",
                      text);
    if (uses(used, "math.") || uses(kg_text_string(&code.helpers), "math."))
        kg_text_add(text, "import math\n\n");
    kg_text_add(text, "import torch\n");
    size_t before = text->length + 1;
    kg_text_add(text, "\n");
    kg_bundle_constants(bundle, text);
    kg_text_add(text, text->length > before ? "\n" : "");
    kg_text_format(text, "%s\n%s", kg_text_string(&code.helpers), used);
    text->failed |= function.failed;
    kg_text_free(&function);
    kg_torch_code_free(&code);
    return text->failed ? kg_error_memory(error, "a baseline") : KG_OK;
}
