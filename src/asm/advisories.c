// Reads the log line by line: a line names the kernel of the following lines, gives its figures, or
// is an advisory that names its function.

#include "asm/advisories.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KERNELS 4096 // of one log; further kernels are ignored

struct line {
    const char *text;
    size_t length;
};

struct log {
    struct kg_arena *arena;
    struct kg_asm_kernel *kernels;
    int count, capacity;
    struct kg_asm_kernel *current;   // being compiled
    struct kg_asm_kernel *described; // the kernel whose properties follow
    bool failed;
};

// Codes of advisories.
static const struct advisory {
    const char *number, *code;
} advisories[] = {
    {"C7508", "setmaxnreg-ignored"}, // registers at the start are not known
    {"C7510", "wgmma-serialised"},   // for one of many reasons
    {"C7517", "wgmma-serialised"},   // a wait is inserted
    {"C7519", "wgmma-serialised"},   // an arrival is inserted
    {"C7520", "wgmma-serialised"},   // an arrival would be inserted where warps may diverge
};

static const char *after(const struct line *line, const char *key)
{
    const char *found = memmem(line->text, line->length, key, strlen(key));
    return found ? found + strlen(key) : NULL;
}

// The number before `key`, or -1.
static int64_t number_before(const struct line *line, const char *key)
{
    const char *end = memmem(line->text, line->length, key, strlen(key)), *begin = end;
    while (begin && begin > line->text && begin[-1] >= '0' && begin[-1] <= '9')
        begin--;
    if (!begin || begin == end || end - begin > 15)
        return -1;
    int64_t value = 0;
    for (; begin < end; begin++)
        value = value * 10 + (*begin - '0');
    return value;
}

