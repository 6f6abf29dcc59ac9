// Subscripts, masks and loads of Triton kernels.

#include "gen/triton/triton_kernel.h"

#include "gen/shared/axes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- Index arithmetic ----

static void print_index(struct kg_triton_kernel *kernel, struct kg_text *text,
                        const struct kg_expr *expr, bool enclosed)
{
    static const char *const signs[KG_FUNCTION_COUNT] = {
        [KG_FN_ADD] = "+",  [KG_FN_SUB] = "-", [KG_FN_MUL] = "*",
        [KG_FN_DIV] = "//", [KG_FN_MOD] = "%",
    };
    if (expr->kind == KG_EXPR_SIZE || (expr->kind == KG_EXPR_NUMBER && expr->size)) {
        kernel->uses_size[expr->size->id] = true;
        kg_text_add(text, kernel->sizes[expr->size->id]);
    } else if (expr->kind == KG_EXPR_NUMBER) {
        kg_text_format(text, expr->integer < 0 ? "(%lld)" : "%lld", (long long)expr->integer);
    } else if (expr->kind == KG_EXPR_INDEX) {
        kg_text_add(text, kernel->axes[expr->index->id].name);
    } else if (expr->kind == KG_EXPR_CALL && expr->function == KG_FN_NEG) {
        kg_text_add(text, "(-");
        print_index(kernel, text, expr->arguments[0], true);
        kg_text_add(text, ")");
    } else if (expr->kind == KG_EXPR_CALL) {
        bool divides = expr->function == KG_FN_DIV || expr->function == KG_FN_MOD;
        const char *sign = signs[expr->function];
        if (sign && (!divides || kg_expr_is_natural(expr))) {
            bool sum = sign[0] == '+' || sign[0] == '-';
            const struct kg_expr *right = expr->arguments[1];
            bool product = right->kind == KG_EXPR_CALL && right->function == KG_FN_MUL;
            kg_text_add(text, enclosed ? "(" : "");
            print_index(kernel, text, expr->arguments[0], !sum);
            kg_text_format(text, " %s ", sign);
            print_index(kernel, text, right, !(sum && product));
            kg_text_add(text, enclosed ? ")" : "");
            return;
        }
        kg_text_add(text, expr->function == KG_FN_DIV   ? "_floor_div("
                          : expr->function == KG_FN_MOD ? "_floor_mod("
                                                        : "_ceil_div(");
        for (int i = 0; i < expr->argument_count; i++) {
            kg_text_add(text, i > 0 ? ", " : "");
            print_index(kernel, text, expr->arguments[i], false);
        }
        kg_text_add(text, ")");
    } else { // a gather
        kg_text_add(text, kg_triton_value(kernel, expr, KG_TYPE_I64));
    }
}

const char *kg_triton_index(struct kg_triton_kernel *kernel, const struct kg_expr *expr)
{
    struct kg_text text = {0};
    print_index(kernel, &text, expr, true);
    return kg_triton_keep(kernel, &text);
}

const char *kg_triton_size(struct kg_triton_kernel *kernel, const struct kg_expr *expr,
                           const char *base)
{
    if (expr->kind != KG_EXPR_CALL)
        return kg_triton_index(kernel, expr);
    for (int i = 0; i < kernel->extent_count; i++)
        if (kg_size_same(kernel->extents[i].expr, expr))
            return kernel->extents[i].name;
    if (kernel->extent_count == sizeof kernel->extents / sizeof *kernel->extents)
        return kg_triton_index(kernel, expr);
    const char *name = kg_triton_fresh(kernel, base);
    kernel->extents[kernel->extent_count].expr = expr;
    kernel->extents[kernel->extent_count++].name = name;
    return name;
}

const char *kg_triton_begin_of(struct kg_triton_kernel *kernel, const struct kg_index *axis)
{
    if (!axis->begin)
        return "0";
    return kg_triton_size(kernel, axis->begin, kg_triton_format(kernel, "%s_begin", axis->name));
}

const char *kg_triton_end_of(struct kg_triton_kernel *kernel, const struct kg_index *axis)
{
    return kg_triton_size(kernel, axis->end, kg_triton_format(kernel, "%s_end", axis->name));
}

