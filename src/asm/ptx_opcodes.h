// The table of PTX mnemonics, and the meaning of their modifiers.

#ifndef KG_ASM_PTX_OPCODES_H
#define KG_ASM_PTX_OPCODES_H

#include "asm/facts.h"

enum kg_ptx_space {
    KG_PTX_GENERIC,
    KG_PTX_GLOBAL,
    KG_PTX_SHARED,
    KG_PTX_LOCAL,
    KG_PTX_CONST,
    KG_PTX_PARAM,
    KG_PTX_SPACE_COUNT
};

// How an instruction's class is determined by its row and its modifiers.
enum kg_ptx_rule {
    KG_PTX_RULE_FIXED, // the row's
    KG_PTX_RULE_TYPE,  // by the first type: integer, half, double, else the row's
    KG_PTX_RULE_FLOAT, // integer, double, else the row's
    KG_PTX_RULE_LOGIC, // predicates: select, else the row's
    KG_PTX_RULE_LOAD,  // by the space
    KG_PTX_RULE_STORE,
    KG_PTX_RULE_SPACED, // the row's, with the space in the name
};

// Properties of an instruction for trip counts and control flow.
enum kg_ptx_action {
    KG_PTX_ACTION_NONE,
    KG_PTX_ACTION_MOVE,   // d = a, or a conversion that keeps small integers
    KG_PTX_ACTION_ADD,    // d = a + b
    KG_PTX_ACTION_SUB,    // d = a - b
    KG_PTX_ACTION_MUL,    // d = a * b
    KG_PTX_ACTION_MAD,    // d = a * b + c
    KG_PTX_ACTION_SHL,    // d = a << b
    KG_PTX_ACTION_DERIVE, // d depends on a and b in some other way
    KG_PTX_ACTION_LOAD,   // d = [a]; of a parameter
    KG_PTX_ACTION_SETP,
    KG_PTX_ACTION_BRA,
    KG_PTX_ACTION_BRX,
    KG_PTX_ACTION_CALL,
    KG_PTX_ACTION_END,
    KG_PTX_ACTION_BYTES, // operand `size_operand` is the number of bytes moved
    KG_PTX_ACTION_UMMA,  // tcgen05.mma: the shape is in an operand
};

struct kg_ptx_opcode {
    const char *name;
    enum kg_ptx_rule rule;
    enum kg_work work;
    float flops; // floating-point operations of one thread, per element
    enum kg_ptx_action action;
    int size_operand;
};

// Sorted by name.
extern const struct kg_ptx_opcode kg_ptx_opcodes[];
extern const int kg_ptx_opcode_count;

enum kg_ptx_comparison {
    KG_PTX_NO_COMPARISON,
    KG_PTX_EQ,
    KG_PTX_NE,
    KG_PTX_LT,
    KG_PTX_LE,
    KG_PTX_GT,
    KG_PTX_GE,
};

// One spelling of a mnemonic, decoded once however often it occurs.
struct kg_ptx_form {
    const struct kg_ptx_opcode *opcode; // NULL: unknown
    int32_t name;                       // index in the job's names; of the first word, if unknown
    enum kg_work work;
    enum kg_ptx_space space;
    enum kg_ptx_comparison comparison;
    int bits;        // of the first type; 0: no type
    bool is_integer; // the first type
    bool is_signed;
    bool high;           // the upper half of a product
    bool combined;       // setp with a second predicate
    bool sparse;         // tensor
    double flops;        // of one thread
    double tensor_flops; // of one warp
    double bytes;        // of one thread; -1: given by an operand
    int64_t k;           // tcgen05.mma: depth of one instruction
};

// Decodes `mnemonic`. The caller sets `form->name`.
void kg_ptx_decode(const char *mnemonic, size_t length, struct kg_ptx_form *form);
// Bits of a type such as ".f16x2"; 0 if it is not a type.
int kg_ptx_type_bits(const char *text, size_t length);

#endif
