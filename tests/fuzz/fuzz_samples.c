// Samples from anywhere, and what the records keep of a candidate: what is read is written and read
// again as it was, and can be fitted; what is refused says why and leaves nothing.

#include "report/fit_report.h"
#include "store/forecast_json.h"

#include "fuzz/fuzz.h"

#include <string.h>

static void check_forecast(const char *text, size_t length)
{
    static const struct kg_forecast_origin origin = {.device = "h100", .family = "rowwise"};
    struct kg_forecast forecast, again;
    struct kg_error error = {0};
    struct kg_text words = {0};
    struct kg_json json = {.text = &words};
    if (kg_store_read_forecast(text, length, &origin, &forecast, &error) != KG_OK) {
        FUZZ_CHECK(error.text[0] && !forecast.known && forecast.bound == 0);
        return;
    }
    kg_json_begin_object(&json, NULL);
    kg_store_write_forecast(&json, &forecast);
    kg_json_end_object(&json);
    FUZZ_CHECK(kg_store_read_forecast(words.data, words.length, &origin, &again, &error) == KG_OK);
    FUZZ_CHECK(again.known == forecast.known && again.bound == forecast.bound);
    FUZZ_CHECK(memcmp(again.feature, forecast.feature, sizeof again.feature) == 0);
    kg_text_free(&words);
}

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
    check_forecast((const char *)data, size);
    kg_text_free(&lines);
    kg_text_free(&page);
    kg_samples_free(&samples);
    kg_samples_free(&again);
    return 0;
}
