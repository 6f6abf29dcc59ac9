// Recognising quantised layers by the names and shapes of their tensors. What the file says of
// itself is used where shapes and contents leave a choice.

#include "weights/quantised.h"

#include "base/printable.h"
#include "weights/packed.h"
#include "weights/readers.h"

#include <stdlib.h>
#include <string.h>

#define BITS 4
#define PER_WORD 8

struct search {
    const struct kg_checkpoint *checkpoint;
    struct kg_quantised_list *found;
    int capacity;
    struct kg_error *error;
};

// One layer's tensors.
struct parts {
    struct kg_quantised *into;
    const struct kg_stored *codes, *scales, *zeros, *groups, *shape;
    size_t stem; // length of the layer's name
};

// ---- Messages

static enum kg_status refuse(const struct search *search, const struct kg_stored *tensor,
                             const char *what)
{
    struct kg_text name = {0};
    kg_text_add_printable(&name, tensor->name);
    enum kg_status status =
        kg_error_set(search->error, KG_ERROR_ARGUMENT, "%s: tensor \"%.200s\" at byte %zu: %s",
                     tensor->file, kg_text_string(&name), tensor->offset, what);
    kg_text_free(&name);
    return status;
}

static enum kg_status no_memory(const struct search *search)
{
    return kg_error_memory(search->error, "the list of a checkpoint's layers");
}

// ---- Tensors

static bool has_suffix(const struct kg_stored *tensor, const char *suffix)
{
    size_t length = strlen(tensor->name), ending = strlen(suffix);
    return length > ending && strcmp(tensor->name + length - ending, suffix) == 0;
}

// The tensor of the same layer with another ending, or NULL.
static enum kg_status find_part(const struct search *search, const struct parts *parts,
                                const char *suffix, const struct kg_stored **part)
{
    size_t length = parts->stem + strlen(suffix) + 1;
    char *name = malloc(length);
    if (!name)
        return no_memory(search);
    memcpy(name, parts->codes->name, parts->stem);
    memcpy(name + parts->stem, suffix, strlen(suffix) + 1);
    *part = kg_checkpoint_find(search->checkpoint, name);
    search->found->others -= *part != NULL;
    free(name);
    return KG_OK;
}

static bool is_matrix(const struct kg_stored *tensor, enum kg_stored_type type)
{
    return tensor && tensor->type == type && tensor->rank == 2 && tensor->shape[0] > 0 &&
           tensor->shape[1] > 0;
}

static bool is_shape(const struct kg_stored *tensor, int64_t rows, int64_t columns)
{
    return tensor->rank == 2 && tensor->shape[0] == rows && tensor->shape[1] == columns;
}

static bool scale_dtype(const struct kg_stored *scales, enum kg_dtype *dtype)
{
    *dtype = scales->type == KG_STORED_F16    ? KG_F16
             : scales->type == KG_STORED_BF16 ? KG_BF16
                                              : KG_F32;
    return scales->type == KG_STORED_F16 || scales->type == KG_STORED_BF16 ||
           scales->type == KG_STORED_F32;
}

// Rows of a group, where there are so many groups; 0: the numbers do not fit.
static int64_t group_of(const struct search *search, int64_t rows, int64_t groups)
{
    int64_t said = kg_checkpoint_label(search->checkpoint)->group;
    if (groups == 1)
        return rows;
    if (said > 0 && (rows + said - 1) / said == groups)
        return said;
    return groups > 0 && rows % groups == 0 ? rows / groups : 0;
}

static int64_t integer_at(const struct kg_stored *tensor, int64_t position)
{
    bool wide = tensor->type == KG_STORED_I64;
    int64_t large = 0;
    int32_t small = 0;
    const char *at = (const char *)tensor->data + position * (wide ? 8 : 4);
    memcpy(wide ? (void *)&large : (void *)&small, at, wide ? sizeof large : sizeof small);
    return wide ? large : small;
}

static bool is_integers(const struct kg_stored *tensor)
{
    return tensor->type == KG_STORED_I64 || tensor->type == KG_STORED_I32;
}

// ---- Zeros

