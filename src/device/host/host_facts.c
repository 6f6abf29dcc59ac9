// The system's description of this machine's CPU: model, instruction set, usable cores, caches.
// Nothing is measured here; missing values stay 0 or get a cautious default.

#include "base/files.h"
#include "device/host/host_device.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MAX_CPUS 8192
#define MAX_CACHES 256 // distinct last-level caches
#define MAX_THREADS 1024

// Instruction sets, best first, as /proc/cpuinfo spells them. `vector_bytes` is the register width
// of the set; 0: unchanged.
static const struct isa {
    const char *name;
    int vector_bytes;
} isas[] = {
    {"avx512f", 64}, {"avx512_bf16", 0}, {"avx512_fp16", 0}, {"amx_tile", 0}, {"amx_bf16", 0},
    {"amx_fp16", 0}, {"avx2", 32},       {"avx", 32},        {"fma", 0},      {"f16c", 0},
    {"asimd", 16},   {"asimdhp", 0},     {"bf16", 0},        {"sve", 16},
};

// The first line of /proc/cpuinfo with the key `name`, without leading blanks. "" when there is
// none.
static void find_line(const char *text, const char *name, char *value, size_t size)
{
    value[0] = '\0';
    size_t length = strlen(name);
    for (const char *line = text; *line;) {
        size_t end = strcspn(line, "\n");
        if (strncmp(line, name, length) == 0) {
            size_t skip = length + strspn(line + length, " \t");
            if (line[skip] == ':') {
                skip++;
                skip += strspn(line + skip, " \t");
                snprintf(value, size, "%.*s", skip < end ? (int)(end - skip) : 0, line + skip);
                return;
            }
        }
        line += end + (line[end] == '\n');
    }
}

static bool has_word(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += length)
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

// A small file of /sys or /proc, without its line end. Their size is reported as 0 or 4096, so they
// are read in one piece.
static bool read_small(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, size - 1, file);
    fclose(file);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    text[length] = '\0';
    return length > 0;
}

static char *read_cpuinfo(void)
{
    size_t size = (size_t)64 << 10; // the first processor's entry is enough
    char *text = malloc(size);
    if (text && !read_small("/proc/cpuinfo", text, size))
        text[0] = '\0';
    return text;
}

static void read_names(const char *cpuinfo, struct kg_device_facts *facts,
                       struct kg_host_machine *machine)
{
    struct utsname system;
    if (uname(&system) != 0)
        memset(&system, 0, sizeof system);
    find_line(cpuinfo, "model name", facts->name, sizeof facts->name);
    if (!facts->name[0])
        snprintf(facts->name, sizeof facts->name, "%.100s CPU", system.machine);

    char words[8192];
    find_line(cpuinfo, "flags", words, sizeof words);
    if (!words[0])
        find_line(cpuinfo, "Features", words, sizeof words);
    bool x86 = strcmp(system.machine, "x86_64") == 0;
    snprintf(facts->isa, sizeof facts->isa, "%.20s", x86 ? "x86-64" : system.machine);
    facts->vector_bytes = 16; // every x86-64 and ARM64 has these
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        if (!has_word(words, isas[i].name))
            continue;
        size_t used = strlen(facts->isa);
        if (used + 1 + strlen(isas[i].name) < sizeof facts->isa)
            snprintf(facts->isa + used, sizeof facts->isa - used, " %s", isas[i].name);
        if (isas[i].vector_bytes > facts->vector_bytes)
            facts->vector_bytes = isas[i].vector_bytes;
    }
    // The first processors with vectors of 64 bytes lower their clock for them. Later ones have
    // this, too.
    if (facts->vector_bytes == 32 || has_word(words, "avx512_vbmi2"))
        machine->wide_bytes = facts->vector_bytes;

    static const char *const lines[] = {"cpu family", "model",       "stepping",
                                        "CPU part",   "CPU variant", "CPU implementer"};
    machine->identity = kg_hash_bytes(words, strlen(words));
    machine->identity = kg_hash_chain_text(machine->identity, facts->name);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char value[64];
        find_line(cpuinfo, lines[i], value, sizeof value);
        machine->identity = kg_hash_chain_text(machine->identity, value);
    }
}

