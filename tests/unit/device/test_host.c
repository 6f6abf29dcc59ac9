// The host backend with handwritten kernels: compiling, the object cache and its damage, loading,
// and what each failing compiler is reported as.

#include "base/files.h"
#include "device/host/host_device.h"
#include "support/folder.h"
#include "test.h"

#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/kg-test-host-XXXXXX";
static struct kg_error error;

#define ABI                                                                                        \
    "#include <stdint.h>\n"                                                                        \
    "struct kg_host_call { void *const *tensor; const int64_t *size; const int64_t *stride;\n"     \
    "    char *shared; char *scratch; int thread; int threads; };\n"

// y[i] = 2 * x[i], in blocks of 100.
static const char doubling[] =
    ABI "int64_t twice_items(const struct kg_host_call *call, int phase)\n"
        "{ return phase == 0 ? (call->size[0] + 99) / 100 : -1; }\n"
        "int64_t twice_bytes(const struct kg_host_call *call, int kind)\n"
        "{ (void)call; return kind == 2 ? 1 : 0; }\n"
        "void twice_run(const struct kg_host_call *call, int phase, int64_t begin, int64_t end)\n"
        "{ const float *x = call->tensor[0]; float *y = call->tensor[1]; (void)phase;\n"
        "  for (int64_t b = begin; b < end; b++)\n"
        "    for (int64_t i = b * 100; i < (b + 1) * 100 && i < call->size[0]; i++)\n"
        "      y[i] = 2 * x[i]; }\n";

static const struct kg_source source = {.text = doubling, .entry = "twice", .options = ""};

static struct kg_device *open_device(const char *cache, int threads)
{
    struct kg_device *device = NULL;
    CHECK_STATUS(kg_device_open("host", cache, threads, &device, &error), KG_OK, &error);
    return device;
}

// Opens a device whose compiler is a script: it answers the questions asked on opening, and does
// `script` when it is to compile.
static struct kg_device *open_with_script(const char *name, const char *script)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    fprintf(file,
            "#!/bin/sh\ncase \"$*\" in\n*--version*) echo %s 1;;\n*/dev/null*) ;;\n"
            "*) %s;;\nesac\n",
            name, script);
    fclose(file);
    chmod(path, 0700);
    setenv("CC", path, 1);
    struct kg_device *device = open_device(folder, 1);
    unsetenv("CC");
    return device;
}

static void run_doubling(struct kg_device *device, const struct kg_binary *binary, int64_t count)
{
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(device->backend->load(device, binary, "twice", &kernel, &error), KG_OK, &error);
    if (!kernel)
        return;
    float *x = malloc(sizeof(float) * (size_t)(count + 1));
    float *y = malloc(sizeof(float) * (size_t)(count + 1));
    for (int64_t i = 0; i <= count; i++) {
        x[i] = (float)i;
        y[i] = -1;
    }
    void *tensors[] = {x, y};
    struct kg_launch launch = {.tensors = tensors, .sizes = &count, .strides = NULL};
    CHECK_STATUS(device->backend->launch(kernel, &launch, &error), KG_OK, &error);
    int64_t right = 0;
    for (int64_t i = 0; i < count; i++)
        right += y[i] == 2 * x[i];
    CHECK(right == count);
    CHECK(y[count] == -1);
    device->backend->unload(kernel);
    free(x);
    free(y);
}

// Does the machine's processor say that it has this?
static bool has_flag(const char *flag)
{
    char *text;
    size_t length;
    if (kg_files_read("/proc/cpuinfo", 1 << 24, &text, &length, &error) != KG_OK)
        return false;
    bool has = strstr(text, flag) != NULL;
    free(text);
    return has;
}

