// What the sanitizers print, as their documentation shows it, and what may come instead.

#include "device/sanitizer.h"
#include "test.h"

typedef bool reader(const char *log, char *finding, size_t room);

static void reads(reader *read, const char *log, bool ended, const char *expected)
{
    char finding[512];
    bool has_ended = read(log, finding, sizeof finding);
    if (has_ended != ended || strcmp(finding, expected) != 0)
        fprintf(stderr, "ended %d, found '%s' in\n%s\n", has_ended, finding, log);
    CHECK(has_ended == ended);
    CHECK(strcmp(finding, expected) == 0);
}

#define HEAD "========= COMPUTE-SANITIZER\n"

static void of_gpus(void)
{
    reader *read = kg_sanitizer_read_cuda;
    reads(read, HEAD "========= ERROR SUMMARY: 0 errors\n", true, "");
    reads(read, HEAD "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
          true, "");
    reads(read,
          HEAD "what the program prints\n"
               "========= Invalid __global__ read of size 4 bytes\n"
               "=========     at kg_copy_0(const float *, float *)+0x150 in copy.cu:9\n"
               "=========     by thread (0,0,0) in block (3,0,0)\n"
               "=========     Access at 0x7f1 is out of bounds\n"
               "========= \n"
               "========= ERROR SUMMARY: 2 errors\n",
          true,
          "Invalid __global__ read of size 4 bytes at kg_copy_0(const float *, float *)+0x150 in "
          "copy.cu:9");
    reads(read,
          HEAD "========= Error: Race reported between Write access at softmax_0+0x1a0 in s.cu:9\n"
               "=========     and Read access at softmax_0+0x210 in s.cu:12 [128 hazards]\n"
               "========= \n"
               "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n",
          true,
          "Error: Race reported between Write access at softmax_0+0x1a0 in s.cu:9 and Read access "
          "at softmax_0+0x210 in s.cu:12 [128 hazards]");
    // A process and the one it has started, which is the one with the error.
    reads(read,
          HEAD "========= Barrier error detected. Divergent thread(s) in block.\n"
               "=========     at row_0+0x90\n"
               "========= ERROR SUMMARY: 1 error\n"
               "========= ERROR SUMMARY: 0 errors\n",
          true, "Barrier error detected. Divergent thread(s) in block. at row_0+0x90");
    // Words that are no findings, if it counts none.
    reads(read,
          HEAD "========= Target application returned an error\n"
               "========= ERROR SUMMARY: 0 errors\n",
          true, "");
    reads(read, HEAD "========= ERROR SUMMARY: 3 errors\n", true,
          "3 findings, which it did not describe");
    // It did not get to its end.
    reads(read, "", false, "");
    reads(read, HEAD, false, "");
    reads(read, HEAD "========= ERROR SUM", false, "ERROR SUM");
    reads(read, HEAD "========= Internal Sanitizer Error: the device is not supported\n", false,
          "Internal Sanitizer Error: the device is not supported");
}

static void of_compilers(void)
{
    reader *read = kg_sanitizer_read_host;
    reads(read, "", true, "");
    reads(read, "nothing of importance\n", true, "");
    reads(read,
          "=================================================================\n"
          "==42==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602 at pc 0x7f bp\n"
          "READ of size 4 at 0x60200001 thread T0\n"
          "    #0 0x7f (/tmp/kernel.so+0x11)\n",
          true, "heap-buffer-overflow, READ of size 4");
    reads(read, "==42==ERROR: AddressSanitizer: attempting double-free on 0x60 in thread T0:\n",
          true, "attempting double-free");
    reads(read, "copy.c:9:12: runtime error: shift exponent 32 is too large\nmore\n", true,
          "shift exponent 32 is too large");
    reads(read, "runtime error: ", true, "");
}

// Whatever comes: nothing is read behind the end, and what is found fits.
static void long_lines(void)
{
    struct kg_text log = {0};
    char finding[64];
    kg_text_add(&log, "========= ");
    for (int i = 0; i < 5000; i++)
        kg_text_add(&log, "runtime error: x ");
    CHECK(!kg_sanitizer_read_cuda(log.data, finding, sizeof finding));
    CHECK(strlen(finding) == sizeof finding - 1);
    CHECK(kg_sanitizer_read_host(log.data, finding, sizeof finding));
    CHECK(strlen(finding) == sizeof finding - 1);
    kg_text_free(&log);
}

// A command has room for its words, and no more.
static void commands(void)
{
    struct kg_sanitizer_command command = {.count = 0};
    struct kg_error error = {0};
    for (int i = 0; i < KG_SANITIZER_WORDS; i++)
        CHECK_STATUS(kg_sanitizer_add(&command, &error, "word %d", i), KG_OK, &error);
    CHECK(strcmp(command.words[3], "word 3") == 0);
    CHECK(kg_sanitizer_add(&command, &error, "one more") == KG_ERROR_MEMORY);
    CHECK(command.count == KG_SANITIZER_WORDS);
    kg_sanitizer_command_free(&command);
    CHECK(command.count == 0);
}

TEST_MAIN(of_gpus, of_compilers, long_lines, commands)
