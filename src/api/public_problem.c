// Ops and problems: texts and bindings from outside become checked structures.

#include "api/sized.h"

#include "api/chosen_sizes.h"
#include "base/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void release_owner(struct kg_op_owner *owner)
{
    if (--owner->references > 0)
        return;
    kg_arena_free(&owner->arena);
    free(owner);
}

static void tell_warnings(const struct kg_context *context, const char *warnings)
{
    if (warnings[0])
        kg_session_tell(&context->session, "%s", warnings);
}

enum kg_status kg_op_parse(struct kg_context *context, const char *file, const char *text,
                           size_t length, const char *name, struct kg_op **op)
{
    enum kg_status status = KG_API_NEEDS(context, context, file, text, op);
    if (status != KG_OK)
        return status;
    *op = NULL;
    struct kg_op_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return kg_error_memory(&context->error, "a definition");
    owner->context = context;
    owner->references = 1;
    struct kg_file *parsed;
    status = kg_lang_parse(&owner->arena, file, text, length, &parsed, &context->error);
    if (status == KG_OK)
        status = kg_lang_select(parsed, name, op, &context->error);
    if (status != KG_OK) {
        *op = NULL;
        release_owner(owner);
        return status;
    }
    tell_warnings(context, parsed->warnings);
    tell_warnings(context, (*op)->warnings);
    (*op)->owner = owner;
    return KG_OK;
}

void kg_op_destroy(struct kg_op *op)
{
    if (op)
        release_owner(op->owner);
}

enum kg_status kg_op_names(struct kg_context *context, const char *file, const char *text,
                           size_t length, char **names)
{
    enum kg_status status = KG_API_NEEDS(context, context, file, text, names);
    struct kg_arena arena = {0};
    struct kg_file *parsed;
    struct kg_text list = {0};
    if (status != KG_OK)
        return status;
    status = kg_lang_parse(&arena, file, text, length, &parsed, &context->error);
    if (status == KG_OK)
        for (int i = 0; i < parsed->op_count; i++)
            kg_text_format(&list, "%s\n", parsed->ops[i]->name);
    if (status == KG_OK && parsed->op_count > 1) { // of a single one kg_op_parse tells
        tell_warnings(context, parsed->warnings);
        for (int i = 0; i < parsed->op_count; i++)
            tell_warnings(context, parsed->ops[i]->warnings);
    }
    kg_arena_free(&arena);
    return kg_api_give(context, status, &list, names);
}

const char *kg_op_name(const struct kg_op *op)
{
    return op ? op->name : NULL;
}

const char *kg_op_size_name(const struct kg_op *op, int index)
{
    for (int i = 0; op && i < op->size_count; i++)
        if (!op->sizes[i]->is_param && index-- == 0)
            return op->sizes[i]->name;
    return NULL;
}

bool kg_op_allows(const struct kg_op *op, int index, enum kg_dtype dtype,
                  const struct kg_binding *bindings, int count)
{
    if (!op || index < 0 || index >= op->input_count + op->output_count)
        return false;
    const struct kg_type_name *type = &op->tensors[index]->type;
    if (!type->variable)
        return dtype == type->dtype;
    for (int i = 0; i < count && bindings; i++)
        if (bindings[i].name && bindings[i].value &&
            strcmp(bindings[i].name, type->variable->name) == 0)
            return dtype == kg_dtype_find(bindings[i].value, strlen(bindings[i].value));
    for (int i = 0; i < type->variable->count; i++)
        if (dtype == type->variable->allowed[i])
            return true;
    return false;
}

// What a binding may name: dtype variables, sizes and params of the op.
struct bound {
    struct kg_bindings build;
    int64_t sizes[KG_MAX_SIZES];   // -1: not bound
    bool is_named[KG_DTYPE_COUNT]; // dtype variables that a binding speaks of
};

