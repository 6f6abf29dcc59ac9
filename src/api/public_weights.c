// Checkpoints and packed weights at the public surface.

#include "api/sized.h"
#include "weights/matrix_panels.h"
#include "weights/pack_layers.h"

static void tell_progress(void *user, const char *layer, int done, int total)
{
    const struct kg_session *session = user;
    if (session->progress)
        session->progress(session->user, layer, done, total);
}

static bool is_cancelled(void *user)
{
    return kg_session_cancelled(user);
}

static enum kg_status pack(struct kg_context *context, const struct kg_checkpoint *checkpoint,
                           const char *path, const char *folder, bool json, struct kg_text *text)
{
    struct kg_quantised_list list;
    struct kg_error *error = &context->error;
    const struct kg_packing packing = {&context->session, tell_progress, is_cancelled};
    enum kg_status status = kg_quantised_find(checkpoint, &list, error);
    if (status == KG_OK && list.count == 0)
        status = kg_error_set(error, KG_ERROR_ARGUMENT,
                              "%s: none of its %d tensors is a layer of 4-bit weights (GPTQ, AWQ, "
                              "compressed-tensors, GGUF Q4_0, Q4_1 or Q4_K)",
                              path, kg_checkpoint_count(checkpoint));
    if (status == KG_OK && folder)
        status = kg_weights_pack(&list, folder, &packing, error);
    if (status == KG_OK && json)
        kg_weights_json(&list, text);
    else if (status == KG_OK)
        kg_weights_table(&list, text);
    kg_quantised_free(&list);
    return status;
}

enum kg_status kg_pack_checkpoint(struct kg_context *context, const char *path, const char *folder,
                                  bool json, char **text)
{
    struct kg_checkpoint *checkpoint = NULL;
    struct kg_text written = {0};
    enum kg_status status = KG_API_NEEDS(context, context, path, text);
    if (status != KG_OK)
        return status;
    status = kg_checkpoint_open(path, &checkpoint, &context->error);
    if (status == KG_OK)
        status = pack(context, checkpoint, path, folder, json, &written);
    kg_checkpoint_close(checkpoint);
    return kg_api_give(context, status, &written, text);
}

// The matrices' description, if the buffers have its lengths.
static enum kg_status take_weights(struct kg_context *context, const struct kg_weights *theirs,
                                   size_t code_bytes, size_t packed_bytes, struct kg_weights *ours)
{
    struct kg_error *error = &context->error;
    size_t codes = 0, packed = 0;
    enum kg_status status = kg_api_take(&kg_sized_weights, theirs, ours, error);
    if (status == KG_OK)
        status = kg_matrix_lengths(ours, &codes, &packed, error);
    if (status == KG_OK && (code_bytes != codes || packed_bytes != packed)) {
        bool is_codes = code_bytes != codes;
        status = kg_error_set(error, KG_ERROR_SHAPE,
                              "%lld matri%s of %lld x %lld codes: %s need%s %zu bytes, not %zu",
                              (long long)ours->batch, ours->batch == 1 ? "x" : "ces",
                              (long long)ours->rows, (long long)ours->columns,
                              is_codes ? "the codes" : "the packed tensor", is_codes ? "" : "s",
                              is_codes ? codes : packed, is_codes ? code_bytes : packed_bytes);
    }
    return status;
}

enum kg_status kg_pack_weights(struct kg_context *context, const struct kg_weights *weights,
                               const void *codes, size_t code_bytes, void *packed,
                               size_t packed_bytes)
{
    struct kg_weights ours;
    enum kg_status status = KG_API_NEEDS(context, context, weights, codes, packed);
    if (status == KG_OK)
        status = take_weights(context, weights, code_bytes, packed_bytes, &ours);
    if (status == KG_OK)
        kg_matrix_pack(&ours, codes, packed);
    return status;
}

enum kg_status kg_unpack_weights(struct kg_context *context, const struct kg_weights *weights,
                                 const void *packed, size_t packed_bytes, void *codes,
                                 size_t code_bytes)
{
    struct kg_weights ours;
    enum kg_status status = KG_API_NEEDS(context, context, weights, packed, codes);
    if (status == KG_OK)
        status = take_weights(context, weights, code_bytes, packed_bytes, &ours);
    if (status == KG_OK)
        kg_matrix_unpack(&ours, packed, codes);
    return status;
}
