// Shows that a gate rejects faulty kernels: every impostor of the catalogue has to fail one of its
// cases, unless its results are those of the op.

#include "verify/case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MENDS 3 // rounds of new cases after an impostor has passed
#define MAX_PROOF_BYTES ((size_t)1 << 20)

// Large cases would make this slow without making it stronger.
static bool proves(const struct kg_case *item)
{
    return item->whole && item->image.room <= MAX_PROOF_BYTES;
}

// What impostors are tried on, and room for it.
struct proof {
    const struct kg_cases *cases;
    struct kg_image_memory memory;
    bool *is_right; // by case: whether the impostor stores what a right kernel stores
};

// Judges an impostor by one case. `*rejected`: it does not pass, and the verdict says why.
static enum kg_status judge(struct proof *proof, int impostor, int index,
                            struct kg_verdict *verdict, bool *rejected, struct kg_error *error)
{
    const struct kg_case *item = proof->cases->items[index];
    struct kg_image_memory *memory = &proof->memory;
    bool right = true;
    enum kg_status status = kg_image_memory_open(memory, &item->image, error);
    struct kg_kept kept = {.sum = 0};
    for (int run = 0; run < 2 && right && !status; run++) {
        kg_image_compose(item, kg_image_fills[run], memory->at);
        kg_impostor_run(impostor, item, memory->at);
        status = kg_case_check(item, run, memory->at, &kept, verdict, &right, error);
    }
    kg_kept_free(&kept);
    *rejected = !status && !right;
    if (*rejected)
        kg_case_blame(item, index, verdict);
    return status;
}

// Tries an impostor on all cases. `*passes`: none rejects it, and it is not the op itself.
static enum kg_status try_impostor(struct kg_impostors *impostors, struct proof *proof,
                                   int impostor, bool *passes, struct kg_error *error)
{
    const struct kg_cases *cases = proof->cases;
    *passes = false;
    for (int i = 0; i < cases->count; i++) {
        struct kg_verdict verdict = {0};
        bool rejected = false;
        // Scanning both is a fraction of the work of judging one.
        proof->is_right[i] =
            !proves(cases->items[i]) || kg_impostor_is_right(impostor, cases->items[i]);
        enum kg_status status =
            proof->is_right[i] ? KG_OK : judge(proof, impostor, i, &verdict, &rejected, error);
        if (status)
            return status;
        if (!rejected)
            continue;
        impostors->rejected++;
        snprintf(impostors->reasons[impostor], sizeof impostors->reasons[impostor], "%.511s",
                 verdict.reason);
        return KG_OK;
    }
    for (int i = 0; i < cases->count && !*passes; i++)
        *passes = !proof->is_right[i] && !kg_impostor_equals(impostor, cases->items[i]);
    return KG_OK;
}

static enum kg_status open_proof(const struct kg_cases *cases, struct proof *proof,
                                 struct kg_error *error)
{
    size_t bytes = 1;
    for (int i = 0; i < cases->count; i++)
        if (proves(cases->items[i]) && cases->items[i]->image.bytes > bytes)
            bytes = cases->items[i]->image.bytes;
    proof->is_right = calloc((size_t)cases->count + 1, sizeof *proof->is_right);
    return proof->is_right ? kg_image_memory_make(&proof->memory, cases->is_guarded, bytes, error)
                           : kg_error_memory(error, "the gate's proof");
}

// Tries all impostors that are not rejected yet. `*passing`: the first that passes, or -1.
static enum kg_status find_passing(struct kg_impostors *impostors, const struct kg_cases *cases,
                                   int *passing, struct kg_error *error)
{
    struct proof proof = {.cases = cases};
    enum kg_status status = open_proof(cases, &proof, error);
    *passing = -1;
    for (int i = 0; i < kg_gate_impostor_count() && !status; i++) {
        bool passes = false;
        if (!impostors->reasons[i][0])
            status = try_impostor(impostors, &proof, i, &passes, error);
        if (passes && *passing < 0)
            *passing = i;
    }
    kg_image_memory_free(&proof.memory);
    free(proof.is_right);
    return status;
}

// Adds cases with other inputs, at sizes whose cost grows by a factor of four each time.
static enum kg_status add_cases(struct kg_cases *cases, const struct kg_op *op,
                                const struct kg_policy *policy, uint64_t seed, int mend,
                                struct kg_error *error)
{
    struct kg_policy richer = *policy;
    richer.shape_count = 0;
    struct kg_cases more = {
        .is_guarded = cases->is_guarded, .harder = (double)(4 << 2 * mend), .bytes = cases->bytes};
    enum kg_status status = kg_cases_make(&more, op, &richer, seed + (uint64_t)mend + 1, error);
    if (status == KG_OK)
        status = kg_cases_take(cases, &more, error);
    kg_cases_free(&more);
    return status;
}

enum kg_status kg_impostors_try(struct kg_impostors *impostors, struct kg_cases *cases,
                                const struct kg_op *op, const struct kg_policy *policy,
                                uint64_t seed, struct kg_error *error)
{
    enum kg_status status = KG_OK;
    for (int mend = 0; !status; mend++) {
        int passing;
        status = find_passing(impostors, cases, &passing, error);
        if (status || passing < 0)
            break;
        if (mend == MAX_MENDS)
            return kg_error_set(error, KG_ERROR_WRONG,
                                "the gate for %s proves nothing: an impostor (%s) passes all %d "
                                "cases; give larger sizes in its goal: verify ...",
                                op->name, kg_gate_impostor_name(passing), cases->count);
        status = add_cases(cases, op, policy, seed, mend, error);
    }
    return status;
}
