// Names that are taken: by the language itself, or by the languages kernels are written in. A
// tensor called `float` would be a fine tensor, but its kernel would not compile.

#include "lang/words.h"

#include "lang/dtype.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const struct kg_constant kg_constants[] = {
    {"inf", HUGE_VAL, false}, {"nan", NAN, false}, {"pi", 3.14159265358979323846, false},
    {"true", 1, true},        {"false", 0, true},  {NULL, 0, false},
};

static const char *const language_words[] = {"op", "where", "param", "goal", "in"};

// Keywords of C17, C++17 and Python 3, and the few names CUDA C takes without underscores.
static const char *const target_words[] = {
    "False",      "None",      "True",     "alignas",       "alignof",     "and",
    "and_eq",     "as",        "asm",      "assert",        "async",       "auto",
    "await",      "bitand",    "bitor",    "blockDim",      "blockIdx",    "break",
    "case",       "catch",     "char",     "class",         "compl",       "const",
    "const_cast", "constexpr", "continue", "decltype",      "def",         "default",
    "del",        "delete",    "do",       "double",        "elif",        "else",
    "enum",       "except",    "explicit", "export",        "extern",      "finally",
    "float",      "for",       "friend",   "from",          "global",      "goto",
    "gridDim",    "half",      "if",       "import",        "inline",      "int",
    "is",         "lambda",    "long",     "mutable",       "namespace",   "new",
    "noexcept",   "nonlocal",  "not",      "not_eq",        "nullptr",     "operator",
    "or",         "or_eq",     "pass",     "private",       "protected",   "public",
    "raise",      "register",  "restrict", "return",        "self",        "short",
    "signed",     "sizeof",    "static",   "static_assert", "static_cast", "struct",
    "switch",     "template",  "this",     "threadIdx",     "throw",       "triton",
    "try",        "typedef",   "typeid",   "typename",      "typeof",      "union",
    "unsigned",   "using",     "virtual",  "void",          "volatile",    "warpSize",
    "wchar_t",    "while",     "with",     "xor",           "xor_eq",      "yield",
};

const char *kg_lang_reserved(const char *name)
{
    for (size_t i = 0; i < sizeof language_words / sizeof language_words[0]; i++)
        if (strcmp(name, language_words[i]) == 0)
            return "a word of the language";
    for (const struct kg_constant *constant = kg_constants; constant->name; constant++)
        if (strcmp(name, constant->name) == 0)
            return "a constant";
    if (kg_dtype_find(name, strlen(name)) != KG_DTYPE_COUNT)
        return "a dtype";
    for (size_t i = 0; i < sizeof target_words / sizeof target_words[0]; i++)
        if (strcmp(name, target_words[i]) == 0)
            return "a word of C, C++, CUDA or Python, in which kernels are written";
    if (strncmp(name, "kg_", 3) == 0 || strncmp(name, "__", 2) == 0)
        return "a prefix that generated code keeps for itself";
    return NULL;
}
