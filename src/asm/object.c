// Finds functions by their symbols, ends each where the next one begins, and decodes one
// instruction after the other. Instructions that Capstone does not know are skipped, byte by byte
// if not even their length is known, and counted as unknown.

#include "asm/object.h"

#include "asm/elf_file.h"
#include "asm/object_facts.h"

#include <stdlib.h>
#include <string.h>

struct function {
    const struct kg_elf_section *section;
    uint64_t offset; // in the section
    uint64_t end;
    const char *name;
};

struct reader {
    struct kg_elf elf;
    struct kg_capstone capstone;
    const struct kg_x86_core *core;
    struct kg_arena *arena;
    struct kg_arena scratch; // of one file
    struct function *functions;
    int function_count;
    // Lists of relocations by section index: the first of a section, and the next of the same
    // section.
    size_t *first_list, *next_list;
    const struct kg_elf_section *section; // the current one
    uint8_t *relocated;                   // per byte of it: the linker fills it in
    // Of the current function; the array grows.
    struct kg_x86_step *steps;
    int32_t step_count;
    int32_t step_room;
};

static bool is_code(const struct kg_elf_section *section)
{
    return section->bytes && section->header.sh_flags & SHF_EXECINSTR;
}

// Stripped libraries keep the symbols that others link to.
static void choose_symbols(struct kg_elf *elf)
{
    const struct kg_elf_section *dynamic = kg_elf_find(elf, ".dynsym");
    if (!elf->symbols && dynamic && dynamic->header.sh_link < elf->section_count) {
        elf->symbols = dynamic;
        elf->symbol_count = dynamic->size / sizeof(Elf64_Sym);
    }
}

static bool find_function(const struct kg_elf *elf, size_t index, struct function *function)
{
    Elf64_Sym symbol = kg_elf_symbol(elf, index, &function->name);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx >= elf->section_count)
        return false;
    function->section = &elf->sections[symbol.st_shndx];
    function->offset = symbol.st_value;
    if (elf->header.e_type != ET_REL)
        function->offset -= function->section->header.sh_addr;
    if (!is_code(function->section) || function->offset >= function->section->size)
        return false;
    uint64_t room = function->section->size - function->offset;
    bool sized = symbol.st_size > 0 && symbol.st_size <= room;
    function->end = function->offset + (sized ? symbol.st_size : room);
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    if (a->section != b->section)
        return a->section < b->section ? -1 : 1;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return strcmp(a->name, b->name);
}

// Of several names for one address the first is kept; no function extends into the next.
static int separate(struct function *functions, int count)
{
    int kept = 0;
    for (int f = 0; f < count; f++) {
        struct function *last = kept > 0 ? &functions[kept - 1] : NULL;
        if (last && last->section == functions[f].section) {
            if (last->offset == functions[f].offset)
                continue;
            if (last->end > functions[f].offset)
                last->end = functions[f].offset;
        }
        functions[kept++] = functions[f];
    }
    return kept;
}

// Limits the total size: sections of a malicious file could claim the same bytes many times.
static bool is_plausible(const struct reader *reader)
{
    uint64_t total = 0;
    for (int f = 0; f < reader->function_count; f++)
        if (f == 0 || reader->functions[f].section != reader->functions[f - 1].section)
            total += reader->functions[f].section->size;
    return total <= reader->elf.length;
}

static bool sort_lists(struct reader *reader)
{
    size_t count = reader->elf.section_count;
    reader->first_list = KG_NEW_ARRAY(&reader->scratch, count, size_t);
    reader->next_list = KG_NEW_ARRAY(&reader->scratch, count, size_t);
    if (!reader->first_list || !reader->next_list)
        return false;
    for (size_t s = 1; s < count && reader->elf.header.e_type == ET_REL; s++) {
        const Elf64_Shdr *header = &reader->elf.sections[s].header;
        if (header->sh_type != SHT_RELA || header->sh_info >= count)
            continue;
        reader->next_list[s] = reader->first_list[header->sh_info];
        reader->first_list[header->sh_info] = s;
    }
    return true;
}

