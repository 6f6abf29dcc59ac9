// kernelgen build FOLDER: every op of every definition in it, each in a process of its own, so that
// none costs another what it has. Where kernels are timed in turns, several are built at once.

#include "commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 4, CORES_EACH = 4, MOST_WORDS = 32, PAUSE = 10000000 };

extern char **environ;

struct order {
    char *path, *op;
};

// How the ops ended, by exit status.
struct ends {
    int met, slow, refused, interrupted, failed;
    enum cli_exit worst;
};

// A process that builds one op.
struct builder {
    pid_t process; // 0: none
    const struct order *order;
    FILE *answer, *messages;
};

struct folder {
    struct cli *cli;
    struct order *orders;
    int count, next, done, at_once;
    struct builder builders[MOST_AT_ONCE];
    struct ends ends;
    json_t *answers;
};

// ---- What there is to build ----

static int is_definition(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && end != entry->d_name && strcmp(end, ".kg") == 0;
}

static enum cli_exit no_memory(void)
{
    fprintf(stderr, "kernelgen: out of memory\n");
    return CLI_MISSING;
}

static enum cli_exit add_order(struct folder *folder, const char *path, const char *op)
{
    struct order *more =
        realloc(folder->orders, ((size_t)folder->count + 1) * sizeof *folder->orders);
    if (!more)
        return no_memory();
    folder->orders = more;
    struct order *order = &more[folder->count++];
    *order = (struct order){strdup(path), strdup(op)};
    return order->path && order->op ? CLI_DONE : no_memory();
}

static enum cli_exit add_definition(struct folder *folder, const char *path)
{
    char *text, *names = NULL;
    size_t length;
    enum cli_exit exit_status = cli_read_file(path, &text, &length);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_op_names(folder->cli->context, path, text, length, &names);
    free(text);
    if (status != KG_OK)
        return cli_fail(folder->cli, status);
    char *rest = NULL;
    for (char *name = strtok_r(names, "\n", &rest); name && exit_status == CLI_DONE;
         name = strtok_r(NULL, "\n", &rest))
        exit_status = add_order(folder, path, name);
    kg_text_release(names);
    return exit_status;
}

static enum cli_exit find_orders(struct folder *folder)
{
    const char *where = folder->cli->options.words[0];
    const char *slash = where[strlen(where) - 1] == '/' ? "" : "/";
    struct dirent **entries;
    int count = scandir(where, &entries, is_definition, alphasort);
    if (count < 0)
        return cli_bad_usage("%s cannot be read: %s", where, strerror(errno));
    enum cli_exit exit_status = CLI_DONE;
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (exit_status == CLI_DONE &&
            asprintf(&path, "%s%s%s", where, slash, entries[i]->d_name) < 0) {
            path = NULL;
            exit_status = no_memory();
        }
        if (exit_status == CLI_DONE)
            exit_status = add_definition(folder, path);
        free(path);
        free(entries[i]);
    }
    free(entries);
    if (exit_status == CLI_DONE && folder->count == 0)
        return cli_bad_usage("%s has no definition, NAME.kg", where);
    return exit_status;
}

// Bundles of one name would mix.
static enum cli_exit check_bundles(const struct folder *folder)
{
    for (int i = 0; i < folder->count && folder->cli->options.folder; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(folder->orders[i].op, folder->orders[j].op) == 0)
                return cli_bad_usage("%s and %s both have an op '%s', whose bundles would be in "
                                     "one folder: rename one, or build them without --out",
                                     folder->orders[j].path, folder->orders[i].path,
                                     folder->orders[i].op);
    return CLI_DONE;
}

static enum cli_exit prepare(struct folder *folder)
{
    const struct cli_options *options = &folder->cli->options;
    struct kg_device *device;
    if (options->op || options->binding_count > 0 || options->override || options->contest)
        return cli_bad_usage("--op, --dtype, --size, --param, --override and --contest are of one "
                             "op: name its file instead of a folder");
    enum cli_exit exit_status = find_orders(folder);
    if (exit_status == CLI_DONE)
        exit_status = check_bundles(folder);
    if (exit_status != CLI_DONE)
        return exit_status;
    enum kg_status status = kg_context_device(folder->cli->context, options->device, &device);
    if (status != KG_OK)
        return cli_fail(folder->cli, status);
    long cores = sysconf(_SC_NPROCESSORS_ONLN) / CORES_EACH;
    bool alone = !kg_device_takes_turns(device) || cores < 2;
    folder->at_once = alone ? 1 : cores < MOST_AT_ONCE ? (int)cores : MOST_AT_ONCE;
    return CLI_DONE;
}