static enum kg_status unknown_name(struct kg_context *context, const struct kg_op *op,
                                   const char *name)
{
    const char *names[KG_MAX_SIZES + KG_DTYPE_COUNT] = {0};
    size_t count = 0;
    for (int i = 0; i < op->size_count; i++)
        names[count++] = op->sizes[i]->name;
    for (int i = 0; i < op->typevar_count; i++)
        names[count++] = op->typevars[i]->name;
    struct kg_text list = {0};
    for (size_t i = 0; i < count; i++)
        kg_text_format(&list, "%s%s", i ? ", " : "", names[i]);
    const char *nearest = kg_names_nearest(name, names, count);
    enum kg_status status =
        kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                     "op %s has no size, param or dtype called '%s'; it has %s%s%s%s", op->name,
                     name, count ? kg_text_string(&list) : "none", nearest ? "; did you mean " : "",
                     nearest ? nearest : "", nearest ? "?" : "");
    kg_text_free(&list);
    return status;
}

static enum kg_status bind_dtype(struct kg_context *context, const struct kg_typevar *variable,
                                 const char *value, enum kg_dtype *dtype)
{
    *dtype = kg_dtype_find(value, strlen(value));
    for (int i = 0; i < variable->count; i++)
        if (variable->allowed[i] == *dtype)
            return KG_OK;
    struct kg_text list = {0};
    for (int i = 0; i < variable->count; i++)
        kg_text_format(&list, "%s%s", i ? " " : "", kg_dtypes[variable->allowed[i]].name);
    bool unknown = *dtype == KG_DTYPE_COUNT;
    enum kg_status status =
        kg_error_set(&context->error, unknown ? KG_ERROR_ARGUMENT : KG_ERROR_SHAPE,
                     unknown ? "'%s' is not a dtype; %s is one of: %s"
                             : "the definition does not allow '%s' here; %s is one of: %s",
                     value, variable->name, kg_text_string(&list));
    kg_text_free(&list);
    return status;
}

static enum kg_status bind_number(struct kg_context *context, const struct kg_size *size,
                                  const char *value, struct bound *bound)
{
    char *end;
    errno = 0;
    if (size->is_param && size->is_real) {
        double real = strtod(value, &end);
        if (end == value || *end)
            return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "%s: '%s' is not a number",
                                size->name, value);
        bound->build.reals[size->id] = real;
        return KG_OK;
    }
    long long number = strtoll(value, &end, 10);
    if (end == value || *end || strspn(value, "+-0123456789") != strlen(value))
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "%s: '%s' is not a whole number",
                            size->name, value);
    if (errno == ERANGE)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "%s: '%s' is beyond all numbers",
                            size->name, value);
    if (size->is_param) {
        bound->build.values[size->id] = number;
        bound->build.reals[size->id] = (double)number;
        return KG_OK;
    }
    if (number < 0 || number > (1LL << 48))
        return kg_error_set(&context->error, KG_ERROR_SHAPE,
                            "%s=%lld is not a possible size; sizes go from 0 to 2^48", size->name,
                            number);
    bound->sizes[size->id] = number;
    return KG_OK;
}

static enum kg_status bind_one(struct kg_context *context, const struct kg_op *op,
                               const struct kg_binding *binding, struct bound *bound)
{
    for (int i = 0; i < op->typevar_count; i++)
        if (strcmp(op->typevars[i]->name, binding->name) == 0) {
            bound->is_named[i] = true;
            return bind_dtype(context, op->typevars[i], binding->value, &bound->build.dtypes[i]);
        }
    for (int i = 0; i < op->size_count; i++)
        if (strcmp(op->sizes[i]->name, binding->name) == 0)
            return bind_number(context, op->sizes[i], binding->value, bound);
    return unknown_name(context, op, binding->name);
}

static enum kg_status bind_all(struct kg_context *context, const char *function,
                               const struct kg_op *op, const struct kg_binding *bindings, int count,
                               struct bound *bound)
{
    if (count > 0 && !bindings)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                            "%s: bindings is NULL, and their count is %d", function, count);
    *bound = (struct bound){0};
    kg_lang_default_bindings(op, &bound->build);
    for (int i = 0; i < KG_MAX_SIZES; i++)
        bound->sizes[i] = -1;
    enum kg_status status = KG_OK;
    for (int i = 0; status == KG_OK && i < count; i++) {
        if (!bindings[i].name || !bindings[i].value)
            return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                                "binding %d lacks its name or its value", i + 1);
        for (int j = 0; j < i; j++)
            if (strcmp(bindings[i].name, bindings[j].name) == 0)
                return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                                    "%s is given twice, as '%s' and as '%s'", bindings[i].name,
                                    bindings[j].value, bindings[i].value);
        status = bind_one(context, op, &bindings[i], bound);
    }
    return status;
}