static void facts_make_sense(void)
{
    struct kg_device *device = open_device(folder, 0);
    const struct kg_device_facts *facts = &device->facts;
    CHECK(facts->name[0] && facts->isa[0]);
    CHECK(facts->units >= 1);
    CHECK(facts->clock > 1e8 && facts->clock < 2e10);
    CHECK(facts->bandwidth > 1e8);
    CHECK(facts->vector_bytes >= 16);
    CHECK(facts->flops[KG_TYPE_F32] == 2 * facts->flops[KG_TYPE_F64]);
    CHECK(facts->flops[KG_TYPE_F64] > 0 && facts->flops[KG_TYPE_I64] > 0);
    CHECK(device->compiler[0]);
    // Compilers are told of the widest vectors, whatever CPU they see.
    if (facts->vector_bytes == 16)
        CHECK(!strstr(device->compiler, "-mprefer-vector-width"));
    else if (facts->vector_bytes == 32 && strstr(device->compiler, "-march=native"))
        CHECK(strstr(device->compiler, "-mprefer-vector-width=256") != NULL);
    else if (facts->vector_bytes == 64 && has_flag("avx512_vbmi2")) // not the first of these
        CHECK(strstr(device->compiler, "-mprefer-vector-width=512") != NULL);
    // What was measured is kept.
    struct kg_device *again = open_device(folder, 0);
    CHECK(again->facts.bandwidth != 0);
    struct kg_device *third = open_device(folder, 0);
    CHECK(again->facts.bandwidth == third->facts.bandwidth);
    CHECK(again->facts.clock <= third->facts.clock);
    CHECK(again->facts.interleaving > 0 && again->facts.interleaving == third->facts.interleaving);
    CHECK(again->facts.streamed >= 1 << 20 && again->facts.streamed == third->facts.streamed);
    kg_device_close(again);
    kg_device_close(third);
    kg_device_close(device);
    kg_device_close(NULL);
}

