// Advice from facts. Each item is a fact about the code and says what to look at; merely unusual
// properties are left out.

#include "asm/advisories.h"

#include "asm/summary.h"

#include <string.h>

#define NARROW_BYTES 4        // bytes per thread of a load that wastes most of a 128-bit access
#define MANY_LOADS 4          // loads per trip from which their width matters
#define SLOW_LOOP 3           // cycles of a warp per instruction, by the stall counts
#define LEAST_INSTRUCTIONS 16 // of a loop whose stalls matter
#define MAX_OF_TURNS 20       // instructions of a loop over the threads that issue a copy

bool kg_asm_add_advice(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                       enum kg_advice_level level, const char *code, const char *text)
{
    struct kg_advice *grown = KG_NEW_ARRAY(arena, kernel->advice_count + 1, struct kg_advice);
    if (!grown || !text)
        return false;
    if (kernel->advice_count)
        memcpy(grown, kernel->advice, (size_t)kernel->advice_count * sizeof *grown);
    grown[kernel->advice_count] = (struct kg_advice){level, code, text};
    kernel->advice = grown;
    kernel->advice_count++;
    return true;
}

// By code. Codes that say how a file was read stand for no bottleneck.
static const struct meaning {
    const char *code;
    enum kg_bottleneck bottleneck;
} meanings[] = {
    {"spill-in-loop", KG_BOTTLENECK_SPILLS},
    {"spill-outside-loops", KG_BOTTLENECK_SPILLS},
    {"local-array-in-loop", KG_BOTTLENECK_SPILLS},
    {"narrow-loads", KG_BOTTLENECK_LATENCY},
    {"stalls", KG_BOTTLENECK_LATENCY},
    {"copies-by-thread", KG_BOTTLENECK_ARITHMETIC},
    {"vector-width", KG_BOTTLENECK_ARITHMETIC},
    {"wgmma-serialised", KG_BOTTLENECK_TENSOR},
    {"setmaxnreg-ignored", KG_BOTTLENECK_TENSOR},
    {"few-blocks", KG_BOTTLENECK_PARALLELISM},
    {"tail", KG_BOTTLENECK_TAIL},
};

const struct kg_bottleneck_row *kg_asm_advice_bottleneck(const char *code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i].code, code) == 0)
            return &kg_bottlenecks[meanings[i].bottleneck];
    return NULL;
}

static const char *place_of(struct kg_arena *arena, const struct kg_asm_loop *main_loop,
                            const struct kg_asm_loop *loop)
{
    return kg_arena_format(arena,
                           loop == main_loop ? "the main loop (0x%llx)" : "the loop at 0x%llx",
                           (unsigned long long)loop->first);
}

// The innermost loop that spills; of several, the one that moves most bytes.
static const struct kg_asm_loop *worst_spill(const struct kg_asm_kernel *kernel)
{
    int best = -1;
    for (int l = 0; l < kernel->flow.loop_count; l++) {
        if (kernel->loops[l].spill_bytes == 0)
            continue;
        if (best < 0 || kernel->flow.loops[l].depth > kernel->flow.loops[best].depth ||
            (kernel->flow.loops[l].depth == kernel->flow.loops[best].depth &&
             kernel->loops[l].spill_bytes > kernel->loops[best].spill_bytes))
            best = l;
    }
    return best < 0 ? NULL : &kernel->loops[best];
}

static bool advise_spills(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                          const struct kg_asm_loop *main_loop)
{
    if (kernel->spill_store_bytes <= 0 && kernel->spill_load_bytes <= 0)
        return true;
    const struct kg_asm_loop *loop = worst_spill(kernel);
    if (!loop)
        return kg_asm_add_advice(
            arena, kernel, KG_ADVICE_NOTE, "spill-outside-loops",
            kg_arena_format(arena,
                            "registers are spilled, but in no loop: %lld bytes saved and %lld "
                            "reloaded, once",
                            (long long)kernel->spill_store_bytes,
                            (long long)kernel->spill_load_bytes));
    return kg_asm_add_advice(
        arena, kernel, KG_ADVICE_WARNING, "spill-in-loop",
        kg_arena_format(
            arena,
            "registers spill in %s%s: %lld reloads and %lld saves a trip, %lld bytes of "
            "local memory per thread",
            place_of(arena, main_loop, loop),
            loop->mix.tensor_flops > 0 ? ", among its matrix products" : "",
            (long long)loop->spill_loads, (long long)loop->spill_stores,
            (long long)loop->spill_bytes));
}

