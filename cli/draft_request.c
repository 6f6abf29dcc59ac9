// What a language model is asked: the prompt (prompts/draft.txt), the user's words, and after each
// draft that the checker refuses the draft and the diagnostics.

#include "draft.h"
#include "scripts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/chat/completions"

struct draft_talk {
    json_t *messages;
};

static bool add(struct draft_talk *talk, const char *role, const char *text)
{
    json_t *message = json_pack("{s:s, s:s}", "role", role, "content", text);
    return message && json_array_append_new(talk->messages, message) == 0;
}

static const char *find_prompt(const char *name)
{
    for (const struct cli_script *prompt = cli_prompts; prompt->name; prompt++)
        if (strcmp(prompt->name, name) == 0)
            return prompt->text;
    return "";
}

struct draft_talk *draft_talk_begin(const char *text)
{
    struct draft_talk *talk = calloc(1, sizeof *talk);
    if (talk)
        talk->messages = json_array();
    if (talk && talk->messages && add(talk, "system", find_prompt("draft.txt")) &&
        add(talk, "user", text))
        return talk;
    draft_talk_end(talk);
    return NULL;
}

bool draft_talk_correct(struct draft_talk *talk, const char *draft, const char *diagnostics)
{
    char *text;
    if (asprintf(&text,
                 "The checker refuses this:\n\n%s\n\nCorrect it. Answer with the whole definition, "
                 "in one fenced block, and nothing else.",
                 diagnostics) < 0)
        return false;
    bool added = add(talk, "assistant", draft) && add(talk, "user", text);
    free(text);
    return added;
}

char *draft_talk_body(const struct draft_talk *talk, const char *model)
{
    json_t *body = json_pack("{s:b, s:O}", "stream", 0, "messages", talk->messages);
    if (body && model && json_object_set_new(body, "model", json_string(model)) != 0) {
        json_decref(body);
        body = NULL;
    }
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

void draft_talk_end(struct draft_talk *talk)
{
    if (talk)
        json_decref(talk->messages);
    free(talk);
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t part = strlen(end);
    return length >= part && memcmp(text + length - part, end, part) == 0;
}

// "/v1", "/api/v3".
static bool ends_with_version(const char *text, size_t length)
{
    size_t digits = 0;
    while (digits < length && text[length - 1 - digits] >= '0' && text[length - 1 - digits] <= '9')
        digits++;
    return digits > 0 && ends_with(text, length - digits, "/v");
}

bool draft_make_url(const char *base, char **url, char **shown, char why[DRAFT_WHY])
{
    bool has_scheme = strstr(base, "://");
    *url = *shown = NULL;
    if (strchr(base, '@')) {
        snprintf(why, DRAFT_WHY,
                 "the URL has a user name (\"@\"); a key has a variable of its own");
        return false;
    }
    if (has_scheme && strncmp(base, "http://", 7) != 0 && strncmp(base, "https://", 8) != 0) {
        snprintf(why, DRAFT_WHY, "the URL does not begin with http:// or https://");
        return false;
    }
    size_t length = strcspn(base, "?#");
    const char *query = base[length] == '?' ? base + length : "";
    while (length > 0 && base[length - 1] == '/')
        length--;
    const char *version = ends_with_version(base, length) ? "" : "/v1";
    bool is_whole = ends_with(base, length, PATH);
    if (asprintf(shown, "%s%.*s%s%s", has_scheme ? "" : "http://", (int)length, base,
                 is_whole ? "" : version, is_whole ? "" : PATH) < 0)
        *shown = NULL;
    else if (asprintf(url, "%s%s", *shown, query) < 0)
        *url = NULL;
    if (*url)
        return true;
    free(*shown);
    *shown = NULL;
    snprintf(why, DRAFT_WHY, "out of memory");
    return false;
}
