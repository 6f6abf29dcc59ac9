// What became of a case: the image after a run, and the reason when it is wrong.

#include "verify/case.h"

#include <stdio.h>
#include <string.h>

void kg_case_blame(const struct kg_case *item, int index, struct kg_verdict *verdict)
{
    char reason[sizeof verdict->reason];
    memcpy(reason, verdict->reason, sizeof reason);
    snprintf(verdict->reason, sizeof verdict->reason, "case %d (%s): %.600s", index + 1,
             item->label, reason);
    verdict->passed = false;
}

enum kg_status kg_case_check(const struct kg_case *item, int run, const unsigned char *image,
                             struct kg_kept *kept, struct kg_verdict *verdict, bool *right,
                             struct kg_error *error)
{
    const struct kg_op *op = item->problem->op;
    const void *outputs[KG_MAX_TENSORS];
    for (int o = 0; o < op->output_count; o++)
        outputs[o] = image + item->image.offset[op->input_count + o];
    enum kg_status status = kg_image_intact(item, kg_image_fills[run], image, right,
                                            verdict->reason, sizeof verdict->reason, error);
    if (status || !*right)
        return status;
    if (run > 0) {
        *right = kg_image_same(item, kept, image, verdict->reason, sizeof verdict->reason);
        return KG_OK;
    }
    for (int w = 0; w < item->window_count && *right; w++)
        *right = kg_compare_outputs(item->problem, item->expected[w], outputs, verdict);
    if (*right && item->survey)
        status = kg_survey_judge(item->survey, (const void *const *)item->inputs, outputs, verdict,
                                 right, error);
    return status || !*right ? status : kg_image_keep(item, image, kept, error);
}
