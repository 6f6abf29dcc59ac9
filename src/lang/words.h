// Which names a definition may give to its things.

#ifndef KG_LANG_WORDS_H
#define KG_LANG_WORDS_H

#include <stdbool.h>

// Why `name` may not be given to an op, a tensor, a size, a param, a type variable or an index;
// NULL when it may.
const char *kg_lang_reserved(const char *name);

// inf, nan, pi, true, false.
struct kg_constant {
    const char *name;
    double value;
    bool is_bool;
};
// Ends with a NULL name.
extern const struct kg_constant kg_constants[];

#endif
