// Messages of ptxas and NVRTC (-v), and advice from the facts.

#ifndef KG_ASM_ADVISORIES_H
#define KG_ASM_ADVISORIES_H

#include "analyze/bottleneck.h"
#include "asm/facts.h"

// Reads a log: the figures of every kernel that it names, -1 if it gives none, and its advisories
// ("(C7508) ...") as advice, each once per kernel with the number of its occurrences. Other lines
// are skipped, so any text is accepted; KG_ERROR_MEMORY is the only failure. `file` is allocated in
// `arena`.
enum kg_status kg_asm_log_read(const char *text, size_t length, struct kg_arena *arena,
                               struct kg_asm_file *file, struct kg_error *error);

// Appends advice that follows from the kernel's facts. False when out of memory.
bool kg_asm_advise(struct kg_arena *arena, struct kg_asm_kernel *kernel);

// The bottleneck that advice of this code speaks of; NULL: none.
const struct kg_bottleneck_row *kg_asm_advice_bottleneck(const char *code);

// Appends one item of advice; used by the readers. False when out of memory.
bool kg_asm_add_advice(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                       enum kg_advice_level level, const char *code, const char *text);

#endif
