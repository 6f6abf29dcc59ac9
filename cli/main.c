// Entry point: finds the command, sets up Ctrl-C and the context, and runs the command.

#include "cli.h"
#include "commands.h"
#include "draft.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define SUBJECT (CLI_OP | CLI_DEVICE | CLI_BINDINGS | CLI_THREADS)
#define SUBJECT_OPTIONS (SUBJECT | CLI_JSON)

const struct cli_command cli_commands[] = {
    {"build", "OP.kg|FOLDER [OPTIONS]", "define, generate, verify, optimise and record",
     "Takes a definition through all five stages for one device. With --out FOLDER the bundle is\n"
     "written there: the definition document, the kernel as one C or CUDA file, the optimisation\n"
     "log, and the four Python files of 'emit --target bundle'.\n"
     "Of a folder all ops of all its definitions are built, each in a process of its own and with\n"
     "a bundle of its own; on a GPU several at once, which judge and time their kernels in turns.\n"
     "What a build that was stopped has measured is not measured again. With --contest FOLDER the\n"
     "kernels of a folder compete with what was built (docs/foreign.md).\n\n"
     "  kernelgen build ops/bias_relu.kg\n"
     "  kernelgen build ops --time 10 --out out\n"
     "  kernelgen build ops/softmax.kg --op softmax --size P=4096,D=4096 --rigor exhaustive\n"
     "  kernelgen build ops/matmul.kg --op matmul --time 30 --out out/matmul\n"
     "  kernelgen build ops/softmax.kg --op softmax --dtype T=f32 --contest examples/candidates\n",
     SUBJECT_OPTIONS | CLI_RIGOR | CLI_TIME | CLI_BUNDLE | CLI_LANG | CLI_OVERRIDE | CLI_CONTEST |
         CLI_SANITIZE,
     1, 1, "*.kg", NULL, cli_build},
    {"check", "OP.kg [OPTIONS]", "parse and analyse; the definition document on stdout",
     "Without --op, a file of several ops is checked as a whole and its ops are listed. What the\n"
     "definition names and never uses is told on standard error.\n\n"
     "  kernelgen check ops/bias_relu.kg\n"
     "  kernelgen check ops/softmax.kg --op softmax --size P=1024,D=513 --lang zh\n",
     SUBJECT_OPTIONS | CLI_OUT | CLI_LANG, 1, 1, "*.kg", NULL, cli_check},
    {"check-bundle", "FOLDER [--def OP.kg [--op NAME]] [OPTIONS]",
     "whether the four files of a bundle belong together",
     "Reads the files that 'emit --target bundle' writes, edited or not, and compares what they\n"
     "state: names, parameters, defaults, constants, checks of the inputs, outputs, the formula.\n"
     "How the kernels compute, their tiles, comments and layout are free. With --def the files "
     "are\n"
     "compared with a definition, too: has it moved on since? --param and --dtype are then those\n"
     "that the bundle was emitted with. Needs no Python. Exit status 1: there are findings.\n\n"
     "  kernelgen emit ops/bias_relu.kg --target bundle --out bias_relu\n"
     "  kernelgen check-bundle bias_relu\n"
     "  kernelgen check-bundle bias_relu --def ops/bias_relu.kg --json\n",
     CLI_DEFINITION | CLI_OP | CLI_BINDINGS | CLI_JSON, 1, 1, "/", NULL, cli_check_bundle},
    {"diff", "OLD.kg NEW.kg [--op NAME]", "which kind of change, and what must be regenerated",
     "Compares two versions of a definition, op by op, by what they mean: a difference is one of\n"
     "interface, formula, parameter or goal, or only of how it is written. Below it stands what\n"
     "must be made again: files of the bundle (both versions are emitted and compared), kernels,\n"
     "records. Exit status 0: they mean the same; 1: they differ; 2: one cannot be read.\n\n"
     "  kernelgen diff old/softmax.kg ops/softmax.kg\n"
     "  kernelgen diff old/softmax.kg ops/softmax.kg --op softmax --json\n",
     CLI_OP | CLI_JSON, 2, 2, "*.kg", "*.kg", cli_diff},
    {"draft", "TEXT [--out OP.kg] [OPTIONS]", "a definition from words, by a server you name",
     "Asks a language model behind an OpenAI-compatible server (llama.cpp, vLLM, Ollama ...) for "
     "a\n"
     "definition of what TEXT describes. The checker reads it; what it finds wrong goes back to "
     "the\n"
     "model, up to three times. A right definition is shown with its definition document, and\n"
     "written to --out if you agree; without --out it is printed. The server is named by the\n"
     "environment: KERNELGEN_DRAFT_URL and, where it needs them, KERNELGEN_DRAFT_MODEL and\n"
     "KERNELGEN_DRAFT_KEY. The checker knows the language, not what you meant: read the formula.\n"
     "Exit status 1: the checker refused all drafts, or you did. docs/draft.md tells more.\n\n"
     "  export KERNELGEN_DRAFT_URL=http://localhost:8080/v1\n"
     "  kernelgen draft \"layer norm without a bias, eps 1e-5\" -o layer_norm.kg\n"
     "  kernelgen draft \"row sums of exp(x - max)\" --out sums.kg --yes --time 60 --json\n",
     CLI_DRAFT | CLI_LANG | CLI_JSON, 1, 1, NULL, NULL, cli_draft},
    {"emit", "OP.kg --target host|cuda|ptx|triton|bundle [OPTIONS]",
     "the generated source on stdout",
     "For the host, one file that compiles alone; its entry is a plain C function with the op's\n"
     "name. For GPUs CUDA C++ with its launches, or the PTX it gives; no GPU is needed, and no\n"
     "compiler but for PTX. With --launcher, CUDA files also have host functions that launch the\n"
     "kernels for these sizes; nvcc compiles them. Chosen by rule or from what is known, unless\n"
     "--rigor asks for a search. A bundle is four Python files in the folder that --out names: "
     "the\n"
     "Triton module, a baseline in PyTorch, and a test of accuracy and one of performance.\n\n"
     "  kernelgen emit ops/bias_relu.kg --target host\n"
     "  kernelgen emit ops/bias_relu.kg --target bundle --out bias_relu\n"
     "  kernelgen emit ops/softmax.kg --op softmax --target cuda --device sm_90a\n"
     "  kernelgen emit ops/softmax.kg --op softmax --target cuda --launcher --out softmax.cu\n"
     "  kernelgen emit ops/bias_relu.kg --target host --dtype T=f32 --out bias_relu.c\n",
     SUBJECT | CLI_RIGOR | CLI_TIME | CLI_OUT | CLI_TARGET, 1, 1, "*.kg", NULL, cli_emit},
    {"verify", "OP.kg [--candidate FILE]... [OPTIONS]", "the accuracy gate alone",
     "Judges the generated kernel (by rule or from what is known, unless --rigor asks for a\n"
     "search) or, with --candidate, a foreign kernel: a C file with a function named like the op\n"
     "and the signature that 'emit --target host' shows, or an edited file of that command. For\n"
     "GPUs a .cu or .ptx file that says how it is launched (docs/verification.md). Inputs keep to\n"
     "the ranges in the goal, as in 'verify x in 0..1'. Several candidates, each with\n"
     "an option of its own, are judged by the same inputs; with --json the answer is an array.\n\n"
     "  kernelgen verify ops/bias_relu.kg\n"
     "  kernelgen emit ops/bias_relu.kg --dtype T=f32 --target host --out mine.c\n"
     "  kernelgen verify ops/bias_relu.kg --dtype T=f32 --candidate mine.c --seed 7\n",
     SUBJECT_OPTIONS | CLI_RIGOR | CLI_TIME | CLI_CANDIDATE | CLI_OVERRIDE | CLI_SEED |
         CLI_SANITIZE,
     1, 1, "*.kg", NULL, cli_verify},
    {"run", "OP.kg --input TENSOR=FILE.npy ... --output TENSOR=FILE.npy ...",
     "one execution on NumPy files",
     "Sizes, dtypes and strides come from the files; contradictions are refused by name. bf16 is\n"
     "read and written as uint16 bits, 4-bit types as packed uint8. For a GPU the arrays are "
     "copied\n"
     "there and back. The kernel is chosen by rule or from what is known, unless --rigor asks for "
     "a\n"
     "search.\n\n"
     "  kernelgen run ops/bias_relu.kg --input x=x.npy --input bias=b.npy --output y=y.npy\n",
     SUBJECT | CLI_RIGOR | CLI_TIME | CLI_ARRAYS | CLI_OVERRIDE, 1, 1, "*.kg", NULL, cli_run},
    {"bench", "OP.kg [OPTIONS]", "the performance gate alone, against the baseline",
     "Baseline and plan are timed alternately. On the host the baseline is the definition as\n"
     "written: one plain loop nest per statement, same compiler, flags and cores.\n\n"
     "With --override, on a GPU, the replaced kernel is timed, too, once the file has passed\n"
     "the accuracy gate. The log has the result under the file's name; it never becomes\n"
     "wisdom.\n\n"
     "  kernelgen bench ops/bias_relu.kg --dtype T=f32\n"
     "  kernelgen emit ops/bias_relu.kg --target ptx --out mine.ptx\n"
     "  kernelgen bench ops/bias_relu.kg --device cuda:0 --override mine.ptx\n",
     SUBJECT_OPTIONS | CLI_RIGOR | CLI_TIME | CLI_OVERRIDE, 1, 1, "*.kg", NULL, cli_bench},
    {"contest", "OP.kg FOLDER [OPTIONS]", "the kernels of a folder beside the generated one",
     "Every .c file of the folder (for GPUs: .cu and .ptx) is a candidate, written by hand or by "
     "a\n"
     "model, in the form that 'verify --candidate' takes. Each is judged by the accuracy gate in "
     "a\n"
     "process of its own; what passed is timed alternately with the generated kernel and the\n"
     "baseline. The list ranks them; files that fail stand below, with the reason. Outcomes are "
     "on\n"
     "record as foreign ones and never become wisdom; a file that is on record is not measured\n"
     "again. A file that fails is a result, and the exit status is 0; an empty folder is bad "
     "input.\n\n"
     "  kernelgen contest ops/softmax.kg examples/candidates --op softmax --dtype T=f32\n"
     "  kernelgen contest ops/softmax.kg drafts --op softmax --device cuda:0 --json\n",
     SUBJECT_OPTIONS | CLI_RIGOR | CLI_TIME, 2, 2, "*.kg", "/", cli_contest},
    {"profile", "OP.kg [OPTIONS]", "every config with bound, outcome and time; Top 10 first",
     "Measures the whole space. Earlier measurements are not repeated.\n\n"
     "  kernelgen profile ops/softmax.kg --op softmax --dtype T=f32\n"
     "  kernelgen profile ops/softmax.kg --op softmax --json --out softmax.json\n",
     SUBJECT_OPTIONS | CLI_TIME | CLI_OUT, 1, 1, "*.kg", NULL, cli_profile},
    {"explain", "OP.kg [OPTIONS]", "why this config: what was tried, pruned, refused",
     "Of the best that is known; if nothing is, of what the rules choose. --rigor measure "
     "searches\n"
     "first.\n\n"
     "  kernelgen explain ops/bias_relu.kg --dtype T=f32\n"
     "  kernelgen explain ops/bias_relu.kg --dtype T=f32 --rigor measure\n",
     SUBJECT_OPTIONS | CLI_RIGOR | CLI_TIME | CLI_OUT, 1, 1, "*.kg", NULL, cli_explain},
    {"asm", "FILE [OPTIONS] | --compare A B [OPTIONS]",
     "resources, limits and main loop of a .ptx, .cubin, .o or .so",
     "Resources, occupancy and what limits it, the main loop and its instructions, spills, "
     "advice;\n"
     "with --grid also the waves, a bound and an estimate of the time. FILE may be - for standard\n"
     "input. No GPU and no compiler is needed. docs/asm.md explains every line.\n\n"
     "  kernelgen asm matmul.cubin\n"
     "  kernelgen asm --compare before.cubin after.cubin\n"
     "  kernelgen asm gemm.cubin --kernel gemm_128x128 --device h100 --grid 1024 --smem 98304\n"
     "  kernelgen asm k.cubin --block 256 --grid 4096 --read-bytes 1e9 --flops 2e12 --json\n"
     "  nvcc -cubin -arch sm_90a -Xptxas -v -o k.cubin k.cu 2>k.log\n"
     "  kernelgen asm k.cubin --log k.log\n"
     "  cuobjdump -xelf all app && kernelgen asm app.1.sm_90.cubin\n",
     CLI_ASSEMBLY | CLI_JSON | CLI_OUT, 1, 2, "*.ptx *.cubin *.o *.so", NULL, cli_asm},
    {"fit", "[SAMPLES.jsonl]", "fits the model's coefficients to measured kernels, and judges them",
     "Without a file, fits to every recorded candidate with its features and its measured time.\n"
     "Shows, per device and family, the coefficients and how well they order held-out ops (with\n"
     "a single op, held-out problems), compared with the prior, the points and the bound: the\n"
     "share of pairs in the right order, the loss from measuring only the first 1, 8 or 16, and\n"
     "what pruning would have dropped wrongly. The model describes GPUs: for kernels of the host\n"
     "the bounds of their families are judged. See docs/model.md.\n\n"
     "  kernelgen fit\n"
     "  kernelgen fit --device h100 --family contract/wgmma --json --out fitted.json\n"
     "  kernelgen asm k.cubin --grid 1024 --model fitted.json\n"
     "  kernelgen fit --export samples.jsonl\n"
     "  cat *.jsonl | kernelgen fit -\n"
     "  kernelgen asm k.cubin --grid 1024 --flops 1.4e11 --sample gemm/4096=2.1e-4 "
     ">>samples.jsonl\n",
     CLI_FIT | CLI_JSON | CLI_OUT, 0, 1, "*.jsonl", NULL, cli_fit},
    {"pack", "MODEL [--out FOLDER]", "4-bit checkpoints into the packed layout",
     "MODEL is a .safetensors or .gguf file, or a folder of .safetensors. Layers of GPTQ, AWQ,\n"
     "compressed-tensors and GGUF (Q4_0, Q4_1, Q4_K) are listed; with --out each is packed into a\n"
     "file of its own, and compared with what was read before it is written. docs/packed.md\n"
     "describes the layout.\n\n"
     "  kernelgen pack Llama-3-8B-GPTQ\n"
     "  kernelgen pack Llama-3-8B-GPTQ --out packed\n"
     "  kernelgen pack model-q4_k_m.gguf --out packed --json\n",
     CLI_PACKED | CLI_JSON, 1, 1, "*.safetensors *.gguf", NULL, cli_pack},
    {"wisdom", "list|export|import|merge|forget [ARGUMENT]",
     "the best known choices, and moving them",
     "  kernelgen wisdom list [OP]            the best known choices (of one op)\n"
     "  kernelgen wisdom export [FILE]        as JSON lines, to a file or stdout\n"
     "  kernelgen wisdom import FILE          all or nothing; reports lines that cannot match "
     "here\n"
     "  kernelgen wisdom merge FILE           the same: faster known choices stay\n"
     "  kernelgen wisdom forget OP|all        delete it (of one op)\n",
     CLI_JSON, 1, 2, "list export import merge forget", "*.jsonl", cli_wisdom},
    {"patterns", "[list|favourites|export|import] [FILE]", "what tends to win, with counts",
     "Of each class of problem, dtype, bucket of sizes and kind of device: which values of "
     "parameters,\n"
     "families and groupings won or lost in how many problems, by how much, with what confidence, "
     "and\n"
     "which ones failed. Searches try first what won elsewhere, and estimates are corrected by "
     "it.\n"
     "docs/patterns.md explains the columns. Favourites are whole configs that came near the best\n"
     "of other problems, and that searches try before the rule's choice.\n\n"
     "  kernelgen patterns\n"
     "  kernelgen patterns favourites\n"
     "  kernelgen patterns --json\n"
     "  kernelgen patterns export patterns.jsonl   as JSON lines, to a file or stdout\n"
     "  kernelgen patterns import patterns.jsonl   all or nothing; twice is once\n",
     CLI_JSON, 0, 2, "list favourites export import", "*.jsonl", cli_patterns},
    {"log", "[OP] [--out FILE|FOLDER/] [--lang zh]",
     "the record of the optimisation rounds, as Markdown",
     "Of each problem what the builds reached, their rounds as a story (the version, what limited\n"
     "it, the change and why, the code before and after, the result, the lesson), and what was\n"
     "measured or failed. Every number is on record. With --out FOLDER/, or a folder that exists,\n"
     "the log of the op is written there as optimization_log.md and its definition document as\n"
     "definition.md. docs/log.md tells more.\n\n"
     "  kernelgen log bias_relu\n"
     "  kernelgen log bias_relu --lang zh --out optimization_log.md\n"
     "  kernelgen log bias_relu --out records/bias_relu/\n",
     CLI_LOG | CLI_LANG, 0, 1, NULL, NULL, cli_log},
    {"report", "[OP] [--out FILE.html|DIR/] [--text] [--against OLD.jsonl]",
     "the records as one HTML page, with plots, or as text",
     "All records, or those of one op: one roofline of all problems, predicted against measured\n"
     "times, speed-ups by shape; of each problem the chosen kernel against roofline and baseline,\n"
     "its verdict, the rounds, the fastest candidates, and what was dropped and why. The page "
     "needs\n"
     "no other file, and can be sorted and filtered. In a folder it is named index.html.\n"
     "docs/report.md explains it.\n\n"
     "With --text the figures are drawn in the terminal: as wide as it is or as COLUMNS says, in\n"
     "ASCII unless the locale is UTF-8, without colour unless it is a terminal and NO_COLOR is "
     "empty.\n\n"
     "With --against, what got slower or faster by more than noise since that file was written by\n"
     "'kernelgen wisdom export'; exit status 1 if something got slower. It is text, or JSON; with\n"
     "--out the page has it as a table, and marks it in the list.\n\n"
     "  kernelgen report --out report.html\n"
     "  kernelgen report softmax --out softmax.html\n"
     "  kernelgen report --text | less -R\n"
     "  kernelgen report --against last_week.jsonl\n"
     "  kernelgen report --against last_week.jsonl --out pages/\n",
     CLI_OUT | CLI_JSON | CLI_AGAINST, 0, 1, NULL, NULL, cli_report},
    {"devices", "", "what this machine has, and what it lacks",
     "  kernelgen devices\n  kernelgen devices --json\n", CLI_JSON | CLI_THREADS, 0, 0, NULL, NULL,
     cli_devices},
    {"completions", "bash|zsh|fish", "completion of command lines, for a shell",
     "'make install' puts them where the shells look. To have them without it:\n\n"
     "  source <(kernelgen completions bash)    in ~/.bashrc\n"
     "  source <(kernelgen completions zsh)     in ~/.zshrc, after compinit\n"
     "  kernelgen completions fish | source     in ~/.config/fish/config.fish\n",
     CLI_ALONE, 1, 1, "bash zsh fish", NULL, cli_completions},
    {"help", "[COMMAND]", "what a command does, its options, examples",
     "  kernelgen help\n  kernelgen help build\n", CLI_ALONE, 0, 1, "@commands", NULL,
     cli_show_help},
    {0},
};

