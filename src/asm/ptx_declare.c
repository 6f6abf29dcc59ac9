// Parses declarations (variables, parameters, registers), and skips debugging data, line numbers
// and pragmas.

#include "asm/ptx_job.h"

#include <string.h>

static int64_t multiply(struct kg_ptx_job *job, int64_t a, int64_t b)
{
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product) || product < 0)
        kg_ptx_fail(job, job->token.text, job->token.line, "a variable larger than all memory");
    return product;
}

static int64_t align_up(struct kg_ptx_job *job, int64_t bytes, int64_t align)
{
    int64_t rest = align > 0 ? bytes % align : 0, sum;
    if (rest > 0 && __builtin_add_overflow(bytes, align - rest, &sum))
        kg_ptx_fail(job, job->token.text, job->token.line, "variables larger than all memory");
    return rest > 0 ? sum : bytes;
}

// Adds a variable of this size to `*total`, aligned.
static void place(struct kg_ptx_job *job, int64_t *total, int64_t bytes, int64_t align)
{
    int64_t at = align_up(job, *total, align);
    if (__builtin_add_overflow(at, bytes, total))
        kg_ptx_fail(job, job->token.text, job->token.line, "variables larger than all memory");
}

static bool opens(const struct kg_ptx_job *job)
{
    return kg_ptx_is_mark(job, '{') || kg_ptx_is_mark(job, '(') || kg_ptx_is_mark(job, '[');
}

static bool closes(const struct kg_ptx_job *job)
{
    return kg_ptx_is_mark(job, '}') || kg_ptx_is_mark(job, ')') || kg_ptx_is_mark(job, ']');
}

void kg_ptx_skip_brackets(struct kg_ptx_job *job)
{
    int64_t open = 0;
    do {
        if (job->token.kind == KG_PTX_END)
            kg_ptx_fail_expected(job, "a closing bracket");
        open += opens(job) - closes(job);
        kg_ptx_advance(job);
    } while (open > 0);
}

void kg_ptx_skip_statement(struct kg_ptx_job *job)
{
    while (!kg_ptx_is_mark(job, ';')) {
        if (opens(job))
            kg_ptx_skip_brackets(job);
        else if (job->token.kind == KG_PTX_END || closes(job))
            kg_ptx_fail_expected(job, "\";\"");
        else
            kg_ptx_advance(job);
    }
    kg_ptx_advance(job);
}

static void expect_kind(struct kg_ptx_job *job, enum kg_ptx_token_kind kind, const char *what)
{
    if (job->token.kind != kind)
        kg_ptx_fail_expected(job, what);
    kg_ptx_advance(job);
}

static bool accept_kind(struct kg_ptx_job *job, enum kg_ptx_token_kind kind)
{
    if (job->token.kind != kind)
        return false;
    kg_ptx_advance(job);
    return true;
}

// .file 1 "name", 123, 456    .loc 1 2 3, function_name $L+4, inlined_at 1 2 3
// A section name may replace $L: .debug_str
static void skip_position(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    do {
        while (job->token.kind == KG_PTX_NUMBER || job->token.kind == KG_PTX_STRING)
            kg_ptx_advance(job);
        if (job->token.kind == KG_PTX_WORD &&
            (kg_ptx_reads(job, "function_name") || kg_ptx_reads(job, "inlined_at"))) {
            kg_ptx_advance(job);
            if (!accept_kind(job, KG_PTX_WORD))
                accept_kind(job, KG_PTX_DIRECTIVE);
            if (kg_ptx_accept(job, '+'))
                expect_kind(job, KG_PTX_NUMBER, "an offset");
            while (accept_kind(job, KG_PTX_NUMBER))
                ;
        }
    } while (kg_ptx_accept(job, ','));
}

// .section .debug_info { … }    Old files have neither braces nor the rest.
static void skip_section(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    if (!accept_kind(job, KG_PTX_DIRECTIVE))
        expect_kind(job, KG_PTX_WORD, "the name of a section");
    if (kg_ptx_is_mark(job, '{'))
        kg_ptx_skip_brackets(job);
}

static void parse_pragma(struct kg_ptx_job *job)
{
    do {
        if (job->depth > 0)
            kg_ptx_note_token(job);
        kg_ptx_advance(job);
    } while (job->token.kind == KG_PTX_STRING || kg_ptx_is_mark(job, ','));
    kg_ptx_expect(job, ';', "behind a pragma");
}

bool kg_ptx_parse_remark(struct kg_ptx_job *job)
{
    if (kg_ptx_reads(job, ".loc") || kg_ptx_reads(job, ".file"))
        skip_position(job);
    else if (kg_ptx_reads(job, ".section"))
        skip_section(job);
    else if (kg_ptx_reads(job, ".pragma"))
        parse_pragma(job);
    else
        return false;
    return true;
}

// The attributes before a declared name.
struct qualities {
    int64_t unit;  // bytes of one element
    int64_t align; // as written, else of the type
};

static int64_t parse_count(struct kg_ptx_job *job, const char *what)
{
    int64_t count;
    if (!kg_ptx_integer(&job->token, &count) || count < 0)
        kg_ptx_fail_expected(job, what);
    kg_ptx_advance(job);
    return count;
}

