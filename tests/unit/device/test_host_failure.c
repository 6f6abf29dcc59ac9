// What compilers say when the machine keeps them from their work, word for word, and what they say
// of sources: the former is no candidate's fault.

#include "device/host/host_device.h"
#include "device/process.h"
#include "test.h"

#include <signal.h>

static const struct sample {
    const char *said;
    const char *cause; // NULL: the source
} samples[] = {
    // A limit on the size of files: cc1, ld, Clang's own assembler, its linker.
    {"gcc: internal compiler error: File size limit exceeded signal terminated program cc1\n"
     "Please submit a full bug report, with preprocessed source (by using -freport-bug).\n",
     "ulimit -f"},
    {"collect2: fatal error: ld terminated with signal 25 [File size limit exceeded]\n"
     "compilation terminated.\n",
     "ulimit -f"},
    {"0.\tProgram arguments: /usr/bin/clang -cc1 kernel.c\n 4 write (/lib/libc.so.6)\n"
     "fatal error: error in backend: IO failure on output stream: File too large\n",
     "ulimit -f"},
    {"clang: error: unable to execute command: File size limit exceeded\n"
     "clang: error: linker command failed due to signal (use -v to see invocation)\n",
     "linker command failed"},
    // A full disk: cc1, as, GNU ld, gold.
    {"kernel.c:182:1: fatal error: error writing to ./ccK5XRbq.s: No space left on device\n"
     "  182 | }\n      | ^\ncompilation terminated.\n",
     "the disk is full"},
    {"./cc.s: Assembler messages:\n./cc.s: Fatal error: can't write 15 bytes to section .text of "
     "./cc.o: 'No space left on device'\n",
     "the disk is full"},
    {"/usr/bin/ld: final link failed: No space left on device\n"
     "collect2: error: ld returned 1 exit status\n",
     "the disk is full"},
    {"/usr/bin/ld.gold: fatal error: kernel.so: Disk quota exceeded\n", "the quota is used up"},
    // Memory, time, processes, parts that are missing.
    {"gcc: fatal error: Killed signal terminated program cc1\n", "memory"},
    {"clang: error: unable to execute command: Killed\n", "memory"},
    {"cc1: out of memory allocating 65536 bytes after a total of 0 bytes\n", "memory"},
    {"virtual memory exhausted: Cannot allocate memory\n", "memory"},
    {"clang: error while loading shared libraries: libLLVM.so: failed to map segment from shared "
     "object\n",
     "memory"},
    {"collect2: fatal error: ld terminated with signal 24 [CPU time limit exceeded]\n",
     "ulimit -t"},
    {"gcc: fatal error: cannot execute 'as': posix_spawn: Resource temporarily unavailable\n",
     "processes"},
    {"collect2: fatal error: cannot find 'ld'\n", "install it whole"},
    // Sources, whatever they quote, and compilers that crash on one.
    {"", NULL},
    {"kernel.c:12:5: error: 'No space left on device' is no type\n", NULL},
    {"kernel.c: In function 'run':\nkernel.c:3:2: error: #error Killed\n"
     "    3 | #error Killed: out of memory\n",
     NULL},
    {"./cc.s:7: Error: no such instruction: `vaddsh'\n", NULL},
    {"/usr/bin/ld: ./cc.o: relocation R_X86_64_32 can not be used when making a shared object\n",
     NULL},
    {"gcc: internal compiler error: Segmentation fault signal terminated program cc1\n", NULL},
};

static struct kg_error error;

static void words_are_understood(void)
{
    struct kg_process_end end = {.exit_status = 1};
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        const struct sample *sample = &samples[i];
        enum kg_status expected = sample->cause ? KG_ERROR_MISSING : KG_ERROR_COMPILE;
        CHECK_STATUS(kg_host_explain_failure("cc 12", &end, sample->said, &error), expected,
                     &error);
        CHECK(strstr(error.text, sample->cause ? sample->cause : "refused the kernel"));
        CHECK(strstr(error.text, "(cc 12)"));
        if (test_failures)
            printf("%s-> %s\n", sample->said, error.text);
    }
}

// The program and its signal are in what is quoted.
static void what_was_said_is_quoted(void)
{
    struct kg_process_end end = {.exit_status = 1};
    kg_host_explain_failure("cc", &end, samples[1].said, &error);
    CHECK(strstr(error.text, "ld terminated with signal 25 [File size limit exceeded]"));
    CHECK(!strstr(error.text, "compilation terminated"));
    char line[4000];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    memcpy(line + 100, "No space left on device", 23);
    kg_host_explain_failure("cc", &end, line, &error);
    CHECK(strlen(error.text) < 700);
}

static void its_own_end_is_named(void)
{
    static const struct {
        int signal;
        enum kg_status status;
        const char *said;
    } ends[] = {{SIGXFSZ, KG_ERROR_MISSING, "SIGXFSZ"},
                {SIGKILL, KG_ERROR_MISSING, "SIGKILL"},
                {SIGSEGV, KG_ERROR_COMPILE, "crashed on the kernel"}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct kg_process_end end = {.exit_status = -1, .signal = ends[i].signal};
        CHECK_STATUS(kg_host_explain_failure("cc", &end, "", &error), ends[i].status, &error);
        CHECK(strstr(error.text, ends[i].said));
    }
}

TEST_MAIN(words_are_understood, what_was_said_is_quoted, its_own_end_is_named)