// Operations that one core can start per cycle. These are upper limits, as bounds must be: two FMA
// pipes as wide as the registers, three pipes for integer vectors. AMD's family 25 runs 512-bit FMA
// on pipes half as wide.
static void read_rates(const char *cpuinfo, const struct kg_device_facts *facts,
                       struct kg_host_machine *machine)
{
    char vendor[64], family[16];
    find_line(cpuinfo, "vendor_id", vendor, sizeof vendor);
    find_line(cpuinfo, "cpu family", family, sizeof family);
    bool fused = strstr(facts->isa, "fma") || strstr(facts->isa, "asimd");
    bool halved = facts->vector_bytes == 64 && strcmp(vendor, "AuthenticAMD") == 0 &&
                  strcmp(family, "25") == 0;
    // Without FMA: one multiplication and one addition per cycle.
    double vectors = (fused ? 4.0 : 2.0) * (halved ? 0.5 : 1.0);
    if (strstr(facts->isa, "asimd"))
        vectors *= 2; // four NEON pipes on the largest cores
    machine->per_cycle[KG_TYPE_F32] = vectors * facts->vector_bytes / 4;
    machine->per_cycle[KG_TYPE_F64] = vectors * facts->vector_bytes / 8;
    machine->per_cycle[KG_TYPE_I64] = 3.0 * facts->vector_bytes / 8;
    machine->per_cycle[KG_TYPE_BOOL] = 3.0 * facts->vector_bytes;
    // AMX tiles do 16 x 16 x 32 products in 16 cycles.
    if (strstr(facts->isa, "amx_bf16"))
        machine->matrix_per_cycle[KG_BF16] = 1024;
    if (strstr(facts->isa, "amx_fp16"))
        machine->matrix_per_cycle[KG_F16] = 1024;
}

// "32K", "1024K", "32M" -> bytes.
static int64_t read_size(const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || value < 0 || value > (1LL << 30))
        return 0;
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

// One data cache of a CPU, as /sys describes it. False when there is no such index.
static bool read_cache(int cpu, int index, int *level, int64_t *bytes, char *shared, size_t size)
{
    char path[128], text[64];
    static const char folder[] = "/sys/devices/system/cpu/cpu%d/cache/index%d/%s";
    snprintf(path, sizeof path, folder, cpu, index, "level");
    if (!read_small(path, text, sizeof text))
        return false;
    *level = (int)strtol(text, NULL, 10);
    snprintf(path, sizeof path, folder, cpu, index, "type");
    if (!read_small(path, text, sizeof text) || strcmp(text, "Instruction") == 0)
        *level = 0;
    snprintf(path, sizeof path, folder, cpu, index, "size");
    *bytes = read_small(path, text, sizeof text) ? read_size(text) : 0;
    snprintf(path, sizeof path, folder, cpu, index, "shared_cpu_list");
    read_small(path, shared, size);
    return true;
}

// The last level counts once per group of CPUs that share it, because a flush has to empty them
// all.
static void read_caches(const cpu_set_t *allowed, size_t set_size, struct kg_device_facts *facts)
{
    struct kg_hash seen[MAX_CACHES];
    int seen_count = 0, last = 0;
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, set_size, allowed))
            continue;
        int level;
        int64_t bytes;
        char shared[256];
        for (int index = 0; read_cache(cpu, index, &level, &bytes, shared, sizeof shared);
             index++) {
            if (level == 1 || level == 2)
                facts->cache[level] = bytes;
            if (level < last || level < 2)
                continue;
            if (level > last) {
                last = level;
                facts->cache[3] = 0;
                seen_count = 0;
            }
            struct kg_hash key = kg_hash_bytes(shared, strlen(shared));
            bool known = seen_count == MAX_CACHES;
            for (int i = 0; i < seen_count; i++)
                known = known || (seen[i].high == key.high && seen[i].low == key.low);
            if (known)
                continue;
            seen[seen_count++] = key;
            facts->cache[3] += bytes;
        }
    }
    static const int names[4] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                 _SC_LEVEL3_CACHE_SIZE};
    for (int level = 1; level <= 3; level++) {
        long bytes = facts->cache[level] > 0 ? 0 : sysconf(names[level]);
        if (bytes > 0)
            facts->cache[level] = bytes;
    }
}