// ---- One op ----

static void add_option(const char **words, int *count, const char *name, const char *value)
{
    if (value) {
        words[(*count)++] = name;
        words[(*count)++] = value;
    }
}

// NULL if there is no bundle, or no memory.
static char *bundle_of(const struct folder *folder, const struct order *order)
{
    const char *all = folder->cli->options.folder;
    char *path = NULL;
    if (!all || asprintf(&path, "%s/%s", all, order->op) < 0)
        return NULL;
    return path;
}

static int spawn(const struct folder *folder, struct builder *builder)
{
    const struct cli_options *options = &folder->cli->options;
    const struct order *order = builder->order;
    const char *words[MOST_WORDS] = {"kernelgen", "build",   order->path,
                                     "--op",      order->op, "--json"};
    int count = 6;
    char *bundle = bundle_of(folder, order);
    add_option(words, &count, "--device", options->device);
    add_option(words, &count, "--rigor", options->rigor);
    add_option(words, &count, "--time", options->seconds);
    add_option(words, &count, "--protocol", options->protocol);
    add_option(words, &count, "--effort", options->effort);
    add_option(words, &count, "--threads", options->threads);
    add_option(words, &count, "--lang", options->language);
    add_option(words, &count, "--out", bundle);
    if (options->nearest)
        words[count++] = "--nearest";
    if (options->sanitize)
        words[count++] = "--sanitize";
    posix_spawn_file_actions_t actions;
    int failure = posix_spawn_file_actions_init(&actions);
    if (!failure) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, fileno(builder->answer), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, fileno(builder->messages), STDERR_FILENO);
        failure = posix_spawn(&builder->process, "/proc/self/exe", &actions, NULL,
                              (char *const *)words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    free(bundle);
    return failure;
}

static void close_files(struct builder *builder)
{
    if (builder->answer)
        fclose(builder->answer);
    if (builder->messages)
        fclose(builder->messages);
    *builder = (struct builder){0};
}

static enum cli_exit start(struct folder *folder, struct builder *builder)
{
    *builder = (struct builder){
        .order = &folder->orders[folder->next], .answer = tmpfile(), .messages = tmpfile()};
    int failure = builder->answer && builder->messages ? spawn(folder, builder) : errno;
    if (!failure) {
        folder->next++;
        return CLI_DONE;
    }
    fprintf(stderr, "kernelgen: building %s cannot be started: %s\n", builder->order->op,
            strerror(failure));
    builder->process = 0;
    close_files(builder);
    return CLI_MISSING;
}

// The last line of what a builder said.
static void last_line(FILE *messages, char *line, size_t size)
{
    char next[1024];
    line[0] = '\0';
    rewind(messages);
    while (fgets(next, sizeof next, messages)) {
        next[strcspn(next, "\n")] = '\0';
        if (next[0])
            snprintf(line, size, "%s", next);
    }
    kg_text_make_printable(line); // compilers quote what they were given
}

static void show(const struct folder *folder, const struct order *order, enum cli_exit end,
                 const json_t *answer, const char *message)
{
    char time[32];
    struct kg_bench_result bench = {.size = sizeof bench};
    cli_progress_clear();
    printf("%4d/%d  %-24s", folder->done, folder->count, order->op);
    if (!json_object_get(answer, "choice")) {
        const char *why = end == CLI_INTERRUPTED
                              ? "interrupted"
                              : json_string_value(json_object_get(answer, "error"));
        why = why ? why : message;
        cli_say(stdout, "  %.*s\n", (int)strcspn(why, "\n"), why);
        return;
    }
    bench.seconds = json_number_value(json_object_get(answer, "seconds"));
    bench.bound_seconds = json_number_value(json_object_get(answer, "roofline_seconds"));
    if (bench.seconds > 0) {
        printf("  %9s", cli_duration(bench.seconds, time));
        printf("  %8.2f of its baseline", json_number_value(json_object_get(answer, "speedup")));
        printf("  %3.0f%% of the roofline", 100 * bench.bound_seconds / bench.seconds);
    }
    printf("  %s\n", end == CLI_DONE ? "met" : end == CLI_SLOW ? "slower" : "interrupted");
}

