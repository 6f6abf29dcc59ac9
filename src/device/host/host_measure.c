// The numbers of a machine that no file gives reliably: the real clock rate of its cores, the
// bandwidth of its memory, how much faster a core copies from several places in turn, and from
// which size on stores past the caches are faster (a virtual machine may be told of other caches
// than it has, or share them). They are measured (about half a second) and kept with their
// date, in a file named by everything they depend on, in the user's folder for caches: whatever
// folder the records are in, the bounds of one machine are the same.
//
// Other load on the machine can only make the first two smaller. The best of many short passes
// counts, and so does the bandwidth that kernels reach. They are measured again when they are an
// hour old; neither ever decreases. In between they stay, so that what is written of them stays the
// same, unless they are far off: a kernel shows it of the bandwidth, and of the clock a glance when
// the device is opened. A core that was at half of its rate for a second would make every product
// faster than its bound.

#include "base/files.h"
#include "device/host/host_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define CLOCK_TURNS 200000 // additions of a chain: 1 ms
#define CLOCK_REPEATS 12
#define GLANCE_REPEATS 2
#define CLOCK_FAR_OFF 1.15 // times the kept clock, up to which it stays
#define QUICK_TURNS 5000
#define QUICK_REPEATS 4
#define ADDS_PER_TURN 16
#define BANDWIDTH_SECONDS 0.25
#define LEAST_BYTES ((size_t)32 << 20) // of each of the two buffers
#define MAX_BYTES ((size_t)512 << 20)
#define PUSHED_BYTES ((size_t)64 << 20) // where lines can be pushed out of the caches
#define BLOCK ((size_t)4096)
#define SLICES 8 // of the buffers: passes short enough to fall into a quiet moment
#define LEAST_TURNS (6 * SLICES)
#define GRAIN 64                         // blocks that a thread takes at once
#define LEAST_STREAMED ((size_t)1 << 20) // bytes read and written, from which on
#define STREAM_REPEATS 6                 // stores past the caches are tried,
#define STREAM_GAIN 1.03                 // and what they have to gain
#define WAYS ((size_t)4)                 // places that a core copies from in turn,
#define PIECE ((size_t)256)              // so many bytes of each at a time
#define SECONDS_KEPT 3600.0
#define FAR_OFF 1.25 // a kernel that moves so many times as much shows that the number is wrong

struct numbers {
    double clock;        // Hz
    double bandwidth;    // bytes per second
    double measured;     // when: seconds since 1970
    double seen;         // what kernels reached since, bytes per second; 0: nothing
    double interleaving; // bandwidth of interleaved copying over that of copying in order
    double streamed;     // bytes from which on stores past the caches are faster
};

// Limits that every current machine meets; numbers outside them in a file are ignored.
static bool is_plausible(const struct numbers *numbers)
{
    return numbers->clock > 1e8 && numbers->clock < 2e10 && numbers->bandwidth > 1e8 &&
           numbers->bandwidth < 1e14 && numbers->interleaving > 0.01 &&
           numbers->interleaving < 100 && numbers->streamed > 0 && numbers->streamed < 1e12;
}

// A chain of dependent additions, one cycle each on all relevant cores. A register is added instead
// of a constant, because recent cores fold constants away.
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

// The fastest of several chains, because interruptions only make one slower.
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

// The highest clock that the system allows, 0 if unknown.
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
    __asm__ volatile("" : : "r"(sum)); // keeps the reads
}

// Uses stores that bypass the cache if there are any: plain stores read each line first, which
// would move more bytes than are counted.
static void copy_bytes(char *to, const char *from, size_t bytes)
{
#ifdef __SSE2__
    for (size_t i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_load_si128((const __m128i *)(const void *)(from + i)));
#else
    memcpy(to, from, bytes);
#endif
}