static enum kg_status list_functions(struct reader *reader, struct kg_error *error)
{
    choose_symbols(&reader->elf);
    size_t symbols = reader->elf.symbols ? reader->elf.symbol_count : 0;
    if (symbols > INT32_MAX)
        return kg_error_set(error, KG_ERROR_CORRUPT, "an object of %zu symbols", symbols);
    reader->functions = KG_NEW_ARRAY(&reader->scratch, symbols, struct function);
    if (!reader->functions)
        return kg_error_memory(error, "the functions of an object");
    int count = 0;
    for (size_t s = 0; s < symbols; s++)
        count += find_function(&reader->elf, s, &reader->functions[count]);
    qsort(reader->functions, (size_t)count, sizeof *reader->functions, compare);
    reader->function_count = separate(reader->functions, count);
    if (!is_plausible(reader))
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "the code sections of an object overlap: together they are longer than "
                            "the file of %zu bytes",
                            reader->elf.length);
    return sort_lists(reader) ? KG_OK : kg_error_memory(error, "the relocations of an object");
}

// Marks the first byte of everything that the linker fills in.
static bool enter_section(struct reader *reader, const struct kg_elf_section *section)
{
    if (reader->section == section)
        return true;
    free(reader->relocated);
    reader->section = section;
    reader->relocated = calloc(section->size, 1);
    if (!reader->relocated)
        return false;
    size_t s = reader->first_list[section - reader->elf.sections];
    for (; s; s = reader->next_list[s]) {
        const struct kg_elf_section *list = &reader->elf.sections[s];
        for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= list->size; at += sizeof(Elf64_Rela)) {
            uint64_t offset = kg_elf_u64(list->bytes + at);
            if (offset < section->size)
                reader->relocated[offset] = 1;
        }
    }
    return true;
}

static bool make_room(struct reader *reader)
{
    if (reader->step_count < reader->step_room)
        return true;
    int32_t room = reader->step_room ? reader->step_room * 2 : 1024;
    if (reader->step_room > INT32_MAX / 4)
        return false;
    struct kg_x86_step *steps = realloc(reader->steps, (size_t)room * sizeof *steps);
    if (!steps)
        return false;
    reader->steps = steps;
    reader->step_room = room;
    return true;
}

// Capstone 4 knows the multiply-adds of AVX-512 except form 132. Such an instruction is decoded as
// form 213, which reads, writes and computes as much.
static bool decode_neighbour(struct kg_capstone *capstone, const uint8_t **code, size_t *left,
                             uint64_t *address)
{
    enum { PREFIX, MAP, OPCODE = 4, MAX = 15 };
    uint8_t bytes[MAX] = {0};
    if (*left <= OPCODE || (*code)[PREFIX] != 0x62 || ((*code)[MAP] & 3) != 2 ||
        (*code)[OPCODE] < 0x96 || (*code)[OPCODE] > 0x9f)
        return false;
    size_t size = *left < MAX ? *left : MAX;
    memcpy(bytes, *code, size);
    bytes[OPCODE] = (uint8_t)(bytes[OPCODE] + 0x10);
    const uint8_t *at = bytes;
    if (!capstone->decode(capstone->handle, &at, &size, address, capstone->instruction))
        return false;
    *code += at - bytes;
    *left -= (size_t)(at - bytes);
    return true;
}

// Number of bytes after the opcode that encode the memory operand, including ModR/M.
static size_t operand_size(const uint8_t *code, size_t left)
{
    unsigned mode = code[0] >> 6, base = code[0] & 7;
    size_t size = 1, distance = mode == 1 ? 1 : mode == 2 ? 4 : 0;
    if (mode != 3 && base == 4 && left > 1) {
        base = code[1] & 7;
        size = 2;
    }
    return size + (mode == 0 && base == 5 ? 4 : distance);
}

