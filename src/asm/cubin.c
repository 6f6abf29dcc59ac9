// Sections name their kernel by the index of its code section; symbols tell which code sections are
// kernels. One pass over each combines them, and then every kernel is read separately.

#include "asm/cubin.h"

#include "asm/advisories.h"
#include "asm/cubin_attributes.h"

#include <string.h>

#define MACHINE_CUDA 190
#define KERNEL_SYMBOL 0x10 // in st_other
#define ABI_OF_FLAGS_2 8   // from this ABI version on, the architecture is in bits 8-15 of e_flags
#define FIRST_SM 75
#define LAST_SM 121
#define RESERVED_SHARED 1024 // of each block, by the system, since sm_90

enum { REGISTERS = 0x2f, FRAME_BYTES = 0x11 };

// Everything that belongs to one code section, by section index.
struct unit {
    const char *name; // of the kernel; NULL: not a kernel
    const struct kg_elf_section *info, *shared;
    int registers; // -1: unknown
    int64_t frame_bytes;
};

struct cubin {
    struct kg_elf elf;
    struct unit *units;
    const char *arch, *tools;
    int sm;
    int kernel_count;
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

// The terminated text after `key` in a note, up to a space; NULL when there is none.
static const char *find_text(const struct kg_elf_section *note, const char *key, const char *stop,
                             struct kg_arena *arena)
{
    size_t length = strlen(key);
    const char *begin = note->size > length ? memmem(note->bytes, note->size, key, length) : NULL;
    if (!begin)
        return NULL;
    begin += length;
    const char *end = begin, *limit = (const char *)note->bytes + note->size;
    while (end < limit && *end >= ' ' && *end <= '~' && !strchr(stop, *end))
        end++;
    return kg_arena_copy(arena, begin, (size_t)(end - begin));
}

// sm_90 and sm_90a differ only in the command line that ptxas stores in a note.
static void read_arch(struct cubin *cubin, struct kg_arena *arena)
{
    const Elf64_Ehdr *header = &cubin->elf.header;
    unsigned shift = header->e_ident[EI_ABIVERSION] >= ABI_OF_FLAGS_2 ? 8 : 0;
    cubin->sm = (int)(header->e_flags >> shift & 0xff);
    cubin->arch = kg_arena_format(arena, "sm_%d", cubin->sm);
    const struct kg_elf_section *note = kg_elf_find(&cubin->elf, ".note.nv.tkinfo");
    if (!note || !note->bytes || !cubin->arch)
        return;
    const char *named = find_text(note, "-arch ", " ", arena);
    size_t length = strlen(cubin->arch);
    if (named && strncmp(named, cubin->arch, length) == 0 && strlen(named) <= length + 1)
        cubin->arch = named;
    cubin->tools = find_text(note, "release ", "", arena);
}

static enum kg_status check_sizes(const struct kg_elf *elf, struct kg_error *error)
{
    uint64_t total = 0;
    for (size_t i = 1; i < elf->section_count; i++) {
        const struct kg_elf_section *section = &elf->sections[i];
        if (!section->bytes)
            continue;
        total += section->size;
        if (total > 2 * (uint64_t)elf->length)
            return kg_error_set(error, KG_ERROR_CORRUPT, "offset %llu: sections overlap",
                                (unsigned long long)section->header.sh_offset);
        if (starts_with(section->name, ".text.") &&
            (section->size % KG_SASS_SIZE != 0 || section->size / KG_SASS_SIZE > INT32_MAX))
            return kg_error_set(error, KG_ERROR_CORRUPT,
                                "offset %llu: %llu bytes of code are no instructions of %d bytes",
                                (unsigned long long)section->header.sh_offset,
                                (unsigned long long)section->size, KG_SASS_SIZE);
    }
    return KG_OK;
}

static void link_sections(struct cubin *cubin)
{
    const struct kg_elf *elf = &cubin->elf;
    for (size_t i = 1; i < elf->section_count; i++) {
        const struct kg_elf_section *section = &elf->sections[i];
        cubin->units[i].registers = -1;
        cubin->units[i].frame_bytes = -1;
        if (section->header.sh_info >= elf->section_count)
            continue;
        struct unit *unit = &cubin->units[section->header.sh_info];
        if (starts_with(section->name, ".nv.info.") && section->bytes)
            unit->info = section;
        else if (starts_with(section->name, ".nv.shared."))
            unit->shared = section;
    }
    for (size_t i = 0; i < elf->symbol_count; i++) {
        const char *name;
        Elf64_Sym symbol = kg_elf_symbol(elf, i, &name);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & KERNEL_SYMBOL) ||
            symbol.st_shndx >= elf->section_count || cubin->units[symbol.st_shndx].name)
            continue;
        const struct kg_elf_section *code = &elf->sections[symbol.st_shndx];
        if (!starts_with(code->name, ".text.") || !code->bytes)
            continue;
        cubin->units[symbol.st_shndx].name = name;
        cubin->kernel_count++;
    }
}

