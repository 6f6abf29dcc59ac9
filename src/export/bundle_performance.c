// NAME_performance.py: what the definition adds to kernels/bundle/performance.py: the sizes to time
// and what they cost.

#include "export/bundle_parts.h"
#include "export/python_names.h"
#include "gen/skeleton.h"
#include "lang/lang.h"

#include <string.h>

static const char definition_line[] = "# ---- The definition ----\n";

static void add_row(const struct kg_bundle *bundle, const struct kg_shapes *shapes, int row,
                    struct kg_text *text)
{
    const struct kg_op *op = bundle->instance;
    struct kg_problem *problem;
    int64_t sizes[KG_MAX_SIZES] = {0};
    for (int i = 0; i < op->size_count; i++)
        sizes[i] = op->sizes[i]->is_param ? op->sizes[i]->value : 1;
    for (int i = 0; i < shapes->size_count; i++)
        sizes[shapes->sizes[i]->id] = shapes->rows[row * shapes->size_count + i];
    if (kg_problem_make(op, sizes, NULL, &problem, NULL) != KG_OK)
        return;
    kg_text_add(text, "    {\"sizes\": {");
    bool any = false;
    for (int i = 0; i < op->size_count; i++) {
        if (op->sizes[i]->is_param)
            continue;
        kg_text_add(text, any ? ", \"" : "\"");
        kg_python_size_name(text, op, op->sizes[i]);
        kg_text_format(text, "\": %lld", (long long)sizes[i]);
        any = true;
    }
    kg_text_format(text, "}, \"operations\": %.0f},\n", problem->operations);
    kg_problem_free(problem);
}

enum kg_status kg_bundle_performance(const struct kg_bundle *bundle, struct kg_text *text,
                                     struct kg_error *error)
{
    const struct kg_op *op = bundle->instance;
    const char *skeleton = kg_skeleton_find("bundle/performance.py");
    const char *begin = strchr(skeleton, '\n') + 2;
    const char *rest = strstr(skeleton, definition_line) + strlen(definition_line);
    // Without rows to tune by, the largest to verify by.
    const struct kg_shapes *tune = &op->goal.tune, *verify = &op->goal.verify;
    kg_bundle_heading(bundle, "Performance: the kernel against the baseline, in turn.", text);
    kg_text_add_bytes(text, begin, (size_t)(rest - begin));
    kg_text_format(text, "\nNAME = \"%s\"\nSPEEDUP = ", op->name);
    kg_python_number(text, op->goal.given ? op->goal.speedup : 1.0);
    kg_text_add(text, "  # the goal, over the baseline\nWORK = [\n");
    for (int r = 0; op->goal.given && r < tune->row_count; r++)
        add_row(bundle, tune, r, text);
    if (op->goal.given && tune->row_count == 0 && verify->row_count > 0)
        add_row(bundle, verify, kg_lang_largest_row(verify), text);
    kg_text_add(text, "]  # sizes to time, and their floating-point operations\n");
    kg_text_add(text, rest);
    return text->failed ? kg_error_memory(error, "a performance test") : KG_OK;
}
