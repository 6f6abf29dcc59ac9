// A forecast of a measured candidate as JSON: in the records, and in samples.

#ifndef KG_STORE_FORECAST_JSON_H
#define KG_STORE_FORECAST_JSON_H

#include "base/json.h"
#include "store/members.h"
#include "tune/forecast.h"

// The context of a forecast.
struct kg_forecast_origin {
    const char *device; // name
    const char *family; // or the choice
    bool warm;
};

// Writes members "bound", "points", "launch" and "features" to the open object. Unknown ones (no
// features, no launch) are null. Derived features are not written; reading derives them again.
void kg_store_write_forecast(struct kg_json *json, const struct kg_forecast *forecast);
// Reads these members. `known` is false without features: then there is only a bound.
void kg_store_take_forecast(struct kg_members *members, const struct kg_forecast_origin *origin,
                            struct kg_forecast *forecast);
// Reads an object with these members and no others, as the records store it. KG_ERROR_CORRUPT: not
// an object; KG_ERROR_UNSUPPORTED: other members.
enum kg_status kg_store_read_forecast(const char *text, size_t length,
                                      const struct kg_forecast_origin *origin,
                                      struct kg_forecast *forecast, struct kg_error *error);

#endif