// The length of instructions that Capstone does not know (those of AMX tiles), for opcode maps
// whose instructions all have the same structure; 0 for others.
static size_t size_of_unknown(const uint8_t *code, size_t left)
{
    enum { VEX = 0xc4, EVEX = 0x62, MAP_38 = 2, MAP_3A = 3 };
    size_t prefix = code[0] == VEX ? 3 : code[0] == EVEX ? 4 : 0;
    if (prefix == 0 || left < prefix + 2)
        return 0;
    unsigned map = code[1] & (code[0] == VEX ? 31 : 7);
    if (map != MAP_38 && map != MAP_3A)
        return 0;
    size_t size = prefix + 1 + operand_size(code + prefix + 1, left - prefix - 1) + (map == MAP_3A);
    return size <= left ? size : 0;
}

static bool decode(struct reader *reader, const struct function *function)
{
    struct kg_capstone *capstone = &reader->capstone;
    const uint8_t *code = function->section->bytes + function->offset;
    size_t left = function->end - function->offset;
    uint64_t address = function->offset;
    reader->step_count = 0;
    while (left > 0) {
        if (!make_room(reader))
            return false;
        struct kg_x86_step *step = &reader->steps[reader->step_count++];
        uint64_t start = address;
        if (!capstone->decode(capstone->handle, &code, &left, &address, capstone->instruction) &&
            !decode_neighbour(capstone, &code, &left, &address)) {
            size_t size = size_of_unknown(code, left);
            size = size > 0 ? size : 1;
            *step = (struct kg_x86_step){
                .offset = start, .size = (uint8_t)size, .work = KG_WORK_UNKNOWN};
            code += size, address += size, left -= size;
            continue;
        }
        bool relocated = memchr(reader->relocated + start, 1, address - start) != NULL;
        kg_x86_describe(capstone, relocated, step);
    }
    return true;
}

static enum kg_status read_functions(struct reader *reader, struct kg_asm_file *file,
                                     struct kg_error *error)
{
    file->kernels = KG_NEW_ARRAY(reader->arena, reader->function_count, struct kg_asm_kernel);
    if (!file->kernels)
        return kg_error_memory(error, "the functions of an object");
    for (int f = 0; f < reader->function_count; f++) {
        const struct function *function = &reader->functions[f];
        struct kg_asm_kernel *kernel = &file->kernels[f];
        if (!enter_section(reader, function->section) || !decode(reader, function))
            return kg_error_memory(error, "the instructions of a function");
        kernel->name = kg_arena_copy(reader->arena, function->name, strlen(function->name));
        if (!kernel->name || !kg_object_facts(&reader->capstone, reader->core, reader->steps,
                                              reader->step_count, reader->arena, kernel))
            return kg_error_memory(error, "the facts of a function");
    }
    file->kernel_count = reader->function_count;
    return KG_OK;
}

static enum kg_status read_object(struct reader *reader, const void *bytes, size_t length,
                                  struct kg_asm_file *file, struct kg_error *error)
{
    enum kg_status status = kg_elf_open(bytes, length, &reader->scratch, &reader->elf, error);
    if (status != KG_OK)
        return status;
    if (reader->elf.header.e_machine != EM_X86_64)
        return kg_error_set(
            error, KG_ERROR_UNSUPPORTED,
            "offset 18: an ELF file for machine %d; host objects are read for x86-64 (%d)",
            reader->elf.header.e_machine, EM_X86_64);
    status = kg_capstone_open(&reader->capstone, error);
    if (status == KG_OK)
        status = list_functions(reader, error);
    if (status == KG_OK)
        status = read_functions(reader, file, error);
    return status;
}

enum kg_status kg_object_read(const void *bytes, size_t length, const struct kg_x86_core *core,
                              struct kg_arena *arena, struct kg_asm_file *file,
                              struct kg_error *error)
{
    *file = (struct kg_asm_file){.format = KG_ASM_OBJECT, .version = "ELF x86-64"};
    struct reader reader = {.core = core ? core : kg_x86_cores, .arena = arena};
    enum kg_status status = read_object(&reader, bytes, length, file, error);
    if (status != KG_OK)
        *file = (struct kg_asm_file){0};
    free(reader.steps);
    free(reader.relocated);
    kg_capstone_close(&reader.capstone);
    kg_arena_free(&reader.scratch);
    return status;
}
