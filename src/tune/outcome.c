// The names of outcomes and rigors. Records and wisdom files hold these names, so they never
// change.

#include "tune/search.h"

const char *const kg_outcome_names[KG_OUTCOME_COUNT] = {
    [KG_OUTCOME_MEASURED] = "measured", [KG_OUTCOME_PRUNED] = "pruned",
    [KG_OUTCOME_INVALID] = "invalid",   [KG_OUTCOME_COMPILE] = "compile",
    [KG_OUTCOME_WRONG] = "wrong",       [KG_OUTCOME_FAULT] = "fault",
    [KG_OUTCOME_TIMEOUT] = "timeout",
};

const char *const kg_rigor_names[KG_RIGOR_COUNT] = {
    [KG_RIGOR_ESTIMATE] = "estimate", [KG_RIGOR_MEASURE] = "measure",
    [KG_RIGOR_PATIENT] = "patient",   [KG_RIGOR_EXHAUSTIVE] = "exhaustive",
    [KG_RIGOR_WISDOM] = "wisdom",     [KG_RIGOR_DEFAULT] = "default",
};
