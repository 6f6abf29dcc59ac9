// A definition may call a tensor whatever a family calls its variables: kg_emit_name keeps the
// words of generated code from users. So every word that families write for the shipped
// definitions, on the host and for CUDA, has to be one that it keeps.

#include "base/files.h"
#include "gen/choice.h"
#include "gen/grouping.h"
#include "gen/shared/emit.h"
#include "hopper_unit.h"
#include "lang/lang.h"
#include "test.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>

enum { MAX_UNKNOWN = 64, MAX_WORD = 64 };

static const struct kg_device_facts gpu = {.isa = "sm_90a",
                                           .units = 132,
                                           .bandwidth = 4e12,
                                           .shared_bytes = 232448,
                                           .vector_bytes = 16,
                                           .unit = HOPPER_UNIT};
static const struct kg_device_facts host = {
    .isa = "x86-64", .units = 2, .vector_bytes = 64, .cache = {0, 32768, 1 << 20, 32 << 20}};
static struct kg_error error;
static char unknown[MAX_UNKNOWN][MAX_WORD];
static int unknown_count, words_read;

// The name itself, kept from the families' by an underscore, or one of its strides: x, x_, x_s0.
static bool is_from(const char *word, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(word, name, length) != 0)
        return false;
    word += length;
    word += *word == '_';
    return !*word || (*word == 's' && isdigit((unsigned char)word[1]));
}

static bool is_users(const struct kg_problem *problem, const char *word)
{
    bool users = strncmp(word, "kernel", 6) == 0; // the entry
    for (int i = 0; i < problem->tensor_count; i++)
        users |= is_from(word, problem->tensors[i]->name);
    for (int i = 0; i < problem->op->size_count; i++)
        users |= is_from(word, problem->op->sizes[i]->name);
    return users;
}

static bool is_kept(const char *word)
{
    struct kg_text text = {0};
    kg_emit_name(&text, word);
    bool kept = strcmp(kg_text_string(&text), word) != 0;
    kg_text_free(&text);
    return kept;
}

static void check_word(const struct kg_problem *problem, const char *word)
{
    words_read++;
    if (is_kept(word) || is_users(problem, word))
        return;
    for (int i = 0; i < unknown_count; i++)
        if (strcmp(unknown[i], word) == 0)
            return;
    CHECK(!"a word of generated code that kg_emit_name does not keep");
    fprintf(stderr, "  %s, in what is written for %s\n", word, problem->op->name);
    if (unknown_count < MAX_UNKNOWN)
        snprintf(unknown[unknown_count++], MAX_WORD, "%s", word);
}

// The end of a comment, a string or a line for the preprocessor that begins here; else `at`.
static const char *skip(const char *at)
{
    const char *end = at;
    if (strncmp(at, "//", 2) == 0 || *at == '#')
        end = at + strcspn(at, "\n");
    else if (*at == '"')
        end = at + 1 + strcspn(at + 1, "\"") + 1;
    return end;
}

// All words but members: those after a point, an arrow or two colons.
static void check_words(const struct kg_problem *problem, const char *at)
{
    bool member = false;
    while (*at) {
        const char *end = skip(at);
        size_t length =
            strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz0123456789");
        char word[MAX_WORD];
        if (end != at) {
            at = end;
        } else if (isdigit((unsigned char)*at)) {
            at += strspn(at, "0123456789abcdefxABCDEFpulULN."); // a number
        } else if (length > 0) {
            snprintf(word, sizeof word, "%.*s", (int)length, at);
            if (!member)
                check_word(problem, word);
            at += length;
        } else {
            member = *at == '.' || strncmp(at, "->", 2) == 0 || strncmp(at, "::", 2) == 0;
            at += member && *at != '.' ? 2 : 1;
            continue;
        }
        member = false;
    }
}

static void check_target(const struct kg_problem *problem, const struct kg_device_facts *facts,
                         const struct kg_target *target)
{
    struct kg_choice choice;
    kg_choice_guess(problem, facts, target, &choice);
    CHECK(choice.count > 0);
    for (int i = 0; i < choice.count; i++) {
        struct kg_text source = {0};
        // Products bind tensors in functions of their own, between skeletons.
        if (strncmp(choice.matches[i]->family->name, "contract", 8) == 0)
            continue;
        CHECK(kg_choice_source(&choice, i, "kernel", &source));
        const char *begin = strstr(kg_text_string(&source), "kernel_"); // after all skeletons
        CHECK(begin != NULL);
        if (begin)
            check_words(problem, begin);
        kg_text_free(&source);
    }
}

static void check_row(const struct kg_op *instance, const struct kg_shapes *shapes, int row)
{
    struct kg_problem *problem = NULL;
    int64_t sizes[KG_MAX_SIZES];
    for (int i = 0; i < instance->size_count; i++)
        sizes[i] = 16;
    for (int i = 0; i < shapes->size_count; i++)
        sizes[shapes->sizes[i]->id] = shapes->rows[row * shapes->size_count + i];
    CHECK_STATUS(kg_problem_make(instance, sizes, NULL, &problem, &error), KG_OK, &error);
    check_target(problem, &host, &kg_target_host);
    check_target(problem, &gpu, &kg_target_cuda);
    kg_problem_free(problem);
}

static void check_file(const char *path)
{
    char *text = NULL;
    size_t length = 0;
    struct kg_arena arena = {0};
    struct kg_file *file = NULL;
    CHECK_STATUS(kg_files_read(path, 1 << 20, &text, &length, &error), KG_OK, &error);
    CHECK_STATUS(kg_lang_parse(&arena, path, text, length, &file, &error), KG_OK, &error);
    for (int i = 0; file && i < file->op_count; i++) {
        const struct kg_op *op = file->ops[i];
        struct kg_bindings bindings;
        struct kg_op *instance;
        kg_lang_default_bindings(op, &bindings);
        CHECK_STATUS(kg_lang_instantiate(&arena, op, &bindings, &instance, &error), KG_OK, &error);
        for (int row = 0; row < op->goal.tune.row_count; row++)
            check_row(instance, &op->goal.tune, row);
        if (op->goal.verify.row_count > 0)
            check_row(instance, &op->goal.verify, 0);
    }
    kg_arena_free(&arena);
    free(text);
}

static void shipped_definitions(void)
{
    DIR *folder = opendir(KG_SOURCE_DIR "/ops");
    CHECK(folder != NULL);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name);
        char path[4096];
        if (length < 4 || strcmp(entry->d_name + length - 3, ".kg") != 0)
            continue;
        snprintf(path, sizeof path, "%s/ops/%s", KG_SOURCE_DIR, entry->d_name);
        check_file(path);
    }
    closedir(folder);
    CHECK(words_read > 10000);
}

TEST_MAIN(shipped_definitions)
