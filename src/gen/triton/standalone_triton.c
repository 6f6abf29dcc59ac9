// A Triton module for an op: see triton_module.h and gen/standalone.h.
//
// The definition is instantiated for every combination of dtypes that it allows. Kernels take
// dtypes from their pointers, so that most combinations have the same kernels; those that compute
// in other types get kernels of their own.

#include "gen/standalone.h"

#include "gen/grouping.h"
#include "gen/shared/docstring.h"
#include "gen/skeleton.h"
#include "gen/triton/triton_lines.h"
#include "gen/triton/triton_module.h"
#include "gen/triton/triton_plain.h"
#include "gen/triton/triton_whole.h"

#include <stdlib.h>
#include <string.h>

// ---- The kernels of one combination of dtypes ----

static void add_local(const struct kg_triton_host *host, const struct kg_tensor *tensor,
                      struct kg_text *text)
{
    kg_text_format(text, "    %s = _empty((", host->tensors[tensor->id]);
    for (int d = 0; d < tensor->rank; d++) {
        kg_text_add(text, d ? ", " : "");
        kg_triton_host_size(text, host, tensor->dims[d]);
    }
    kg_text_format(text, "%s), dtype=%s, device=%s)\n", tensor->rank == 1 ? "," : "",
                   kg_triton_torch_dtype(kg_emit_tensor_dtype(tensor)), host->device);
}

static void add_locals(const struct kg_problem *problem, const struct kg_choice *choice,
                       const struct kg_triton_host *host, struct kg_text *text)
{
    for (int id = 0; id < problem->tensor_count; id++)
        if (problem->tensors[id]->role == KG_ROLE_LOCAL && kg_choice_in_memory(choice, id))
            add_local(host, problem->tensors[id], text);
}

// A dtype's suffix of the names of kernels that are not the first variant's.
static void add_entry(const struct kg_problem *problem, const struct kg_choice *choice, int group,
                      const char *suffix, struct kg_text *entry)
{
    const struct kg_group *of = &choice->matches[group]->group;
    const struct kg_tensor *output = kg_group_nest(of, of->count - 1)->output;
    kg_text_format(entry, "_%s", problem->op->name);
    if (choice->count > 1)
        kg_text_format(entry, "_%s", output->name);
    kg_text_format(entry, "%s_kernel", suffix);
    // Two statements may define tensors of one name: an output and what it is copied from.
    for (int i = 0; i < group; i++) {
        const struct kg_group *other = &choice->matches[i]->group;
        if (strcmp(kg_group_nest(other, other->count - 1)->output->name, output->name) == 0) {
            kg_text_format(entry, "_%d", group);
            return;
        }
    }
}

static void add_group(struct kg_triton_variant *variant, const struct kg_triton_host *host,
                      const struct kg_match *match, const char *entry)
{
    const struct kg_triton_plan *plan = match->analysis;
    struct kg_text comment = {0};
    for (int i = 0; i < match->group.count; i++) {
        kg_text_add(&comment, i ? "\n    " : "");
        kg_nest_print(&comment, kg_group_nest(&match->group, i));
    }
    kg_text_add(&comment, match->group.count > 1 ? "\n    " : "");
    struct kg_triton_unit unit = {host,
                                  &match->group,
                                  entry,
                                  kg_text_string(&comment),
                                  &variant->kernels,
                                  &variant->launches,
                                  &variant->proofs};
    plan->write(plan, &unit);
    kg_text_format(&variant->summary, "%s: %s\n", entry, plan->what);
    variant->kernels.failed |= comment.failed | variant->proofs.failed;
    kg_text_free(&comment);
}

static void free_variant(struct kg_triton_variant *variant)
{
    kg_text_free(&variant->kernels);
    kg_text_free(&variant->launches);
    kg_text_free(&variant->summary);
    kg_text_free(&variant->proofs);
}

static void write_variant(struct kg_triton_variant *variant, const struct kg_problem *problem,
                          const struct kg_choice *choice, const char *suffix,
                          struct kg_arena *arena)
{
    struct kg_triton_host host;
    struct kg_match whole;
    kg_triton_host_begin(&host, problem, arena);
    if (choice->count > 1 && kg_triton_whole_match(problem, arena, &whole)) {
        struct kg_text entry = {0};
        kg_text_format(&entry, "_%s%s_kernel", problem->op->name, suffix);
        add_group(variant, &host, &whole, kg_text_string(&entry));
        kg_text_free(&entry);
    }
    add_locals(problem, choice, &host, &variant->launches);
    for (int i = 0; i < choice->count; i++) {
        struct kg_text entry = {0};
        add_entry(problem, choice, i, suffix, &entry);
        add_group(variant, &host, choice->matches[i], kg_text_string(&entry));
        kg_text_free(&entry);
    }
}

