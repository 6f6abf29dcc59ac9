// See foreign_batch.h.

#include "flow/foreign_batch.h"

#include "flow/judging.h"
#include "tune/compiling.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_COMPILERS 64

struct batch {
    const struct kg_request *request;
    struct kg_foreign_file *files;
    int count;
    _Atomic int next;
};

static void *open_some(void *argument)
{
    struct batch *batch = argument;
    const struct kg_request *request = batch->request;
    for (int at; (at = atomic_fetch_add(&batch->next, 1)) < batch->count;) {
        struct kg_foreign_file *file = &batch->files[at];
        file->status = file->code ? kg_foreign_open_code(request->problem, request->device,
                                                         file->path, file->code, file->length,
                                                         &file->foreign, &file->error)
                                  : kg_foreign_open(request->problem, request->device, file->path,
                                                    &file->foreign, &file->error);
    }
    return NULL;
}

// The calling thread compiles too.
void kg_foreign_open_all(const struct kg_request *request, struct kg_foreign_file *files, int count)
{
    struct batch batch = {request, files, count, 0};
    pthread_t threads[MAX_COMPILERS];
    int wanted = kg_compile_cores(request->device) - 1, started = 0;
    if (wanted > count - 1)
        wanted = count - 1;
    while (started < wanted && started < MAX_COMPILERS &&
           pthread_create(&threads[started], NULL, open_some, &batch) == 0)
        started++;
    open_some(&batch);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    kg_session_tell_of_cache(request->session, request->device);
}

enum kg_status kg_foreign_gate(const struct kg_request *request, struct kg_foreign_gates *gates,
                               const struct kg_foreign *foreign, struct kg_gate **gate,
                               struct kg_error *error)
{
    size_t alignment = kg_foreign_alignment(foreign);
    struct kg_gate **place = &gates->gates[alignment > 0];
    enum kg_status status = KG_OK;
    if (!*place)
        status = kg_flow_gate(request, gates->seed, false, alignment, place, error);
    *gate = *place;
    return status;
}

void kg_foreign_gates_free(struct kg_foreign_gates *gates)
{
    for (int i = 0; i < 2; i++)
        kg_gate_free(gates->gates[i]);
}
