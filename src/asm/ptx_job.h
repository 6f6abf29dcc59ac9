// State shared by the files ptx_*.c while one PTX text is read: the text and the position in it,
// the visible names, the current function. Only these files include this header.
//
// The first error ends the job: kg_ptx_fail jumps back to kg_ptx_read. Lists are on the heap, grow,
// and are freed with the job; only the facts are in the caller's arena.

#ifndef KG_ASM_PTX_JOB_H
#define KG_ASM_PTX_JOB_H

#include "asm/facts.h"
#include "asm/ptx_opcodes.h"

#include <setjmp.h>

#define KG_PTX_MAX_DEPTH 100 // of scopes, and of brackets

// Lists: `*KG_PTX_ADD(job, &list) = item`.
#define KG_PTX_LIST(type)                                                                          \
    struct {                                                                                       \
        type *items;                                                                               \
        int32_t count, capacity;                                                                   \
    }
#define KG_PTX_ADD(job, list)                                                                      \
    ((list)->items = kg_ptx_room((job), (list)->items, (list)->count, &(list)->capacity,           \
                                 sizeof *(list)->items),                                           \
     &(list)->items[(list)->count++])

enum kg_ptx_token_kind {
    KG_PTX_END,
    KG_PTX_WORD,      // a name or a mnemonic, with modifiers that follow without a space
    KG_PTX_DIRECTIVE, // .word
    KG_PTX_NUMBER,
    KG_PTX_STRING,
    KG_PTX_MARK, // one character of punctuation
};

struct kg_ptx_token {
    enum kg_ptx_token_kind kind;
    const char *text;
    uint32_t length;
    uint32_t stem; // WORD: bytes before the first modifier
    int32_t line;
};

// A word of the text, and its meaning at the current position.
struct kg_ptx_name {
    uint32_t offset; // in the text; from its length on, in `joined`
    uint32_t length;
    int32_t symbol; // innermost, -1: none
    int32_t role;   // index in `roles`, which few names have; -1: none
};

// A name that is a mnemonic, or the prefix of register names.
struct kg_ptx_role {
    int32_t prefix; // innermost declaration of NAME<count>, -1: none
    int32_t form;   // -1: not decoded yet
};

enum kg_ptx_symbol_kind {
    KG_PTX_PLAIN, // undeclared: special registers, functions
    // `value`: its last definition, in the encoding of kg_ptx_definition; -1: none.
    KG_PTX_REGISTER,
    KG_PTX_VARIABLE, // `value`: index of the variable; parameters too
    KG_PTX_LABEL,    // `value`: index of the instruction after it
    KG_PTX_TABLE,    // label of .branchtargets; `value`: index of the table
};

struct kg_ptx_symbol {
    int32_t name;
    int32_t hidden; // the symbol that the name had outside this scope
    int32_t number; // in order of first use in the function; -1: not used yet
    int32_t value;
    uint8_t kind;
    uint8_t depth;        // of the scope: 0 file, 1 function
    uint16_t definitions; // of a register, up to a limit
};

// .reg NAME<count>: the registers get symbols on first use.
struct kg_ptx_prefix {
    int32_t name, hidden;
    int32_t depth;
    int64_t count;
};

struct kg_ptx_variable {
    enum kg_ptx_space space;
    int64_t bytes;
    int64_t align;
    uint64_t content; // hash of the initialiser
    int32_t user;     // the last function that uses it
};

enum kg_ptx_operand_kind { KG_PTX_OTHER, KG_PTX_HELD, KG_PTX_IMMEDIATE, KG_PTX_ADDRESS };

// HELD: a register's value or a variable's address, plus `value`. ADDRESS: the same in brackets.
struct kg_ptx_operand {
    int64_t value;
    int32_t symbol;
    enum kg_ptx_operand_kind kind;
};

// A stored operand, at half the size, because there are as many as words in the text.
struct kg_ptx_operand_list {
    uint32_t symbol; // plus one, times eight; twice the kind; whether the value is a wide one
    int32_t value;   // or its index in wide_values
};

struct kg_ptx_instruction {
    int32_t line;
    int32_t form; // index in forms
    union {
        int32_t operands; // first stored operand, for instructions that trip counts depend on
        int32_t target;   // of bra: instruction; of brx: table; their operands are not stored
    };
    int32_t predicate; // symbol; -1: none
    uint8_t operand_count;
    bool negated; // the predicate
};

struct kg_ptx_definition {
    int32_t instruction;
    // Previous definition of the same register, in the encoding of kg_ptx_definition; -1: none.
    int32_t earlier;
};

// A use of a label whose position is not known yet. `table`: the label of a table is expected.
struct kg_ptx_reference {
    int32_t name;
    int32_t line;
    int32_t instruction; // whose target it is; -1: entry `slot` of table_targets
    int32_t slot;
    int32_t outer; // next one in the scope; after the last, in the enclosing scope
    uint32_t offset;
    bool table;
};

struct kg_ptx_table {
    int32_t first, count; // in table_targets
};