// Figures of all functions, by symbol.
static enum kg_status read_globals(struct cubin *cubin, struct kg_error *error)
{
    const struct kg_elf *elf = &cubin->elf;
    const struct kg_elf_section *info = kg_elf_find(elf, ".nv.info");
    if (!info || !info->bytes)
        return KG_OK;
    struct kg_cubin_attribute attribute;
    enum kg_status status;
    uint64_t offset = 0;
    while (kg_cubin_next(elf, info, &offset, &attribute, &status, error)) {
        if (attribute.size < 8 || kg_elf_u32(attribute.bytes) >= elf->symbol_count)
            continue;
        const char *name;
        Elf64_Sym symbol = kg_elf_symbol(elf, kg_elf_u32(attribute.bytes), &name);
        if (symbol.st_shndx >= elf->section_count || !(symbol.st_other & KERNEL_SYMBOL))
            continue;
        struct unit *unit = &cubin->units[symbol.st_shndx];
        uint32_t value = kg_elf_u32(attribute.bytes + 4);
        if (attribute.code == REGISTERS)
            unit->registers = (int)(value & 0xff);
        else if (attribute.code == FRAME_BYTES)
            unit->frame_bytes = value;
    }
    return status;
}

static int64_t shared_bytes(const struct cubin *cubin, const struct unit *unit)
{
    uint64_t size = unit->shared ? unit->shared->header.sh_size : 0;
    uint64_t reserved = cubin->sm >= 90 ? RESERVED_SHARED : 0;
    return size > reserved ? (int64_t)((size - reserved) & INT64_MAX) : 0;
}

static enum kg_status read_kernel(const struct cubin *cubin, size_t index, struct kg_arena *scratch,
                                  struct kg_arena *arena, struct kg_asm_kernel *kernel,
                                  struct kg_error *error)
{
    const struct unit *unit = &cubin->units[index];
    const struct kg_elf_section *section = &cubin->elf.sections[index];
    struct kg_sass_code code = {
        .bytes = section->bytes, .count = (int32_t)(section->size / KG_SASS_SIZE), .sm = cubin->sm};
    *kernel = (struct kg_asm_kernel){
        .name = kg_arena_copy(arena, unit->name, strlen(unit->name)),
        .arch = cubin->arch,
        .sm = cubin->sm,
        .registers = unit->registers,
        .stack_bytes = unit->frame_bytes,
        .shared_bytes = shared_bytes(cubin, unit),
        .parameter_bytes = unit->info ? 0 : -1,
        .min_blocks = -1,
    };
    struct kg_cubin_notes notes = {0};
    if (unit->info) {
        enum kg_status status =
            kg_cubin_notes(&cubin->elf, unit->info, code.count, scratch, kernel, &notes, error);
        if (status)
            return status;
    }
    if (!kernel->name ||
        !kg_sass_read(&code, notes.tables, notes.table_count, notes.spills, notes.spill_count,
                      arena, kernel) ||
        !kg_asm_advise(arena, kernel))
        return kg_error_memory(error, "the facts of a kernel");
    return KG_OK;
}

