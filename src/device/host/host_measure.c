// The two numbers of a machine that no file tells reliably: the clock its cores really run at and
// the bandwidth of its memory. Measured once (about a fifth of a second) and kept in the cache
// folder under a name made of everything they depend on.

#include "base/files.h"
#include "device/host/host_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CLOCK_TURNS 200000 // of a chain: 1 ms
#define CLOCK_REPEATS 12
#define QUICK_TURNS 5000
#define QUICK_REPEATS 4
#define ADDS_PER_TURN 16
#define BANDWIDTH_SECONDS 0.12
#define LEAST_BYTES ((size_t)32 << 20) // of each of the two buffers
#define MOST_BYTES ((size_t)512 << 20)
#define BLOCK ((size_t)4096) // what a thread draws

struct numbers {
    double clock;     // Hz
    double bandwidth; // bytes per second
};

// What no machine of this time lies outside of; a file that says otherwise is not believed.
static bool is_plausible(const struct numbers *numbers)
{
    return numbers->clock > 1e8 && numbers->clock < 2e10 && numbers->bandwidth > 1e8 &&
           numbers->bandwidth < 1e14;
}

// A chain of additions, each waiting for the last: one cycle each on every core that matters. A
// register, not a constant, is added: recent cores fold constants away.
static double time_chain(struct kg_device *device, int turns)
{
    uint64_t sum = 0, step = 1;
    __asm__ volatile("" : "+r"(step));
    double start = kg_host_now(device);
    for (int turn = 0; turn < turns; turn++) {
        for (int i = 0; i < ADDS_PER_TURN; i++) {
            sum += step;
            __asm__ volatile("" : "+r"(sum));
        }
    }
    return kg_host_now(device) - start;
}

// The fastest of several chains: interruptions only make one slower.
static double measure_clock(struct kg_device *device, int turns, int repeats)
{
    double least = 1e9;
    for (int repeat = 0; repeat < repeats; repeat++) {
        double seconds = time_chain(device, turns);
        if (seconds > 0 && seconds < least)
            least = seconds;
    }
    return (double)turns * ADDS_PER_TURN / least;
}

// The highest clock the system allows, 0 where it does not tell.
static double read_highest_clock(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "re");
    long kilohertz = 0;
    if (file && fscanf(file, "%ld", &kilohertz) != 1)
        kilohertz = 0;
    if (file)
        fclose(file);
    return (double)kilohertz * 1e3;
}

struct stream {
    char *from;
    char *to;
};

static void fill_blocks(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    struct stream *stream = user;
    memset(stream->from + (size_t)begin * BLOCK, 1, (size_t)(end - begin) * BLOCK);
    memset(stream->to + (size_t)begin * BLOCK, 2, (size_t)(end - begin) * BLOCK);
}

static void read_blocks(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const struct stream *stream = user;
    const uint64_t *word = (const void *)(stream->from + (size_t)begin * BLOCK);
    const uint64_t *stop = (const void *)(stream->from + (size_t)end * BLOCK);
    uint64_t sums[4] = {0};
    for (; word < stop; word += 8)
        for (int i = 0; i < 4; i++)
            sums[i] += word[i] ^ word[i + 4];
    uint64_t sum = sums[0] + sums[1] + sums[2] + sums[3];
    __asm__ volatile("" : : "r"(sum)); // the reads are the purpose
}

// Where there are stores that bypass the cache they are used: plain ones read each line first, and
// what is moved would be more than what is counted.
static void copy_blocks(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const struct stream *stream = user;
    const char *from = stream->from + (size_t)begin * BLOCK;
    char *to = stream->to + (size_t)begin * BLOCK;
    size_t bytes = (size_t)(end - begin) * BLOCK;
#ifdef __SSE2__
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
    _mm_sfence();
#else
    memcpy(to, from, bytes);
#endif
}

// Four times the last-level cache in each buffer, as far as memory is plenty.
static size_t choose_bytes(const struct kg_device_facts *facts)
{
    size_t bytes = 4 * (size_t)facts->cache[3];
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t plenty = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 8 : LEAST_BYTES;
    size_t most = plenty < MOST_BYTES ? plenty : MOST_BYTES;
    bytes = bytes > most ? most : bytes;
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
    return bytes & ~(((size_t)2 << 20) - 1);
}