const char *kg_triton_extent(struct kg_triton_kernel *kernel, const struct kg_index *axis)
{
    const char *begin = kg_triton_begin_of(kernel, axis), *end = kg_triton_end_of(kernel, axis);
    return strcmp(begin, "0") == 0 ? end : kg_triton_format(kernel, "(%s - %s)", end, begin);
}

const char *kg_triton_and(struct kg_triton_kernel *kernel, const char *a, const char *b)
{
    if (!a || !b)
        return a ? a : b;
    return kg_triton_format(kernel, "%s & %s", a, b);
}

const char *kg_triton_relation(struct kg_triton_kernel *kernel, const struct kg_index *axis)
{
    static const char *const signs[] = {NULL, "<=", "<", ">=", ">"};
    if (axis->relation == KG_RELATION_NONE)
        return NULL;
    return kg_triton_format(kernel, "(%s %s %s)", kernel->axes[axis->id].name,
                            signs[axis->relation], kg_triton_index(kernel, axis->bound));
}

// ---- Masks ----

// The masks of the axes that the subscripts use, each once.
static void mark_axes(const struct kg_expr *expr, bool used[KG_MAX_INDICES])
{
    if (expr->kind == KG_EXPR_INDEX)
        used[expr->index->id] = true;
    if (expr->pad)
        mark_axes(expr->pad, used);
    for (int i = 0; i < expr->argument_count; i++)
        mark_axes(expr->arguments[i], used);
}

// Whether what follows these axes has a value for each row of a tile, and none else.
static bool are_rows(const struct kg_triton_kernel *kernel, const bool used[KG_MAX_INDICES])
{
    bool any = false;
    for (int axis = 0; axis < KG_MAX_INDICES; axis++) {
        any |= used[axis];
        if (used[axis] && !kernel->axes[axis].is_row)
            return false;
    }
    return any;
}

const char *kg_triton_mask(struct kg_triton_kernel *kernel, const bool used[KG_MAX_INDICES])
{
    const char *mask = NULL;
    const char *named[KG_MAX_INDICES];
    int count = 0;
    for (int place = 0; place < kernel->nest->axis_count; place++) {
        int axis = kernel->order ? kernel->order[place] : place;
        const char *inside = used[axis] ? kernel->axes[axis].inside : NULL;
        bool seen = false;
        for (int k = 0; k < count && inside; k++)
            seen |= strcmp(named[k], inside) == 0;
        if (!inside || seen)
            continue;
        named[count++] = inside;
        mask = kg_triton_and(kernel, mask, inside);
    }
    return mask;
}

// ---- Loads ----

const char *kg_triton_stride(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                             int dim)
{
    const char **stride = &kernel->strides[tensor->id][dim];
    if (!*stride)
        *stride = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_s%d", tensor->name, dim));
    return *stride;
}

const char *kg_triton_pointer(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor)
{
    const char **pointer = &kernel->pointers[tensor->id];
    if (!*pointer)
        *pointer = kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_ptr", tensor->name));
    return *pointer;
}

static const char *dimension_of(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                                int dim)
{
    return kg_triton_size(kernel, tensor->dims[dim],
                          kg_triton_format(kernel, "%s_dim%d", tensor->name, dim));
}

static const char *clamped(struct kg_triton_kernel *kernel, const struct kg_access *access, int dim,
                           const char *subscript)
{
    return kg_triton_format(kernel, "tl.minimum(tl.maximum(%s, 0), %s - 1)", subscript,
                            dimension_of(kernel, access->tensor, dim));
}

static const char *find_load(const struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                             const char *place)
{
    for (int i = 0; i < kernel->load_count; i++)
        if (kernel->loads[i].tensor == tensor && strcmp(kernel->loads[i].place, place) == 0)
            return kernel->loads[i].value;
    return NULL;
}

// Until the block ends in which it was read.
static void remember(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                     const char *place, const char *value)
{
    if (kernel->load_count < KG_TRITON_MAX_LOADS)
        kernel->loads[kernel->load_count++] =
            (struct kg_triton_load){tensor, place, value, kernel->level};
}