// Accesses to local memory other than spills belong to an array that does not fit registers.
static bool advise_local(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                         const struct kg_asm_loop *main_loop)
{
    for (int l = kernel->flow.loop_count - 1; l >= 0; l--) {
        const struct kg_asm_loop *loop = &kernel->loops[l];
        double others = loop->mix.count[KG_WORK_LOAD_LOCAL] + loop->mix.count[KG_WORK_STORE_LOCAL] -
                        (double)(loop->spill_loads + loop->spill_stores);
        if (others < 1)
            continue;
        return kg_asm_add_advice(
            arena, kernel, KG_ADVICE_WARNING, "local-array-in-loop",
            kg_arena_format(arena,
                            "%s reads or writes local memory %.0f times a trip beside spills: an "
                            "array indexed by a variable is not held in registers",
                            place_of(arena, main_loop, loop), others));
    }
    return true;
}

static bool advise_loads(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                         const struct kg_asm_loop *loop)
{
    double loads = loop->mix.count[KG_WORK_LOAD_GLOBAL];
    double bytes = loop->mix.bytes[KG_WORK_LOAD_GLOBAL];
    if (loads < MANY_LOADS || bytes <= 0 || bytes / loads > NARROW_BYTES)
        return true;
    return kg_asm_add_advice(arena, kernel, KG_ADVICE_NOTE, "narrow-loads",
                             kg_arena_format(arena,
                                             "the %.0f global loads of %s move %.3g bytes a thread "
                                             "each; one instruction can move 16",
                                             loads, place_of(arena, loop, loop), bytes / loads));
}

static bool advise_stalls(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                          const struct kg_asm_loop *loop)
{
    if (loop->issue_cycles < LEAST_INSTRUCTIONS ||
        loop->stall_cycles < SLOW_LOOP * loop->issue_cycles)
        return true;
    return kg_asm_add_advice(
        arena, kernel, KG_ADVICE_NOTE, "stalls",
        kg_arena_format(arena,
                        "one warp issues the %.0f instructions of %s in no less than %.0f cycles: "
                        "it takes %.0f warps a scheduler to keep it busy",
                        loop->issue_cycles, place_of(arena, loop, loop), loop->stall_cycles,
                        loop->stall_cycles / loop->issue_cycles));
}

// A loop that elects one thread after the other to issue a copy. Compilers write it around an
// instruction of a whole warp if they cannot prove that a single thread executes it.
static bool takes_turns(const struct kg_mix *mix)
{
    return mix->count[KG_WORK_BULK_COPY] > 0 && mix->count[KG_WORK_SHUFFLE] > 0 &&
           kg_mix_total(mix) <= MAX_OF_TURNS;
}

static bool advise_copies(struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    int turns = 0;
    double instructions = 0;
    for (int l = 0; l < kernel->flow.loop_count; l++)
        if (takes_turns(&kernel->loops[l].mix)) {
            turns++;
            instructions += kg_mix_total(&kernel->loops[l].mix);
        }
    if (turns == 0)
        return true;
    return kg_asm_add_advice(
        arena, kernel, KG_ADVICE_WARNING, "copies-by-thread",
        kg_arena_format(arena,
                        "%d bulk %s in a loop over the threads of the warp, %.0f instructions "
                        "where one would do: choose the thread with elect.sync, and the compiler "
                        "knows that it is alone",
                        turns, turns > 1 ? "copies are each" : "copy is", instructions / turns));
}

static bool advise_reading(struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    double unknown = kernel->mix.count[KG_WORK_UNKNOWN];
    if (unknown > 0 &&
        !kg_asm_add_advice(arena, kernel, KG_ADVICE_WARNING, "unknown-instructions",
                           kg_arena_format(arena,
                                           "%.0f of %lld instructions are unknown: the counts are "
                                           "too low",
                                           unknown, (long long)kernel->instructions)))
        return false;
    return !kernel->flow.irreducible ||
           kg_asm_add_advice(arena, kernel, KG_ADVICE_NOTE, "irreducible",
                             "a cycle that can be entered in two places is counted as no loop");
}

bool kg_asm_advise(struct kg_arena *arena, struct kg_asm_kernel *kernel)
{
    int index;
    if (!kg_asm_main_loop(kernel, &index))
        return false;
    const struct kg_asm_loop *loop = index >= 0 ? &kernel->loops[index] : NULL;
    return advise_spills(arena, kernel, loop) && advise_local(arena, kernel, loop) &&
           (!loop || (advise_loads(arena, kernel, loop) && advise_stalls(arena, kernel, loop))) &&
           advise_copies(arena, kernel) && advise_reading(arena, kernel);
}
