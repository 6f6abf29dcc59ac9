// The key of a server: where it comes from, and what keeps it from being seen.

#include "draft.h"

#include <stdlib.h>
#include <string.h>

#define SHORTEST_SECRET 8

char *draft_take_key(const char *variable)
{
    char *value = getenv(variable);
    if (!value)
        return NULL;
    char *key = *value ? strdup(value) : NULL;
    explicit_bzero(value, strlen(value)); // what /proc/PID/environ shows
    unsetenv(variable);
    return key;
}

void draft_forget_key(char *key)
{
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
}

bool draft_key_is_valid(const char *key)
{
    for (const char *c = key; *c; c++)
        if (*c <= ' ' || *c == 0x7F)
            return false; // a line end would begin another header
    return true;
}

void draft_hide_key(char *text, const char *key)
{
    size_t length = key ? strlen(key) : 0;
    if (length < SHORTEST_SECRET)
        return;
    for (char *found = strstr(text, key); found; found = strstr(found, key))
        memset(found, '*', length);
}