// Counts physical cores among the allowed CPUs: hardware threads of one core share its arithmetic
// units, and a second thread gains nothing for kernels that keep them busy.
static int count_cores(const cpu_set_t *allowed, size_t set_size)
{
    int cores = 0, cpus = 0;
    for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, set_size, allowed))
            continue;
        cpus++;
        char path[128], siblings[256];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        // Of each core, the first allowed hardware thread counts.
        bool first = true;
        if (read_small(path, siblings, sizeof siblings)) {
            int sibling = (int)strtol(siblings, NULL, 10);
            first =
                sibling >= cpu || sibling < 0 || !CPU_ISSET_S((size_t)sibling, set_size, allowed);
        }
        cores += first;
    }
    return cores > 0 ? cores : cpus > 0 ? cpus : 1;
}

// "200000 100000" or "max 100000" (cgroup v2): CPUs, 0 when there is no limit.
static double read_quota_v2(const char *folder)
{
    char path[1024], text[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    double quota = 0, period = 0;
    if (!read_small(path, text, sizeof text) || sscanf(text, "%lf %lf", &quota, &period) != 2)
        return 0;
    return quota > 0 && period > 0 ? quota / period : 0;
}

static double read_quota_v1(const char *folder)
{
    char path[1024], text[64];
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", folder);
    double quota = read_small(path, text, sizeof text) ? strtod(text, NULL) : 0;
    snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", folder);
    double period = read_small(path, text, sizeof text) ? strtod(text, NULL) : 0;
    return quota > 0 && period > 0 ? quota / period : 0;
}

static void lower_quota(double *least, double quota)
{
    if (quota > 0 && (*least == 0 || quota < *least))
        *least = quota;
}

// The tightest CPU quota from this process's control group up to the root; 0: none.
static double read_quota(void)
{
    char text[4096];
    double least = 0;
    if (!read_small("/proc/self/cgroup", text, sizeof text))
        return 0;
    char *rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        char *controllers = strchr(line, ':');
        char *folder = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!folder || strlen(folder) > 512)
            continue;
        *folder++ = '\0';
        bool v2 = strcmp(controllers, ":") == 0;
        if (!v2 && !strstr(controllers, "cpu"))
            continue;
        for (;;) {
            bool root = strcmp(folder, "/") == 0 || *folder == '\0';
            lower_quota(&least, (v2 ? read_quota_v2 : read_quota_v1)(root ? "" : folder));
            if (root)
                break;
            char *slash = strrchr(folder, '/');
            *(slash ? slash : folder) = '\0';
        }
    }
    return least;
}

static void read_cores(int threads, struct kg_device_facts *facts, struct kg_host_machine *machine)
{
    size_t set_size = CPU_ALLOC_SIZE(MAX_CPUS);
    cpu_set_t *allowed = CPU_ALLOC(MAX_CPUS);
    machine->cores = 1;
    if (allowed) {
        CPU_ZERO_S(set_size, allowed);
        if (sched_getaffinity(0, set_size, allowed) == 0) {
            machine->cores = count_cores(allowed, set_size);
            read_caches(allowed, set_size, facts);
        }
        CPU_FREE(allowed);
    }
    double quota = read_quota();
    if (quota > 0 && quota < machine->cores)
        machine->cores = quota < 1 ? 1 : (int)(quota + 0.5);
    facts->units = threads > 0 ? threads : machine->cores;
    if (facts->units > MAX_THREADS)
        facts->units = MAX_THREADS;
}

void kg_host_read_facts(int threads, struct kg_device_facts *facts, struct kg_host_machine *machine)
{
    *facts = (struct kg_device_facts){0};
    *machine = (struct kg_host_machine){0};
    char *cpuinfo = read_cpuinfo();
    const char *text = cpuinfo ? cpuinfo : "";
    read_names(text, facts, machine);
    read_rates(text, facts, machine);
    read_cores(threads, facts, machine);
    free(cpuinfo);
}
