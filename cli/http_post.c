// See http_post.h. The functions and numbers declared here are libcurl's binary interface, which it
// has kept since 7.32 (2013): building needs no headers of it, and the tool runs where it is not
// installed.

#include "http_post.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// CURLoption, CURLINFO and CURLcode of curl/curl.h.
enum {
    OPTION_NOPROGRESS = 43,
    OPTION_PROTOCOLS = 181,
    OPTION_NOSIGNAL = 99,
    OPTION_TIMEOUT_MS = 155,
    OPTION_CONNECTTIMEOUT_MS = 156,
    OPTION_WRITEDATA = 10001,
    OPTION_URL = 10002,
    OPTION_ERRORBUFFER = 10010,
    OPTION_POSTFIELDS = 10015,
    OPTION_USERAGENT = 10018,
    OPTION_HTTPHEADER = 10023,
    OPTION_XFERINFODATA = 10057,
    OPTION_WRITEFUNCTION = 20011,
    OPTION_XFERINFOFUNCTION = 20219,
    OPTION_POSTFIELDSIZE_LARGE = 30120,
    OPTION_MAXFILESIZE_LARGE = 30117,
    INFO_REDIRECT_URL = 0x100000 + 31,
    INFO_RESPONSE_CODE = 0x200000 + 2,
    CODE_TIMEOUT = 28,
    CODE_ABORTED = 42,
    CODE_TOO_LARGE = 63,
    PROTOCOLS_OF_WEB = 1 | 2, // http, https
    ERROR_BYTES = 256,
    CONNECT_MILLISECONDS = 10000,
};

struct header {
    char *text;
    struct header *next;
};

struct curl {
    void *library;
    void *(*open)(void);
    void (*close)(void *handle);
    int (*set)(void *handle, int option, ...);
    int (*perform)(void *handle);
    int (*get)(void *handle, int info, ...);
    const char *(*describe)(int code);
};

struct transfer {
    const struct http_request *request;
    struct http_answer *answer;
    bool is_too_large;
};

static bool open_library(struct curl *curl)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"curl_easy_init", &curl->open},   {"curl_easy_cleanup", &curl->close},
        {"curl_easy_setopt", &curl->set},  {"curl_easy_perform", &curl->perform},
        {"curl_easy_getinfo", &curl->get}, {"curl_easy_strerror", &curl->describe},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !curl->library; i++)
        curl->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        *(void **)functions[i].place =
            curl->library ? dlsym(curl->library, functions[i].name) : NULL;
        if (!*(void **)functions[i].place)
            return false;
    }
    return true;
}

// libcurl never calls it with more than 16 KiB; less than all bytes taken ends the transfer.
static size_t take_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct transfer *transfer = user;
    struct http_answer *answer = transfer->answer;
    size_t length = size * count;
    if (length > HTTP_MOST_BYTES - answer->length) {
        transfer->is_too_large = true;
        return 0;
    }
    memcpy(answer->body + answer->length, bytes, length);
    answer->length += length;
    return length;
}

static int is_cancelled(void *user, int64_t total, int64_t done, int64_t out_total, int64_t out)
{
    const struct transfer *transfer = user;
    (void)total, (void)done, (void)out_total, (void)out;
    return transfer->request->cancel && *transfer->request->cancel;
}

