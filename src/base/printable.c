// See printable.h.

#include "base/printable.h"

#include <stdint.h>
#include <string.h>

// Bytes of the UTF-8 character at the beginning of a text, and its number; 0: there is none.
static size_t read_character(const unsigned char *text, size_t length, uint32_t *character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char first = text[0];
    size_t size = first < 0x80             ? 1
                  : (first & 0xE0) == 0xC0 ? 2
                  : (first & 0xF0) == 0xE0 ? 3
                  : (first & 0xF8) == 0xF0 ? 4
                                           : 0;
    if (size == 0 || size > length)
        return 0;
    uint32_t number = size == 1 ? first : first & (0x7Fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xC0) != 0x80)
            return 0;
        number = number << 6 | (text[i] & 0x3Fu);
    }
    *character = number;
    bool is_surrogate = number >= 0xD800 && number <= 0xDFFF;
    return number < least[size] || number > 0x10FFFF || is_surrogate ? 0 : size;
}

static bool is_command(uint32_t character)
{
    bool is_control = character < 0x20 || (character >= 0x7F && character < 0xA0);
    bool is_direction = (character >= 0x202A && character <= 0x202E) ||
                        (character >= 0x2066 && character <= 0x2069);
    return is_control || is_direction;
}

// Bytes to keep at the beginning of a text; 0: the first byte is to be replaced.
static size_t keep(const char *text, size_t length, bool lines)
{
    uint32_t character;
    size_t size = read_character((const unsigned char *)text, length, &character);
    if (lines && size == 1 && (character == '\n' || character == '\t'))
        return 1;
    return size > 0 && !is_command(character) ? size : 0;
}

void kg_printable_text(char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t size = keep(text + i, length - i, true);
        if (size == 0)
            text[i++] = '?';
        i += size;
    }
}

void kg_text_add_printable(struct kg_text *text, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length;) {
        size_t size = keep(name + i, length - i, false);
        kg_text_add_bytes(text, size ? name + i : "?", size ? size : 1);
        i += size ? size : 1;
    }
}

bool kg_printable_is(const char *name)
{
    size_t length = strlen(name), size = 1;
    for (size_t i = 0; i < length && size > 0; i += size)
        size = keep(name + i, length - i, false);
    return size > 0;
}
