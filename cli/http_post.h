// One POST over HTTP or HTTPS by libcurl, which is opened at run time. Everything is bounded: the
// time, the bytes of the answer, and redirects, which are not followed but reported.

#ifndef KERNELGEN_CLI_HTTP_POST_H
#define KERNELGEN_CLI_HTTP_POST_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_MOST_BYTES ((size_t)1 << 20) // of an answer
#define HTTP_WHY 512

struct http_request {
    const char *url;
    const char *key;            // sent as a bearer token; NULL: none
    const char *body;           // JSON
    double seconds;             // for the whole exchange
    const volatile int *cancel; // gives up soon after this becomes nonzero
};

struct http_answer {
    long status; // 200, ...
    char *body;  // ends with a zero; freed by http_free
    size_t length;
    char *redirect; // of a redirect: where to; else NULL
};

enum http_result {
    HTTP_DONE, // there is an answer, of whatever status
    HTTP_NO_LIBRARY,
    HTTP_FAILED,
    HTTP_TIMEOUT,
    HTTP_INTERRUPTED
};

// Unless it is done, `why` says what happened, and there is nothing to free. `why` may hold bytes
// that the server sent.
enum http_result http_post(const struct http_request *request, struct http_answer *answer,
                           char why[HTTP_WHY]);
void http_free(struct http_answer *answer);

#endif