// ---- All combinations ----

static bool is_same(const struct kg_triton_variant *a, const struct kg_triton_variant *b)
{
    return strcmp(kg_text_string(&a->kernels), kg_text_string(&b->kernels)) == 0 &&
           strcmp(kg_text_string(&a->launches), kg_text_string(&b->launches)) == 0;
}

// Writes what a combination needs, first under the names of the first variant, to see whether some
// variant has it already.
static void add_combination(struct kg_triton_module *module, const struct kg_problem *problem,
                            const struct kg_choice *choice, const enum kg_dtype *dtypes)
{
    struct kg_text suffix = {0};
    for (int v = 0; v <= module->variant_count && v < KG_TRITON_VARIANTS; v++) {
        struct kg_triton_variant made = {0};
        const enum kg_dtype *named =
            v < module->variant_count ? module->variants[v].combinations[0] : dtypes;
        kg_text_cut(&suffix, 0);
        for (int i = 0; v > 0 && i < problem->op->typevar_count; i++)
            kg_text_format(&suffix, "_%s", kg_dtypes[named[i]].name);
        write_variant(&made, problem, choice, kg_text_string(&suffix), &module->arena);
        bool is_new = v == module->variant_count;
        struct kg_triton_variant *variant = &module->variants[v];
        if (!is_new && !is_same(&made, variant)) {
            free_variant(&made);
            continue;
        }
        if (is_new) {
            *variant = made;
            module->variant_count++;
        } else {
            free_variant(&made);
        }
        if (variant->count < KG_TRITON_VARIANTS)
            memcpy(variant->combinations[variant->count++], dtypes,
                   sizeof variant->combinations[0]);
        break;
    }
    kg_text_free(&suffix);
}

static void try_combination(struct kg_triton_module *module, const struct kg_problem *given,
                            const struct kg_device_facts *facts, const struct kg_bindings *bindings)
{
    struct kg_arena arena = {0};
    struct kg_op *instance;
    struct kg_problem *problem = NULL;
    struct kg_error ignored = {0};
    struct kg_choice *choice = calloc(1, sizeof *choice);
    if (choice && kg_lang_instantiate(&arena, module->op, bindings, &instance, &ignored) == KG_OK &&
        kg_problem_make(instance, given->sizes, NULL, &problem, &ignored) == KG_OK) {
        kg_choice_guess(problem, facts, &kg_target_triton, choice);
        add_combination(module, problem, choice, bindings->dtypes);
    }
    kg_problem_free(problem);
    free(choice);
    kg_arena_free(&arena);
}

// The combination of this number, the first variable changing slowest. False: there are no more.
static bool combination(const struct kg_op *op, int number, struct kg_bindings *bindings)
{
    for (int i = op->typevar_count - 1; i >= 0; i--) {
        bindings->dtypes[i] = op->typevars[i]->allowed[number % op->typevars[i]->count];
        number /= op->typevars[i]->count;
    }
    return number == 0;
}

// ---- The module ----

static void add_docstring(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->op;
    struct kg_text formula = {0};
    kg_text_format(text, "\"\"\"%s: ", op->name);
    kg_docstring_prose(text, *op->description ? op->description : "an operator", 0);
    kg_text_add(text, "\n\nThe definition:\n\n");
    for (int i = 0; i < op->statement_count; i++) {
        kg_text_cut(&formula, 0);
        kg_lang_print_statement(&formula, op->statements[i]);
        kg_text_add(text, "    ");
        kg_docstring_escape(text, kg_text_string(&formula));
        if (formula.length && formula.data[formula.length - 1] != '\n')
            kg_text_add(text, "\n");
    }
    kg_text_add(text, "\nKernels:\n\n");
    for (int v = 0; v < module->variant_count; v++) {
        const char *lines = kg_text_string(&module->variants[v].summary);
        while (*lines) {
            size_t length = strcspn(lines, "\n") + 1;
            kg_text_add(text, "    ");
            kg_text_add_bytes(text, lines, length);
            lines += length;
        }
    }
    kg_text_add(text, "\nThe narrow floats are computed in float32 and rounded once, when they are "
                      "stored.\n");
    kg_triton_ascend(module, text);
    kg_text_add(text, "\"\"\"\n");
    kg_text_free(&formula);
}