static enum kg_status read_kernels(const struct cubin *cubin, struct kg_arena *arena,
                                   struct kg_asm_file *file, struct kg_error *error)
{
    file->kernels = KG_NEW_ARRAY(arena, cubin->kernel_count, struct kg_asm_kernel);
    if (!file->kernels)
        return kg_error_memory(error, "a list of kernels");
    enum kg_status status = KG_OK;
    for (size_t i = 1; i < cubin->elf.section_count && !status; i++) {
        if (!cubin->units[i].name)
            continue;
        struct kg_arena scratch = {0};
        status =
            read_kernel(cubin, i, &scratch, arena, &file->kernels[file->kernel_count++], error);
        kg_arena_free(&scratch);
    }
    return status;
}

static enum kg_status read_cubin(struct cubin *cubin, struct kg_arena *scratch,
                                 struct kg_arena *arena, struct kg_asm_file *file,
                                 struct kg_error *error)
{
    read_arch(cubin, arena);
    if (!cubin->arch)
        return kg_error_memory(error, "the name of an architecture");
    if (cubin->sm < FIRST_SM || cubin->sm > LAST_SM)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "offset 48: the cubin is for %s; sm_%d to sm_%d are read", cubin->arch,
                            FIRST_SM, LAST_SM);
    enum kg_status status = check_sizes(&cubin->elf, error);
    if (status)
        return status;
    cubin->units = KG_NEW_ARRAY(scratch, cubin->elf.section_count + 1, struct unit);
    file->version =
        kg_arena_format(arena, "cubin ABI %d%s%s", cubin->elf.header.e_ident[EI_ABIVERSION],
                        cubin->tools ? ", CUDA " : "", cubin->tools ? cubin->tools : "");
    if (!cubin->units || !file->version)
        return kg_error_memory(error, "the sections of a cubin");
    link_sections(cubin);
    status = read_globals(cubin, error);
    return status ? status : read_kernels(cubin, arena, file, error);
}

bool kg_cubin_is(const void *bytes, size_t length)
{
    return kg_elf_is(bytes, length) && length >= sizeof(Elf64_Ehdr) &&
           kg_elf_u16((const uint8_t *)bytes + offsetof(Elf64_Ehdr, e_machine)) == MACHINE_CUDA;
}

enum kg_status kg_cubin_read(const void *bytes, size_t length, struct kg_arena *arena,
                             struct kg_asm_file *file, struct kg_error *error)
{
    static const uint8_t fatbinary[] = {0x50, 0xed, 0x55, 0xba};
    *file = (struct kg_asm_file){.format = KG_ASM_CUBIN};
    if (length >= sizeof fatbinary && memcmp(bytes, fatbinary, sizeof fatbinary) == 0)
        return kg_error_set(error, KG_ERROR_UNSUPPORTED,
                            "offset 0: a fatbinary, which holds cubins; take them out first "
                            "(cuobjdump -xelf all)");
    struct kg_arena scratch = {0};
    struct cubin cubin = {0};
    enum kg_status status = kg_elf_open(bytes, length, &scratch, &cubin.elf, error);
    if (!status && cubin.elf.header.e_machine != MACHINE_CUDA)
        status = kg_error_set(error, KG_ERROR_CORRUPT,
                              "offset 18: an ELF file for machine %u, not for CUDA (%d)%s",
                              cubin.elf.header.e_machine, MACHINE_CUDA,
                              kg_elf_find(&cubin.elf, ".nv_fatbin")
                                  ? "; cubins are embedded in it (cuobjdump -xelf all)"
                                  : "");
    if (!status)
        status = read_cubin(&cubin, &scratch, arena, file, error);
    kg_arena_free(&scratch);
    if (status)
        *file = (struct kg_asm_file){0};
    return status;
}