// The best of reading and of copying, over several passes: what others run meanwhile can only make
// a pass slower.
static double stream_passes(struct kg_host_device *host, struct kg_host_pool *pool,
                            struct stream *stream, size_t bytes)
{
    static const struct pass {
        kg_host_pool_body *body;
        double times; // bytes moved per byte of a buffer
    } passes[] = {{read_blocks, 1}, {copy_blocks, 2}};
    struct kg_device *device = &host->base;
    int64_t blocks = (int64_t)(bytes / BLOCK);
    double best = 0;
    kg_host_pool_run(pool, blocks, 16, fill_blocks, stream);
    double begin = kg_host_now(device);
    for (int turn = 0; turn < 6 || kg_host_now(device) - begin < BANDWIDTH_SECONDS; turn++) {
        const struct pass *pass = &passes[turn % 2];
        double start = kg_host_now(device);
        kg_host_pool_run(pool, blocks, 16, pass->body, stream);
        double seconds = kg_host_now(device) - start;
        double rate = seconds > 0 ? pass->times * (double)bytes / seconds : 0;
        if (rate > best)
            best = rate;
    }
    return best;
}

static enum kg_status measure_bandwidth(struct kg_host_device *host, double *bandwidth,
                                        struct kg_error *error)
{
    size_t bytes = choose_bytes(&host->base.facts);
    struct stream stream = {.from = kg_host_memory(bytes), .to = kg_host_memory(bytes)};
    struct kg_host_pool *pool = kg_host_device_pool(host);
    enum kg_status status = KG_OK;
    if (!stream.from || !stream.to || !pool) {
        status = kg_error_memory(error, "measuring the memory's bandwidth");
    } else {
        kg_host_pool_enter(pool);
        *bandwidth = stream_passes(host, pool, &stream, bytes);
        kg_host_pool_leave(pool);
    }
    free(stream.from);
    free(stream.to);
    return status;
}

static bool read_kept(const char *path, struct numbers *numbers)
{
    char *text = NULL;
    size_t length = 0;
    if (!kg_files_exists(path) || kg_files_read(path, 256, &text, &length, NULL) != KG_OK)
        return false;
    bool known =
        sscanf(text, "clock %lf bandwidth %lf", &numbers->clock, &numbers->bandwidth) == 2 &&
        is_plausible(numbers);
    free(text);
    return known;
}

static void keep(const char *path, const struct numbers *numbers)
{
    struct kg_text text = {0};
    kg_text_format(&text, "clock %.6e bandwidth %.6e\n", numbers->clock, numbers->bandwidth);
    if (!text.failed)
        kg_files_publish(path, text.data, text.length, NULL); // it is measured again if this fails
    kg_text_free(&text);
}

static void format_path(const struct kg_host_device *host, struct kg_text *path)
{
    const struct kg_device_facts *facts = &host->base.facts;
    struct kg_hash hash = kg_hash_chain(host->machine.identity, facts->cache, sizeof facts->cache);
    hash = kg_hash_chain(hash, &facts->units, sizeof facts->units);
    hash = kg_hash_chain(hash, &host->machine.cores, sizeof host->machine.cores);
    char digits[KG_HASH_TEXT];
    kg_hash_format(hash, digits);
    kg_text_format(path, "%s/machine-%s", host->base.cache, digits);
}

enum kg_status kg_host_measure(struct kg_host_device *host, struct kg_error *error)
{
    struct kg_device_facts *facts = &host->base.facts;
    struct numbers numbers = {0};
    struct kg_text path = {0};
    enum kg_status status = KG_OK;
    format_path(host, &path);
    if (path.failed) {
        status = kg_error_memory(error, "a path");
    } else if (!read_kept(path.data, &numbers)) {
        // Peaks are for bounds: the higher of what is seen and what is allowed.
        double highest = read_highest_clock();
        numbers.clock = measure_clock(&host->base, CLOCK_TURNS, CLOCK_REPEATS);
        if (highest > numbers.clock)
            numbers.clock = highest;
        status = measure_bandwidth(host, &numbers.bandwidth, error);
        if (!status)
            keep(path.data, &numbers);
    }
    kg_text_free(&path);
    facts->clock = numbers.clock;
    facts->bandwidth = numbers.bandwidth;
    int busy = facts->units < host->machine.cores ? facts->units : host->machine.cores;
    for (int type = 0; type <= KG_TYPE_F64; type++)
        facts->flops[type] = host->machine.per_cycle[type] * numbers.clock * busy;
    return status;
}

double kg_host_clock(struct kg_device *device)
{
    return measure_clock(device, QUICK_TURNS, QUICK_REPEATS);
}
