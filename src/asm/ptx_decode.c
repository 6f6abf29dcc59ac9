// Decodes a mnemonic: its row in the table of opcodes, and the types, spaces and shapes of its
// modifiers.

#include "asm/ptx_opcodes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAME_PARTS 5 // words of a name in the table: "cp.async.bulk.prefetch.tensor"

enum type_kind { NO_TYPE, INTEGER, HALF, SINGLE, DOUBLE, PREDICATE, OTHER };

// `packed`: values of floating point in one register.
static const struct type {
    const char *name;
    enum type_kind kind;
    int bits, packed;
    bool is_signed;
} types[] = {
    {"u8", INTEGER, 8, 1, false},        {"s8", INTEGER, 8, 1, true},
    {"b8", INTEGER, 8, 1, false},        {"u16", INTEGER, 16, 1, false},
    {"s16", INTEGER, 16, 1, true},       {"b16", INTEGER, 16, 1, false},
    {"u32", INTEGER, 32, 1, false},      {"s32", INTEGER, 32, 1, true},
    {"b32", INTEGER, 32, 1, false},      {"u64", INTEGER, 64, 1, false},
    {"s64", INTEGER, 64, 1, true},       {"b64", INTEGER, 64, 1, false},
    {"b128", INTEGER, 128, 1, false},    {"u16x2", INTEGER, 32, 1, false},
    {"s16x2", INTEGER, 32, 1, false},    {"u8x4", INTEGER, 32, 1, false},
    {"s8x4", INTEGER, 32, 1, false},     {"f16", HALF, 16, 1, false},
    {"bf16", HALF, 16, 1, false},        {"f16x2", HALF, 32, 2, false},
    {"bf16x2", HALF, 32, 2, false},      {"f32", SINGLE, 32, 1, false},
    {"tf32", SINGLE, 32, 1, false},      {"f32x2", SINGLE, 64, 2, false},
    {"f64", DOUBLE, 64, 1, false},       {"pred", PREDICATE, 1, 1, false},
    {"s4", OTHER, 4, 1, false},          {"u4", OTHER, 4, 1, false},
    {"b1", OTHER, 1, 1, false},          {"e4m3", OTHER, 8, 1, false},
    {"e5m2", OTHER, 8, 1, false},        {"e4m3x2", OTHER, 16, 1, false},
    {"e5m2x2", OTHER, 16, 1, false},     {"e2m1x2", OTHER, 8, 1, false},
    {"e2m3x2", OTHER, 16, 1, false},     {"e3m2x2", OTHER, 16, 1, false},
    {"ue8m0x2", OTHER, 16, 1, false},    {"e4m3x4", OTHER, 32, 1, false},
    {"e5m2x4", OTHER, 32, 1, false},     {"e2m1x4", OTHER, 16, 1, false},
    {"e2m3x4", OTHER, 32, 1, false},     {"e3m2x4", OTHER, 32, 1, false},
    {"b8x16", OTHER, 128, 1, false},     {"b6x16_p32", OTHER, 128, 1, false},
    {"b4x16_p64", OTHER, 128, 1, false},
};

static const struct {
    const char *name;
    enum kg_ptx_space space;
} spaces[] = {
    {"global", KG_PTX_GLOBAL}, {"shared", KG_PTX_SHARED}, {"local", KG_PTX_LOCAL},
    {"const", KG_PTX_CONST},   {"param", KG_PTX_PARAM},
};

static const struct {
    const char *name;
    enum kg_ptx_comparison comparison;
} comparisons[] = {
    {"eq", KG_PTX_EQ}, {"ne", KG_PTX_NE}, {"lt", KG_PTX_LT}, {"le", KG_PTX_LE}, {"gt", KG_PTX_GT},
    {"ge", KG_PTX_GE}, {"lo", KG_PTX_LT}, {"ls", KG_PTX_LE}, {"hi", KG_PTX_GT}, {"hs", KG_PTX_GE},
};

// The modifiers of one mnemonic.
struct modifiers {
    const struct type *first, *last; // types
    int64_t m, n, k;                 // shape
    int64_t vector, repeat;          // .v4, .x4
    int64_t kind_k;                  // tcgen05.mma: by .kind
    char operand;                    // wmma.load: a, b, c
};

// A word of a mnemonic, between dots, not terminated.
struct part {
    const char *text;
    size_t length;
};

static bool same(struct part part, const char *name)
{
    return strlen(name) == part.length && memcmp(part.text, name, part.length) == 0;
}

static const struct type *find_type(struct part part)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (same(part, types[i].name))
            return &types[i];
    return NULL;
}

int kg_ptx_type_bits(const char *text, size_t length)
{
    if (length < 2)
        return 0;
    const struct type *type = find_type((struct part){text + 1, length - 1});
    return type ? type->bits : 0;
}