struct kg_ptx_function {
    int32_t index; // from 1; of those with and without body
    bool is_entry;
    struct kg_ptx_token name_at;
    const char *name;            // of an entry, in the result's arena
    struct kg_asm_kernel launch; // directives, parameter and shared bytes; the rest empty
    KG_PTX_LIST(struct kg_ptx_instruction) instructions;
    KG_PTX_LIST(struct kg_ptx_operand_list) operands;
    KG_PTX_LIST(int64_t) wide_values;
    KG_PTX_LIST(struct kg_ptx_definition) definitions; // all but the first of each register
    KG_PTX_LIST(struct kg_ptx_reference) references;
    KG_PTX_LIST(struct kg_ptx_table) tables;
    KG_PTX_LIST(int32_t) table_targets;
    int32_t open_references[KG_PTX_MAX_DEPTH + 1]; // first of each scope, -1
    int32_t next_number;                           // of symbols
    bool calls;
    struct kg_hash hash;
    size_t noted;
    char notes[4096]; // normalised text that is not in `hash` yet
};

struct kg_ptx_job {
    const char *text;
    size_t length;
    size_t at;
    int32_t line;
    struct kg_ptx_token token; // the current token

    KG_PTX_LIST(struct kg_ptx_name) names;
    int32_t *name_slots; // hash table of indices + 1
    uint32_t slot_count; // a power of two
    KG_PTX_LIST(struct kg_ptx_role) roles;
    KG_PTX_LIST(char) joined; // mnemonics that were written with spaces in them
    KG_PTX_LIST(struct kg_ptx_symbol) symbols;
    KG_PTX_LIST(struct kg_ptx_prefix) prefixes;
    KG_PTX_LIST(struct kg_ptx_variable) variables;
    int depth;                                   // of scopes
    int32_t scope_symbols[KG_PTX_MAX_DEPTH + 1]; // how many there were when each scope was opened
    int brackets;

    KG_PTX_LIST(struct kg_ptx_form) forms;
    struct kg_ptx_function function;
    KG_PTX_LIST(struct kg_asm_kernel) kernels;
    KG_PTX_LIST(bool) kernel_calls; // whether each kernel calls anything
    int64_t blocks;                 // of all kernels so far
    struct kg_hash functions_hash;  // of the bodies of all .func
    const char *version;
    const char *arch;
    int sm;

    struct kg_arena *arena;  // of the result
    struct kg_arena scratch; // freed after each kernel
    struct kg_error *error;
    enum kg_status status;
    jmp_buf bail;
};

// ptx_lexer.c
_Noreturn void kg_ptx_fail(struct kg_ptx_job *job, const char *at, int32_t line, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));
_Noreturn void kg_ptx_fail_memory(struct kg_ptx_job *job);
// At the current token: `expected WHAT, found …`.
_Noreturn void kg_ptx_fail_expected(struct kg_ptx_job *job, const char *what);
void *kg_ptx_room(struct kg_ptx_job *job, void *items, int32_t count, int32_t *capacity,
                  size_t size);
void kg_ptx_advance(struct kg_ptx_job *job);
bool kg_ptx_is_mark(const struct kg_ptx_job *job, char mark);
bool kg_ptx_accept(struct kg_ptx_job *job, char mark);
void kg_ptx_expect(struct kg_ptx_job *job, char mark, const char *where);
// Is this the current token?
bool kg_ptx_reads(const struct kg_ptx_job *job, const char *text);
// Parses a PTX integer (decimal, octal, hexadecimal, binary, with U); false if the token is not
// one. Larger values keep their low 64 bits.
bool kg_ptx_integer(const struct kg_ptx_token *token, int64_t *value);

// ptx_symbols.c
// `text` is in the job's text or in `joined`.
int32_t kg_ptx_name(struct kg_ptx_job *job, const char *text, uint32_t length);
const char *kg_ptx_name_text(const struct kg_ptx_job *job, const struct kg_ptx_name *name);
// The name's role, which is created if necessary. Valid until the next one is created.
struct kg_ptx_role *kg_ptx_role(struct kg_ptx_job *job, int32_t name);
struct kg_ptx_symbol *kg_ptx_declare(struct kg_ptx_job *job, int32_t name,
                                     enum kg_ptx_symbol_kind kind, int32_t value);
void kg_ptx_declare_prefix(struct kg_ptx_job *job, int32_t name, int64_t count);
// The meaning of a word here; creates a symbol on first use.
int32_t kg_ptx_look_up(struct kg_ptx_job *job, const struct kg_ptx_token *token);
void kg_ptx_open_scope(struct kg_ptx_job *job);
// Resolves the references of the scope, or passes them to the enclosing scope.
void kg_ptx_close_scope(struct kg_ptx_job *job);
void kg_ptx_refer(struct kg_ptx_job *job, struct kg_ptx_reference reference);
void kg_ptx_define(struct kg_ptx_job *job, int32_t symbol, int32_t instruction);