// The one code that all of the zeros are, -1: they differ.
static int common_zero(const struct kg_layer *layer)
{
    int common = -1;
    for (int64_t group = 0; group < kg_layer_groups(layer); group++)
        for (int64_t column = 0; column < layer->columns; column += KG_PANEL_COLUMNS) {
            uint8_t zeros[KG_PANEL_COLUMNS] = {0};
            layer->reader->zeros(layer, group, column, zeros);
            for (int c = 0; c < kg_layer_columns(layer, column); c++) {
                common = common < 0 ? zeros[c] : common;
                if (zeros[c] != common)
                    return -1;
            }
        }
    return common;
}

// GPTQ stores zeros one less than they are, its second version as they are, and labels are not to
// be trusted: where all are the same, and 7 or 8, they mean 8.
static void settle_gptq_zeros(const struct search *search, struct kg_layer *layer)
{
    layer->zero_shift = 0;
    int common = common_zero(layer);
    bool second = strcmp(kg_checkpoint_label(search->checkpoint)->method, "gptq_v2") == 0;
    layer->zero_shift = second ? 0 : 1;
    layer->zero =
        common == KG_FIXED_ZERO || common == KG_FIXED_ZERO - 1 ? KG_ZERO_FIXED : KG_ZERO_CODES;
}

static void settle_zeros(struct kg_layer *layer)
{
    layer->zero = common_zero(layer) == KG_FIXED_ZERO ? KG_ZERO_FIXED : KG_ZERO_CODES;
}

// ---- Order of rows

// Rows by group, each group's in their order, as places of `first` say.
static void sort_by_group(const struct kg_stored *groups, int32_t *order, int64_t rows,
                          int64_t *first)
{
    for (int64_t row = 0; row < rows; row++)
        order[first[integer_at(groups, row)]++] = (int32_t)row;
}

// Every group but the last has `group` rows; `first`: the first place of each.
static bool count_groups(const struct kg_layer *layer, const struct kg_stored *groups,
                         int64_t *first, bool *sorted)
{
    int64_t count = kg_layer_groups(layer), last = 0;
    *sorted = true;
    for (int64_t row = 0; row < layer->rows; row++) {
        int64_t group = integer_at(groups, row);
        if (group < 0 || group >= count)
            return false;
        *sorted &= group >= last;
        last = group;
        first[group]++;
    }
    for (int64_t group = 0, place = 0; group < count; group++) {
        int64_t rows = first[group];
        if (rows != (group + 1 < count ? layer->group : layer->rows - place))
            return false;
        first[group] = place;
        place += rows;
    }
    return true;
}

static enum kg_status settle_order(const struct search *search, const struct parts *parts,
                                   const struct kg_layer_reader *ordered)
{
    struct kg_layer *layer = &parts->into->layer;
    const struct kg_stored *groups = parts->groups;
    bool sorted;
    if (!groups)
        return KG_OK;
    if (!is_integers(groups) || groups->rank != 1 || groups->elements != layer->rows)
        return refuse(search, groups, "the groups of rows are not one integer for each row");
    int64_t *first = calloc((size_t)kg_layer_groups(layer), sizeof *first);
    if (!first)
        return no_memory(search);
    enum kg_status status = KG_OK;
    if (!count_groups(layer, groups, first, &sorted))
        status = refuse(search, groups, "the groups of rows are not of one size");
    if (status == KG_OK && !sorted) {
        int32_t *order = kg_arena_array(&search->found->arena, (size_t)layer->rows, sizeof *order);
        if (order)
            sort_by_group(groups, order, layer->rows, first);
        else
            status = no_memory(search);
        layer->order = order;
        layer->reader = ordered;
    }
    free(first);
    return status;
}

// ---- Formats

static enum kg_status check_bits(const struct search *search, const struct parts *parts)
{
    int bits = kg_checkpoint_label(search->checkpoint)->bits;
    if (bits == 0 || bits == BITS)
        return KG_OK;
    return kg_error_set(search->error, KG_ERROR_UNSUPPORTED,
                        "%s: its weights have %d bits; only those of 4 can be packed",
                        parts->codes->file, bits);
}

static enum kg_status check_layer(const struct search *search, const struct parts *parts)
{
    const struct kg_layer *layer = &parts->into->layer;
    if (layer->rows > KG_PACKED_MOST || layer->columns > KG_PACKED_MOST)
        return refuse(search, parts->codes, "it is too large");
    if (layer->group < 1)
        return refuse(search, parts->scales, "the number of groups does not fit the rows");
    return KG_OK;
}

