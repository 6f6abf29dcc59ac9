// Samples from anywhere: what is read is written and read again as it was, and can be fitted; what
// is refused says why and leaves nothing.

#include "report/fit_report.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kg_samples samples = {.count = 0}, again = {.count = 0};
    struct kg_error error = {0};
    struct kg_text lines = {0}, page = {0};
    enum kg_status status = kg_samples_read((const char *)data, size, &samples, &error);
    FUZZ_CHECK(status == KG_OK || (error.text[0] && samples.count == 0));
    for (int s = 0; s < samples.count; s++)
        kg_samples_write(&samples.list[s], &lines);
    FUZZ_CHECK(kg_samples_read(kg_text_string(&lines), lines.length, &again, &error) == KG_OK);
    FUZZ_CHECK(again.count == samples.count);
    status = kg_report_fit(&samples, false, &page, &error);
    FUZZ_CHECK(status == KG_OK || error.text[0]);
    kg_text_free(&lines);
    kg_text_free(&page);
    kg_samples_free(&samples);
    kg_samples_free(&again);
    return 0;
}