// The file of what was measured; the only one of its kind. `format` has a place for the date.
static void write_numbers(const char *format, long long age)
{
    glob_t found;
    char pattern[256], text[256];
    snprintf(pattern, sizeof pattern, "%s/caches/kernelgen/machine-*", folder);
    snprintf(text, sizeof text, format, (long long)time(NULL) - age);
    CHECK(glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1);
    FILE *file = fopen(found.gl_pathv[0], "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    globfree(&found);
}

static double open_bandwidth(double noted)
{
    struct kg_device *device = open_device(folder, 0);
    double bandwidth = device->facts.bandwidth;
    if (noted > 0)
        kg_device_note_bandwidth(device, noted);
    kg_device_close(device);
    return bandwidth;
}

static void bandwidth_only_grows(void)
{
    static const char low[] =
        "clock 2e9 bandwidth 2e8 measured %lld seen 0 interleaving 1 streamed 4e6\n";
    static const char high[] =
        "clock 2e9 bandwidth 9e13 measured %lld seen 0 interleaving 1 streamed 4e6\n";
    open_bandwidth(0);
    write_numbers(low, 5);
    CHECK(open_bandwidth(0) == 2e8); // it was measured just now
    write_numbers(low, 3500);
    CHECK(open_bandwidth(0) == 2e8);
    write_numbers(low, 3700);
    double measured = open_bandwidth(0);
    CHECK(measured > 2e8);
    CHECK(fabs(open_bandwidth(0) - measured) <= 1e-6 * measured);
    write_numbers(low, -100000); // a date in the future
    CHECK(open_bandwidth(0) > 2e8);
    write_numbers("clock 2e9 bandwidth 2e8 measured %lld seen 0 interleaving 1\n", 5);
    CHECK(open_bandwidth(0) > 2e8); // as it was written before
    write_numbers("clock 2e9 bandwidth 2e8 measured %lld seen 0 interleaving 1 streamed 0\n", 5);
    CHECK(open_bandwidth(0) > 2e8);
    write_numbers(high, 3700);
    CHECK(open_bandwidth(0) == 9e13);
    // What a kernel reaches counts when it is measured again, unless it is absurd; at once, if the
    // number is far off.
    write_numbers(low, 5);
    CHECK(open_bandwidth(2.2e8) == 2e8 && open_bandwidth(1e12) == 2e8 && open_bandwidth(0) == 2e8);
    CHECK(open_bandwidth(7e8) == 2e8 && open_bandwidth(0) >= 7e8);
}

static double open_clock(void)
{
    struct kg_device *device = open_device(folder, 0);
    double clock = device->facts.clock;
    kg_device_close(device);
    return clock;
}

// A core may have been slow when its clock was measured: every opening looks at it again.
static void clock_only_grows(void)
{
    static const char slow[] =
        "clock 2e8 bandwidth 2e8 measured %lld seen 0 interleaving 1 streamed 4e6\n";
    static const char fast[] =
        "clock 1.9e10 bandwidth 2e8 measured %lld seen 0 interleaving 1 streamed 4e6\n";
    write_numbers(slow, 5);
    double clock = open_clock();
    CHECK(clock > 4e8);
    CHECK(open_clock() >= 0.99 * clock); // it is kept
    CHECK(open_bandwidth(0) == 2e8);     // and nothing else was measured
    write_numbers(fast, 5);
    CHECK(open_clock() == 1.9e10);
    write_numbers(slow, 100000); // for the tests that follow
}

// Wherever compiled objects are kept, one machine has one bandwidth.
static void one_for_all_folders(void)
{
    static const char noted[] =
        "clock 2e9 bandwidth 3e8 measured %lld seen 0 interleaving 1 streamed 4e6\n";
    char other[] = "/tmp/kg-test-other-XXXXXX";
    open_bandwidth(0);
    write_numbers(noted, 5);
    CHECK(folder_make(other));
    struct kg_device *device = open_device(other, 0);
    CHECK(device->facts.bandwidth == 3e8);
    CHECK(device->facts.measured >= (int64_t)time(NULL) - 20);
    kg_device_close(device);
    folder_remove(other);
    write_numbers(noted, 100000); // for the tests that follow
}

static void names_are_checked(void)
{
    struct kg_device *device = NULL;
    CHECK_STATUS(kg_device_open("hots", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
    CHECK(!device && strstr(error.text, "did you mean 'host'"));
    CHECK_STATUS(kg_device_open("host:", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_STATUS(kg_device_open("host:x", folder, 0, &device, &error), KG_ERROR_ARGUMENT, &error);
    CHECK_STATUS(kg_device_open("host:7", folder, 0, &device, &error), KG_ERROR_MISSING, &error);
    CHECK_STATUS(kg_device_open("host:99999999999", folder, 0, &device, &error), KG_ERROR_ARGUMENT,
                 &error);
}

static void compiles_once(void)
{
    struct kg_device *device = open_device(folder, 2);
    struct kg_binary first, second, other;
    CHECK_STATUS(device->backend->compile(device, &source, 60, &first, &error), KG_OK, &error);
    CHECK(!first.from_cache && first.seconds > 0);
    CHECK_TEXT(first.log, "");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &second, &error), KG_OK, &error);
    CHECK(second.from_cache && second.seconds == 0);
    CHECK_TEXT(second.path, first.path);
    // Other options, another object.
    struct kg_source changed = source;
    changed.options = "-DCHANGED=1  -Wall";
    CHECK_STATUS(device->backend->compile(device, &changed, 60, &other, &error), KG_OK, &error);
    CHECK(!other.from_cache && strcmp(other.path, first.path) != 0);
    run_doubling(device, &second, 12345);
    run_doubling(device, &second, 99);
    run_doubling(device, &second, 0);
    kg_binary_free(&first);
    kg_binary_free(&second);
    kg_binary_free(&other);
    kg_device_close(device);
}

// Changes the object at `path` by `damage` and expects it to be noticed and replaced.
static void survives(struct kg_device *device, const char *path, void (*damage)(const char *path))
{
    damage(path);
    struct kg_binary binary;
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    CHECK(!binary.from_cache);
    run_doubling(device, &binary, 500);
    damage(path);
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(device->backend->load(device, &binary, "twice", &kernel, &error), KG_ERROR_CORRUPT,
                 &error);
    CHECK(!kernel && !kg_files_exists(path));
    kg_binary_free(&binary);
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    kg_binary_free(&binary);
}

static void truncate_object(const char *path)
{
    struct stat status;
    CHECK(stat(path, &status) == 0);
    CHECK(truncate(path, status.st_size / 2) == 0);
}

static void empty_object(const char *path)
{
    CHECK(truncate(path, 0) == 0);
}

static void flip_bit(const char *path)
{
    FILE *file = fopen(path, "r+");
    fseek(file, 1000, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, 1000, SEEK_SET);
    fputc(byte ^ 4, file);
    fclose(file);
}

static void damage_is_noticed(void)
{
    struct kg_device *device = open_device(folder, 1);
    struct kg_binary binary;
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    survives(device, binary.path, truncate_object);
    survives(device, binary.path, empty_object);
    survives(device, binary.path, flip_bit);
    kg_binary_free(&binary);
    kg_device_close(device);
}

static void failures_are_told_apart(void)
{
    struct kg_binary binary;
    struct kg_device *device = open_device(folder, 1);
    struct kg_source broken = {.text = "int x = ;\n", .entry = "broken", .options = ""};
    CHECK_STATUS(device->backend->compile(device, &broken, 60, &binary, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(strstr(error.text, "kernel.c:1:"));
    CHECK(!binary.path && !binary.log);

    struct kg_source hollow = {.text = "int x;\n", .entry = "hollow", .options = ""};
    struct kg_kernel *kernel = NULL;
    CHECK_STATUS(device->backend->compile(device, &hollow, 60, &binary, &error), KG_OK, &error);
    CHECK_STATUS(device->backend->load(device, &binary, "hollow", &kernel, &error),
                 KG_ERROR_COMPILE, &error);
    CHECK(strstr(error.text, "hollow_items"));
    kg_binary_free(&binary);
    kg_device_close(device);

    setenv("CC", "/nonexistent -m64", 1);
    device = open_device(folder, 1);
    unsetenv("CC");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_MISSING,
                 &error);
    CHECK(strstr(error.text, "/nonexistent") && strstr(error.text, "nstall"));
    kg_device_close(device);

    device = open_with_script("hangs", "sleep 60");
    double start = device->backend->now(device);
    CHECK_STATUS(device->backend->compile(device, &source, 0.3, &binary, &error), KG_ERROR_TIMEOUT,
                 &error);
    CHECK(device->backend->now(device) - start < 30);
    kg_device_close(device);

    device = open_with_script("lies", "exit 0");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_COMPILE,
                 &error);
    CHECK(strstr(error.text, "made nothing"));
    kg_device_close(device);

    device = open_with_script("dies", "kill -9 $$");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_MISSING,
                 &error);
    CHECK(strstr(error.text, "SIGKILL"));
    kg_device_close(device);

    device = open_with_script("chatters", "yes");
    CHECK_STATUS(device->backend->compile(device, &source, 0.5, &binary, &error), KG_ERROR_TIMEOUT,
                 &error);
    kg_device_close(device);

    setenv("CC", "false", 1);
    device = open_device(folder, 1);
    unsetenv("CC");
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_ERROR_MISSING,
                 &error);
    CHECK(strstr(error.text, "--version"));
    kg_device_close(device);
}

static void cc_may_hold_arguments(void)
{
    setenv("CC", "cc -DEXTRA=1", 1);
    struct kg_device *device = open_device(folder, 1);
    unsetenv("CC");
    struct kg_binary binary;
    struct kg_source needs = {.text = "#ifndef EXTRA\n#error no\n#endif\n", .entry = "x"};
    CHECK(strstr(device->compiler, "-DEXTRA=1"));
    CHECK_STATUS(device->backend->compile(device, &needs, 60, &binary, &error), KG_OK, &error);
    kg_binary_free(&binary);
    kg_device_close(device);
}

// KernelGen's own -O3 would define __OPTIMIZE__. What is no option stays in front: ccache's
// compiler.
static void options_of_cc_have_the_last_word(void)
{
    setenv("CC", "env cc -O0", 1);
    struct kg_device *device = open_device(folder, 1);
    unsetenv("CC");
    struct kg_binary binary;
    struct kg_source needs = {.text = "#ifdef __OPTIMIZE__\n#error no\n#endif\n", .entry = "x"};
    CHECK_STATUS(device->backend->compile(device, &needs, 60, &binary, &error), KG_OK, &error);
    kg_binary_free(&binary);
    kg_device_close(device);
}

static void an_unusable_folder_is_replaced(void)
{
    // A file where the folder should be; permissions would not stop root.
    char path[256];
    snprintf(path, sizeof path, "%s/file", folder);
    fclose(fopen(path, "w"));
    struct kg_device *device = open_device(path, 1);
    char private[1024];
    snprintf(private, sizeof private, "%s", device->cache);
    CHECK(strcmp(private, path) != 0);
    struct kg_binary binary;
    CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error), KG_OK, &error);
    run_doubling(device, &binary, 1000);
    kg_binary_free(&binary);
    kg_device_close(device);
    CHECK(!kg_files_exists(private));
}