static struct qualities parse_qualities(struct kg_ptx_job *job)
{
    struct qualities qualities = {.unit = 0};
    int64_t vector = 1, align = 0;
    while (job->token.kind == KG_PTX_DIRECTIVE) {
        int bits = kg_ptx_type_bits(job->token.text, job->token.length);
        if (bits > 0)
            qualities.unit = bits < 8 ? 1 : bits / 8;
        else if (kg_ptx_reads(job, ".v2") || kg_ptx_reads(job, ".v4") || kg_ptx_reads(job, ".v8"))
            vector = job->token.text[2] - '0';
        bool is_align = kg_ptx_reads(job, ".align");
        kg_ptx_advance(job);
        if (is_align)
            align = parse_count(job, "an alignment");
        else if (kg_ptx_is_mark(job, '('))
            kg_ptx_skip_brackets(job);
    }
    if (qualities.unit == 0) // .texref, .samplerref, .surfref: handles
        qualities.unit = 8;
    qualities.unit *= vector;
    qualities.align = align > 0 ? align : qualities.unit;
    return qualities;
}

// "[4][8]". An empty pair of brackets counts no bytes: its size is set at the launch, or by an
// initialiser, which does not matter here.
static int64_t parse_dimensions(struct kg_ptx_job *job)
{
    int64_t elements = 1;
    while (kg_ptx_accept(job, '[')) {
        int64_t size = 0;
        if (!kg_ptx_is_mark(job, ']'))
            size = parse_count(job, "a size");
        while (kg_ptx_accept(job, '*'))
            size = multiply(job, size, parse_count(job, "a size"));
        elements = multiply(job, elements, size);
        kg_ptx_expect(job, ']', "behind a size");
    }
    return elements;
}

static uint64_t mix_token(uint64_t hash, const struct kg_ptx_token *token)
{
    for (uint32_t i = 0; i < token->length; i++)
        hash = (hash ^ (unsigned char)token->text[i]) * 0x100000001B3u;
    return hash ^ (hash >> 31);
}

// From '=' to the ',' or ';' after it.
static uint64_t parse_initialiser(struct kg_ptx_job *job)
{
    uint64_t hash = 0xCBF29CE484222325u;
    int64_t open = 0;
    while (open > 0 || (!kg_ptx_is_mark(job, ',') && !kg_ptx_is_mark(job, ';'))) {
        open += opens(job) - closes(job);
        if (job->token.kind == KG_PTX_END || open < 0)
            kg_ptx_fail_expected(job, "\";\" behind an initialiser");
        hash = mix_token(hash, &job->token);
        kg_ptx_advance(job);
    }
    return hash;
}

static int32_t parse_name(struct kg_ptx_job *job, const char *what)
{
    if (job->token.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, what);
    int32_t name = kg_ptx_name(job, job->token.text, job->token.stem);
    kg_ptx_advance(job);
    return name;
}

// `<count>` after a name; 0: none.
static int64_t parse_repeat(struct kg_ptx_job *job)
{
    if (!kg_ptx_accept(job, '<'))
        return 0;
    int64_t count = parse_count(job, "a count");
    kg_ptx_expect(job, '>', "behind a count");
    return count;
}

static int64_t add_variable(struct kg_ptx_job *job, int32_t name, enum kg_ptx_space space,
                            const struct qualities *qualities)
{
    int64_t repeat = parse_repeat(job);
    int64_t bytes = multiply(job, qualities->unit, parse_dimensions(job));
    if (repeat > 0)
        bytes = multiply(job, bytes, repeat);
    uint64_t content = kg_ptx_is_mark(job, '=') ? parse_initialiser(job) : 0;
    kg_ptx_declare(job, name, KG_PTX_VARIABLE, job->variables.count);
    *KG_PTX_ADD(job, &job->variables) = (struct kg_ptx_variable){
        .space = space, .bytes = bytes, .align = qualities->align, .content = content};
    return bytes;
}

void kg_ptx_parse_variables(struct kg_ptx_job *job, enum kg_ptx_space space, bool is_extern)
{
    kg_ptx_advance(job);
    struct qualities qualities = parse_qualities(job);
    do {
        int32_t name = parse_name(job, "the name of a variable");
        add_variable(job, name, space, &qualities);
        struct kg_ptx_variable *variable = &job->variables.items[job->variables.count - 1];
        if (is_extern)
            variable->bytes = 0; // defined in another module
        else if (job->depth > 0 && space == KG_PTX_SHARED)
            kg_ptx_use_shared(job, variable);
    } while (kg_ptx_accept(job, ','));
}

void kg_ptx_use_shared(struct kg_ptx_job *job, struct kg_ptx_variable *variable)
{
    struct kg_ptx_function *function = &job->function;
    if (variable->user == function->index)
        return;
    variable->user = function->index;
    place(job, &function->launch.shared_bytes, variable->bytes, variable->align);
}

int64_t kg_ptx_parse_parameters(struct kg_ptx_job *job)
{
    int64_t total = 0;
    kg_ptx_expect(job, '(', "before parameters");
    while (!kg_ptx_is_mark(job, ')')) {
        bool is_register = kg_ptx_reads(job, ".reg");
        struct qualities qualities = parse_qualities(job);
        int32_t name = parse_name(job, "the name of a parameter");
        if (is_register)
            kg_ptx_declare(job, name, KG_PTX_REGISTER, -1);
        else
            place(job, &total, add_variable(job, name, KG_PTX_PARAM, &qualities), qualities.align);
        if (!kg_ptx_accept(job, ','))
            break;
    }
    kg_ptx_expect(job, ')', "behind parameters");
    return total;
}

void kg_ptx_parse_registers(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    parse_qualities(job);
    do {
        int32_t name = parse_name(job, "the name of a register");
        int64_t count = parse_repeat(job);
        if (count > 0)
            kg_ptx_declare_prefix(job, name, count);
        else
            kg_ptx_declare(job, name, KG_PTX_REGISTER, -1);
    } while (kg_ptx_accept(job, ','));
    kg_ptx_expect(job, ';', "behind a declaration");
}