// Set by Ctrl-C and read by the library between steps of its work. It is the only mutable global of
// the tool, because a signal handler needs one.
static volatile int interrupted;

// The process ends within a second, whatever it waits for: what was measured is kept already, and
// children end with it.
static void on_late(int signal_number)
{
    static const char words[] = "kernelgen: interrupted; what was measured is kept\n";
    (void)signal_number;
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        _exit(CLI_INTERRUPTED);
    _exit(CLI_INTERRUPTED);
}

static void on_interrupt(int signal_number)
{
    const struct itimerval patience = {.it_value = {.tv_usec = 900000}};
    interrupted = 1;
    // A second signal ends the process at once.
    signal(signal_number, SIG_DFL);
    setitimer(ITIMER_REAL, &patience, NULL);
}

static void show_notice(void *user, const char *text)
{
    (void)user;
    cli_progress_clear();
    fprintf(stderr, "kernelgen: note: %s\n", text);
}

// On standard error, because standard output has the command's result.
static void show_timings(const struct cli *cli)
{
    char *text;
    cli_progress_clear();
    fflush(stdout);
    if (kg_context_timings(cli->context, cli->options.json, &text) == KG_OK)
        fputs(text, stderr);
    kg_text_release(text);
}

static enum kg_status create_context(int threads, struct kg_context **context)
{
    struct kg_options options = {
        .size = sizeof options,
        .threads = threads,
        .cancel = &interrupted,
        .progress = cli_progress,
        .notice = show_notice,
    };
    return kg_context_create(&options, context);
}

