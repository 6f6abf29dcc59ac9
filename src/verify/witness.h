// What a judgement is doing, in memory that outlives the process that judges. When a subject ends
// that process, its parent can say in which case that happened and what was accessed. Internal to
// src/verify.

#ifndef KG_VERIFY_WITNESS_H
#define KG_VERIFY_WITNESS_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kg_witness {
    _Atomic int running; // number of the case from 1; 0: no subject is running
    _Atomic uintptr_t image;
    _Atomic uintptr_t address; // that faulted; 0: none
    _Atomic int writes;        // the fault was a write; -1: unknown
};

enum kg_status kg_witness_make(struct kg_witness **witness, struct kg_error *error);
void kg_witness_free(struct kg_witness *witness);
void kg_witness_forget(struct kg_witness *witness);
// Begins anew. With `faults`, memory faults are noted from here on, in all threads of this process,
// until kg_witness_end. They remain fatal. One witness at a time.
void kg_witness_begin(struct kg_witness *witness, bool faults);
void kg_witness_end(bool faults);

#endif
