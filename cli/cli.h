// The command line: one table of commands, one table of options, one file per command. Of the
// library it includes only kernelgen.h.

#ifndef KG_CLI_CLI_H
#define KG_CLI_CLI_H

#include "kernelgen.h"

#include <stdio.h>

// Exit statuses, the same for every command.
enum cli_exit {
    CLI_DONE = 0,
    CLI_REFUSED = 1,      // the accuracy gate rejected the kernel
    CLI_DIFFERENT = 1,    // 'diff': not the same meaning; 'report --against': something is slower
    CLI_BAD_INPUT = 2,    // bad usage, bad definition, bad file
    CLI_MISSING = 3,      // the machine lacks something
    CLI_SLOW = 4,         // the kernel is right, and slower than the goal
    CLI_INTERRUPTED = 130 // Ctrl-C; measurements are kept
};

#define CLI_MOST_BINDINGS 64
#define CLI_MOST_ARRAYS 32

struct cli_array {
    const char *name; // name of the tensor
    const char *path;
};

// The options of a command line. Strings belong to argv.
struct cli_options {
    const char *words[3]; // arguments without a dash, after the command's name
    int word_count;
    const char *op;
    const char *device;
    const char *rigor;
    const char *seconds;
    const char *folder;
    const char *language;
    const char *target;
    const char *definition;
    char *const *candidates;
    int candidate_count;
    const char *against, *override, *contest;
    const char *seed, *effort;
    const char *threads;
    const char *kernel;
    const char *grid;
    const char *block;
    const char *shared;
    const char *log;
    const char *read_bytes;
    const char *write_bytes;
    const char *flops;
    const char *sample;
    const char *model;
    const char *family;
    const char *protocol;
    const char *export_path;
    bool json;
    bool text;
    bool nearest;
    bool launcher;
    bool sanitize;
    bool timings;
    bool warm;
    bool compare;
    bool yes;
    bool force;
    bool help;
    struct kg_binding bindings[CLI_MOST_BINDINGS];
    int binding_count;
    struct cli_array inputs[CLI_MOST_ARRAYS];
    int input_count;
    struct cli_array outputs[CLI_MOST_ARRAYS];
    int output_count;
};

// One bit per option tells which options a command takes.
enum cli_option {
    CLI_OP = 1 << 0,
    CLI_DEVICE = 1 << 1,
    CLI_RIGOR = 1 << 2,
    CLI_TIME = 1 << 3,
    CLI_OUT = 1 << 4,
    CLI_LANG = 1 << 5,
    CLI_TARGET = 1 << 6,
    CLI_CANDIDATE = 1 << 7,
    CLI_SEED = 1 << 8,
    CLI_THREADS = 1 << 9,
    CLI_JSON = 1 << 10,
    CLI_BINDINGS = 1 << 11, // --dtype --size --param
    CLI_ARRAYS = 1 << 12,   // --input --output
    CLI_ASSEMBLY = 1 << 13, // --kernel --log, and a launch: --grid --block --smem ...
    CLI_FIT = 1 << 15,      // filters of samples, and --export
    CLI_OVERRIDE = 1 << 14,
    CLI_SANITIZE = 1 << 16,
    CLI_BUNDLE = 1 << 17, // --out, of a folder
    CLI_PACKED = 1 << 19, // --out, likewise
    CLI_DEFINITION = 1 << 20,
    CLI_DRAFT = 1 << 21,   // --out, --time, --yes, --force
    CLI_AGAINST = 1 << 22, // --against, --text
    CLI_LOG = 1 << 23,     // --out, of a file or a folder
    CLI_CONTEST = 1 << 24,
    CLI_ALONE = 1 << 18, // no option: the command has no context, and opens no records
};

struct cli {
    struct kg_context *context;
    struct cli_options options;
    const volatile int *cancel; // nonzero after Ctrl-C
    char *draft_key;            // draft.h; NULL: none
};

struct cli_command {
    const char *name;
    const char *usage;   // what follows the name
    const char *summary; // one line
    const char *details; // paragraphs and examples for --help
    unsigned options;    // enum cli_option bits
    int least_words, most_words;
    // What completes its first word and, unless NULL, those after it; a list of words, patterns of
    // files ("*.kg", "*"), "/" for folders, "=*.npy" for NAME=FILE.npy, "@ops" for the ops of the
    // .kg file on the line, "@commands". NULL: nothing is known.
    const char *completes, *completes_next;
    enum cli_exit (*run)(struct cli *cli);
};