static enum cli_exit run(const struct cli_command *command, struct cli *cli)
{
    if (command->options & CLI_ALONE)
        return command->run(cli);
    int threads = 0;
    if (cli->options.threads) {
        char *end;
        long number = strtol(cli->options.threads, &end, 10);
        if (*end || number < 1 || number > 4096)
            return cli_bad_usage("--threads '%s' is not a number from 1 to 4096",
                                 cli->options.threads);
        threads = (int)number;
    }
    double effort = 1;
    if (cli->options.effort) {
        char *end;
        effort = strtod(cli->options.effort, &end);
        if (*end || end == cli->options.effort)
            return cli_bad_usage("--effort '%s' is not a number", cli->options.effort);
    }
    enum kg_status status = create_context(threads, &cli->context);
    if (status == KG_OK && cli->options.effort)
        status = kg_context_set_effort(cli->context, effort);
    if (status == KG_OK && cli->options.protocol)
        status = kg_context_set_protocol(cli->context, cli->options.protocol);
    if (status == KG_OK)
        kg_context_set_nearest(cli->context, cli->options.nearest);
    if (status == KG_OK)
        kg_context_set_sanitize(cli->context, cli->options.sanitize);
    enum cli_exit exit_status = status == KG_OK ? command->run(cli) : cli_fail(cli, status);
    if (status == KG_OK && cli->options.timings)
        show_timings(cli);
    kg_context_destroy(cli->context);
    return exit_status;
}