// A subscript in a variable of its own.
static const char *named(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor, int dim,
                         const char *subscript)
{
    const char *known = find_load(kernel, NULL, subscript);
    if (known)
        return known;
    const char *name =
        kg_triton_fresh(kernel, kg_triton_format(kernel, "%s_i%d", tensor->name, dim));
    size_t length = strlen(subscript);
    bool enclosed = subscript[0] == '(' && subscript[length - 1] == ')' &&
                    !memchr(subscript + 1, ')', length - 2);
    kg_triton_line(kernel, "%s = %.*s", name, (int)(length - 2 * enclosed), subscript + enclosed);
    remember(kernel, NULL, subscript, name);
    return name;
}

struct place {
    const char *offset; // "p * x_s0 + d * x_s1", or "0"
    const char *inside; // the condition of a padded read; NULL: none
};

// Whether no sizes make a statement read outside of its tensors. Else some would, which this tool
// refuses; modules give a 0 for such reads.
static bool is_inside(const struct kg_problem *problem)
{
    for (int i = 0; i < problem->op->statement_count; i++)
        if (!problem->is_inside[i])
            return false;
    return true;
}

bool kg_triton_is_walked(const struct kg_nest *nest, const struct kg_access *access, int inner,
                         int dims[2])
{
    int found = 0;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        int side = subscript->kind == KG_EXPR_INDEX ? subscript->index->id - inner + 1 : -1;
        if ((side == 0 || side == 1) && kg_access_covers(nest, access, dim)) {
            dims[side] = dim;
            found |= 1 << side;
        }
    }
    return found == 3;
}

// Whether the subscript is the quotient of an axis by something and the dimension as many times
// shorter than the axis, so that the quotient lies inside it.
static bool divides_inside(const struct kg_nest *nest, const struct kg_access *access, int dim)
{
    const struct kg_expr *subscript = access->map[dim].subscript, *size = access->tensor->dims[dim];
    if (subscript->kind != KG_EXPR_CALL || subscript->function != KG_FN_DIV ||
        subscript->arguments[0]->kind != KG_EXPR_INDEX ||
        !kg_expr_is_natural(subscript->arguments[1]))
        return false;
    const struct kg_index *axis = nest->axes[subscript->arguments[0]->index->id];
    const struct kg_expr *divisor = subscript->arguments[1], *end = axis->end;
    if (axis->begin)
        return false;
    if (size->kind == KG_EXPR_CALL && size->function == KG_FN_CEILDIV)
        return kg_size_same(size->arguments[0], end) && kg_size_same(size->arguments[1], divisor);
    for (int k = 0; k < 2 && end->kind == KG_EXPR_CALL && end->function == KG_FN_MUL; k++)
        if (kg_size_same(end->arguments[k], divisor) && kg_size_same(end->arguments[1 - k], size))
            return true;
    return false;
}

static struct place place_of(struct kg_triton_kernel *kernel, const struct kg_access *access)
{
    const struct kg_tensor *tensor = access->tensor;
    struct place place = {"0", NULL};
    int walked[2];
    bool walks = kernel->walk && kg_triton_is_walked(kernel->nest, access, kernel->walked, walked);
    bool unproved = !is_inside(kernel->group->problem), small = kernel->small;
    kernel->small = false; // what is read for a subscript is multiplied by a stride
    for (int dim = 0; dim < tensor->rank; dim++) {
        const struct kg_expr *expr = access->map[dim].subscript;
        if (walks && dim == walked[0])
            continue;
        const char *subscript =
            walks && dim == walked[1] ? kernel->walk : kg_triton_index(kernel, expr);
        bool guarded = (access->read->pad || (unproved && !access->map[dim].is_gather)) &&
                       !kg_access_covers(kernel->nest, access, dim) &&
                       !divides_inside(kernel->nest, access, dim);
        if (guarded) {
            if (expr->kind == KG_EXPR_CALL) // it is used three times
                subscript = named(kernel, tensor, dim, subscript);
            const char *size = dimension_of(kernel, tensor, dim);
            place.inside = kg_triton_and(
                kernel, place.inside,
                kg_triton_format(kernel, "(%s >= 0) & (%s < %s)", subscript, subscript, size));
        }
        if (access->map[dim].is_gather && !access->read->pad)
            subscript = clamped(kernel, access, dim, subscript);
        if (expr->kind == KG_EXPR_NUMBER && expr->integer == 0)
            continue;
        const char *term =
            kg_triton_format(kernel, "%s * %s", subscript, kg_triton_stride(kernel, tensor, dim));
        place.offset = strcmp(place.offset, "0") == 0
                           ? term
                           : kg_triton_format(kernel, "%s + %s", place.offset, term);
    }
    kernel->small = small;
    return place;
}

