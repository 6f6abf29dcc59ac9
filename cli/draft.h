// Drafts of definitions by a language model: what is asked, and how the answer is read. No bytes of
// a server reach a terminal, a file or the library before they passed draft_read_answer.

#ifndef KERNELGEN_CLI_DRAFT_H
#define KERNELGEN_CLI_DRAFT_H

#include <stdbool.h>
#include <stddef.h>

#define DRAFT_WHY 512

// draft_request.c: a conversation, as the body of a request.
struct draft_talk;
// NULL: no memory, or `text` is not UTF-8.
struct draft_talk *draft_talk_begin(const char *text);
// The model's draft, and what is wrong with it.
bool draft_talk_correct(struct draft_talk *talk, const char *draft, const char *diagnostics);
// JSON. `model` may be NULL. The caller frees it; NULL: no memory.
char *draft_talk_body(const struct draft_talk *talk, const char *model);
void draft_talk_end(struct draft_talk *talk);

// draft_request.c: the URL to post to, of a base URL ("http://localhost:8080", with or without
// /v1), and what may be shown of it. The caller frees both. False: `why` says what is wrong; it
// does not hold the URL, which may have a secret.
bool draft_make_url(const char *base, char **url, char **shown, char why[DRAFT_WHY]);

// draft_answer.c: the text of a chat completion, without characters that a terminal would obey. The
// caller frees it. NULL: `why` says what is wrong.
char *draft_read_answer(const char *bytes, size_t length, char why[DRAFT_WHY]);
// The definition in it, without fences and chatter, ends with a line end. The caller frees it.
// NULL: there is none.
char *draft_find_definition(const char *text);
// What a server says of its failure, in one line; "" if nothing.
void draft_read_failure(const char *bytes, size_t length, char message[DRAFT_WHY]);

// draft_key.c: the value of an environment variable, which is erased from the environment: neither
// children nor /proc show it. The caller passes it to draft_forget_key. NULL: it is not set.
char *draft_take_key(const char *variable);
void draft_forget_key(char *key);
// Whether it can be sent in a header.
bool draft_key_is_valid(const char *key);
// Overwrites the key in a text by asterisks: servers repeat keys in their messages. Of fewer than 8
// characters ("none", for servers that need no key) it is no secret, and stays. `key` may be NULL.
void draft_hide_key(char *text, const char *key);

#endif
