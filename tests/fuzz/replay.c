// Runs a fuzz target without libFuzzer: every seed of some folders as it is, then mutations of
// them, always the same ones. KG_FUZZ_RUNS sets their number. When the target crashes, the input it
// had is written to "crash-input" in the current folder; `fuzz_<name> FILE` runs that one file.

#include "fuzz/fuzz.h"
#include "fuzz/mutator.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_SEEDS 1024
#define LARGEST ((size_t)1 << 16)

struct input {
    size_t size;
    uint8_t *bytes;
};

static struct input current; // for the signal handler
static uint64_t state = 0x9E3779B97F4A7C15u;

static size_t random_below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? (size_t)(state % limit) : 0;
}

static void save_input(int signal_number)
{
    int file = open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0 && write(file, current.bytes, current.size) >= 0)
        close(file);
    static const char message[] = "the input is in crash-input\n";
    (void)!write(2, message, sizeof message - 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

// Exactly as large as the input, so that a sanitizer sees a read beyond its end.
static void run(const uint8_t *bytes, size_t size)
{
    current = (struct input){.size = size, .bytes = malloc(size ? size : 1)};
    if (!current.bytes)
        abort();
    if (size)
        memcpy(current.bytes, bytes, size);
    LLVMFuzzerTestOneInput(current.bytes, size);
    free(current.bytes);
    current.bytes = NULL;
    current.size = 0;
}

// Overwrites, inserts, removes or repeats a stretch; takes one from another seed.
static size_t mutate(uint8_t *bytes, size_t size, const struct input *other)
{
    static const char *const telling[] = {"\n", "\"", "{",   "}",   "[", "]",   "(",  ")",   "\0",
                                          "-1", "/",  "9e9", "\\u", "0", "NaN", "\\", "\xFF"};
    size_t at = random_below(size + 1);
    size_t length = random_below(size - at + 1);
    if (length > 16 && random_below(4))
        length = random_below(16);
    const uint8_t *from = NULL;
    switch (random_below(6)) {
    case 0: // one bit
        if (at < size)
            bytes[at] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 1: // one byte
        if (at < size)
            bytes[at] = (uint8_t)random_below(256);
        return size;
    case 2: // without a stretch
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 3: // a stretch twice
        if (size + length > LARGEST)
            return size;
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    case 4: // something telling
        from = (const uint8_t *)telling[random_below(sizeof telling / sizeof telling[0])];
        length = from[0] ? strlen((const char *)from) : 1;
        break;
    default: { // a stretch of another seed
        size_t begin = random_below(other->size + 1);
        from = other->bytes + begin;
        length = random_below(other->size - begin + 1);
    }
    }
    if (length == 0 || size + length > LARGEST)
        return size;
    memmove(bytes + at + length, bytes + at, size - at);
    memcpy(bytes + at, from, length);
    return size + length;
}

// Targets whose inputs have a structure come with mutations of their own.
#pragma weak LLVMFuzzerCustomMutator

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    static uint8_t bytes[LARGEST];
    static const struct input none;
    if (size > LARGEST)
        return size;
    memcpy(bytes, data, size);
    size_t changed = mutate(bytes, size, &none);
    if (changed > max_size)
        return size;
    memcpy(data, bytes, changed);
    return changed;
}

static int load(const char *path, struct input *input)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return -1;
    input->bytes = malloc(LARGEST);
    if (input->bytes)
        input->size = fread(input->bytes, 1, LARGEST, file);
    fclose(file);
    return input->bytes ? 0 : -1;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// Sorted, so that every machine makes the same mutations.
static int load_folder(const char *folder, struct input *inputs, int most)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, by_name), loaded = 0;
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (loaded < most && load(path, &inputs[loaded]) == 0)
            loaded++;
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return loaded;
}

static void run_mutations(const struct input *seeds, int count, long runs)
{
    uint8_t *bytes = malloc(LARGEST);
    if (!bytes)
        abort();
    for (long i = 0; i < runs; i++) {
        const struct input *seed = &seeds[random_below((size_t)count)];
        size_t size = seed->size;
        memcpy(bytes, seed->bytes, size);
        for (size_t step = 1 + random_below(4); step > 0; step--) {
            if (LLVMFuzzerCustomMutator && random_below(4))
                size = LLVMFuzzerCustomMutator(bytes, size, LARGEST, (unsigned)random_below(~0u));
            else
                size = mutate(bytes, size, &seeds[random_below((size_t)count)]);
        }
        run(bytes, size);
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    static struct input seeds[MOST_SEEDS];
    struct stat info;
    if (argc < 2 || stat(argv[1], &info) != 0) {
        fprintf(stderr, "usage: %s FOLDER-OF-SEEDS...|FILE\n", argv[0]);
        return 2;
    }
    static const int signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], save_input);

    const char *wanted = getenv("KG_FUZZ_RUNS");
    long runs = wanted ? strtol(wanted, NULL, 10) : 4000;
    int count = 0;
    if (S_ISDIR(info.st_mode)) {
        for (int i = 1; i < argc; i++)
            count += load_folder(argv[i], seeds + count, MOST_SEEDS - count);
    } else {
        count = load(argv[1], &seeds[0]) == 0;
        runs = 0;
    }
    if (count == 0) {
        fprintf(stderr, "%s: no seeds\n", argv[1]);
        return 1;
    }
    run(NULL, 0);
    for (int i = 0; i < count; i++)
        run(seeds[i].bytes, seeds[i].size);
    run_mutations(seeds, count, runs);
    for (int i = 0; i < count; i++)
        free(seeds[i].bytes);
    printf("%d seeds, %ld mutations\n", count, runs);
    return 0;
}
