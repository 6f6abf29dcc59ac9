// What ptxas and NVRTC say while they compile (-v), and what the facts themselves advise.

#ifndef KG_ASM_ADVISORIES_H
#define KG_ASM_ADVISORIES_H

#include "asm/facts.h"

// Reads a log: figures of every kernel it names, -1 where it says nothing, and its advisories
// ("(C7508) ...") as advice, each once per kernel with the number of times it was given. Lines that
// say nothing of that kind are passed over, so any text may be given; KG_ERROR_MEMORY is the only
// failure. `file` lives in `arena`.
enum kg_status kg_asm_log_read(const char *text, size_t length, struct kg_arena *arena,
                               struct kg_asm_file *file, struct kg_error *error);

// Appends to kernel->advice what its facts say and a person would want to know. False when out of
// memory.
bool kg_asm_advise(struct kg_arena *arena, struct kg_asm_kernel *kernel);

// Appends one piece of advice; used by the readers. False when out of memory.
bool kg_asm_add_advice(struct kg_arena *arena, struct kg_asm_kernel *kernel,
                       enum kg_advice_level level, const char *code, const char *text);

#endif
