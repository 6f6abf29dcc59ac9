// From a running total to the outputs of a scan: see scan_writer.h.

#include "gen/shared/scan_writer.h"

#include <stdio.h>

void kg_scan_outputs(struct kg_scan_writer *writer, const char *total, const char *count)
{
    const struct kg_scan_plan *plan = writer->plan;
    struct kg_code *code = writer->code;
    for (int i = plan->k; i < plan->group->count; i++) {
        const struct kg_nest *nest = kg_group_nest(plan->group, i);
        enum kg_type type = i == plan->k ? plan->fold.result : nest->body->type;
        snprintf(writer->names[i], sizeof writer->names[i], "v%d", i);
        kg_code_begin(code);
        kg_text_format(code->text, "const %s v%d = ", kg_emit_type(type), i);
        if (i > plan->k)
            kg_values_print(code->text, &writer->values, i, type);
        else if (plan->fold.reduce == KG_REDUCE_MEAN)
            kg_text_format(code->text, "(%s) / (%s)(%s)", total, kg_emit_type(type), count);
        else if (type == KG_TYPE_BOOL)
            kg_text_format(code->text, "(%s) != 0", total);
        else if (type == KG_TYPE_F32 && plan->fold.lane == KG_TYPE_F64)
            kg_text_format(code->text, "(float)(%s)", total);
        else
            kg_text_add(code->text, total);
        kg_text_add(code->text, ";");
        kg_code_end(code);
        writer->values.locals[i] = writer->names[i];
        if (!kg_scan_is_stored(plan, i))
            continue;
        kg_code_begin(code);
        if (writer->staged) {
            char base[32];
            snprintf(base, sizeof base, writer->stage, i);
            kg_emit_store_at(code->text, nest->output, base, writer->staged, type,
                             writer->names[i]);
        } else {
            kg_values_store(code->text, &writer->values, i, type, writer->names[i]);
        }
        kg_code_end(code);
    }
    for (int i = plan->k; i < plan->group->count; i++)
        writer->values.locals[i] = NULL;
}

void kg_scan_target(struct kg_text *text, const struct kg_scan_writer *writer, int position,
                    const char *from)
{
    struct kg_values values = writer->values;
    values.axes[writer->plan->last] = from;
    kg_emit_name(text, kg_group_nest(writer->plan->group, position)->output->name);
    kg_text_add(text, " + ");
    kg_values_offset(text, &values, position);
}