static void memory_is_aligned(void)
{
    struct kg_device *device = open_device(folder, 2);
    const size_t sizes[] = {0, 1, 100, (size_t)5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory = NULL;
        CHECK_STATUS(device->backend->allocate(device, sizes[i], &memory, &error), KG_OK, &error);
        CHECK((uintptr_t)memory % 64 == 0);
        memset(memory, 1, sizes[i]);
        device->backend->release(device, memory);
    }
    void *memory = NULL;
    CHECK_STATUS(device->backend->allocate(device, SIZE_MAX - 5, &memory, &error), KG_ERROR_MEMORY,
                 &error);
    CHECK(!memory);
    char from[3] = "ab", to[3] = "";
    CHECK_STATUS(device->backend->copy(device, to, from, 3, &error), KG_OK, &error);
    CHECK_TEXT(to, "ab");
    kg_device_close(device);
}

// How often the script above is run for one kernel; it writes a line for each call.
static int count_calls(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s/calls", folder);
    FILE *file = fopen(path, "r");
    int calls = 0;
    for (int c; file && (c = fgetc(file)) != EOF;)
        calls += c == '\n';
    if (file)
        fclose(file);
    remove(path);
    return calls;
}

// The cache has room again when the compiler has failed: another process had filled it. Other
// failures are not tried again.
static void a_disk_that_was_full_is_tried_again(void)
{
    static const struct {
        const char *says;
        enum kg_status status;
        int calls, fails; // compilations, and how many of them fail at first
    } cases[] = {{"No space left on device", KG_OK, 2, 1},
                 {"No space left on device", KG_ERROR_MISSING, 3, 9},
                 {"memory exhausted", KG_ERROR_MISSING, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char script[1024];
        struct kg_binary binary;
        snprintf(script, sizeof script,
                 "echo x >>%s/calls\n[ $(wc -l <%s/calls) -gt %d ] && exec cc \"$@\"\n"
                 "echo 'ld: %s' >&2; exit 1",
                 folder, folder, cases[i].fails, cases[i].says);
        char name[16];
        snprintf(name, sizeof name, "full%d", (int)i);
        struct kg_device *device = open_with_script(name, script);
        CHECK_STATUS(device->backend->compile(device, &source, 60, &binary, &error),
                     cases[i].status, &error);
        CHECK(count_calls() == cases[i].calls);
        if (cases[i].status == KG_OK)
            kg_binary_free(&binary);
        kg_device_close(device);
    }
}

// What is in memory stays there, and memory that was released is not touched: large blocks are
// unmapped then.
static void flushes_change_nothing(void)
{
    enum { BLOCKS = 5 };
    static const size_t sizes[BLOCKS] = {1, 63, 4097, 1000003, (size_t)64 << 20};
    struct kg_device *device = open_device(folder, 2);
    unsigned char *blocks[BLOCKS];
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            CHECK_STATUS(device->backend->allocate(device, sizes[i], (void **)&blocks[i], &error),
                         KG_OK, &error);
            for (size_t k = 0; k < sizes[i]; k += 31)
                blocks[i][k] = (unsigned char)(k + (size_t)i);
        }
        device->backend->flush(device);
        for (int i = 0; i < BLOCKS; i++) {
            bool same = true;
            for (size_t k = 0; k < sizes[i]; k += 31)
                same = same && blocks[i][k] == (unsigned char)(k + (size_t)i);
            CHECK(same);
        }
        for (int i = 0; i < BLOCKS; i++) // in another order than they were allocated
            device->backend->release(device, blocks[(i + 2) % BLOCKS]);
        device->backend->flush(device);
    }
    kg_device_close(device);
}

