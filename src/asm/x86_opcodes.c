// Mnemonics of x86-64 by their effect. The first matching prefix counts, so special rows precede
// general ones.

#include "asm/x86.h"

#include <string.h>

#define FLOAT(prefix, flops)                                                                       \
    {                                                                                              \
        prefix, KG_WORK_FMA, flops, false, false, false                                            \
    }
#define PLAIN(prefix, work)                                                                        \
    {                                                                                              \
        prefix, KG_WORK_##work, 0, false, false, false                                             \
    }
#define MOVES(prefix, work)                                                                        \
    {                                                                                              \
        prefix, KG_WORK_##work, 0, true, false, false                                              \
    }
#define TESTS(prefix)                                                                              \
    {                                                                                              \
        prefix, KG_WORK_SELECT, 0, false, true, true                                               \
    }
#define READS(prefix, work)                                                                        \
    {                                                                                              \
        prefix, KG_WORK_##work, 0, false, true, false                                              \
    }
#define FLAGS(prefix)                                                                              \
    {                                                                                              \
        prefix, KG_WORK_INTEGER, 0, false, false, true                                             \
    }

static const struct kg_x86_opcode opcodes[] = {
    // Floats. The last letter distinguishes f64.
    FLOAT("vfmadd", 2),
    FLOAT("vfmsub", 2),
    FLOAT("vfnmadd", 2),
    FLOAT("vfnmsub", 2),
    FLOAT("vaddp", 1),
    FLOAT("vadds", 1),
    FLOAT("vsubp", 1),
    FLOAT("vsubs", 1),
    FLOAT("vmulp", 1),
    FLOAT("vmuls", 1),
    FLOAT("vhadd", 1),
    FLOAT("vhsub", 1),
    FLOAT("addp", 1),
    FLOAT("addss", 1),
    FLOAT("addsd", 1),
    FLOAT("addsub", 1),
    FLOAT("subp", 1),
    FLOAT("subss", 1),
    FLOAT("subsd", 1),
    FLOAT("mulp", 1),
    FLOAT("mulss", 1),
    FLOAT("mulsd", 1),
    FLOAT("haddp", 1),
    FLOAT("hsubp", 1),
    PLAIN("vdiv", SPECIAL),
    PLAIN("divp", SPECIAL),
    PLAIN("divs", SPECIAL),
    READS("div", SPECIAL),
    READS("idiv", SPECIAL),
    PLAIN("vsqrt", SPECIAL),
    PLAIN("sqrt", SPECIAL),
    PLAIN("vrcp", SPECIAL),
    PLAIN("rcp", SPECIAL),
    PLAIN("vrsqrt", SPECIAL),
    PLAIN("rsqrt", SPECIAL),
    // Between types.
    MOVES("movsx", CONVERT),
    MOVES("movzx", CONVERT),
    PLAIN("vcvt", CONVERT),
    PLAIN("cvt", CONVERT),
    PLAIN("vpmovsx", CONVERT),
    PLAIN("vpmovzx", CONVERT),
    PLAIN("pmovsx", CONVERT),
    PLAIN("pmovzx", CONVERT),
    PLAIN("vround", CONVERT),
    PLAIN("vrndscale", CONVERT),
    PLAIN("round", CONVERT),
    PLAIN("cbw", CONVERT),
    PLAIN("cwd", CONVERT),
    PLAIN("cdq", CONVERT),
    PLAIN("cqo", CONVERT),
    // Atomics on shared memory.
    PLAIN("cmpxchg", ATOMIC),
    PLAIN("xadd", ATOMIC),
    // Comparison and selection.
    TESTS("cmp"),
    TESTS("test"),
    TESTS("ucomi"),
    TESTS("comi"),
    TESTS("vucomi"),
    TESTS("vcomi"),
    TESTS("vptest"),
    TESTS("ptest"),
    TESTS("vtest"),
    PLAIN("kortest", SELECT),
    PLAIN("ktest", SELECT),
    PLAIN("vcmp", SELECT),
    PLAIN("vmax", SELECT),
    PLAIN("max", SELECT),
    PLAIN("vmin", SELECT),
    PLAIN("min", SELECT),
    PLAIN("vpcmp", SELECT),
    PLAIN("pcmp", SELECT),
    PLAIN("vpmax", SELECT),
    PLAIN("pmax", SELECT),
    PLAIN("vpmin", SELECT),
    PLAIN("pmin", SELECT),
    PLAIN("vpblend", SELECT),
    PLAIN("pblend", SELECT),
    PLAIN("vblend", SELECT),
    PLAIN("blend", SELECT),
    PLAIN("cmov", SELECT),
    MOVES("set", SELECT),
    // Between lanes.
    MOVES("vbroadcast", SHUFFLE),
    MOVES("vpbroadcast", SHUFFLE),
    MOVES("vextract", SHUFFLE),
    MOVES("vpextr", SHUFFLE),
    MOVES("extract", SHUFFLE),
    MOVES("pextr", SHUFFLE),
    MOVES("vcompress", SHUFFLE),
    MOVES("vexpand", SHUFFLE),
    PLAIN("vperm", SHUFFLE),
    PLAIN("vshuf", SHUFFLE),
    PLAIN("shuf", SHUFFLE),
    PLAIN("vpshuf", SHUFFLE),
    PLAIN("pshuf", SHUFFLE),
    PLAIN("vunpck", SHUFFLE),
    PLAIN("unpck", SHUFFLE),
    PLAIN("vpunpck", SHUFFLE),
    PLAIN("punpck", SHUFFLE),
    PLAIN("vpack", SHUFFLE),
    PLAIN("pack", SHUFFLE),
    PLAIN("vinsert", SHUFFLE),
    PLAIN("insert", SHUFFLE),
    PLAIN("vpinsr", SHUFFLE),
    PLAIN("pinsr", SHUFFLE),
    PLAIN("vpalign", SHUFFLE),
    PLAIN("palign", SHUFFLE),
    PLAIN("valign", SHUFFLE),
    PLAIN("vmovhlps", SHUFFLE),
    PLAIN("vmovlhps", SHUFFLE),
    PLAIN("movhlps", SHUFFLE),
    PLAIN("movlhps", SHUFFLE),
    PLAIN("vmovddup", SHUFFLE),
    PLAIN("vmovshdup", SHUFFLE),
    PLAIN("vmovsldup", SHUFFLE),
    PLAIN("vmovmsk", SHUFFLE),
    PLAIN("movmsk", SHUFFLE),
    PLAIN("vpmovmsk", SHUFFLE),
    PLAIN("pmovmsk", SHUFFLE),
    // Memory.
    PLAIN("vgather", LOAD_GLOBAL),
    PLAIN("vpgather", LOAD_GLOBAL),
    PLAIN("vscatter", STORE_GLOBAL),
    PLAIN("vpscatter", STORE_GLOBAL),
    READS("prefetch", LOAD_GLOBAL),
    MOVES("vmaskmov", MOVE),
    MOVES("vpmaskmov", MOVE),
    MOVES("vlddqu", MOVE),
    MOVES("lddqu", MOVE),
    MOVES("vmov", MOVE),
    MOVES("mov", MOVE),
    MOVES("kmov", MOVE),
    PLAIN("stos", MOVE),
    PLAIN("lods", MOVE),
    READS("scas", SELECT),
    READS("push", MOVE),
    PLAIN("pop", INTEGER), // popcnt; pop itself is recognised by its number
    PLAIN("xchg", MOVE),
    PLAIN("leave", MOVE),
    PLAIN("vzero", MOVE),
    // Ordering and control flow.
    PLAIN("mfence", FENCE),
    PLAIN("lfence", FENCE),
    PLAIN("sfence", FENCE),
    PLAIN("pause", FENCE),
    PLAIN("nop", NOTHING),
    PLAIN("endbr", NOTHING),
    PLAIN("int3", NOTHING),
    PLAIN("ud2", NOTHING),
    READS("call", BRANCH),
    READS("j", BRANCH),
    PLAIN("ret", BRANCH),
    PLAIN("loop", BRANCH),
    PLAIN("syscall", BRANCH),
    // Integers and bits.
    FLAGS("add"),
    FLAGS("sub"),
    FLAGS("inc"),
    FLAGS("dec"),
    FLAGS("and"),
    READS("bt", INTEGER),
    READS("mul", INTEGER),
    PLAIN("lea", INTEGER),
    READS("imul", INTEGER),
    PLAIN("adc", INTEGER),
    PLAIN("adox", INTEGER),
    PLAIN("sbb", INTEGER),
    PLAIN("neg", INTEGER),
    PLAIN("not", INTEGER),
    PLAIN("or", INTEGER),
    PLAIN("xor", INTEGER),
    PLAIN("sa", INTEGER),
    PLAIN("sh", INTEGER),
    PLAIN("ro", INTEGER),
    PLAIN("rc", INTEGER),
    PLAIN("bs", INTEGER),
    PLAIN("bl", INTEGER),
    PLAIN("bz", INTEGER),
    PLAIN("be", INTEGER),
    PLAIN("tzcnt", INTEGER),
    PLAIN("lzcnt", INTEGER),
    PLAIN("pdep", INTEGER),
    PLAIN("pext", INTEGER),
    PLAIN("vand", INTEGER),
    PLAIN("vor", INTEGER),
    PLAIN("vxor", INTEGER),
    PLAIN("vp", INTEGER),
    PLAIN("pa", INTEGER),
    PLAIN("ps", INTEGER),
    PLAIN("pm", INTEGER),
    PLAIN("po", INTEGER),
    PLAIN("px", INTEGER),
    PLAIN("k", INTEGER),
    PLAIN("", UNKNOWN),
};

const struct kg_x86_opcode *kg_x86_opcode_find(const char *mnemonic)
{
    const struct kg_x86_opcode *opcode = opcodes;
    while (strncmp(mnemonic, opcode->prefix, strlen(opcode->prefix)) != 0)
        opcode++;
    return opcode;
}