// A value that every dtype of the tensor holds, as it is given to tl.load; NULL: it has none.
static const char *other_of(struct kg_triton_kernel *kernel, const struct kg_access *access)
{
    const struct kg_expr *pad = access->read->pad;
    const struct kg_tensor *tensor = access->tensor;
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    bool plain = kg_dtypes[dtype].bits > 8 || !kg_dtypes[dtype].is_float;
    if (pad->kind != KG_EXPR_NUMBER || pad->size || kg_dtype_is_packed(dtype) || !plain)
        return NULL;
    double number = pad->is_integer ? (double)pad->integer : pad->number;
    bool held = kg_dtypes[dtype].is_float ? isinf(number) || isnan(number) ||
                                                (number == floor(number) && fabs(number) < 9)
                                          : number == 0.0 || number == 1.0;
    struct kg_text text = {0};
    if (!held)
        return NULL;
    if (kg_dtypes[dtype].is_float)
        kg_triton_real(&text, number, true);
    else
        kg_text_format(&text, "%d", (int)number);
    return kg_triton_keep(kernel, &text);
}

// The element as it is computed with, from what tl.load gives.
static const char *converted(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                             const char *loaded)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    if (kg_dtypes[dtype].is_float && kg_dtypes[dtype].bits == 8)
        return kg_triton_format(kernel, "_from_%s(%s)", kg_dtypes[dtype].name, loaded);
    if (tensor->compute == KG_TYPE_BOOL)
        return kg_triton_format(kernel, "%s.to(tl.int1)", loaded);
    if (tensor->role == KG_ROLE_LOCAL || (kernel->native && kg_dtypes[dtype].is_float))
        return loaded;
    if (kernel->whole && !kg_dtypes[dtype].is_float)
        return loaded;
    if ((kernel->small || kernel->narrow) && tensor->compute == KG_TYPE_I64)
        return kg_dtype_is_packed(dtype) ? loaded
                                         : kg_triton_format(kernel, "%s.to(tl.int32)", loaded);
    return kg_triton_format(kernel, "%s.to(%s)", loaded, kg_triton_type(tensor->compute));
}

static const char *value_in_tile(const struct kg_triton_kernel *kernel,
                                 const struct kg_access *access)
{
    for (int i = 0; i < kernel->group->count; i++)
        if (kg_group_nest(kernel->group, i)->output == access->tensor)
            return kernel->values[i];
    return NULL;
}

// Whether the kernel writes about as much as it reads, all of it in one pass.
static bool writes_elements(const struct kg_triton_kernel *kernel)
{
    const struct kg_nest *last = kg_group_nest(kernel->group, kernel->group->count - 1);
    return !kernel->again && !kernel->later && last->axis_count == last->output_axes &&
           last->output_axes > 0;
}

// Whether a launch of its own reads the tensor, too, after this one.
static bool is_read_later(const struct kg_triton_kernel *kernel, const struct kg_tensor *tensor)
{
    const struct kg_problem *problem = kernel->group->problem;
    for (int i = kernel->group->first + kernel->group->count; i < problem->nest_count; i++)
        for (int a = 0; a < problem->nests[i]->access_count; a++)
            if (problem->nests[i]->accesses[a].tensor == tensor)
                return true;
    return false;
}