// More memory than is read to empty the caches: then it is read. Not where that would be gigabytes.
static void large_memory_is_flushed_by_reading(void)
{
    const int64_t most = (int64_t)512 << 20;
    struct kg_device *device = open_device(folder, 2);
    const struct kg_host_device *host = (struct kg_host_device *)device;
    int64_t bytes = 4 * device->facts.cache[3];
    bytes = bytes < ((int64_t)64 << 20) ? (int64_t)64 << 20 : bytes;
    void *memory = NULL;
    if (bytes <= most) {
        CHECK_STATUS(device->backend->allocate(device, (size_t)bytes + 1, &memory, &error), KG_OK,
                     &error);
        device->backend->flush(device);
        CHECK(host->flush_memory != NULL && host->flush_bytes == (size_t)bytes);
        device->backend->release(device, memory);
    }
    kg_device_close(device);
}

static atomic_bool is_over;

// Not by allocating: forks wait until nothing is being allocated.
static void *list_again_and_again(void *user)
{
    char block[64];
    (void)user;
    while (!atomic_load(&is_over)) {
        kg_host_flush_add(block, sizeof block);
        kg_host_flush_remove(block);
    }
    return NULL;
}

// Children flush, whatever the parent's threads did when they were made.
static void forks_can_flush(void)
{
    enum { CHILDREN = 100, SECONDS = 20 };
    struct kg_device *device = open_device(folder, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, list_again_and_again, NULL) == 0);
    int sound = 0;
    for (int i = 0; i < CHILDREN; i++) {
        int state = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(SECONDS); // instead of a hang
            device->backend->flush(device);
            _exit(0);
        }
        sound += child > 0 && waitpid(child, &state, 0) == child && state == 0;
    }
    CHECK(sound == CHILDREN);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    kg_device_close(device);
}

static void prepare(void)
{
    static char caches[sizeof folder + 16];
    CHECK(folder_make(folder));
    snprintf(caches, sizeof caches, "%s/caches", folder);
    CHECK(setenv("XDG_CACHE_HOME", caches, 1) == 0);
}

static void clean_up(void)
{
    folder_remove(folder);
}

TEST_MAIN(prepare, facts_make_sense, bandwidth_only_grows, clock_only_grows, one_for_all_folders,
          names_are_checked, compiles_once, damage_is_noticed, failures_are_told_apart,
          a_disk_that_was_full_is_tried_again, cc_may_hold_arguments,
          options_of_cc_have_the_last_word, an_unusable_folder_is_replaced, memory_is_aligned,
          flushes_change_nothing, large_memory_is_flushed_by_reading, forks_can_flush, clean_up)
