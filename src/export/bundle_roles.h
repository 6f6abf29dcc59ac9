// The files of a bundle.

#ifndef KG_EXPORT_BUNDLE_ROLES_H
#define KG_EXPORT_BUNDLE_ROLES_H

enum kg_bundle_role {
    KG_BUNDLE_TRITON,
    KG_BUNDLE_BASELINE,
    KG_BUNDLE_ACCURACY,
    KG_BUNDLE_PERFORMANCE,
    KG_BUNDLE_COUNT
};

struct kg_bundle_role_info {
    const char *name;   // "triton"
    const char *suffix; // of the file behind the op's name: "_triton.py"
};
extern const struct kg_bundle_role_info kg_bundle_roles[KG_BUNDLE_COUNT];

#endif
