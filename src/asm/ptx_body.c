// Parses the body of a function, statement by statement. Scopes are counted; there is no recursion.

#include "asm/ptx_job.h"

#include <string.h>

#define MAX_MNEMONIC 200 // bytes, if it is written with spaces

// Appends modifiers that follow the first word of a mnemonic after a space.
static int32_t join_mnemonic(struct kg_ptx_job *job, const struct kg_ptx_token *word)
{
    char text[MAX_MNEMONIC];
    size_t length = 0;
    for (struct kg_ptx_token part = *word;; part = job->token, kg_ptx_advance(job)) {
        if (part.length > sizeof text - length)
            kg_ptx_fail(job, word->text, word->line, "a mnemonic of more than %d characters",
                        MAX_MNEMONIC);
        memcpy(text + length, part.text, part.length);
        length += part.length;
        if (job->token.kind != KG_PTX_DIRECTIVE)
            break;
    }
    int32_t first = job->joined.count;
    for (size_t i = 0; i < length; i++)
        *KG_PTX_ADD(job, &job->joined) = text[i];
    int32_t before = job->names.count;
    int32_t name = kg_ptx_name(job, job->joined.items + first, (uint32_t)length);
    if (job->names.count == before) // known already
        job->joined.count = first;
    return name;
}

static int32_t find_form(struct kg_ptx_job *job, const struct kg_ptx_token *word)
{
    int32_t name = job->token.kind == KG_PTX_DIRECTIVE ? join_mnemonic(job, word)
                                                       : kg_ptx_name(job, word->text, word->length);
    const struct kg_ptx_name *mnemonic = &job->names.items[name];
    kg_ptx_note(job, kg_ptx_name_text(job, mnemonic), mnemonic->length);
    int32_t known = kg_ptx_role(job, name)->form;
    if (known >= 0)
        return known;
    struct kg_ptx_form *form = KG_PTX_ADD(job, &job->forms);
    kg_ptx_decode(kg_ptx_name_text(job, mnemonic), mnemonic->length, form);
    form->name = form->opcode ? -1 : kg_ptx_name(job, word->text, word->stem);
    kg_ptx_role(job, name)->form = job->forms.count - 1;
    return job->forms.count - 1;
}

// A label that is a branch target, or the label of a table of targets.
static void parse_reference(struct kg_ptx_job *job, int32_t instruction, int32_t slot, bool table)
{
    if (job->token.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, "a label");
    kg_ptx_refer(job, (struct kg_ptx_reference){
                          .name = kg_ptx_name(job, job->token.text, job->token.stem),
                          .line = job->token.line,
                          .instruction = instruction,
                          .slot = slot,
                          .offset = (uint32_t)(job->token.text - job->text),
                          .table = table,
                      });
    kg_ptx_advance(job);
}

static void parse_indexed_branch(struct kg_ptx_job *job)
{
    if (job->token.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, "an index");
    kg_ptx_note_symbol(job, kg_ptx_look_up(job, &job->token));
    kg_ptx_advance(job);
    kg_ptx_expect(job, ',', "behind an index");
    parse_reference(job, job->function.instructions.count, -1, true);
}

// `word` is the mnemonic; parsing continues after it.
static void parse_instruction(struct kg_ptx_job *job, const struct kg_ptx_token *word,
                              int32_t predicate, bool negated)
{
    struct kg_ptx_instruction instruction = {
        .line = word->line, .predicate = predicate, .target = -1, .negated = negated};
    instruction.form = find_form(job, word);
    const struct kg_ptx_opcode *opcode = kg_ptx_form_of(job, &instruction)->opcode;
    enum kg_ptx_action action = opcode ? opcode->action : KG_PTX_ACTION_NONE;
    kg_ptx_note_integer(job, predicate >= 0 ? 1 + negated : 0);
    if (action == KG_PTX_ACTION_BRA)
        parse_reference(job, job->function.instructions.count, -1, false);
    else if (action == KG_PTX_ACTION_BRX)
        parse_indexed_branch(job);
    else
        kg_ptx_parse_operands(job, &instruction);
    job->function.calls = job->function.calls || action == KG_PTX_ACTION_CALL;
    kg_ptx_expect(job, ';', "behind an instruction");
    *KG_PTX_ADD(job, &job->function.instructions) = instruction;
}