static int compare_names(const void *key, const void *row)
{
    const struct part *part = key;
    const char *name = ((const struct kg_ptx_opcode *)row)->name;
    int order = strncmp(part->text, name, part->length);
    return order != 0 ? order : name[part->length] ? -1 : 0;
}

// The row with the longest name that is a prefix of the mnemonic.
static const struct kg_ptx_opcode *find_opcode(const char *mnemonic, size_t length)
{
    const struct kg_ptx_opcode *found = NULL;
    size_t at = 0;
    for (int parts = 0; parts < MAX_NAME_PARTS && at < length; parts++) {
        while (at < length && (mnemonic[at] != '.' && mnemonic[at] != ':'))
            at++;
        struct part name = {mnemonic, at++};
        const struct kg_ptx_opcode *row =
            bsearch(&name, kg_ptx_opcodes, (size_t)kg_ptx_opcode_count, sizeof *kg_ptx_opcodes,
                    compare_names);
        found = row ? row : found;
    }
    return found;
}

// A number within bounds; words of mnemonics are short.
static bool read_number(struct part *part, int64_t *number)
{
    size_t digits = 0;
    *number = 0;
    for (; digits < part->length && digits < 6; digits++) {
        if (part->text[digits] < '0' || part->text[digits] > '9')
            break;
        *number = 10 * *number + (part->text[digits] - '0');
    }
    part->text += digits;
    part->length -= digits;
    return digits > 0;
}

// "m16n8k16", "m8n8"
static bool read_shape(struct part part, struct modifiers *modifiers)
{
    int64_t *sizes[] = {&modifiers->m, &modifiers->n, &modifiers->k};
    int64_t found[3] = {0};
    for (int i = 0; i < 3 && part.length > 0; i++) {
        if (*part.text != "mnk"[i])
            return false;
        part.text++;
        part.length--;
        if (!read_number(&part, &found[i]))
            return false;
    }
    if (part.length > 0 || found[1] == 0)
        return false;
    for (int i = 0; i < 3; i++)
        *sizes[i] = found[i];
    return true;
}

// "v4", "x4"
static bool read_count(struct part part, char letter, int64_t *count)
{
    if (part.length < 2 || *part.text != letter)
        return false;
    struct part rest = {part.text + 1, part.length - 1};
    int64_t number;
    if (!read_number(&rest, &number) || rest.length > 0)
        return false;
    *count = number;
    return true;
}

static void read_kind(struct part part, struct modifiers *modifiers)
{
    static const struct {
        const char *name;
        int k;
    } kinds[] = {{"kind::tf32", 8},     {"kind::f16", 16},      {"kind::i8", 32},
                 {"kind::f8f6f4", 32},  {"kind::mxf8f6f4", 32}, {"kind::mxf4", 64},
                 {"kind::mxf4nvf4", 64}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (same(part, kinds[i].name))
            modifiers->kind_k = kinds[i].k;
}

static void read_space(struct part part, struct kg_ptx_form *form)
{
    const char *colon = memchr(part.text, ':', part.length); // shared::cluster, param::entry
    if (colon)
        part.length = (size_t)(colon - part.text);
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++) {
        size_t length = strlen(spaces[i].name);
        // .const may have the number of a bank.
        if (form->space == KG_PTX_GENERIC && part.length >= length &&
            memcmp(part.text, spaces[i].name, length) == 0 &&
            (part.length == length || spaces[i].space == KG_PTX_CONST))
            form->space = spaces[i].space;
    }
}

static void read_modifier(struct part part, struct kg_ptx_form *form, struct modifiers *modifiers)
{
    const struct type *type = find_type(part);
    if (type) {
        modifiers->first = modifiers->first ? modifiers->first : type;
        modifiers->last = type;
        return;
    }
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++)
        if (form->comparison == KG_PTX_NO_COMPARISON && same(part, comparisons[i].name))
            form->comparison = comparisons[i].comparison;
    if (part.length == 1 && strchr("abcd", *part.text))
        modifiers->operand = *part.text;
    if (part.length >= 2 && memcmp(part.text, "sp", 2) == 0 &&
        (part.length == 2 || part.text[2] == ':'))
        form->sparse = true;
    if (same(part, "and") || same(part, "or") || same(part, "xor"))
        form->combined = true;
    form->high = form->high || same(part, "hi");
    read_space(part, form);
    read_kind(part, modifiers);
    if (!read_shape(part, modifiers) && !read_count(part, 'v', &modifiers->vector))
        read_count(part, 'x', &modifiers->repeat);
}

