// libelf knows the layout of headers; this file checks every value that it returns.

#include "asm/elf_file.h"

#include <libelf.h>
#include <string.h>

// A terminated string inside a string table, or NULL.
static const char *string_at(const struct kg_elf_section *table, uint64_t offset)
{
    if (!table->bytes || offset >= table->size)
        return NULL;
    const char *text = (const char *)table->bytes + offset;
    return memchr(text, 0, table->size - offset) ? text : NULL;
}

static enum kg_status read_section(const struct kg_elf *elf, Elf_Scn *scn, size_t index,
                                   struct kg_elf_section *section, struct kg_error *error)
{
    const void *found = elf64_getshdr(scn); // not aligned if the file's table is not
    if (!found)
        return kg_error_set(error, KG_ERROR_CORRUPT, "ELF section %zu has no header: %s", index,
                            elf_errmsg(-1));
    const Elf64_Shdr *header = &section->header;
    memcpy(&section->header, found, sizeof section->header);
    section->name = "";
    if (header->sh_type == SHT_NOBITS || header->sh_type == SHT_NULL || header->sh_size == 0)
        return KG_OK;
    if (header->sh_offset > elf->length || header->sh_size > elf->length - header->sh_offset)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "ELF section %zu claims %llu bytes at offset %llu; the file has %zu",
                            index, (unsigned long long)header->sh_size,
                            (unsigned long long)header->sh_offset, elf->length);
    section->bytes = elf->bytes + header->sh_offset;
    section->size = header->sh_size;
    return KG_OK;
}

static enum kg_status name_sections(struct kg_elf *elf, size_t names, struct kg_error *error)
{
    if (names >= elf->section_count)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "ELF header at offset 0 names section %zu of %zu as its string table",
                            names, elf->section_count);
    for (size_t i = 1; i < elf->section_count; i++) {
        struct kg_elf_section *section = &elf->sections[i];
        section->name = string_at(&elf->sections[names], section->header.sh_name);
        if (!section->name)
            return kg_error_set(error, KG_ERROR_CORRUPT, "ELF section %zu has no name at %u", i,
                                section->header.sh_name);
    }
    return KG_OK;
}

static void find_symbols(struct kg_elf *elf)
{
    for (size_t i = 1; i < elf->section_count && !elf->symbols; i++) {
        const struct kg_elf_section *section = &elf->sections[i];
        if (section->header.sh_type == SHT_SYMTAB && section->header.sh_link < elf->section_count) {
            elf->symbols = section;
            elf->symbol_count = section->size / sizeof(Elf64_Sym);
        }
    }
}

static enum kg_status read_sections(struct kg_elf *elf, Elf *handle, struct kg_arena *arena,
                                    struct kg_error *error)
{
    size_t names;
    if (elf_getshdrnum(handle, &elf->section_count) != 0 || elf_getshdrstrndx(handle, &names) != 0)
        return kg_error_set(error, KG_ERROR_CORRUPT, "ELF section table at offset %llu: %s",
                            (unsigned long long)elf->header.e_shoff, elf_errmsg(-1));
    // libelf ignores a table beyond the end of the file.
    if (elf->section_count == 0 && elf->header.e_shoff >= elf->length)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "ELF section table at offset %llu: the file ends at %zu, cut short",
                            (unsigned long long)elf->header.e_shoff, elf->length);
    if (elf->section_count > elf->length / sizeof(Elf64_Shdr))
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "ELF header at offset 0 claims %zu sections; the file has %zu bytes",
                            elf->section_count, elf->length);
    elf->sections = KG_NEW_ARRAY(arena, elf->section_count + 1, struct kg_elf_section);
    if (!elf->sections)
        return kg_error_memory(error, "a table of ELF sections");
    elf->sections[0].name = ""; // symbols may name it
    for (size_t i = 1; i < elf->section_count; i++) {
        Elf_Scn *scn = elf_getscn(handle, i);
        enum kg_status status = read_section(elf, scn, i, &elf->sections[i], error);
        if (status)
            return status;
    }
    enum kg_status status = elf->section_count ? name_sections(elf, names, error) : KG_OK;
    if (!status)
        find_symbols(elf);
    return status;
}

bool kg_elf_is(const void *bytes, size_t length)
{
    return length >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
}

enum kg_status kg_elf_open(const void *bytes, size_t length, struct kg_arena *arena,
                           struct kg_elf *elf, struct kg_error *error)
{
    *elf = (struct kg_elf){.bytes = bytes, .length = length};
    const uint8_t *ident = bytes;
    if (!kg_elf_is(bytes, length))
        return kg_error_set(error, KG_ERROR_CORRUPT, "offset 0: no ELF header");
    if (length < sizeof(Elf64_Ehdr))
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "ELF header at offset 0: the file ends at %zu, cut short", length);
    if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB)
        return kg_error_set(error, KG_ERROR_CORRUPT,
                            "offset %d: only 64-bit little-endian ELF files are read", EI_CLASS);
    elf_version(EV_CURRENT);
    // libelf only reads files opened this way; its interface lacks const.
    Elf *handle = elf_memory((char *)(uintptr_t)bytes, length);
    const void *header = handle ? elf64_getehdr(handle) : NULL;
    enum kg_status status;
    if (header) {
        memcpy(&elf->header, header, sizeof elf->header);
        status = read_sections(elf, handle, arena, error);
    } else {
        status =
            kg_error_set(error, KG_ERROR_CORRUPT, "ELF header at offset 0: %s", elf_errmsg(-1));
    }
    elf_end(handle);
    if (status)
        *elf = (struct kg_elf){0};
    return status;
}

const struct kg_elf_section *kg_elf_find(const struct kg_elf *elf, const char *name)
{
    for (size_t i = 1; i < elf->section_count; i++)
        if (strcmp(elf->sections[i].name, name) == 0)
            return &elf->sections[i];
    return NULL;
}

Elf64_Sym kg_elf_symbol(const struct kg_elf *elf, size_t index, const char **name)
{
    Elf64_Sym symbol;
    memcpy(&symbol, elf->symbols->bytes + index * sizeof symbol, sizeof symbol);
    *name = string_at(&elf->sections[elf->symbols->header.sh_link], symbol.st_name);
    if (!*name)
        *name = "";
    return symbol;
}

uint64_t kg_elf_offset(const struct kg_elf *elf, const uint8_t *at)
{
    return (uint64_t)(at - elf->bytes);
}