// What the caches should do with the elements of a read: keep what other programs or a later pass
// read too, not keep what is read once; NULL: nothing is known.
static const char *policy_of(const struct kg_triton_kernel *kernel, const struct kg_access *access)
{
    const struct kg_nest *nest = kernel->nest;
    bool reused = false, once = access->tensor->rank > 0;
    if (kernel->shared || access->tensor->rank == 0)
        return NULL;
    for (int dim = 0; dim < access->tensor->rank; dim++) {
        const struct kg_expr *subscript = access->map[dim].subscript;
        if (access->map[dim].is_gather)
            return NULL;
        once &= subscript->kind == KG_EXPR_INDEX;
    }
    for (int axis = 0; axis < nest->axis_count; axis++) {
        bool used = kg_access_uses(access, axis, axis);
        for (int k = nest->output_axes; k < nest->axis_count; k++) // a scan follows its bound
            used |= nest->axes[k]->relation != KG_RELATION_NONE &&
                    kg_expr_uses(nest->axes[k]->bound, axis, true) && kg_access_uses(access, k, k);
        reused |= !used && axis < nest->output_axes;
        once &= used;
    }
    if (once && is_read_later(kernel, access->tensor))
        return NULL;
    if (reused || (once && kernel->again))
        return "\"evict_last\"";
    return !once ? NULL : writes_elements(kernel) ? "ONCE" : "\"evict_first\"";
}

// tl.load of an address, or of a nibble of it.
static const char *load_text(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                             const char *offset, const char *mask, const char *other,
                             const char *policy)
{
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    const char *pointer = kg_triton_pointer(kernel, tensor);
    struct kg_text text = {0};
    if (kg_dtype_is_packed(dtype))
        kg_text_format(&text, "_load_%s(%s, %s, %s)", kg_dtypes[dtype].name, pointer, offset,
                       mask ? mask : "True");
    else if (strcmp(offset, "0") == 0)
        kg_text_format(&text, "tl.load(%s", pointer);
    else
        kg_text_format(&text, "tl.load(%s + %s", pointer, offset);
    if (!kg_dtype_is_packed(dtype)) {
        if (mask)
            kg_text_format(&text, ", mask=%s, other=%s", mask, other);
        if (policy)
            kg_text_format(&text, ", eviction_policy=%s", policy);
        kg_text_add(&text, ")");
    }
    return kg_triton_keep(kernel, &text);
}

// The same for values that a tile's rows have, one each: a thread would load one as often as it has
// columns.
static const char *row_load_text(struct kg_triton_kernel *kernel, const struct kg_tensor *tensor,
                                 const char *offset, const char *mask, const char *other,
                                 const char *policy)
{
    struct kg_text text = {0};
    kg_text_format(&text, "%stl.load(%s + tl.reshape(%s, [BLOCK_ROWS])",
                   kernel->ties ? "_down(" : "", kg_triton_pointer(kernel, tensor), offset);
    if (mask)
        kg_text_format(&text, ", mask=tl.reshape(%s, [BLOCK_ROWS]), other=%s", mask, other);
    if (policy)
        kg_text_format(&text, ", eviction_policy=%s", policy);
    kg_text_add(&text, kernel->ties ? "))" : ").expand_dims(1)");
    return kg_triton_keep(kernel, &text);
}

// The statement of the group that makes a tensor which others need not see; NULL: none does.
static const struct kg_nest *maker_of(const struct kg_triton_kernel *kernel,
                                      const struct kg_tensor *tensor)
{
    for (int i = 0; i < kernel->group->count; i++)
        if (kg_group_nest(kernel->group, i)->output == tensor &&
            kg_group_is_private(kernel->group, tensor))
            return kg_group_nest(kernel->group, i);
    return NULL;
}