static void set_options(const struct curl *curl, void *handle, struct transfer *transfer,
                        struct header *headers, char *error)
{
    const struct http_request *request = transfer->request;
    const struct {
        int option;
        long value;
    } numbers[] = {
        {OPTION_NOSIGNAL, 1},
        {OPTION_NOPROGRESS, 0},
        {OPTION_PROTOCOLS, PROTOCOLS_OF_WEB},
        {OPTION_TIMEOUT_MS, (long)(request->seconds * 1e3) + 1},
        {OPTION_CONNECTTIMEOUT_MS, CONNECT_MILLISECONDS},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        curl->set(handle, numbers[i].option, numbers[i].value);
    curl->set(handle, OPTION_URL, request->url);
    curl->set(handle, OPTION_USERAGENT, "kernelgen");
    curl->set(handle, OPTION_HTTPHEADER, headers);
    curl->set(handle, OPTION_POSTFIELDSIZE_LARGE, (int64_t)strlen(request->body));
    curl->set(handle, OPTION_POSTFIELDS, request->body);
    curl->set(handle, OPTION_MAXFILESIZE_LARGE, (int64_t)HTTP_MOST_BYTES);
    curl->set(handle, OPTION_ERRORBUFFER, error);
    curl->set(handle, OPTION_WRITEFUNCTION, take_bytes);
    curl->set(handle, OPTION_WRITEDATA, transfer);
    curl->set(handle, OPTION_XFERINFOFUNCTION, is_cancelled);
    curl->set(handle, OPTION_XFERINFODATA, transfer);
}

static enum http_result explain(const struct curl *curl, int code, const char *error,
                                const struct transfer *transfer, char why[HTTP_WHY])
{
    if (code == CODE_ABORTED) {
        snprintf(why, HTTP_WHY, "interrupted");
        return HTTP_INTERRUPTED;
    }
    if (code == CODE_TOO_LARGE || transfer->is_too_large)
        snprintf(why, HTTP_WHY, "the answer is larger than %zu KiB", HTTP_MOST_BYTES >> 10);
    else
        snprintf(why, HTTP_WHY, "%s", *error ? error : curl->describe(code));
    return code == CODE_TIMEOUT ? HTTP_TIMEOUT : HTTP_FAILED;
}

static enum http_result perform(const struct curl *curl, void *handle, struct transfer *transfer,
                                char *authorization, char why[HTTP_WHY])
{
    struct header key = {authorization, NULL};
    struct header type = {(char[]){"Content-Type: application/json"}, authorization ? &key : NULL};
    char error[ERROR_BYTES] = "";
    struct http_answer *answer = transfer->answer;
    set_options(curl, handle, transfer, &type, error);
    int code = curl->perform(handle);
    if (code != 0)
        return explain(curl, code, error, transfer, why);
    const char *redirect = NULL;
    curl->get(handle, INFO_RESPONSE_CODE, &answer->status);
    curl->get(handle, INFO_REDIRECT_URL, &redirect);
    answer->redirect = redirect ? strdup(redirect) : NULL;
    return HTTP_DONE;
}

static enum http_result post_by(const struct curl *curl, const struct http_request *request,
                                struct http_answer *answer, char why[HTTP_WHY])
{
    struct transfer transfer = {.request = request, .answer = answer};
    enum http_result result = HTTP_FAILED;
    char *authorization = NULL;
    void *handle = curl->open();
    answer->body = calloc(1, HTTP_MOST_BYTES + 1);
    bool fits = handle && answer->body;
    if (fits && request->key)
        fits = asprintf(&authorization, "Authorization: Bearer %s", request->key) >= 0;
    if (fits)
        result = perform(curl, handle, &transfer, authorization, why);
    else
        snprintf(why, HTTP_WHY, "out of memory");
    if (handle)
        curl->close(handle);
    if (fits && authorization) {
        explicit_bzero(authorization, strlen(authorization));
        free(authorization);
    }
    return result;
}

enum http_result http_post(const struct http_request *request, struct http_answer *answer,
                           char why[HTTP_WHY])
{
    struct curl curl = {0};
    *answer = (struct http_answer){0};
    *why = '\0';
    enum http_result result = HTTP_NO_LIBRARY;
    if (open_library(&curl))
        result = post_by(&curl, request, answer, why);
    else
        snprintf(why, HTTP_WHY,
                 "talking to a server needs libcurl (libcurl.so.4; Debian's package is "
                 "libcurl4)");
    // The library stays open: TLS libraries that it has loaded register handlers for the exit.
    if (result != HTTP_DONE)
        http_free(answer);
    return result;
}

void http_free(struct http_answer *answer)
{
    free(answer->body);
    free(answer->redirect);
    *answer = (struct http_answer){0};
}
