// See checkpoint.h. Files stay mapped as long as the checkpoint is open; tensors point into them.

#include "weights/checkpoint.h"

#include "base/files.h"
#include "base/text.h"
#include "weights/gguf.h"
#include "weights/quantisation_label.h"
#include "weights/safetensors.h"
#include "weights/stored_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const kg_stored_names[KG_STORED_COUNT] = {
    [KG_STORED_F64] = "F64",   [KG_STORED_F32] = "F32",     [KG_STORED_F16] = "F16",
    [KG_STORED_BF16] = "BF16", [KG_STORED_I64] = "I64",     [KG_STORED_I32] = "I32",
    [KG_STORED_I16] = "I16",   [KG_STORED_I8] = "I8",       [KG_STORED_U8] = "U8",
    [KG_STORED_BOOL] = "BOOL", [KG_STORED_Q4_0] = "Q4_0",   [KG_STORED_Q4_1] = "Q4_1",
    [KG_STORED_Q4_K] = "Q4_K", [KG_STORED_OTHER] = "OTHER",
};

struct kg_checkpoint {
    struct kg_weight_file *files;
    size_t file_count;
    struct kg_stored_list tensors;
    struct kg_quantisation_label label;
};

// ---- One file

static enum kg_status map_open(int descriptor, struct kg_weight_file *file, struct kg_error *error)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return kg_files_fail(error, "read", file->path);
    if (!S_ISREG(info.st_mode))
        return kg_error_set(error, KG_ERROR_IO, "cannot read %s: it is not a regular file",
                            file->path);
    if (info.st_size <= 0)
        return kg_error_set(error, KG_ERROR_CORRUPT, "%s: offset 0: the file is empty", file->path);
    void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes == MAP_FAILED)
        return kg_files_fail(error, "map", file->path);
    file->bytes = bytes;
    file->length = (size_t)info.st_size;
    return KG_OK;
}

static enum kg_status map_file(struct kg_weight_file *file, struct kg_error *error)
{
    int descriptor = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe must not block
    if (descriptor < 0)
        return kg_files_fail(error, "read", file->path);
    enum kg_status status = map_open(descriptor, file, error);
    close(descriptor);
    return status;
}

static enum kg_status add_file(struct kg_checkpoint *checkpoint, const char *path,
                               struct kg_error *error)
{
    struct kg_weight_file *file = &checkpoint->files[checkpoint->file_count];
    file->path = kg_arena_copy(&checkpoint->tensors.arena, path, strlen(path));
    if (!file->path)
        return kg_error_memory(error, "the path of a file");
    enum kg_status status = map_file(file, error);
    if (status)
        return status;
    checkpoint->file_count++;
    if (kg_gguf_is(file->bytes, file->length))
        return kg_gguf_list(file, &checkpoint->tensors, error);
    if (kg_safetensors_is(file->bytes, file->length))
        return kg_safetensors_list(file, &checkpoint->tensors, error);
    return kg_error_set(error, KG_ERROR_CORRUPT,
                        "%s: offset 0: neither a safetensors nor a GGUF file: the first begins "
                        "with the length of its header and '{', the second with \"GGUF\". Files of "
                        "other formats must be converted first",
                        path);
}

static bool make_room(struct kg_checkpoint *checkpoint, size_t files)
{
    checkpoint->files = calloc(files, sizeof *checkpoint->files);
    return checkpoint->files != NULL;
}

// ---- A folder

static int is_safetensors_name(const struct dirent *entry)
{
    static const char end[] = ".safetensors";
    size_t length = strlen(entry->d_name), tail = sizeof end - 1;
    return entry->d_name[0] != '.' && length > tail &&
           strcmp(entry->d_name + length - tail, end) == 0;
}

static int by_file_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum kg_status add_below(struct kg_checkpoint *checkpoint, const char *folder,
                                const char *name, struct kg_error *error)
{
    struct kg_text path = {0};
    kg_text_format(&path, "%s/%s", folder, name);
    enum kg_status status = path.failed ? kg_error_memory(error, "the path of a file")
                                        : add_file(checkpoint, path.data, error);
    kg_text_free(&path);
    return status;
}

static enum kg_status add_folder(struct kg_checkpoint *checkpoint, const char *folder,
                                 struct kg_error *error)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_safetensors_name, by_file_name);
    if (count < 0)
        return kg_files_fail(error, "read", folder);
    enum kg_status status = KG_OK;
    if (count == 0)
        status =
            kg_error_set(error, KG_ERROR_IO,
                         "%s: no *.safetensors is in this folder; of GGUF, name the file", folder);
    else if (!make_room(checkpoint, (size_t)count))
        status = kg_error_memory(error, "a list of files");
    for (int i = 0; i < count; i++) {
        if (!status)
            status = add_below(checkpoint, folder, entries[i]->d_name, error);
        free(entries[i]);
    }
    free(entries);
    return status ? status : kg_quantisation_label_read(folder, &checkpoint->label, error);
}

// ---- The checkpoint

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kg_stored *)a)->name, ((const struct kg_stored *)b)->name);
}

static enum kg_status sort(struct kg_checkpoint *checkpoint, struct kg_error *error)
{
    struct kg_stored *items = checkpoint->tensors.items;
    size_t count = checkpoint->tensors.count;
    if (count > 0)
        qsort(items, count, sizeof *items, by_name);
    for (size_t i = 1; i < count; i++)
        if (strcmp(items[i - 1].name, items[i].name) == 0) {
            struct kg_weight_file file = {.path = items[i].file};
            return kg_weights_refuse(&file, items[i].offset, items[i].name, error,
                                     "another one of this name is in %s at offset %zu",
                                     items[i - 1].file, items[i - 1].offset);
        }
    return KG_OK;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

enum kg_status kg_checkpoint_open(const char *path, struct kg_checkpoint **checkpoint,
                                  struct kg_error *error)
{
    enum kg_status status;
    *checkpoint = NULL;
    struct kg_checkpoint *opened = calloc(1, sizeof *opened);
    if (!opened)
        return kg_error_memory(error, "a checkpoint");
    if (is_folder(path))
        status = add_folder(opened, path, error);
    else if (make_room(opened, 1))
        status = add_file(opened, path, error);
    else
        status = kg_error_memory(error, "a list of files");
    if (!status)
        status = sort(opened, error);
    if (status)
        kg_checkpoint_close(opened);
    else
        *checkpoint = opened;
    return status;
}

void kg_checkpoint_close(struct kg_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    for (size_t i = 0; i < checkpoint->file_count; i++)
        munmap((void *)(uintptr_t)checkpoint->files[i].bytes, checkpoint->files[i].length);
    free(checkpoint->files);
    kg_stored_list_free(&checkpoint->tensors);
    free(checkpoint);
}

int kg_checkpoint_count(const struct kg_checkpoint *checkpoint)
{
    return (int)checkpoint->tensors.count;
}

const struct kg_stored *kg_checkpoint_tensor(const struct kg_checkpoint *checkpoint, int position)
{
    return &checkpoint->tensors.items[position];
}

const struct kg_stored *kg_checkpoint_find(const struct kg_checkpoint *checkpoint, const char *name)
{
    const struct kg_stored wanted = {.name = name};
    const struct kg_stored_list *tensors = &checkpoint->tensors;
    if (tensors->count == 0)
        return NULL;
    return bsearch(&wanted, tensors->items, tensors->count, sizeof wanted, by_name);
}

const struct kg_quantisation_label *kg_checkpoint_label(const struct kg_checkpoint *checkpoint)
{
    return &checkpoint->label;
}