// The most telling exit status of all.
static void note_end(struct ends *ends, enum cli_exit end)
{
    static const enum cli_exit order[] = {CLI_DONE,    CLI_SLOW,    CLI_BAD_INPUT,
                                          CLI_MISSING, CLI_REFUSED, CLI_INTERRUPTED};
    int rank = 0, worst = 0;
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++) {
        rank = order[i] == end ? i : rank;
        worst = order[i] == ends->worst ? i : worst;
    }
    ends->worst = order[rank > worst ? rank : worst];
    ends->met += end == CLI_DONE;
    ends->slow += end == CLI_SLOW;
    ends->refused += end == CLI_REFUSED;
    ends->interrupted += end == CLI_INTERRUPTED;
    ends->failed +=
        end != CLI_DONE && end != CLI_SLOW && end != CLI_REFUSED && end != CLI_INTERRUPTED;
}

static void finish(struct folder *folder, struct builder *builder, int state)
{
    char message[1024];
    last_line(builder->messages, message, sizeof message);
    rewind(builder->answer);
    json_t *answer = json_loadf(builder->answer, 0, NULL);
    if (!json_is_object(answer)) {
        json_decref(answer);
        answer = json_pack("{s:s}", "error", message);
    }
    enum cli_exit end = WIFEXITED(state) ? (enum cli_exit)WEXITSTATUS(state) : CLI_MISSING;
    folder->done++;
    note_end(&folder->ends, end);
    if (!folder->answers) {
        show(folder, builder->order, end, answer, message);
        fflush(stdout); // for whoever follows a file
    } else if (answer) {
        json_object_set_new(answer, "file", json_string(builder->order->path));
        json_object_set_new(answer, "op", json_string(builder->order->op));
        json_object_set_new(answer, "exit", json_integer(end));
        json_array_append(folder->answers, answer);
    }
    json_decref(answer);
    builder->process = 0;
    close_files(builder);
    cli_progress(NULL, "ops", folder->done, folder->count);
}

// ---- All of them ----

static void interrupt(const struct folder *folder)
{
    for (int i = 0; i < folder->at_once; i++)
        if (folder->builders[i].process)
            kill(folder->builders[i].process, SIGINT);
}

static enum cli_exit build_all(struct folder *folder)
{
    const struct timespec pause = {.tv_nsec = PAUSE};
    enum cli_exit exit_status = CLI_DONE;
    bool interrupted = false;
    for (int running = 1; running > 0;) {
        running = 0;
        if (*folder->cli->cancel && !interrupted)
            interrupt(folder);
        interrupted |= *folder->cli->cancel != 0;
        for (int i = 0; i < folder->at_once; i++) {
            struct builder *builder = &folder->builders[i];
            int state;
            if (builder->process && waitpid(builder->process, &state, WNOHANG) > 0)
                finish(folder, builder, state);
            if (!builder->process && !interrupted && exit_status == CLI_DONE &&
                folder->next < folder->count)
                exit_status = start(folder, builder);
            running += builder->process != 0;
        }
        nanosleep(&pause, NULL);
    }
    return interrupted ? CLI_INTERRUPTED : exit_status;
}

static void show_summary(const struct folder *folder, double seconds)
{
    const struct ends *ends = &folder->ends;
    cli_progress_clear();
    printf("%d ops in %.0f s: %d met their goals, %d slower, %d refused, %d not built",
           folder->done, seconds, ends->met, ends->slow, ends->refused, ends->failed);
    if (ends->interrupted > 0)
        printf(", %d interrupted", ends->interrupted);
    printf("\n");
}

static void show_json(const struct folder *folder, double seconds)
{
    json_t *all = json_pack("{s:O, s:f}", "ops", folder->answers, "seconds", seconds);
    cli_json_begin();
    if (all)
        json_dumpf(all, stdout, JSON_COMPACT);
    printf("\n");
    json_decref(all);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

enum cli_exit cli_build_folder(struct cli *cli)
{
    struct folder folder = {.cli = cli};
    double began = now();
    enum cli_exit exit_status = prepare(&folder);
    if (exit_status == CLI_DONE) {
        folder.answers = cli->options.json ? json_array() : NULL;
        exit_status = build_all(&folder);
        if (folder.answers)
            show_json(&folder, now() - began);
        else
            show_summary(&folder, now() - began);
    }
    for (int i = 0; i < folder.count; i++) {
        free(folder.orders[i].path);
        free(folder.orders[i].op);
    }
    free(folder.orders);
    json_decref(folder.answers);
    return exit_status == CLI_DONE ? folder.ends.worst : exit_status;
}
