// The bundles of a folder: files that are called alike belong together.

#include "export/check/bundle_check.h"

#include "base/files.h"
#include "base/printable.h"
#include "export/check/bundle_agree.h"
#include "export/check/bundle_report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILES 4096

struct folder {
    struct kg_arena arena;
    const char *path;
    int file_count;
    const char *files[MOST_FILES];
    int op_count;
    const char *ops[MOST_FILES];
};

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum kg_status list_files(struct folder *folder, struct kg_error *error)
{
    DIR *opened = opendir(folder->path);
    if (!opened)
        return kg_files_fail(error, "read", folder->path);
    bool too_many = false;
    for (struct dirent *entry; !too_many && (entry = readdir(opened));) {
        size_t length = strlen(entry->d_name);
        if (length <= 3 || entry->d_name[0] == '.' ||
            strcmp(entry->d_name + length - 3, ".py") != 0)
            continue;
        too_many = folder->file_count == MOST_FILES;
        if (!too_many)
            folder->files[folder->file_count++] =
                kg_arena_copy(&folder->arena, entry->d_name, length);
    }
    closedir(opened);
    if (too_many)
        return kg_error_set(error, KG_ERROR_IO,
                            "%s has more than %d Python files; check a folder with fewer",
                            folder->path, MOST_FILES);
    if (folder->arena.failed)
        return kg_error_memory(error, "a folder");
    qsort(folder->files, (size_t)folder->file_count, sizeof *folder->files, compare);
    return KG_OK;
}

static bool has_file(const struct folder *folder, const char *name)
{
    return bsearch(&name, folder->files, (size_t)folder->file_count, sizeof *folder->files,
                   compare);
}

// Of all ops, in the order of their names, once.
static void find_ops(struct folder *folder)
{
    for (int i = 0; i < folder->file_count; i++)
        for (int role = 0; role < KG_BUNDLE_COUNT; role++) {
            size_t length = strlen(folder->files[i]), suffix = strlen(kg_bundle_roles[role].suffix);
            if (length <= suffix ||
                strcmp(folder->files[i] + length - suffix, kg_bundle_roles[role].suffix) != 0)
                continue;
            folder->ops[folder->op_count] =
                kg_arena_copy(&folder->arena, folder->files[i], length - suffix);
            folder->op_count += folder->ops[folder->op_count] != NULL;
        }
    qsort(folder->ops, (size_t)folder->op_count, sizeof *folder->ops, compare);
    int kept = 0;
    for (int i = 0; i < folder->op_count; i++)
        if (i == 0 || strcmp(folder->ops[i], folder->ops[kept - 1]) != 0)
            folder->ops[kept++] = folder->ops[i];
    folder->op_count = kept;
}

static bool has_op(const struct folder *folder, const char *name, size_t length)
{
    for (int i = 0; i < folder->op_count; i++)
        if (strlen(folder->ops[i]) == length && memcmp(folder->ops[i], name, length) == 0)
            return true;
    return false;
}

// The op that a file is of by the longest of the names; -1: of none.
static int owner_of(const struct folder *folder, const char *file)
{
    int found = -1;
    for (int i = 0; i < folder->op_count; i++) {
        size_t length = strlen(folder->ops[i]);
        if (strncmp(file, folder->ops[i], length) == 0 && file[length] == '_' &&
            (found < 0 || length > strlen(folder->ops[found])))
            found = i;
    }
    return found;
}

static bool is_of_bundle(const struct folder *folder, const char *file)
{
    for (int role = 0; role < KG_BUNDLE_COUNT; role++) {
        size_t length = strlen(file), suffix = strlen(kg_bundle_roles[role].suffix);
        if (length > suffix && strcmp(file + length - suffix, kg_bundle_roles[role].suffix) == 0 &&
            has_op(folder, file, length - suffix))
            return true;
    }
    return false;
}

// ---- One op

struct output {
    bool is_json;
    struct kg_text *text;
    struct kg_json json;
    int findings;
    unsigned changes; // of the definition: bits of enum kg_difference_kind
};

static void add_file_finding(struct output *output, const char *op, const char *path,
                             const char *message, const char *advice)
{
    output->findings++;
    if (output->is_json) {
        kg_json_begin_object(&output->json, NULL);
        kg_json_text(&output->json, "op", op);
        kg_json_text(&output->json, "file", path);
        kg_json_text(&output->json, "message", message);
        kg_json_text(&output->json, "help", advice);
        kg_json_end_object(&output->json);
        return;
    }
    kg_text_add_printable(output->text, path);
    kg_text_format(output->text, ": %s\n  help: %s\n", message, advice);
}

static void note_changes(struct output *output, const struct kg_bundle_facts *facts)
{
    for (int i = 0; i < facts->finding_count; i++)
        if (facts->findings[i].is_definition)
            output->changes |= 1u << kg_bundle_facts_info[facts->findings[i].fact].change;
}

static void add_changes(struct output *output)
{
    if (output->is_json)
        kg_json_begin_array(&output->json, "definition_changes");
    else if (output->changes)
        kg_text_add(output->text, "the definition has moved on since the bundle was written: its");
    const char *comma = " ";
    for (int c = 0; c < KG_DIFFERENCE_COUNT; c++) {
        if (!(output->changes & 1u << c))
            continue;
        if (output->is_json)
            kg_json_text(&output->json, NULL, kg_difference_names[c]);
        else
            kg_text_format(output->text, "%s%s", comma, kg_difference_names[c]);
        comma = ", ";
    }
    if (output->is_json)
        kg_json_end_array(&output->json);
    else if (output->changes)
        kg_text_add(output->text, " changed; emit the bundle again\n");
}