// The formula of another statement at the place that is read.
static const char *inlined(struct kg_triton_kernel *kernel, const struct kg_nest *maker,
                           const struct kg_access *access)
{
    const struct kg_nest *nest = kernel->nest;
    struct kg_triton_axis axes[KG_MAX_INDICES], kept[KG_MAX_INDICES];
    memcpy(kept, kernel->axes, sizeof kept);
    memcpy(axes, kernel->axes, sizeof axes);
    for (int dim = 0; dim < maker->output_axes; dim++) {
        bool used[KG_MAX_INDICES] = {false};
        const struct kg_expr *subscript = access->map[dim].subscript;
        mark_axes(subscript, used);
        const char *name = kg_triton_index(kernel, subscript);
        if (access->map[dim].is_gather)
            name = clamped(kernel, access, dim, name);
        const char *mask = kg_triton_mask(kernel, used);
        axes[dim] = (struct kg_triton_axis){.name = name, .is_row = are_rows(kernel, used)};
        if (mask)
            axes[dim].inside = kg_triton_format(kernel, strchr(mask, '&') ? "(%s)" : "%s", mask);
    }
    memcpy(kernel->axes, axes, sizeof axes);
    const char *walk = kernel->walk;
    bool shared = kernel->shared;
    kernel->walk = NULL;                                // the maker's axes are others
    for (int axis = 0; axis < nest->axis_count; axis++) // then others need the formula as well
        kernel->shared |= !kg_access_uses(access, axis, axis);
    kernel->nest = maker;
    const char *value = kg_triton_value(kernel, maker->body, maker->body->type);
    kernel->nest = nest;
    kernel->shared = shared;
    kernel->walk = walk;
    memcpy(kernel->axes, kept, sizeof kept);
    const char *name = kg_triton_fresh(kernel, access->tensor->name);
    kg_triton_line(kernel, "%s = %s", name, value);
    return name;
}

const char *kg_triton_read(struct kg_triton_kernel *kernel, const struct kg_access *access)
{
    const struct kg_tensor *tensor = access->tensor;
    const char *known = value_in_tile(kernel, access);
    if (known)
        return known;
    const struct kg_nest *maker = maker_of(kernel, tensor);
    if (maker)
        return inlined(kernel, maker, access);
    bool used[KG_MAX_INDICES] = {false};
    for (int dim = 0; dim < tensor->rank; dim++)
        mark_axes(access->map[dim].subscript, used);
    struct place place = place_of(kernel, access);
    const char *mask = kg_triton_and(kernel, kg_triton_mask(kernel, used), place.inside);
    const char *pad = NULL, *other = "0";
    if (place.inside && access->read->pad) {
        const char *simple = other_of(kernel, access);
        if (simple)
            other = simple;
        else
            pad = kg_triton_value(kernel, access->read->pad, access->read->type);
    }
    const char *key = kg_triton_format(kernel, "%s|%s|%s|%s", place.offset, mask ? mask : "", other,
                                       pad ? pad : "");
    const char *narrow_key = kg_triton_format(kernel, "%s|narrow", key);
    known = find_load(kernel, tensor, kernel->narrow ? narrow_key : key);
    if (known)
        return known;
    known = find_load(kernel, tensor, kernel->narrow ? key : narrow_key);
    if (known)
        return kg_triton_format(kernel, "%s.to(%s)", known,
                                kernel->narrow ? "tl.int32" : "tl.int64");
    const bool packed = kg_dtype_is_packed(kg_emit_tensor_dtype(tensor));
    const char *policy = packed ? NULL : policy_of(kernel, access);
    kernel->uses_once |= policy && strcmp(policy, "ONCE") == 0;
    const char *value = kg_triton_fresh(kernel, tensor->name);
    const bool of_rows = !packed && are_rows(kernel, used) && strcmp(other, "0") == 0;
    const char *loaded = of_rows ? row_load_text(kernel, tensor, place.offset, mask, other, policy)
                                 : load_text(kernel, tensor, place.offset, mask, other, policy);
    loaded = converted(kernel, tensor, loaded);
    if (pad)
        kg_triton_line(kernel, "%s = tl.where(%s, %s, %s)", value, place.inside, loaded, pad);
    else
        kg_triton_line(kernel, "%s = %s", value, loaded);
    remember(kernel, tensor, kernel->narrow ? narrow_key : key, value);
    return value;
}

void kg_triton_hoist(struct kg_triton_kernel *kernel, int first)
{
    const struct kg_nest *nest = kernel->nest;
    for (int i = 0; i < nest->access_count; i++) {
        bool used[KG_MAX_INDICES] = {false}, early = true;
        mark_axes(nest->accesses[i].read, used);
        for (int axis = first; axis < nest->axis_count; axis++)
            early &= !used[axis];
        if (early)
            (void)kg_triton_read(kernel, &nest->accesses[i]);
    }
}
