// What instructions promised of a measured candidate, as JSON: in the records, and in samples.

#ifndef KG_STORE_PROMISED_H
#define KG_STORE_PROMISED_H

#include "base/json.h"
#include "store/members.h"
#include "tune/forecast.h"

// What a promise is of, besides its own members.
struct kg_forecast_origin {
    const char *device; // name
    const char *family; // or the choice
    bool warm;
};

// Members "bound", "points", "launch" and "features" of the object that is open. What is not known
// (no features, no launch) is null. Derived features are not written, but derived again.
void kg_store_write_forecast(struct kg_json *json, const struct kg_forecast *forecast);
// The same members, read. `known` is false where there are no features, and the bound is all.
void kg_store_take_forecast(struct kg_members *members, const struct kg_forecast_origin *origin,
                            struct kg_forecast *forecast);
// An object of these members and no others, as the records keep it. KG_ERROR_CORRUPT: no object;
// KG_ERROR_UNSUPPORTED: one of other members.
enum kg_status kg_store_read_forecast(const char *text, size_t length,
                                      const struct kg_forecast_origin *origin,
                                      struct kg_forecast *forecast, struct kg_error *error);

#endif