// Sizes that the goal does not bind either are chosen by rule, and told.
static enum kg_status bind_by_rule(struct kg_context *context, const struct kg_op *instance,
                                   struct bound *bound)
{
    int64_t given[KG_MAX_SIZES];
    struct kg_text list = {0};
    memcpy(given, bound->sizes, sizeof given);
    enum kg_status status = kg_choose_sizes(instance, bound->sizes, &context->error);
    for (int i = 0; i < instance->size_count && status == KG_OK; i++)
        if (!instance->sizes[i]->is_param && given[i] < 0)
            kg_text_format(&list, " %s=%lld", instance->sizes[i]->name, (long long)bound->sizes[i]);
    if (list.length)
        kg_session_tell(&context->session, "sizes chosen for op %s, as none were given:%s",
                        instance->name, kg_text_string(&list));
    kg_text_free(&list);
    return status;
}

static struct kg_problem_owner *create_owner(const struct kg_op *op)
{
    struct kg_problem_owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return NULL;
    owner->op = op->owner;
    owner->op->references++;
    return owner;
}

static void release_problem_owner(struct kg_problem_owner *owner)
{
    kg_arena_free(&owner->arena);
    release_owner(owner->op);
    free(owner);
}

enum kg_status kg_problem_create(struct kg_context *context, const struct kg_op *op,
                                 const struct kg_binding *bindings, int count,
                                 struct kg_problem **problem)
{
    struct bound bound;
    struct kg_op *instance = NULL;
    struct kg_problem_owner *owner = NULL;
    enum kg_status status = KG_API_NEEDS(context, context, op, problem);
    if (status != KG_OK)
        return status;
    *problem = NULL;
    status = bind_all(context, __func__, op, bindings, count, &bound);
    if (status == KG_OK)
        kg_take_goal_sizes(op, bound.sizes);
    if (status == KG_OK && !(owner = create_owner(op)))
        status = kg_error_memory(&context->error, "a problem");
    if (status == KG_OK)
        status = kg_lang_instantiate(&owner->arena, op, &bound.build, &instance, &context->error);
    if (status == KG_OK)
        status = bind_by_rule(context, instance, &bound);
    if (status == KG_OK)
        status = kg_problem_make(instance, bound.sizes, NULL, problem, &context->error);
    if (status == KG_OK)
        (*problem)->owner = owner;
    else if (owner)
        release_problem_owner(owner);
    return status;
}

// Tensors at hand, sorted into the places of the op's own tensors.
struct given {
    const struct kg_tensor_info *infos[KG_MAX_TENSORS]; // NULL: not given
    struct kg_tensor_info taken[KG_MAX_TENSORS];        // where they are kept
};

// Where the caller's array has the next element.
static size_t element_size(const struct kg_tensor_info *tensors)
{
    size_t size;
    memcpy(&size, tensors, sizeof size);
    return size ? size : kg_sized_tensor_info.first;
}

static enum kg_status find_place(struct kg_context *context, const struct kg_op *op,
                                 const char *name, int *place)
{
    const char *names[KG_MAX_TENSORS] = {0};
    int known = op->input_count + op->output_count;
    if (!name)
        return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "a tensor without a name");
    for (int i = 0; i < known; i++) {
        names[i] = op->tensors[i]->name;
        if (strcmp(names[i], name) == 0) {
            *place = i;
            return KG_OK;
        }
    }
    const char *nearest = kg_names_nearest(name, names, (size_t)known);
    return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "op %s has no tensor called '%s'%s%s%s",
                        op->name, name, nearest ? "; did you mean " : "", nearest ? nearest : "",
                        nearest ? "?" : "");
}