static void end_copying(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

static void copy_blocks(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const struct stream *stream = user;
    size_t first = (size_t)begin * BLOCK, bytes = (size_t)(end - begin) * BLOCK;
    copy_bytes(stream->to + first, stream->from + first, bytes);
    end_copying();
}

// With stores that leave the lines in the caches, as long as these hold them.
static void copy_cached(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const struct stream *stream = user;
    const size_t first = (size_t)begin * BLOCK, bytes = (size_t)(end - begin) * BLOCK;
    char *to = stream->to + first;
    const char *from = stream->from + first;
    for (size_t i = 0; i < bytes; i += PIECE) { // short pieces: memcpy streams long ones itself
        memcpy(to + i, from + i, PIECE);
        __asm__ volatile("" : : : "memory");
    }
}

// The same from WAYS places, a piece of each in turn, as element-wise kernels do with `ways`.
static void copy_interleaved(void *user, int thread, int64_t begin, int64_t end)
{
    (void)thread;
    const struct stream *stream = user;
    size_t way = (size_t)(end - begin) * BLOCK / WAYS;
    for (size_t piece = 0; piece < way; piece += PIECE)
        for (size_t i = 0; i < WAYS; i++) {
            size_t at = (size_t)begin * BLOCK + i * way + piece;
            copy_bytes(stream->to + at, stream->from + at, PIECE);
        }
    end_copying();
}

// Four times the last-level cache for each buffer, limited by the available memory.
static size_t choose_bytes(const struct kg_device_facts *facts)
{
    if (kg_host_flush_knows_lines())
        return PUSHED_BYTES;
    size_t bytes = 4 * (size_t)facts->cache[3];
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t plenty = pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 8 : LEAST_BYTES;
    size_t max = plenty < MAX_BYTES ? plenty : MAX_BYTES;
    bytes = bytes > max ? max : bytes;
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
    return bytes & ~(((size_t)2 << 20) - 1);
}

// Slices that are not pushed out of the caches leave them by themselves: all others are read or
// copied before one is used again.
static void push_out(struct kg_host_pool *pool, const struct stream *part, size_t bytes)
{
    if (!kg_host_flush_knows_lines())
        return;
    kg_host_flush_lines(pool, part->from, bytes);
    kg_host_flush_lines(pool, part->to, bytes);
}

// The best of reading and of copying in two ways, one slice at a time.
static void stream_passes(struct kg_host_device *host, struct kg_host_pool *pool,
                          struct stream *stream, size_t bytes, struct numbers *numbers)
{
    enum { READ, COPY, INTERLEAVED, PASSES };
    static const struct pass {
        kg_host_pool_body *body;
        double times; // bytes moved per byte of a buffer
    } passes[PASSES] = {[READ] = {read_blocks, 1},
                        [COPY] = {copy_blocks, 2},
                        [INTERLEAVED] = {copy_interleaved, 2}};
    struct kg_device *device = &host->base;
    size_t slice = bytes / SLICES / BLOCK * BLOCK;
    double best[PASSES] = {0};
    kg_host_pool_run(pool, (int64_t)(bytes / BLOCK), GRAIN, fill_blocks, stream);
    double begin = kg_host_now(device);
    for (int turn = 0; turn < LEAST_TURNS || kg_host_now(device) - begin < BANDWIDTH_SECONDS;
         turn++) {
        int number = turn / SLICES % PASSES;
        size_t from = (size_t)(turn % SLICES) * slice;
        struct stream part = {stream->from + from, stream->to + from};
        push_out(pool, &part, slice);
        double start = kg_host_now(device);
        kg_host_pool_run(pool, (int64_t)(slice / BLOCK), GRAIN, passes[number].body, &part);
        double seconds = kg_host_now(device) - start;
        double rate = seconds > 0 ? passes[number].times * (double)slice / seconds : 0;
        best[number] = rate > best[number] ? rate : best[number];
    }
    numbers->interleaving = best[COPY] > 0 ? best[INTERLEAVED] / best[COPY] : 1;
    for (int number = 0; number < PASSES; number++)
        numbers->bandwidth = best[number] > numbers->bandwidth ? best[number] : numbers->bandwidth;
}

static double time_copy(struct kg_host_device *host, struct kg_host_pool *pool,
                        kg_host_pool_body *body, struct stream *stream, size_t bytes)
{
    double start = kg_host_now(&host->base);
    kg_host_pool_run(pool, (int64_t)(bytes / BLOCK), GRAIN, body, stream);
    return kg_host_now(&host->base) - start;
}

// Whether stores past the caches gain where the same `bytes` are copied again and again: the best
// of several copies of either kind. They take turns, so that load on the machine disturbs both
// alike; each follows one of its kind, which leaves the caches as such copies do.
static bool gains_past_caches(struct kg_host_device *host, struct kg_host_pool *pool,
                              struct stream *stream, size_t bytes)
{
    double cached = 1e9, streamed = 1e9;
    for (int repeat = 0; repeat < STREAM_REPEATS; repeat++) {
        time_copy(host, pool, copy_cached, stream, bytes);
        cached = fmin(cached, time_copy(host, pool, copy_cached, stream, bytes));
        time_copy(host, pool, copy_blocks, stream, bytes);
        streamed = fmin(streamed, time_copy(host, pool, copy_blocks, stream, bytes));
    }
    return cached >= STREAM_GAIN * streamed;
}

// The least size from which on, by doubling, stores past the caches gain; beyond what the buffers
// hold they are expected to. Load on the machine may hide it for one size.
static double find_streamed(struct kg_host_device *host, struct kg_host_pool *pool,
                            struct stream *stream, size_t bytes)
{
    double from = 2 * (double)bytes;
    int losses = 0; // one after the other
    for (size_t part = bytes; losses < 2 && 2 * part >= LEAST_STREAMED; part /= 2) {
        bool gains = gains_past_caches(host, pool, stream, part);
        losses = gains ? 0 : losses + 1;
        from = gains ? 2 * (double)part : from;
    }
    return from;
}

// Sets the bandwidth, unless it is higher already, what interleaving gains, and where streaming
// does.
static enum kg_status measure_memory(struct kg_host_device *host, struct numbers *numbers,
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
        stream_passes(host, pool, &stream, bytes, numbers);
        numbers->streamed = find_streamed(host, pool, &stream, LEAST_BYTES);
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
    *numbers = (struct numbers){0};
    if (!kg_files_exists(path) || kg_files_read(path, 256, &text, &length, NULL) != KG_OK)
        return false;
    bool known =
        sscanf(text, "clock %lf bandwidth %lf measured %lf seen %lf interleaving %lf streamed %lf",
               &numbers->clock, &numbers->bandwidth, &numbers->measured, &numbers->seen,
               &numbers->interleaving, &numbers->streamed) == 6 &&
        is_plausible(numbers);
    free(text);
    if (!known)
        *numbers = (struct numbers){0};
    return known;
}

static void keep(const char *path, const struct numbers *numbers)
{
    struct kg_text text = {0};
    kg_text_format(
        &text,
        "clock %.17g bandwidth %.17g measured %.0f seen %.6e interleaving %.3f streamed %.0f\n",
        numbers->clock, numbers->bandwidth, numbers->measured, numbers->seen, numbers->interleaving,
        numbers->streamed);
    if (!text.failed)
        // If this fails, it is measured again.
        kg_files_publish(path, text.data, text.length, NULL);
    kg_text_free(&text);
}

// Is it time to measure again? Dates in the future are none.
static bool is_due(const struct numbers *numbers)
{
    double age = (double)time(NULL) - numbers->measured;
    return !(age >= -1 && age < SECONDS_KEPT) || numbers->seen > FAR_OFF * numbers->bandwidth;
}

static enum kg_status measure(struct kg_host_device *host, struct numbers *numbers,
                              struct kg_error *error)
{
    // Bounds need peaks: the higher of the measured and the allowed clock.
    double highest = read_highest_clock();
    double clock = measure_clock(&host->base, CLOCK_TURNS, CLOCK_REPEATS);
    clock = highest > clock ? highest : clock;
    enum kg_status status = measure_memory(host, numbers, error);
    if (status)
        return status;
    numbers->clock = clock > numbers->clock ? clock : numbers->clock;
    numbers->bandwidth = numbers->seen > numbers->bandwidth ? numbers->seen : numbers->bandwidth;
    numbers->measured = (double)time(NULL);
    numbers->seen = 0;
    return KG_OK;
}

// Whether the clock is much higher than what was kept; sets it.
static bool is_clock_far_off(struct kg_host_device *host, struct numbers *numbers)
{
    double clock = measure_clock(&host->base, CLOCK_TURNS, GLANCE_REPEATS);
    if (clock <= CLOCK_FAR_OFF * numbers->clock)
        return false;
    numbers->clock = clock;
    return true;
}

// The user's folder for caches; that of compiled objects if there is none.
static void format_folder(const struct kg_host_device *host, struct kg_text *folder)
{
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (caches && caches[0] == '/')
        kg_text_format(folder, "%s/kernelgen", caches);
    else if (home && home[0] == '/')
        kg_text_format(folder, "%s/.cache/kernelgen", home);
    if (folder->failed || !folder->length || kg_files_make_folder(folder->data, NULL) != KG_OK ||
        access(folder->data, W_OK) != 0) {
        kg_text_free(folder);
        kg_text_add(folder, host->base.cache);
    }
}

static void format_path(const struct kg_host_device *host, struct kg_text *path)
{
    struct kg_text folder = {0};
    format_folder(host, &folder);
    const struct kg_device_facts *facts = &host->base.facts;
    struct kg_hash hash = kg_hash_chain(host->machine.identity, facts->cache, sizeof facts->cache);
    hash = kg_hash_chain(hash, &facts->units, sizeof facts->units);
    hash = kg_hash_chain(hash, &host->machine.cores, sizeof host->machine.cores);
    char digits[KG_HASH_TEXT];
    kg_hash_format(hash, digits);
    kg_text_format(path, "%s/machine-%s", kg_text_string(&folder), digits);
    path->failed |= folder.failed;
    kg_text_free(&folder);
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
    } else {
        bool due = !read_kept(path.data, &numbers) || is_due(&numbers);
        if (due)
            status = measure(host, &numbers, error);
        if (status == KG_OK && (due || is_clock_far_off(host, &numbers)))
            keep(path.data, &numbers);
    }
    kg_text_free(&path);
    facts->clock = numbers.clock;
    facts->bandwidth = numbers.bandwidth;
    facts->interleaving = numbers.interleaving;
    facts->streamed = numbers.streamed;
    facts->measured = (int64_t)numbers.measured;
    int busy = facts->units < host->machine.cores ? facts->units : host->machine.cores;
    for (int type = 0; type <= KG_TYPE_F64; type++)
        facts->flops[type] = host->machine.per_cycle[type] * numbers.clock * busy;
    for (int dtype = 0; dtype < KG_DTYPE_COUNT; dtype++)
        facts->matrix_flops[dtype] = host->machine.matrix_per_cycle[dtype] * numbers.clock * busy;
    return status;
}

void kg_host_keep_seen(const struct kg_host_device *host)
{
    double seen = atomic_load(&host->base.seen_bandwidth);
    struct numbers numbers;
    struct kg_text path = {0};
    // A higher rate means that the bytes were counted wrongly.
    if (seen <= host->base.facts.bandwidth || seen > 4 * host->base.facts.bandwidth)
        return;
    format_path(host, &path);
    if (!path.failed && read_kept(path.data, &numbers) && numbers.bandwidth < seen &&
        numbers.seen < seen) {
        numbers.seen = seen;
        keep(path.data, &numbers);
    }
    kg_text_free(&path);
}

double kg_host_clock(struct kg_device *device)
{
    return measure_clock(device, QUICK_TURNS, QUICK_REPEATS);
}