// X.qweight, X.qzeros, X.scales and, perhaps, X.g_idx: [K/8, N] of GPTQ or [K, N/8] of AWQ.
static enum kg_status take_gptq_or_awq(const struct search *search, struct parts *parts)
{
    struct kg_layer *layer = &parts->into->layer;
    enum kg_status status = find_part(search, parts, ".scales", &parts->scales);
    if (!status)
        status = find_part(search, parts, ".qzeros", &parts->zeros);
    if (!status)
        status = find_part(search, parts, ".g_idx", &parts->groups);
    if (!status)
        status = check_bits(search, parts);
    if (status)
        return status;
    const struct kg_stored *codes = parts->codes, *scales = parts->scales, *zeros = parts->zeros;
    if (!scales || !zeros)
        return refuse(search, codes, "its scales or qzeros are missing");
    if (!scale_dtype(scales, &layer->dtype) || scales->rank != 2)
        return refuse(search, scales, "scales must be a matrix of f16, bf16 or f32");
    layer->columns = scales->shape[1];
    bool along_rows = is_matrix(codes, KG_STORED_I32) && codes->shape[1] == layer->columns;
    bool along_columns = is_matrix(codes, KG_STORED_I32) && layer->columns % PER_WORD == 0 &&
                         codes->shape[1] == layer->columns / PER_WORD;
    if (!along_rows && !along_columns)
        return refuse(search, codes, "its shape fits neither GPTQ nor AWQ with these scales");
    layer->rows = along_rows ? codes->shape[0] * PER_WORD : codes->shape[0];
    layer->group = group_of(search, layer->rows, scales->shape[0]);
    status = check_layer(search, parts);
    if (status)
        return status;
    if (zeros->type != KG_STORED_I32 || layer->columns % PER_WORD != 0 ||
        !is_shape(zeros, scales->shape[0], layer->columns / PER_WORD))
        return refuse(search, zeros, "qzeros do not fit the scales");
    layer->reader = along_rows ? &kg_gptq_reader : &kg_awq_reader;
    layer->code_data = codes->data;
    layer->scale_data = scales->data;
    layer->zero_data = zeros->data;
    if (!along_rows) {
        settle_zeros(layer);
        return KG_OK;
    }
    settle_gptq_zeros(search, layer);
    return settle_order(search, parts, &kg_gptq_ordered_reader);
}

// X.weight_packed [N, K/8], X.weight_scale [N, K/G], X.weight_shape and, perhaps,
// X.weight_zero_point [N/8, K/G] and X.weight_g_idx.
static enum kg_status take_compressed(const struct search *search, struct parts *parts)
{
    struct kg_layer *layer = &parts->into->layer;
    enum kg_status status = find_part(search, parts, ".weight_scale", &parts->scales);
    if (!status)
        status = find_part(search, parts, ".weight_zero_point", &parts->zeros);
    if (!status)
        status = find_part(search, parts, ".weight_g_idx", &parts->groups);
    if (!status)
        status = find_part(search, parts, ".weight_shape", &parts->shape);
    if (status)
        return status;
    const struct kg_stored *codes = parts->codes, *scales = parts->scales, *zeros = parts->zeros;
    if (!scales || !parts->shape)
        return refuse(search, codes, "its weight_scale or weight_shape is missing");
    if (!is_integers(parts->shape) || parts->shape->elements != 2)
        return refuse(search, parts->shape, "a shape must be two integers");
    layer->columns = integer_at(parts->shape, 0);
    layer->rows = integer_at(parts->shape, 1);
    if (!is_matrix(codes, KG_STORED_I32) || layer->rows < 1 || codes->shape[0] != layer->columns)
        return refuse(search, codes, "its shape is not what weight_shape says");
    if (codes->shape[1] != (layer->rows - 1) / PER_WORD + 1)
        return refuse(search, codes, "its weights do not have 4 bits; only those can be packed");
    if (!scale_dtype(scales, &layer->dtype) || scales->rank != 2 ||
        scales->shape[0] != layer->columns)
        return refuse(search, scales,
                      "scales must be a matrix of f16, bf16 or f32, a row for each "
                      "column of the product");
    layer->group = group_of(search, layer->rows, scales->shape[1]);
    status = check_layer(search, parts);
    if (status)
        return status;
    layer->reader = &kg_compressed_reader;
    layer->code_data = codes->data;
    layer->code_stride = codes->shape[1];
    layer->scale_data = scales->data;
    if (zeros) {
        if (zeros->type != KG_STORED_I32 ||
            !is_shape(zeros, (layer->columns - 1) / PER_WORD + 1, scales->shape[1]))
            return refuse(search, zeros, "zero points do not fit the scales");
        layer->zero_data = zeros->data;
        settle_zeros(layer);
    }
    return settle_order(search, parts, &kg_compressed_ordered_reader);
}

