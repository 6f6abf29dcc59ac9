// Names in generated code. A definition may call a tensor `int` or `begin`, which C or a family
// uses itself: such names are changed.

#include "gen/shared/emit.h"

#include <ctype.h>
#include <string.h>

// Words that a definition's names cannot have in generated code: C's own, macros of the headers
// that generated code includes, and the variables of families (the last lines).
static const char *const reserved_words[] = {
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "asm",
    "typeof",
    "bool",
    "true",
    "false",
    "NULL",
    "INFINITY",
    "NAN",
    "HUGE_VAL",
    "unix",
    "linux",
    "i386",
    "EOF",
    "errno",
    "math_errhandling",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "size_t",
    "INT64_C",
    "INT64_MIN",
    "INT64_MAX",
    "memcpy",
    "memset",
    "main",
    // CUDA C++:
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "class",
    "template",
    "typename",
    "namespace",
    "new",
    "delete",
    "this",
    "operator",
    "private",
    "public",
    "protected",
    "friend",
    "virtual",
    "try",
    "catch",
    "throw",
    "using",
    "mutable",
    "explicit",
    "constexpr",
    "decltype",
    "nullptr",
    "noexcept",
    "and",
    "or",
    "not",
    "xor",
    "bitand",
    "bitor",
    "compl",
    "and_eq",
    "or_eq",
    "xor_eq",
    "not_eq",
    "half",
    "uint4",
    "reinterpret_cast",
    // Families:
    "call",
    "phase",
    "begin",
    "end",
    "item",
    "items",
    "kind",
    "row",
    "rows",
    "block",
    "blocks",
    "first",
    "last",
    "count",
    "rest",
    "lane",
    "lanes",
    "step",
    "pair",
    "whole",
    "vectors",
    "across",
    "maybe_unused",
    "along",
    "inside",
    "thread",
    "work",
    "turn",
    "column",
    "part",
    "run",
    "at",
    "top",
    "total",
    "best",
    "next",
    "stage",
    "tile",
    "tiles",
    "chunk",
    "chunks",
    "value",
    "stop",
    "limit",
    "length",
    "scratch",
    "shared",
    "partial",
    "carry",
    "panel",
    "panels",
    "depth",
    "width",
    "height",
    "from",
    "to",
    "left",
    "right",
    "start",
    "low",
    "high",
    "offset",
    "outputs",
    "pieces",
    "piece",
    "runs",
    "inner",
    "outer",
    "wanted",
    "lead",
    "after",
    "final",
    "padded",
    "columns",
    "many",
    "policy",
    "parts",
    "meetings",
    "copied",
    "nth",
    "origin",
    "steps",
    "most",
    "take",
    "where",
    "lost",
    "more",
    "place",
    "output",
    "BLOCK",
    "VECTOR",
    "ROWS",
    "THREADS",
    "CLUSTER",
    "SPAN",
    "HOLD",
    "SHARED",
    "WHOLE",
    "CACHE",
    "LANES",
    "STEPS",
    "STEP",
    "ROUND",
    "WIDTH",
    "TILE",
    "UNROLL",
    "CHUNK",
    "COMBINE",
    "SPLIT",
    "group",
    "groups",
    "wide",
    "slots",
    "FOLD",
    "partials",
    "outers",
    "found",
    "stride",
    "size",
    "before",
    "none",
    "line",
    "lines",
    "TOTALS",
    "INDEX",
    "SIDE",
    "STRIPE",
    "LAST",
    "tall",
    "spot",
    "spots",
    "vec",
    "full",
    "unique",
    "reduce",
    "batch",
    "bytes",
    "aligned",
    "alignas",
    "i",
    "all",
    "share",
    "past",
    "job",
    "given",
    "element",
    "in_row",
    "in_column",
    "in_element",
    "nexts",
    "stops",
    "way",
    "reach",
    "span",
    "j",
    "ahead",
    "own",
    "level",
    "within",
    "ACROSS",
    "SHIFTS",
    "skip",
    // Host functions that launch:
    "stream",
    "scratch_bytes",
};

// Letters followed by digits that families use: "i0", "acc12". Users' x1 and w2 are not changed.
static const char *const reserved_stems[] = {
    "i",    "v",    "t",     "at",    "acc",   "lane",  "row",   "part", "lost",   "where",
    "more", "now",  "place", "slots", "take",  "from",  "stage", "wide", "narrow", "before",
    "both", "over", "tile",  "map_",  "count", "block", "batch", "spot", "copy",   "down"};

static bool is_stride_name(const char *name)
{
    size_t length = strlen(name), digits = 0;
    while (digits < length && isdigit((unsigned char)name[length - 1 - digits]))
        digits++;
    return digits > 0 && length > digits + 2 && name[length - digits - 1] == 's' &&
           name[length - digits - 2] == '_';
}

// Words of capitals, as macros of headers are: M_PI, UINT8_MAX. No header has K or K2.
static bool is_like_macro(const char *name)
{
    static const char all[] = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t letters = strspn(name, all + 11), length = strlen(name);
    bool is_letter = letters == 1 && strspn(name + 1, "0123456789") == length - 1;
    return letters > 0 && !is_letter && strspn(name, all) == length;
}

static bool is_reserved(const char *name)
{
    size_t length = strlen(name);
    // Reserved names get a trailing underscore, so one that is already there is doubled.
    if (length == 0 || name[length - 1] == '_' || name[0] == '_')
        return true;
    if (strncmp(name, "kg_", 3) == 0 || strncmp(name, "KG_", 3) == 0 || is_stride_name(name) ||
        is_like_macro(name))
        return true;
    for (size_t i = 0; i < sizeof reserved_words / sizeof *reserved_words; i++)
        if (strcmp(name, reserved_words[i]) == 0)
            return true;
    size_t stem = strcspn(name, "0123456789");
    if (stem == length || strspn(name + stem, "0123456789") != length - stem)
        return false;
    for (size_t i = 0; i < sizeof reserved_stems / sizeof *reserved_stems; i++)
        if (strlen(reserved_stems[i]) == stem && strncmp(name, reserved_stems[i], stem) == 0)
            return true;
    return false;
}

void kg_emit_name(struct kg_text *text, const char *name)
{
    kg_text_format(text, is_reserved(name) ? "%s_" : "%s", name);
}

const char *kg_emit_type(enum kg_type type)
{
    static const char *const spelling[] = {"void", "bool", "int64_t", "float", "double"};
    return spelling[type];
}

const char *kg_emit_suffix(enum kg_type type)
{
    static const char *const spelling[] = {"none", "bool", "i64", "f32", "f64"};
    return spelling[type];
}

const char *kg_emit_storage(enum kg_dtype dtype)
{
    return kg_dtypes[dtype].c_type;
}

enum kg_dtype kg_emit_tensor_dtype(const struct kg_tensor *tensor)
{
    return tensor->role == KG_ROLE_LOCAL ? tensor->memory : tensor->type.dtype;
}

const char *kg_emit_tensor_storage(const struct kg_tensor *tensor)
{
    return kg_emit_storage(kg_emit_tensor_dtype(tensor));
}

void kg_emit_line(struct kg_text *text, int level, const char *format, ...)
{
    va_list arguments;
    kg_text_format(text, "%*s", 4 * level, "");
    va_start(arguments, format);
    kg_text_vformat(text, format, arguments);
    va_end(arguments);
    kg_text_add(text, "\n");
}