static enum kg_status sort_tensors(struct kg_context *context, const struct kg_op *op,
                                   const struct kg_tensor_info *tensors, int count,
                                   struct given *given)
{
    *given = (struct given){0};
    for (int t = 0; t < count; t++) {
        struct kg_tensor_info tensor;
        const char *theirs = (const char *)tensors + (size_t)t * element_size(tensors);
        int place = -1;
        enum kg_status status =
            kg_api_take(&kg_sized_tensor_info, theirs, &tensor, &context->error);
        if (status == KG_OK)
            status = find_place(context, op, tensor.name, &place);
        if (status != KG_OK)
            return status;
        if (given->infos[place])
            return kg_error_set(&context->error, KG_ERROR_ARGUMENT, "tensor %s is given twice",
                                op->tensors[place]->name);
        given->taken[place] = tensor;
        given->infos[place] = &given->taken[place];
    }
    for (int i = 0; i < op->input_count; i++)
        if (!given->infos[i])
            return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                                "input %s of op %s is not given", op->tensors[i]->name, op->name);
    return KG_OK;
}

static enum kg_status contradict(struct kg_context *context, const struct kg_tensor *tensor,
                                 enum kg_dtype has, enum kg_dtype wants, const char *because)
{
    return kg_error_set(&context->error, KG_ERROR_SHAPE, "%s is %s, but %s is %s", tensor->name,
                        kg_dtypes[has].name, because, kg_dtypes[wants].name);
}

// Binds dtype variables from the tensors and checks the fixed ones. Raw bits are accepted where the
// file format has no name for a dtype: the reader has already told what they stand for.
static enum kg_status match_dtypes(struct kg_context *context, const struct kg_op *op,
                                   const struct given *given, struct bound *bound)
{
    bool is_bound[KG_DTYPE_COUNT] = {false};
    for (int i = 0; i < op->input_count + op->output_count; i++) {
        if (!given->infos[i])
            continue;
        const struct kg_tensor *tensor = op->tensors[i];
        const struct kg_typevar *variable = tensor->type.variable;
        enum kg_dtype dtype = given->infos[i]->dtype;
        if (!variable) {
            if (dtype != tensor->type.dtype)
                return contradict(context, tensor, dtype, tensor->type.dtype,
                                  "by the definition it");
            continue;
        }
        if ((is_bound[variable->id] || bound->is_named[variable->id]) &&
            bound->build.dtypes[variable->id] != dtype)
            return contradict(context, tensor, dtype, bound->build.dtypes[variable->id],
                              variable->name);
        enum kg_status status = bind_dtype(context, variable, kg_dtypes[dtype].name,
                                           &bound->build.dtypes[variable->id]);
        if (status != KG_OK) {
            kg_error_prefix(&context->error, "tensor %s", tensor->name);
            return status;
        }
        is_bound[variable->id] = true;
    }
    return KG_OK;
}

static enum kg_status match_shapes(struct kg_context *context, const struct kg_op *instance,
                                   const struct given *given, int64_t *sizes)
{
    int ranks[KG_MAX_TENSORS];
    int64_t shapes[KG_MAX_TENSORS][KG_MAX_RANK];
    for (int i = 0; i < KG_MAX_TENSORS; i++) {
        const struct kg_tensor_info *info =
            i < instance->input_count + instance->output_count ? given->infos[i] : NULL;
        ranks[i] = info && info->rank >= 0 ? info->rank : -1;
        if (ranks[i] >= 0)
            memcpy(shapes[i], info->shape, sizeof shapes[i]);
    }
    return kg_lang_infer_sizes(instance, ranks, (const int64_t(*)[KG_MAX_RANK])shapes, sizes,
                               &context->error);
}

// Tensors of which only the number of bytes is known.
static enum kg_status check_bytes(struct kg_context *context, const struct kg_problem *problem,
                                  const struct given *given)
{
    for (int i = 0; i < problem->op->input_count + problem->op->output_count; i++) {
        const struct kg_tensor_info *info = given->infos[i];
        if (info && info->rank < 0 && info->bytes != problem->layouts[i].bytes)
            return kg_error_set(
                &context->error, KG_ERROR_SHAPE, "%s has %zu bytes, but its sizes make %zu",
                problem->op->tensors[i]->name, info->bytes, problem->layouts[i].bytes);
    }
    return KG_OK;
}