static void parse_predicated(struct kg_ptx_job *job)
{
    kg_ptx_advance(job);
    bool negated = kg_ptx_accept(job, '!');
    if (job->token.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, "a predicate");
    int32_t predicate = kg_ptx_look_up(job, &job->token);
    kg_ptx_note_symbol(job, predicate);
    kg_ptx_advance(job);
    struct kg_ptx_token word = job->token;
    if (word.kind != KG_PTX_WORD)
        kg_ptx_fail_expected(job, "an instruction");
    kg_ptx_advance(job);
    parse_instruction(job, &word, predicate, negated);
}

// `name: .branchtargets A, B, C;`
static void parse_table(struct kg_ptx_job *job, int32_t name)
{
    struct kg_ptx_function *function = &job->function;
    struct kg_ptx_table table = {.first = function->table_targets.count};
    kg_ptx_advance(job);
    do {
        *KG_PTX_ADD(job, &function->table_targets) = -1;
        parse_reference(job, -1, function->table_targets.count - 1, false);
        table.count++;
    } while (kg_ptx_accept(job, ','));
    kg_ptx_expect(job, ';', "behind a list of labels");
    kg_ptx_declare(job, name, KG_PTX_TABLE, function->tables.count);
    *KG_PTX_ADD(job, &function->tables) = table;
}

static void parse_label(struct kg_ptx_job *job, const struct kg_ptx_token *word)
{
    int32_t name = kg_ptx_name(job, word->text, word->length);
    if (kg_ptx_reads(job, ".branchtargets")) {
        parse_table(job, name);
        return;
    }
    if (kg_ptx_reads(job, ".calltargets") || kg_ptx_reads(job, ".callprototype"))
        kg_ptx_skip_statement(job);
    kg_ptx_declare(job, name, KG_PTX_LABEL, job->function.instructions.count);
}

static void parse_word_statement(struct kg_ptx_job *job)
{
    struct kg_ptx_token word = job->token;
    kg_ptx_advance(job);
    if (word.length == word.stem && kg_ptx_accept(job, ':'))
        parse_label(job, &word);
    else
        parse_instruction(job, &word, -1, false);
}

static void parse_declaration(struct kg_ptx_job *job)
{
    static const struct {
        const char *text;
        enum kg_ptx_space space;
    } spaces[] = {{".local", KG_PTX_LOCAL},
                  {".shared", KG_PTX_SHARED},
                  {".param", KG_PTX_PARAM},
                  {".const", KG_PTX_CONST},
                  {".global", KG_PTX_GLOBAL}};
    if (kg_ptx_parse_remark(job))
        return;
    if (kg_ptx_reads(job, ".reg")) {
        kg_ptx_parse_registers(job);
        return;
    }
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (kg_ptx_reads(job, spaces[i].text)) {
            kg_ptx_parse_variables(job, spaces[i].space, false);
            kg_ptx_expect(job, ';', "behind a declaration");
            return;
        }
    kg_ptx_skip_statement(job); // an unknown directive
}

static void parse_statement(struct kg_ptx_job *job)
{
    if (job->token.kind == KG_PTX_WORD)
        parse_word_statement(job);
    else if (job->token.kind == KG_PTX_DIRECTIVE)
        parse_declaration(job);
    else if (kg_ptx_is_mark(job, '@'))
        parse_predicated(job);
    else if (kg_ptx_is_mark(job, ';'))
        kg_ptx_advance(job);
    else if (kg_ptx_is_mark(job, '{')) {
        kg_ptx_open_scope(job);
        kg_ptx_advance(job);
    } else if (kg_ptx_is_mark(job, '}')) {
        kg_ptx_close_scope(job);
        kg_ptx_advance(job);
    } else
        kg_ptx_fail_expected(job, "an instruction");
}

void kg_ptx_parse_body(struct kg_ptx_job *job)
{
    int outside = job->depth - 1; // the function's scope is open and contains its parameters
    kg_ptx_expect(job, '{', "before a body");
    while (job->depth > outside)
        parse_statement(job);
}