static int small(int64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

static struct kg_asm_kernel *find_kernel(struct log *log, const char *name, size_t length)
{
    for (int i = log->count - 1; i >= 0; i--)
        if (strncmp(log->kernels[i].name, name, length) == 0 && !log->kernels[i].name[length])
            return &log->kernels[i];
    return NULL;
}

// Adds an entry to a list that doubles its capacity; entries move only then.
static struct kg_asm_kernel *add_kernel(struct log *log, const char *name, size_t length)
{
    if (log->count == MAX_KERNELS)
        return NULL;
    if (log->count == log->capacity) {
        int capacity = log->capacity ? 2 * log->capacity : 16;
        struct kg_asm_kernel *grown = KG_NEW_ARRAY(log->arena, capacity, struct kg_asm_kernel);
        if (!grown)
            return NULL;
        if (log->count)
            memcpy(grown, log->kernels, (size_t)log->count * sizeof *grown);
        log->kernels = grown;
        log->capacity = capacity;
    }
    struct kg_asm_kernel *kernel = &log->kernels[log->count];
    *kernel = (struct kg_asm_kernel){
        .name = kg_arena_copy(log->arena, name, length),
        .registers = -1,
        .shared_bytes = -1,
        .stack_bytes = -1,
        .spill_store_bytes = -1,
        .spill_load_bytes = -1,
        .barriers = -1,
        .parameter_bytes = -1,
        .min_blocks = -1,
    };
    if (!kernel->name)
        return NULL;
    log->count++;
    return kernel;
}

// The text from `begin` to the next `stop`, or to the end of the line.
static size_t length_to(const struct line *line, const char *begin, char stop)
{
    size_t left = line->length - (size_t)(begin - line->text);
    const char *end = memchr(begin, stop, left);
    return end ? (size_t)(end - begin) : left;
}

static void start_kernel(struct log *log, const struct line *line, const char *name)
{
    log->current = add_kernel(log, name, length_to(line, name, '\''));
    log->described = NULL;
    if (!log->current)
        return;
    const char *arch = after(line, "' for '");
    if (!arch)
        return;
    size_t length = length_to(line, arch, '\'');
    log->current->arch = kg_arena_copy(log->arena, arch, length);
    if (log->current->arch && strncmp(log->current->arch, "sm_", 3) == 0)
        log->current->sm = small(strtol(log->current->arch + 3, NULL, 10));
}

static void read_usage(struct kg_asm_kernel *kernel, const struct line *line)
{
    int64_t barriers = number_before(line, " barriers"),
            shared = number_before(line, " bytes smem");
    int64_t stack = number_before(line, " bytes cumulative stack size");
    kernel->registers = small(number_before(line, " registers"));
    kernel->barriers = barriers < 0 ? 0 : small(barriers);
    kernel->shared_bytes = shared < 0 ? 0 : shared;
    if (stack >= 0)
        kernel->stack_bytes = stack;
}

static const char *code_of(struct kg_arena *arena, const char *number)
{
    for (size_t i = 0; i < sizeof advisories / sizeof advisories[0]; i++)
        if (strcmp(advisories[i].number, number) == 0)
            return advisories[i].code;
    return kg_arena_format(arena, "ptxas-%s", number);
}

static bool has_advice(const struct kg_asm_kernel *kernel, const char *code)
{
    for (int i = 0; i < kernel->advice_count; i++)
        if (strcmp(kernel->advice[i].code, code) == 0)
            return true;
    return false;
}

// "ptxas info : (C7517) ... in function 'name'"; a kernel keeps one advisory of each code.
static void read_advisory(struct log *log, const struct line *line, const char *begin)
{
    size_t digits = length_to(line, begin, ')'), left = line->length;
    if (digits < 2 || digits > 8)
        return;
    const char *number = kg_arena_format(log->arena, "C%.*s", (int)digits, begin);
    const char *name = after(line, "function '");
    struct kg_asm_kernel *kernel =
        name ? find_kernel(log, name, length_to(line, name, '\'')) : log->current;
    if (!kernel && name) // advisories may precede the kernel's own lines
        kernel = add_kernel(log, name, length_to(line, name, '\''));
    const char *code = number ? code_of(log->arena, number) : NULL;
    if (!kernel || !code || has_advice(kernel, code))
        return;
    const char *said = begin + digits + 1;
    left -= (size_t)(said - line->text) > left ? left : (size_t)(said - line->text);
    while (left > 0 && *said == ' ')
        said++, left--;
    const char *text = kg_arena_format(log->arena, "ptxas (%s): %.*s", number,
                                       left > 1000 ? 1000 : (int)left, said);
    if (!text || !kg_asm_add_advice(log->arena, kernel, KG_ADVICE_WARNING, code, text))
        log->failed = true;
}

static void read_line(struct log *log, const struct line *line)
{
    const char *at;
    if ((at = after(line, "Compiling entry function '"))) {
        size_t length = length_to(line, at, '\'');
        struct kg_asm_kernel *known = find_kernel(log, at, length);
        if (known) {
            log->current = known;
            log->described = NULL;
        } else {
            start_kernel(log, line, at);
        }
    } else if ((at = after(line, "Function properties for "))) {
        log->described = find_kernel(log, at, length_to(line, at, ' '));
    } else if (log->described && after(line, " bytes stack frame")) {
        log->described->stack_bytes = number_before(line, " bytes stack frame");
        log->described->spill_store_bytes = number_before(line, " bytes spill stores");
        log->described->spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (log->current && after(line, ": Used ") && after(line, " registers")) {
        read_usage(log->current, line);
    } else if ((at = after(line, "(C"))) {
        read_advisory(log, line, at);
    }
}

enum kg_status kg_asm_log_read(const char *text, size_t length, struct kg_arena *arena,
                               struct kg_asm_file *file, struct kg_error *error)
{
    *file = (struct kg_asm_file){.format = KG_ASM_CUBIN, .version = "compiler log"};
    struct log log = {.arena = arena};
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t size = end ? (size_t)(end - text) : length;
        read_line(&log, &(struct line){text, size});
        size += end != NULL;
        text += size;
        length -= size;
    }
    if (log.failed || arena->failed)
        return kg_error_memory(error, "a compiler's log");
    file->kernels = log.kernels;
    file->kernel_count = log.count;
    return KG_OK;
}
