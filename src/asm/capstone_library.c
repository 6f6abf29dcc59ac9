// Opens Capstone in the version of the header that this was compiled with: other versions have
// another layout of instructions.

#include "asm/capstone_library.h"

#include "base/loader.h"

#include <dlfcn.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define LIBRARY "libcapstone.so." TEXT(CS_API_MAJOR)

// False when the library lacks a function. ISO C has no conversion from void * to a function
// pointer; POSIX guarantees that it works.
static bool find_functions(struct kg_capstone *capstone)
{
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"cs_open", &capstone->open},      {"cs_close", &capstone->close},
        {"cs_option", &capstone->option},  {"cs_malloc", &capstone->allocate},
        {"cs_free", &capstone->release},   {"cs_disasm_iter", &capstone->decode},
        {"cs_insn_name", &capstone->name},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        *(void **)functions[i].place = dlsym(capstone->library, functions[i].name);
        if (!*(void **)functions[i].place)
            return false;
    }
    return true;
}

static enum kg_status start(struct kg_capstone *capstone, struct kg_error *error)
{
    if (!find_functions(capstone) ||
        capstone->open(CS_ARCH_X86, CS_MODE_64, &capstone->handle) != CS_ERR_OK)
        return kg_error_set(error, KG_ERROR_MISSING, "%s cannot decode x86-64", LIBRARY);
    capstone->option(capstone->handle, CS_OPT_DETAIL, CS_OPT_ON);
    capstone->instruction = capstone->allocate(capstone->handle);
    return capstone->instruction ? KG_OK : kg_error_memory(error, "a decoded instruction");
}

enum kg_status kg_capstone_open(struct kg_capstone *capstone, struct kg_error *error)
{
    *capstone = (struct kg_capstone){.library = kg_loader_open(LIBRARY)};
    if (!capstone->library)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "reading the code of host objects needs Capstone (%s; Debian's package "
                            "is libcapstone%d)",
                            LIBRARY, CS_API_MAJOR);
    enum kg_status status = start(capstone, error);
    if (status != KG_OK)
        kg_capstone_close(capstone);
    return status;
}

void kg_capstone_close(struct kg_capstone *capstone)
{
    if (capstone->instruction)
        capstone->release(capstone->instruction, 1);
    if (capstone->handle)
        capstone->close(&capstone->handle);
    if (capstone->library)
        kg_loader_close(capstone->library);
    *capstone = (struct kg_capstone){0};
}