static enum kg_status check_op(const struct folder *folder, const char *op,
                               const struct kg_bundle_expected *expected, struct output *output,
                               struct kg_error *error)
{
    struct kg_arena arena = {0};
    struct kg_bundle_text texts[KG_BUNDLE_COUNT] = {0};
    struct kg_bundle_facts facts;
    char *bytes[KG_BUNDLE_COUNT] = {0};
    enum kg_status status = KG_OK;
    for (int role = 0; role < KG_BUNDLE_COUNT && status == KG_OK; role++) {
        const char *name = kg_arena_format(&arena, "%s%s", op, kg_bundle_roles[role].suffix);
        const char *path = kg_arena_format(&arena, "%s/%s", folder->path, name ? name : "");
        if (arena.failed) {
            status = kg_error_memory(error, "a path");
        } else if (!has_file(folder, name)) {
            add_file_finding(output, op, path, "this file of the bundle is missing",
                             "emit the bundle again");
        } else {
            texts[role].path = path;
            status =
                kg_files_read(path, KG_BUNDLE_FILE_LIMIT, &bytes[role], &texts[role].length, error);
            texts[role].text = bytes[role];
        }
    }
    if (status == KG_OK)
        status = kg_bundle_check_texts(&arena, op, texts, expected, &facts, error);
    if (status == KG_OK) {
        output->findings += facts.finding_count;
        if (output->is_json)
            kg_bundle_add_json(&facts, &output->json);
        else
            kg_bundle_add_findings(&facts, output->text);
        note_changes(output, &facts);
    }
    for (int role = 0; role < KG_BUNDLE_COUNT; role++)
        free(bytes[role]);
    kg_arena_free(&arena);
    return status;
}

static void find_extra_files(const struct folder *folder, const struct kg_bundle_expected *expected,
                             struct output *output)
{
    for (int i = 0; i < folder->file_count; i++) {
        int owner =
            is_of_bundle(folder, folder->files[i]) ? -1 : owner_of(folder, folder->files[i]);
        if (owner < 0 || (expected && strcmp(folder->ops[owner], expected->op) != 0))
            continue;
        struct kg_text path = {0};
        kg_text_format(&path, "%s/%s", folder->path, folder->files[i]);
        add_file_finding(output, folder->ops[owner], kg_text_string(&path),
                         "this is no file of the bundle, and is called like one",
                         "move it elsewhere: a bundle has one file of each role");
        output->text->failed |= path.failed;
        kg_text_free(&path);
    }
}

static enum kg_status check_ops(const struct folder *folder,
                                const struct kg_bundle_expected *expected, struct output *output,
                                struct kg_error *error)
{
    if (folder->op_count == 0 ||
        (expected && !has_op(folder, expected->op, strlen(expected->op)))) {
        return kg_error_set(error, KG_ERROR_ARGUMENT,
                            "%s has no bundle%s%s: no files such as %s_triton.py", folder->path,
                            expected ? " of " : "", expected ? expected->op : "",
                            expected ? expected->op : "softmax");
    }
    for (int i = 0; i < folder->op_count; i++) {
        if (expected && strcmp(folder->ops[i], expected->op) != 0)
            continue;
        enum kg_status status = check_op(folder, folder->ops[i], expected, output, error);
        if (status != KG_OK)
            return status;
    }
    find_extra_files(folder, expected, output);
    return KG_OK;
}

enum kg_status kg_bundle_check_folder(const char *path, const struct kg_bundle_expected *expected,
                                      bool is_json, int *findings, struct kg_text *text,
                                      struct kg_error *error)
{
    struct folder *folder = calloc(1, sizeof *folder);
    struct output output = {.is_json = is_json, .text = text, .json = {.text = text}};
    *findings = 0;
    if (!folder)
        return kg_error_memory(error, "a folder");
    folder->path = path;
    if (is_json) {
        kg_json_begin_object(&output.json, NULL);
        kg_json_text(&output.json, "folder", path);
        kg_json_begin_array(&output.json, "findings");
    }
    enum kg_status status = list_files(folder, error);
    if (status == KG_OK) {
        find_ops(folder);
        status = check_ops(folder, expected, &output, error);
    }
    if (is_json) {
        kg_json_end_array(&output.json);
        kg_json_begin_array(&output.json, "ops");
        for (int i = 0; i < folder->op_count; i++)
            if (!expected || strcmp(folder->ops[i], expected->op) == 0)
                kg_json_text(&output.json, NULL, folder->ops[i]);
        kg_json_end_array(&output.json);
        add_changes(&output);
        kg_json_boolean(&output.json, "consistent", output.findings == 0);
        kg_json_end_object(&output.json);
        kg_text_add(text, "\n");
    } else if (status == KG_OK && output.findings == 0) {
        for (int i = 0; i < folder->op_count; i++)
            if (!expected || strcmp(folder->ops[i], expected->op) == 0) {
                kg_text_add_printable(text, folder->ops[i]);
                kg_text_format(text, ": the four files agree%s\n",
                               expected ? ", with each other and with the definition" : "");
            }
    } else if (status == KG_OK) {
        add_changes(&output);
        kg_text_format(text, "%d finding%s\n", output.findings, output.findings == 1 ? "" : "s");
    }
    kg_arena_free(&folder->arena);
    free(folder);
    *findings = output.findings;
    if (status == KG_OK && text->failed)
        status = kg_error_memory(error, "the findings");
    if (status != KG_OK)
        kg_text_cut(text, 0);
    return status;
}