static enum kg_status take_blocks(const struct search *search, struct parts *parts)
{
    static const struct {
        enum kg_stored_type type;
        const struct kg_layer_reader *reader;
        enum kg_zero_kind zero;
        enum kg_dtype dtype;
        int block, bytes;
    } formats[] = {
        {KG_STORED_Q4_0, &kg_q4_0_reader, KG_ZERO_FIXED, KG_F16, 32, 18},
        {KG_STORED_Q4_1, &kg_q4_1_reader, KG_ZERO_OFFSETS, KG_F16, 32, 20},
        {KG_STORED_Q4_K, &kg_q4_k_reader, KG_ZERO_OFFSETS, KG_F32, 256, 144},
    };
    struct kg_layer *layer = &parts->into->layer;
    int f = 0;
    while (formats[f].type != parts->codes->type)
        f++;
    layer->reader = formats[f].reader;
    layer->zero = formats[f].zero;
    layer->dtype = formats[f].dtype;
    layer->columns = parts->codes->shape[0];
    layer->rows = parts->codes->shape[1];
    layer->group = 32;
    layer->code_data = parts->codes->data;
    layer->code_stride = layer->rows / formats[f].block * formats[f].bytes;
    if (layer->rows % formats[f].block != 0)
        return refuse(search, parts->codes, "its rows do not consist of whole blocks");
    return check_layer(search, parts);
}

// ---- All layers

typedef enum kg_status taker(const struct search *search, struct parts *parts);

// How the layer that this tensor stands for is read, NULL: it stands for none.
static taker *taker_of(const struct kg_stored *tensor, const char **suffix)
{
    static const struct {
        const char *suffix;
        taker *take;
    } suffixes[] = {{".qweight", take_gptq_or_awq}, {".weight_packed", take_compressed}};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (has_suffix(tensor, suffixes[i].suffix)) {
            *suffix = suffixes[i].suffix;
            return suffixes[i].take;
        }
    bool has_blocks = tensor->type == KG_STORED_Q4_0 || tensor->type == KG_STORED_Q4_1 ||
                      tensor->type == KG_STORED_Q4_K;
    *suffix = has_suffix(tensor, ".weight") ? ".weight" : "";
    return has_blocks && tensor->rank == 2 && tensor->elements > 0 ? take_blocks : NULL;
}

static enum kg_status add(struct search *search, const struct kg_stored *tensor, taker *take,
                          const char *suffix)
{
    struct kg_quantised_list *found = search->found;
    if (found->count == search->capacity) {
        int capacity = search->capacity ? 2 * search->capacity : 64;
        struct kg_quantised *list = realloc(found->list, (size_t)capacity * sizeof *list);
        if (!list)
            return no_memory(search);
        found->list = list;
        search->capacity = capacity;
    }
    struct parts parts = {.into = &found->list[found->count],
                          .codes = tensor,
                          .stem = strlen(tensor->name) - strlen(suffix)};
    *parts.into = (struct kg_quantised){.codes = tensor};
    parts.into->name = kg_arena_copy(&found->arena, tensor->name, parts.stem);
    if (!parts.into->name)
        return no_memory(search);
    found->count++;
    found->others--;
    return take(search, &parts);
}

enum kg_status kg_quantised_find(const struct kg_checkpoint *checkpoint,
                                 struct kg_quantised_list *list, struct kg_error *error)
{
    *list = (struct kg_quantised_list){.others = kg_checkpoint_count(checkpoint)};
    struct search search = {.checkpoint = checkpoint, .found = list, .error = error};
    enum kg_status status = KG_OK;
    for (int i = 0; i < kg_checkpoint_count(checkpoint) && !status; i++) {
        const struct kg_stored *tensor = kg_checkpoint_tensor(checkpoint, i);
        const char *suffix;
        taker *take = taker_of(tensor, &suffix);
        if (take)
            status = add(&search, tensor, take, suffix);
    }
    return status;
}

void kg_quantised_free(struct kg_quantised_list *list)
{
    kg_arena_free(&list->arena);
    free(list->list);
    *list = (struct kg_quantised_list){0};
}
