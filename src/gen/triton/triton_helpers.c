// Helpers of a module: those functions of kernels/triton that its text uses, and those that they
// use. Blocks of a skeleton are separated by two blank lines; the name of each stands behind "def "
// or "class ", or begins a line: a constant below its comment.

#include "gen/triton/triton_module.h"

#include <ctype.h>
#include <string.h>

enum { MOST_BLOCKS = 128 };

struct block {
    const char *text;
    size_t length;
    char name[64];
    bool used;
};

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool occurs(const char *text, size_t length, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = text; (at = memmem(at, length - (size_t)(at - text), name, size)); at++)
        if ((at == text || !is_name(at[-1])) && !is_name(at[size]))
            return true;
    return false;
}

static const char *name_of(const struct block *block)
{
    const char *function = memmem(block->text, block->length, "def ", 4);
    const char *class = memmem(block->text, block->length, "class ", 6);
    if (class && (!function || class < function))
        return class + 6;
    if (function)
        return function + 4;
    const char *constant = block->text;
    while (*constant == '#')
        constant += strcspn(constant, "\n") + 1;
    return constant;
}

static int split(const char *skeleton, struct block *blocks)
{
    int count = 0;
    while (*skeleton && count < MOST_BLOCKS) {
        const char *end = strstr(skeleton, "\n\n\n");
        struct block *block = &blocks[count++];
        *block = (struct block){.text = skeleton};
        block->length = end ? (size_t)(end - skeleton) + 1 : strlen(skeleton);
        const char *name = name_of(block);
        for (size_t i = 0; i + 1 < sizeof block->name && is_name(name[i]); i++)
            block->name[i] = name[i];
        skeleton += block->length + (end ? 2 : 0);
    }
    return count;
}

void kg_triton_helpers(const char *skeleton, const char *uses, struct kg_text *text)
{
    struct block blocks[MOST_BLOCKS];
    int count = split(skeleton, blocks);
    for (int i = 0; i < count; i++)
        blocks[i].used = blocks[i].name[0] && occurs(uses, strlen(uses), blocks[i].name);
    for (bool grows = true; grows;) {
        grows = false;
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count && blocks[i].used; k++)
                if (!blocks[k].used && occurs(blocks[i].text, blocks[i].length, blocks[k].name))
                    grows = blocks[k].used = true;
    }
    for (int i = 0; i < count; i++)
        if (blocks[i].used) {
            kg_text_add(text, "\n\n");
            kg_text_add_bytes(text, blocks[i].text, blocks[i].length);
        }
}
