// What the configs beside the files of a checkpoint say about how it was quantised.

#ifndef KG_WEIGHTS_QUANTISATION_LABEL_H
#define KG_WEIGHTS_QUANTISATION_LABEL_H

#include "weights/checkpoint.h"

// Of the first config in `folder` that says something; empty where none does.
enum kg_status kg_quantisation_label_read(const char *folder, struct kg_quantisation_label *label,
                                          struct kg_error *error);

#endif
