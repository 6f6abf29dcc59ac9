// The files of a bundle.

#include "export/bundle_roles.h"

const struct kg_bundle_role_info kg_bundle_roles[KG_BUNDLE_COUNT] = {
    [KG_BUNDLE_TRITON] = {"triton", "_triton.py"},
    [KG_BUNDLE_BASELINE] = {"baseline", "_baseline.py"},
    [KG_BUNDLE_ACCURACY] = {"accuracy", "_accuracy.py"},
    [KG_BUNDLE_PERFORMANCE] = {"performance", "_performance.py"},
};