// Strides only where some tensor has its own: NULL keeps kernels for contiguous tensors in play.
static enum kg_status make_with_strides(struct kg_context *context, const struct kg_op *instance,
                                        const struct given *given, const int64_t *sizes,
                                        struct kg_problem **problem)
{
    enum kg_status status = kg_problem_make(instance, sizes, NULL, problem, &context->error);
    if (status == KG_OK)
        status = check_bytes(context, *problem, given);
    if (status != KG_OK) {
        kg_problem_free(*problem);
        *problem = NULL;
        return status;
    }
    int64_t strides[KG_MAX_TENSORS][KG_MAX_RANK] = {{0}};
    bool differ = false;
    for (int i = 0; i < instance->input_count + instance->output_count; i++)
        for (int d = 0; d < instance->tensors[i]->rank; d++) {
            const struct kg_layout *layout = &(*problem)->layouts[i];
            bool has_strides = given->infos[i] && given->infos[i]->rank >= 0;
            strides[i][d] = has_strides ? given->infos[i]->stride[d] : layout->stride[d];
            differ |= strides[i][d] != layout->stride[d] && layout->shape[d] > 1;
        }
    if (!differ)
        return KG_OK;
    kg_problem_free(*problem);
    return kg_problem_make(instance, sizes, (const int64_t(*)[KG_MAX_RANK])strides, problem,
                           &context->error);
}

enum kg_status kg_problem_create_for(struct kg_context *context, const struct kg_op *op,
                                     const struct kg_tensor_info *tensors, int tensor_count,
                                     const struct kg_binding *bindings, int count,
                                     struct kg_problem **problem)
{
    struct bound bound;
    struct given given;
    struct kg_op *instance = NULL;
    struct kg_problem_owner *owner = NULL;
    enum kg_status status = KG_API_NEEDS(context, context, op, tensors, problem);
    if (status != KG_OK)
        return status;
    *problem = NULL;
    status = bind_all(context, __func__, op, bindings, count, &bound);
    if (status == KG_OK)
        status = sort_tensors(context, op, tensors, tensor_count, &given);
    if (status == KG_OK)
        status = match_dtypes(context, op, &given, &bound);
    if (status == KG_OK && !(owner = create_owner(op)))
        status = kg_error_memory(&context->error, "a problem");
    if (status == KG_OK)
        status = kg_lang_instantiate(&owner->arena, op, &bound.build, &instance, &context->error);
    if (status == KG_OK)
        status = match_shapes(context, instance, &given, bound.sizes);
    if (status == KG_OK)
        status = make_with_strides(context, instance, &given, bound.sizes, problem);
    if (status == KG_OK)
        (*problem)->owner = owner;
    else if (owner)
        release_problem_owner(owner);
    return status;
}

void kg_problem_destroy(struct kg_problem *problem)
{
    if (!problem)
        return;
    struct kg_problem_owner *owner = problem->owner;
    kg_problem_free(problem);
    release_problem_owner(owner);
}

struct kg_context *kg_api_context(const struct kg_problem *problem)
{
    const struct kg_problem_owner *owner = problem ? problem->owner : NULL;
    return owner ? owner->op->context : NULL;
}

enum kg_status kg_api_check_language(struct kg_context *context, const char *language)
{
    if (!language || strcmp(language, "en") == 0 || strcmp(language, "zh") == 0)
        return KG_OK;
    return kg_error_set(&context->error, KG_ERROR_ARGUMENT,
                        "there is no document in '%s'; there is en and zh", language);
}

enum kg_status kg_problem_document(const struct kg_problem *problem, struct kg_device *device,
                                   const char *language, bool json, char **text)
{
    struct kg_context *context = kg_api_context(problem);
    bool chinese = language && strcmp(language, "zh") == 0;
    enum kg_status status = KG_API_NEEDS(context, problem, text);
    if (status != KG_OK)
        return status;
    *text = NULL;
    status = kg_api_check_language(context, language);
    if (status != KG_OK)
        return status;
    struct kg_text written = {0};
    const struct kg_device_facts *facts = device ? &device->facts : NULL;
    if (json)
        kg_analyze_document_json(&written, problem, facts);
    else
        kg_analyze_document(&written, problem, facts, chinese ? KG_CHINESE : KG_ENGLISH);
    return kg_api_give(context, KG_OK, &written, text);
}