static enum kg_work work_of_space(enum kg_ptx_space space, bool store)
{
    static const enum kg_work works[KG_PTX_SPACE_COUNT][2] = {
        [KG_PTX_GENERIC] = {KG_WORK_LOAD_GLOBAL, KG_WORK_STORE_GLOBAL},
        [KG_PTX_GLOBAL] = {KG_WORK_LOAD_GLOBAL, KG_WORK_STORE_GLOBAL},
        [KG_PTX_SHARED] = {KG_WORK_LOAD_SHARED, KG_WORK_STORE_SHARED},
        [KG_PTX_LOCAL] = {KG_WORK_LOAD_LOCAL, KG_WORK_STORE_LOCAL},
        [KG_PTX_CONST] = {KG_WORK_LOAD_CONSTANT, KG_WORK_STORE_GLOBAL},
        // A store writes the arguments of a call.
        [KG_PTX_PARAM] = {KG_WORK_LOAD_CONSTANT, KG_WORK_MOVE},
    };
    return works[space][store];
}

static enum kg_work work_of(const struct kg_ptx_opcode *opcode, enum type_kind type,
                            enum kg_ptx_space space)
{
    bool integer = type == INTEGER || type == NO_TYPE || type == PREDICATE;
    switch (opcode->rule) {
    case KG_PTX_RULE_LOAD:
    case KG_PTX_RULE_STORE:
        return work_of_space(space, opcode->rule == KG_PTX_RULE_STORE);
    case KG_PTX_RULE_LOGIC:
        return type == PREDICATE ? KG_WORK_SELECT : opcode->work;
    case KG_PTX_RULE_TYPE:
        if (type == HALF)
            return KG_WORK_HALF;
        // fall through
    case KG_PTX_RULE_FLOAT:
        return integer ? KG_WORK_INTEGER : type == DOUBLE ? KG_WORK_DOUBLE : opcode->work;
    default:
        return opcode->work;
    }
}

static bool moves_memory(enum kg_work work)
{
    return work >= KG_WORK_LOAD_GLOBAL && work <= KG_WORK_LOAD_CONSTANT;
}

// Fragments are distributed over the 32 threads of a warp.
static double fragment_bytes(const struct modifiers *modifiers)
{
    int64_t rows = modifiers->operand == 'b' ? modifiers->k : modifiers->m;
    int64_t columns = modifiers->operand == 'a' ? modifiers->k : modifiers->n;
    return (double)(rows * columns * modifiers->first->bits) / 8 / 32;
}

// 8 x 8 halves, or 16 x 16 or 8 x 16 bytes (packed or not), times .x
static double matrix_bytes(const struct modifiers *modifiers)
{
    double bytes = modifiers->first->bits == 16 ? 2 : 1;
    return (double)(modifiers->m * modifiers->n * modifiers->repeat) * bytes / 32;
}

static double bytes_of(const struct kg_ptx_form *form, const struct modifiers *modifiers)
{
    const char *name = form->opcode->name;
    if (form->opcode->action == KG_PTX_ACTION_BYTES)
        return -1;
    if (!moves_memory(form->work) || !modifiers->first || strncmp(name, "tensormap", 9) == 0)
        return 0;
    if (strncmp(name, "wmma.", 5) == 0)
        return fragment_bytes(modifiers);
    if (strcmp(name, "ldmatrix") == 0 || strcmp(name, "stmatrix") == 0)
        return matrix_bytes(modifiers);
    return (double)(modifiers->vector * modifiers->first->bits) / 8;
}

static double tensor_flops_of(const struct kg_ptx_form *form, const struct modifiers *modifiers)
{
    if (form->work != KG_WORK_TENSOR)
        return 0;
    double flops = 2.0 * (double)modifiers->m * (double)modifiers->n * (double)modifiers->k;
    return strncmp(form->opcode->name, "wgmma.", 6) == 0 ? flops / 4 : flops;
}

void kg_ptx_decode(const char *mnemonic, size_t length, struct kg_ptx_form *form)
{
    struct modifiers modifiers = {.vector = 1, .repeat = 1};
    *form = (struct kg_ptx_form){.name = -1, .work = KG_WORK_UNKNOWN};
    form->opcode = find_opcode(mnemonic, length);
    for (size_t at = 0; at < length;) {
        const char *dot = memchr(mnemonic + at, '.', length - at);
        size_t end = dot ? (size_t)(dot - mnemonic) : length;
        if (at > 0)
            read_modifier((struct part){mnemonic + at, end - at}, form, &modifiers);
        at = end + 1;
    }
    if (!form->opcode)
        return;
    const struct type *type = modifiers.first;
    form->work = work_of(form->opcode, type ? type->kind : NO_TYPE, form->space);
    form->bits = type ? type->bits : 0;
    form->is_signed = type && type->is_signed;
    form->is_integer = type && type->kind == INTEGER;
    form->bytes = bytes_of(form, &modifiers);
    form->tensor_flops = tensor_flops_of(form, &modifiers);
    form->k = form->sparse ? 2 * modifiers.kind_k : modifiers.kind_k;
    if (type && type->kind != INTEGER && type->kind != PREDICATE)
        form->flops = (double)form->opcode->flops * type->packed;
}
