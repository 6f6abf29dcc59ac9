// kernelgen draft: a definition from words, by a language model behind a server that the user
// names. The model proposes; the checker decides, and the user, who is shown the definition
// document.

#include "commands.h"
#include "draft.h"
#include "http_post.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_CORRECTIONS 3
#define STANDARD_SECONDS 300 // models on a CPU are slow
#define SHOWN_NAME "draft.kg"

struct drafting {
    struct cli *cli;
    char *url, *shown; // the second without what may be secret
    const char *model;
    double seconds;
    struct draft_talk *talk;
    char *definition;  // the last draft
    char *diagnostics; // what the checker says of it; NULL: nothing
    int drafts;
    char *documents; // of its ops; in JSON the elements of an array
};

static enum cli_exit fail(const char *what, const char *shown, const char *why)
{
    cli_progress_clear();
    return cli_bad_usage("%s%s%s%s%s", what, *shown ? " " : "", shown, *why ? ": " : "", why);
}

static enum cli_exit lack(const char *what, const char *shown, const char *why)
{
    fail(what, shown, why);
    return CLI_MISSING;
}

// Before anything is asked: what would keep the result from being written.
static enum cli_exit check_options(const struct cli_options *options)
{
    struct stat about;
    if (!options->folder)
        return CLI_DONE;
    bool exists = lstat(options->folder, &about) == 0;
    if (exists && !options->force && !S_ISCHR(about.st_mode) && !S_ISFIFO(about.st_mode))
        return cli_bad_usage("%s exists; --force replaces it", options->folder);
    if (!options->yes && (options->json || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
        return cli_bad_usage("there is no terminal to ask on whether %s is to be written; --yes "
                             "writes without asking",
                             options->folder);
    return CLI_DONE;
}

// A longer name is another host.
static bool is_local(const char *url)
{
    static const char *const hosts[] = {"http://localhost", "http://127.0.0.1", "http://[::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        size_t length = strlen(hosts[i]);
        if (strncmp(url, hosts[i], length) == 0 && strchr(":/?#", url[length]))
            return true;
    }
    return false;
}

static enum cli_exit find_endpoint(struct drafting *drafting)
{
    const char *base = getenv("KERNELGEN_DRAFT_URL"), *model = getenv("KERNELGEN_DRAFT_MODEL");
    const char *key = drafting->cli->draft_key;
    char why[DRAFT_WHY];
    if (!base || !*base)
        return lack(
            "no endpoint: KERNELGEN_DRAFT_URL must name an OpenAI-compatible server, such as "
            "http://localhost:8080/v1 (llama.cpp, vLLM, Ollama); KERNELGEN_DRAFT_MODEL and "
            "KERNELGEN_DRAFT_KEY, where it needs them, its model and key",
            "", "");
    if (!draft_make_url(base, &drafting->url, &drafting->shown, why))
        return fail("KERNELGEN_DRAFT_URL", "", why);
    if (key && !draft_key_is_valid(key))
        return fail("KERNELGEN_DRAFT_KEY", "", "the key has blanks or control characters");
    if (key && strncmp(drafting->url, "http://", 7) == 0 && !is_local(drafting->url))
        cli_say(stderr, "kernelgen: note: the key travels to %s unencrypted\n", drafting->shown);
    drafting->model = model && *model ? model : NULL;
    return CLI_DONE;
}

// A process that holds a key leaves no core behind, and none of the user's processes may read it.
static void guard_key(const char *key)
{
    const struct rlimit none = {0};
    if (!key)
        return;
    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}

static const char *advice_for(long status)
{
    static const struct {
        long least, most;
        const char *words;
    } rows[] = {
        {300, 399, "the server sends us elsewhere; name that place in KERNELGEN_DRAFT_URL"},
        {401, 403, "the server refuses us; is KERNELGEN_DRAFT_KEY right?"},
        {404, 404,
         "the server does not know the path or the model; are KERNELGEN_DRAFT_URL and "
         "KERNELGEN_DRAFT_MODEL right?"},
        {429, 429, "the server wants fewer requests; wait, and try again"},
        {500, 599, "the server failed; try again, or look at its log"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (status >= rows[i].least && status <= rows[i].most)
            return rows[i].words;
    return "the server refuses the request";
}

static enum cli_exit refuse_status(const struct drafting *drafting,
                                   const struct http_answer *answer)
{
    char said[DRAFT_WHY], why[3 * DRAFT_WHY];
    draft_read_failure(answer->body, answer->length, said);
    snprintf(why, sizeof why, "status %ld: %s%s%.*s%s%s%s", answer->status,
             advice_for(answer->status), answer->redirect ? ": " : "", DRAFT_WHY,
             answer->redirect ? answer->redirect : "", *said ? " (\"" : "", said,
             *said ? "\")" : "");
    draft_hide_key(why, drafting->cli->draft_key);
    return lack("no draft from", drafting->shown, why);
}

static enum cli_exit refuse_exchange(const struct drafting *drafting, enum http_result result,
                                     char *why)
{
    if (result == HTTP_INTERRUPTED)
        return cli_interrupted();
    draft_hide_key(why, drafting->cli->draft_key);
    if (result == HTTP_NO_LIBRARY)
        return lack(why, "", "");
    if (result == HTTP_TIMEOUT)
        snprintf(why, HTTP_WHY, "no answer within %g s; --time SECONDS waits longer",
                 drafting->seconds);
    return lack("no draft from", drafting->shown, why);
}

// The text of the next answer; the caller frees it.
static enum cli_exit ask(const struct drafting *drafting, char **text)
{
    struct http_answer answer;
    char why[HTTP_WHY];
    *text = NULL;
    char *body = draft_talk_body(drafting->talk, drafting->model);
    if (!body)
        return lack("out of memory", "", "");
    const struct http_request request = {.url = drafting->url,
                                         .key = drafting->cli->draft_key,
                                         .body = body,
                                         .seconds = drafting->seconds,
                                         .cancel = drafting->cli->cancel};
    cli_progress(NULL, "asking for a draft", drafting->drafts, 1 + MOST_CORRECTIONS);
    enum http_result result = http_post(&request, &answer, why);
    cli_progress_clear();
    free(body);
    if (result != HTTP_DONE)
        return refuse_exchange(drafting, result, why);
    enum cli_exit exit_status = CLI_DONE;
    if (answer.status != 200)
        exit_status = refuse_status(drafting, &answer);
    else if (!(*text = draft_read_answer(answer.body, answer.length, why)))
        exit_status = lack("no draft from", drafting->shown, why);
    http_free(&answer);
    if (*text)
        draft_hide_key(*text, drafting->cli->draft_key);
    return exit_status;
}

// Where no sizes are known that the definition allows, the same ones for all show what is wrong,
// such as a read outside of a tensor.
static enum kg_status make_problem(struct kg_context *context, const struct kg_op *op,
                                   struct kg_problem **problem)
{
    struct kg_binding bindings[CLI_MOST_BINDINGS];
    int count = 0;
    enum kg_status status = kg_problem_create(context, op, NULL, 0, problem);
    if (status != KG_ERROR_SHAPE)
        return status;
    for (const char *name; count < CLI_MOST_BINDINGS && (name = kg_op_size_name(op, count));)
        bindings[count++] = (struct kg_binding){name, "64"};
    return kg_problem_create(context, op, bindings, count, problem);
}

// The document of one op, appended to the documents.
static enum kg_status add_document(struct drafting *drafting, const char *name, bool is_first)
{
    struct kg_context *context = drafting->cli->context;
    const struct cli_options *options = &drafting->cli->options;
    struct kg_op *op = NULL;
    struct kg_problem *problem = NULL;
    char *document = NULL, *documents = NULL;
    enum kg_status status = kg_op_parse(context, SHOWN_NAME, drafting->definition,
                                        strlen(drafting->definition), name, &op);
    if (status == KG_OK)
        status = make_problem(context, op, &problem);
    if (status == KG_OK)
        status = kg_problem_document(problem, NULL, options->language, options->json, &document);
    if (status == KG_OK &&
        asprintf(&documents, "%s%s%s", drafting->documents ? drafting->documents : "",
                 is_first        ? ""
                 : options->json ? ", "
                                 : "\n",
                 document) < 0)
        status = KG_ERROR_MEMORY;
    if (status == KG_OK) {
        free(drafting->documents);
        drafting->documents = documents;
    }
    kg_text_release(document);
    kg_problem_destroy(problem);
    kg_op_destroy(op);
    return status;
}

static enum kg_status check_definition(struct drafting *drafting)
{
    char *names = NULL;
    enum kg_status status = kg_op_names(drafting->cli->context, SHOWN_NAME, drafting->definition,
                                        strlen(drafting->definition), &names);
    for (char *name = names; status == KG_OK && *name;) {
        char *end = strchr(name, '\n');
        *end = '\0';
        status = add_document(drafting, name, name == names);
        name = end + 1;
    }
    kg_text_release(names);
    return status;
}

static bool is_about_draft(enum kg_status status)
{
    return status == KG_ERROR_DEFINITION || status == KG_ERROR_SHAPE ||
           status == KG_ERROR_ARGUMENT || status == KG_ERROR_UNSUPPORTED;
}

// Takes an answer; without diagnostics afterwards, it is a right definition.
static enum cli_exit judge(struct drafting *drafting, const char *text)
{
    free(drafting->definition);
    free(drafting->diagnostics);
    free(drafting->documents);
    drafting->diagnostics = drafting->documents = NULL;
    drafting->definition = draft_find_definition(text);
    drafting->drafts++;
    const char *wrong = NULL;
    if (drafting->definition) {
        enum kg_status status = check_definition(drafting);
        if (status != KG_OK && !is_about_draft(status))
            return cli_fail(drafting->cli, status);
        wrong = status == KG_OK ? NULL : kg_context_error(drafting->cli->context);
    } else {
        drafting->definition = strdup(text);
        wrong = "the answer holds no definition: none of its lines begins with \"op\"";
    }
    drafting->diagnostics = wrong ? strdup(wrong) : NULL;
    bool is_kept = drafting->definition && (!wrong || drafting->diagnostics);
    return is_kept ? CLI_DONE : lack("out of memory", "", "");
}

// Asks until a draft is right, or the corrections are used up.
static enum cli_exit converse(struct drafting *drafting)
{
    for (;;) {
        char *text;
        enum cli_exit exit_status = ask(drafting, &text);
        if (exit_status == CLI_DONE)
            exit_status = judge(drafting, text);
        free(text);
        if (exit_status != CLI_DONE || !drafting->diagnostics ||
            drafting->drafts > MOST_CORRECTIONS)
            return exit_status;
        cli_say(stderr,
                "kernelgen: note: draft %d is wrong, and goes back with what is wrong:\n%s\n",
                drafting->drafts, drafting->diagnostics);
        if (!draft_talk_correct(drafting->talk, drafting->definition, drafting->diagnostics))
            return lack("out of memory", "", "");
    }
}

static enum cli_exit give_up(const struct drafting *drafting)
{
    cli_say(stderr, "The last draft:\n\n%s\n", drafting->definition);
    fail("draft", "", "the checker refuses all drafts; nothing was written");
    cli_say(stderr, "%s\n", drafting->diagnostics);
    return CLI_REFUSED;
}

// On a terminal: nothing but "y" and "yes" is consent.
static bool is_wanted(const char *path)
{
    char answer[16] = "";
    fflush(stdout);
    cli_say(stderr, "Write %s? [y/N] ", path);
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    answer[strcspn(answer, "\n")] = '\0';
    return strcmp(answer, "y") == 0 || strcmp(answer, "Y") == 0 || strcmp(answer, "yes") == 0;
}

static void print_json(const struct drafting *drafting)
{
    cli_json_begin();
    printf("{\"definition\": ");
    cli_json_text(drafting->definition);
    printf(", \"drafts\": %d, \"documents\": [%s], \"written\": ", drafting->drafts,
           drafting->documents ? drafting->documents : "");
    if (drafting->cli->options.folder)
        cli_json_text(drafting->cli->options.folder);
    else
        printf("null");
    printf("}\n");
}

static enum cli_exit deliver(struct drafting *drafting)
{
    const struct cli_options *options = &drafting->cli->options;
    const char *path = options->folder;
    enum cli_exit exit_status = CLI_DONE;
    if (!options->json && path && drafting->documents) {
        cli_show_text(drafting->documents);
        printf("\n");
    }
    if (!options->json)
        fputs(drafting->definition, stdout);
    if (path && !options->yes && !is_wanted(path)) {
        fprintf(stderr, "kernelgen: nothing was written\n");
        return CLI_REFUSED;
    }
    if (path)
        exit_status = cli_write_file(path, drafting->definition, strlen(drafting->definition));
    if (exit_status == CLI_DONE && options->json)
        print_json(drafting);
    else if (exit_status == CLI_DONE && path)
        cli_say(stderr, "kernelgen: %s written\n", path);
    return exit_status;
}

static enum cli_exit run(struct drafting *drafting)
{
    enum cli_exit exit_status = check_options(&drafting->cli->options);
    if (exit_status == CLI_DONE)
        exit_status = cli_seconds(drafting->cli, &drafting->seconds);
    if (exit_status == CLI_DONE)
        exit_status = find_endpoint(drafting);
    if (exit_status != CLI_DONE)
        return exit_status;
    drafting->seconds = drafting->seconds > 0 ? fmin(drafting->seconds, 86400) : STANDARD_SECONDS;
    guard_key(drafting->cli->draft_key);
    drafting->talk = draft_talk_begin(drafting->cli->options.words[0]);
    if (!drafting->talk)
        return cli_bad_usage("the text is not UTF-8");
    exit_status = converse(drafting);
    if (exit_status != CLI_DONE)
        return exit_status;
    return drafting->diagnostics ? give_up(drafting) : deliver(drafting);
}

enum cli_exit cli_draft(struct cli *cli)
{
    struct drafting drafting = {.cli = cli};
    enum cli_exit exit_status = run(&drafting);
    draft_talk_end(drafting.talk);
    free(drafting.url);
    free(drafting.shown);
    free(drafting.definition);
    free(drafting.diagnostics);
    free(drafting.documents);
    return exit_status;
}