extern const struct cli_command cli_commands[]; // ends with a NULL name

// options.c. Reports a mistake and how to get help on stderr, and returns CLI_BAD_INPUT.
enum cli_exit cli_parse(const struct cli_command *command, int count, char **words,
                        struct cli_options *options);
void cli_help(const struct cli_command *command);
void cli_overview(void);
const struct cli_command *cli_find_command(const char *name);
// Reports it on stderr, with the most similar command, and returns CLI_BAD_INPUT.
enum cli_exit cli_unknown_command(const char *name);

// overwriting.c. Refuses a command that would write over a file that it reads, or one file twice.
enum cli_exit cli_check_overwriting(const struct cli_command *command,
                                    const struct cli_options *options);

// option_advice.c. The options that help after a failure, on stderr; nothing where none does. The
// library does not know them.
void cli_advise(const struct cli *cli, enum kg_status status);

// common.c: functions of several commands.
// Reports a failed call on stderr, with advice, and returns its exit status.
enum cli_exit cli_fail(const struct cli *cli, enum kg_status status);
// The same for the contents of a file, whose name the library does not know.
enum cli_exit cli_fail_in(const struct cli *cli, const char *path, enum kg_status status);
enum cli_exit cli_exit_of(enum kg_status status);
// Reports that the command was interrupted.
enum cli_exit cli_interrupted(void);
// Prints text with names of files or from files: nothing in it is a command for a terminal.
void cli_say(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Reports a usage mistake that a command itself found, or the arguments of a command have.
enum cli_exit cli_bad_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum cli_exit cli_bad_command(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum cli_exit cli_read_file(const char *path, char **text, size_t *length);
// The same for binary files, which may be large; "-" is standard input.
enum cli_exit cli_read_input(const char *path, size_t limit, char **bytes, size_t *length);
// Reports that a file, or standard output, could not be written, and the reason (an errno).
enum cli_exit cli_not_written(const char *path, int why);
enum cli_exit cli_write_file(const char *path, const char *bytes, size_t length);
// A folder that exists, or a name that ends as only a folder's does. NULL is none.
bool cli_is_folder(const char *path);
// The op, device and problem that the options name. cli_close destroys them.
struct cli_subject {
    struct kg_op *op;
    struct kg_device *device;
    struct kg_problem *problem;
};
enum cli_exit cli_open(struct cli *cli, struct cli_subject *subject);
enum cli_exit cli_open_op(struct cli *cli, struct kg_op **op);
// The op of another file than the command's first argument.
enum cli_exit cli_open_op_in(struct cli *cli, const char *path, struct kg_op **op);
void cli_close(struct cli_subject *subject);
enum cli_exit cli_rigor(const struct cli *cli, enum kg_rigor standard, enum kg_rigor *rigor);
enum cli_exit cli_seconds(const struct cli *cli, double *seconds);
enum cli_exit cli_seed(const struct cli *cli, uint64_t *seed);
// "12.3 us" into `out`.
const char *cli_duration(double seconds, char out[32]);
// "87% reached"; above 100% caches served bytes that the roofline charges to memory.
const char *cli_reached(const struct kg_bench_result *bench, char out[96]);
// "met", "met within the noise", "MISSED".
const char *cli_goal_words(const struct kg_bench_result *bench);
// Prints a text on stdout. What a terminal would take as a command is shown instead; other programs
// get the text as it is.
void cli_show_text(char *text);
// Prints a text of the library (or its failure) on stdout or to --out, and frees it.
enum cli_exit cli_print(struct cli *cli, enum kg_status status, char *text);
void cli_show_verdict(const struct kg_verify_result *verdict);

// json_output.c. With --json, failures are printed on stdout too, as {"error": ...}, unless
// something else has been.
void cli_json_want(void);
void cli_json_begin(void);
// The members of a verdict's object, without braces.
void cli_json_verdict_members(const struct kg_verify_result *verdict);
void cli_json_failure(const char *message);
// A string, quotes included.
void cli_json_text(const char *text);
// `, "key": 1.5`, or null where JSON has no such number.
void cli_json_number(const char *key, double value);
void cli_json_verdict(const struct kg_verify_result *verdict);
// The times and what follows from them, as further members of an object.
void cli_json_bench(const struct kg_bench_result *bench);

// progress.c: a bar on stderr, on a terminal only.
void cli_progress(void *user, const char *what, int done, int total);
void cli_progress_clear(void);

#endif