// The results so far were shown; the exit status tells that they are incomplete.
static enum cli_exit note_interruption(enum cli_exit exit_status)
{
    if (!interrupted ||
        (exit_status != CLI_DONE && exit_status != CLI_REFUSED && exit_status != CLI_SLOW))
        return exit_status;
    fflush(stdout);
    return cli_interrupted();
}

// Checks that all output was written. After a failed write the stream has its error flag but no
// errno; another write gives it.
static enum cli_exit finish_output(enum cli_exit exit_status)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_status;
    if (!errno) {
        clearerr(stdout);
        putchar('\n');
        fflush(stdout);
    }
    return exit_status == CLI_DONE ? cli_not_written("standard output", errno ? errno : EIO)
                                   : exit_status;
}

int main(int count, char **words)
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    signal(SIGALRM, on_late);
    // Exceeding a limit on the size of files is then reported like any write error.
    signal(SIGXFSZ, SIG_IGN);
    if (count < 2) {
        cli_overview();
        return CLI_BAD_INPUT;
    }
    if (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) {
        cli_overview();
        return (int)finish_output(CLI_DONE);
    }
    if (strcmp(words[1], "--version") == 0) {
        printf("kernelgen %s\n", kg_version());
        return (int)finish_output(CLI_DONE);
    }
    const struct cli_command *command = cli_find_command(words[1]);
    if (!command)
        return (int)cli_unknown_command(words[1]);
    struct cli cli = {.cancel = &interrupted};
    for (int i = 2; i < count && command->options & CLI_JSON; i++)
        if (strcmp(words[i], "--json") == 0)
            cli_json_want(); // also of what is wrong with the other options
    enum cli_exit exit_status = cli_parse(command, count - 2, words + 2, &cli.options);
    if (exit_status != CLI_DONE)
        return (int)exit_status;
    if (cli.options.help) {
        cli_help(command);
        return (int)finish_output(CLI_DONE);
    }
    exit_status = cli_check_overwriting(command, &cli.options);
    // Whatever the command: compilers and kernels that it starts do not get it.
    cli.draft_key = draft_take_key("KERNELGEN_DRAFT_KEY");
    if (exit_status == CLI_DONE)
        exit_status = run(command, &cli);
    draft_forget_key(cli.draft_key);
    cli_progress_clear();
    return (int)finish_output(note_interruption(exit_status));
}