// ptx_hash.c: the normalised text of the current function.
void kg_ptx_note(struct kg_ptx_job *job, const void *bytes, size_t length);
void kg_ptx_note_token(struct kg_ptx_job *job);
void kg_ptx_note_symbol(struct kg_ptx_job *job, int32_t symbol);
void kg_ptx_note_integer(struct kg_ptx_job *job, int64_t value);
struct kg_hash kg_ptx_noted(struct kg_ptx_job *job);

// ptx_declare.c: at `.file`, `.loc`, `.section`, `.pragma` and the like; the directive is the
// current token. False if it is not a directive that may occur everywhere.
bool kg_ptx_parse_remark(struct kg_ptx_job *job);
// Skips up to and including the next ';' outside of brackets.
void kg_ptx_skip_statement(struct kg_ptx_job *job);
// From an opening bracket to the position after its closing bracket.
void kg_ptx_skip_brackets(struct kg_ptx_job *job);
// `.shared .align 16 .b8 a[16], b[4] = {…};` from the space on; without its ';'.
void kg_ptx_parse_variables(struct kg_ptx_job *job, enum kg_ptx_space space, bool is_extern);
// Records that the current function uses a variable in shared memory.
void kg_ptx_use_shared(struct kg_ptx_job *job, struct kg_ptx_variable *variable);
// `(.param .u64 a, …)`; returns their size in bytes.
int64_t kg_ptx_parse_parameters(struct kg_ptx_job *job);
void kg_ptx_parse_registers(struct kg_ptx_job *job);

// ptx_body.c: from '{' to the matching '}'.
void kg_ptx_parse_body(struct kg_ptx_job *job);
// ptx_operands.c: up to the ';', which is not consumed.
void kg_ptx_parse_operands(struct kg_ptx_job *job, struct kg_ptx_instruction *instruction);
// A stored operand.
struct kg_ptx_operand kg_ptx_operand(const struct kg_ptx_job *job,
                                     const struct kg_ptx_instruction *instruction, int index);

// ptx_kernel.c: called when the current function is complete.
void kg_ptx_add_function(struct kg_ptx_job *job);

// A function's control flow, for counting trips: by block, by instruction, by loop.
struct kg_ptx_analysis {
    struct kg_ptx_job *job;
    const struct kg_flow *flow;
    const int32_t *block_of;    // of each instruction
    const int32_t *predecessor; // the only one; -1: none, -2: several
};

// ptx_value.c: the value of a register, as far as it is known.
enum kg_ptx_value_kind { KG_PTX_UNKNOWN, KG_PTX_CONSTANT, KG_PTX_PARAMETER };
struct kg_ptx_value {
    enum kg_ptx_value_kind kind;
    int64_t constant; // or the offset into the parameter
    int32_t symbol;   // the parameter
};
// The value of an operand right before the instruction `before`.
struct kg_ptx_value kg_ptx_evaluate(const struct kg_ptx_analysis *analysis,
                                    const struct kg_ptx_operand *operand, int32_t before);
// The value that the instruction assigns to its first operand.
struct kg_ptx_value kg_ptx_evaluate_result(const struct kg_ptx_analysis *analysis,
                                           int32_t instruction);
// The instruction that defines a register's value, -1: unknown.
int32_t kg_ptx_reaching(const struct kg_ptx_analysis *analysis, int32_t symbol, int32_t before);
#define KG_PTX_MAX_DEFINITIONS 64 // of one register, that are examined

// ptx_induction.c: a register that changes by the same step on every trip of a loop.
struct kg_ptx_induction {
    int32_t symbol; // -1: none was found
    int64_t offset; // the tested value is the register plus this
    int64_t step;
    bool exact; // the step is a constant
};
struct kg_ptx_induction kg_ptx_find_induction(const struct kg_ptx_analysis *analysis, int32_t loop,
                                              const struct kg_ptx_operand *operand, int32_t before);
// Does `setp` run on every trip, before `branch`, which does?
bool kg_ptx_decides(const struct kg_ptx_analysis *analysis, int32_t loop, int32_t setp,
                    int32_t branch);
// Is the block in the loop, or in a loop inside it?
bool kg_ptx_in_loop(const struct kg_flow *flow, int32_t block, int32_t loop);

// ptx_trips.c: fills in kind, trips and symbol of the kernel's loops.
bool kg_ptx_count_trips(struct kg_ptx_analysis *analysis, struct kg_arena *scratch,
                        struct kg_asm_kernel *kernel);

// A register's first definition, usually its only one, is encoded as the instruction's index; later
// ones as -2 and below, by their position in `definitions`.
static inline struct kg_ptx_definition kg_ptx_definition(const struct kg_ptx_job *job,
                                                         int32_t definition)
{
    if (definition >= 0)
        return (struct kg_ptx_definition){.instruction = definition, .earlier = -1};
    return job->function.definitions.items[-2 - definition];
}

static inline const struct kg_ptx_form *kg_ptx_form_of(const struct kg_ptx_job *job,
                                                       const struct kg_ptx_instruction *instruction)
{
    return &job->forms.items[instruction->form];
}

#endif