static void add_params(const struct kg_triton_module *module, struct kg_text *text)
{
    const struct kg_op *op = module->instance;
    bool any = false;
    for (int i = 0; i < op->size_count; i++) {
        const struct kg_size *param = op->sizes[i];
        if (!param->is_param)
            continue;
        kg_text_add(text, any ? "" : "\n");
        any = true;
        kg_text_format(text, "%s = ", module->host.sizes[i]);
        if (param->is_real)
            kg_triton_real(text, param->real, false);
        else
            kg_text_format(text, "%lld", (long long)param->value);
        kg_text_add(text, "\n");
    }
}

static void write_module(struct kg_triton_module *module, struct kg_text *source)
{
    struct kg_text code = {0}, helpers = {0}, function = {0}, values = {0};
    for (int v = 0; v < module->variant_count; v++)
        kg_text_add(&code, kg_text_string(&module->variants[v].kernels));
    kg_triton_helpers(kg_skeleton_find("triton/values.py"), kg_text_string(&code), &values);
    kg_triton_function(module, &function);
    kg_triton_helpers(kg_skeleton_find("triton/host.py"), kg_text_string(&function), &helpers);
    struct kg_text docstring = {0};
    add_docstring(module, &docstring);
    kg_triton_add_prose(source, kg_text_string(&docstring));
    source->failed |= docstring.failed;
    kg_text_free(&docstring);
    bool has_math = strstr(kg_text_string(&helpers), "math.") != NULL;
    bool tunable = strstr(kg_text_string(&helpers), "AUTOTUNE") != NULL;
    bool has_os = tunable || strstr(kg_text_string(&values), "os.environ") != NULL;
    kg_text_format(
        source,
        "\nfrom __future__ import annotations\n\nimport contextlib\nimport functools\n%s%s"
        "import threading\nimport typing\n\n"
        "import torch\nimport triton\nimport triton.language as tl\n",
        has_math ? "import math\n" : "", has_os ? "import os\n" : "");
    if (tunable)
        kg_text_add(
            source,
            "\n# Whether launches time blocks, warps and stages near those that follow from "
            "the shape, and\n# keep the fastest: for a shape that is used very "
            "often. It is slow the first time.\n"
            "AUTOTUNE = os.environ.get(\"KERNELGEN_AUTOTUNE\", \"0\") == \"1\"\n");
    add_params(module, source);
    kg_text_add(source, kg_text_string(&values));
    kg_text_add(source, kg_text_string(&code));
    kg_text_add(source, kg_text_string(&helpers));
    kg_text_add(source, kg_text_string(&function));
    source->failed |= code.failed | helpers.failed | function.failed | values.failed;
    kg_text_free(&code);
    kg_text_free(&helpers);
    kg_text_free(&function);
    kg_text_free(&values);
}

bool kg_gen_standalone_triton(const struct kg_problem *problem, const struct kg_choice *choice,
                              const struct kg_device_facts *facts, struct kg_text *source)
{
    (void)choice; // every combination of dtypes has one of its own
    struct kg_triton_module *module = calloc(1, sizeof *module);
    struct kg_bindings *bindings = calloc(1, sizeof *bindings);
    struct kg_error ignored = {0};
    struct kg_file *file;
    const char *text = problem->op->source;
    bool done = module && bindings &&
                kg_lang_parse(&module->arena, problem->op->file, text, strlen(text), &file,
                              &ignored) == KG_OK;
    if (done) {
        file->ops[0]->description = problem->op->description;
        module->op = file->ops[0];
        module->instance = problem->op;
        kg_lang_default_bindings(problem->op, bindings);
        kg_triton_host_begin(&module->host, problem, &module->arena);
        for (int i = 0; combination(module->op, i, bindings); i++)
            try_combination(module, problem, facts, bindings);
        write_module(module, source);
        for (int v = 0; v < module->variant_count; v++) {
            source->failed |= module->variants[v].kernels.failed;
            free_variant(&module->variants[v]);
        }
        done = module->variant_count > 0 && !module->arena.failed;
    }
    if (module)
        kg_arena_free(&module->arena);
    free(module);
    free(bindings);
    source->failed |= !done;
    return !source->failed;
}
