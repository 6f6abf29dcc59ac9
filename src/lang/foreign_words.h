// Words and signs of other languages, and what is written here in their place.

#ifndef KG_LANG_FOREIGN_WORDS_H
#define KG_LANG_FOREIGN_WORDS_H

#include "lang/diagnostics.h"

enum kg_foreign_place {
    KG_FOREIGN_TYPE,      // a dtype; its row holds the name here, or "help: ..." when there is none
    KG_FOREIGN_SIGN,      // characters no definition may hold next to each other
    KG_FOREIGN_FILE,      // a word where an op begins
    KG_FOREIGN_STATEMENT, // a word or a sign where an operator or the next statement is expected
    KG_FOREIGN_VALUE,     // a word where a value is expected
    KG_FOREIGN_FUNCTION,  // the name of a call
};

// The names at hand, for advice that can be copied. NULL members: names of the manual.
struct kg_foreign_names {
    const char *arguments[3]; // of the call, as they are written
    const char *tensors[2];   // that the first two arguments name or read
    const char *result;       // the left side: "y[p, d]"
    const char *indices;      // on the left: "p, d"
    const char *rows;         // all but the last one of them: "p"; "" for one
    const char *last;         // the last one: "d"
};

// What is advised for `word`, or NULL. Upper and lower case are the same, but of functions.
const char *kg_lang_foreign(struct kg_lang_job *job, enum kg_foreign_place place, const char *word,
                            const struct kg_foreign_names *names);
// For a dtype's name in another language: its name here between two texts, or why there is none.
// NULL: no dtype of other languages.
const char *kg_lang_foreign_type(struct kg_lang_job *job, const char *word, const char *before,
                                 const char *behind);
// How many bytes of `text` are a sign of KG_FOREIGN_SIGN with which it begins; 0: none.
size_t kg_lang_foreign_sign(const char *text, size_t length);

#endif
