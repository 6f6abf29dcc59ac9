// Products of matrices, tile by tile. The factors lie in fields of their own; a tile copies the
// parts that it needs into dense blocks and multiplies these.

#include "verify/program.h"

#include <stdlib.h>
#include <string.h>

// Of a tile, and of the blocks that its factors are copied into: 256 KiB each, for the L2 cache.
#define ROWS 128
#define COLUMNS 128
#define DEPTH 256
#define STEP 8 // rows and columns that registers hold

// Smaller products gain nothing from copies.
#define LEAST_COLUMNS 8
#define LEAST_DEPTH 8

struct part {
    int count;
    int axes[KG_MAX_INDICES];
    int64_t points;
};

struct product {
    const struct kg_program *program;
    const struct kg_pass *pass;
    const struct kg_field *left, *right, *result;
    struct part batches, rows, columns, depth;
};

static bool uses(const struct kg_read *read, int axis)
{
    for (int d = 0; d < read->rank; d++)
        if (read->subscripts[d].terms[0].axis == axis)
            return true;
    return false;
}

static void add_axis(const struct kg_pass *pass, struct part *part, int axis)
{
    part->axes[part->count++] = axis;
    part->points *= pass->axes[axis].extent;
}

static struct product describe(const struct kg_program *program, const struct kg_pass *pass)
{
    struct product product = {.program = program,
                              .pass = pass,
                              .left = &program->fields[pass->reads[0]->field],
                              .right = &program->fields[pass->reads[1]->field],
                              .result = &program->fields[pass->field],
                              .batches = {.points = 1},
                              .rows = {.points = 1},
                              .columns = {.points = 1},
                              .depth = {.points = 1}};
    for (int a = 0; a < pass->axis_count; a++) {
        bool left = uses(pass->reads[0], a), right = uses(pass->reads[1], a);
        struct part *part = a >= pass->output_axes ? &product.depth
                            : left && !right       ? &product.rows
                            : right && !left       ? &product.columns
                                                   : &product.batches;
        add_axis(pass, part, a);
    }
    return product;
}

bool kg_product_fits(const struct kg_program *program, const struct kg_pass *pass)
{
    if (!pass->is_product)
        return false;
    struct product product = describe(program, pass);
    return product.columns.points >= LEAST_COLUMNS && product.depth.points >= LEAST_DEPTH;
}

static int64_t blocks(int64_t points, int64_t block)
{
    return (points + block - 1) / block;
}

int64_t kg_product_tasks(const struct kg_program *program, const struct kg_pass *pass)
{
    struct product product = describe(program, pass);
    return product.batches.points * blocks(product.rows.points, ROWS) *
           blocks(product.columns.points, COLUMNS);
}

// How far a factor's element moves when an axis of the pass takes its value number `number`, from
// the place where all axes have their first value. Zero if the factor does not depend on the axis.
static int64_t moved_in(const struct kg_read *read, const struct kg_field *field, int axis,
                        int64_t number)
{
    for (int d = 0; d < read->rank; d++)
        if (read->subscripts[d].terms[0].axis == axis)
            return number * field->stride[d];
    return 0;
}

// The offsets in the left factor, the right one and the result of `count` points of a part, from
// number `first` on.
struct offsets {
    int64_t left[DEPTH], right[DEPTH], result[DEPTH];
};

static void find_offsets(const struct product *product, const struct part *part, int64_t first,
                         int count, struct offsets *offsets)
{
    const struct kg_pass *pass = product->pass;
    memset(offsets, 0, sizeof *offsets);
    for (int i = 0; i < count; i++) {
        int64_t number = first + i;
        for (int p = part->count - 1; p >= 0; p--) {
            int axis = part->axes[p];
            int64_t place = number % pass->axes[axis].extent;
            number /= pass->axes[axis].extent;
            offsets->left[i] += moved_in(pass->reads[0], product->left, axis, place);
            offsets->right[i] += moved_in(pass->reads[1], product->right, axis, place);
            if (axis < pass->output_axes)
                offsets->result[i] += place * product->result->stride[axis];
        }
    }
}

// The offset of a factor's element when all axes have their first value.
static int64_t origin(const struct kg_pass *pass, const struct kg_read *read,
                      const struct kg_field *field)
{
    int64_t at = 0;
    for (int d = 0; d < read->rank; d++) {
        const struct kg_subscript *subscript = &read->subscripts[d];
        int64_t place = pass->axes[subscript->terms[0].axis].first + subscript->constant;
        at += (place - field->low[d]) * field->stride[d];
    }
    return at;
}

struct tile {
    double sums[ROWS][COLUMNS];
    double left[ROWS][DEPTH];
    double right[COLUMNS / STEP][DEPTH][STEP]; // what one step multiplies lies together
    struct offsets rows, columns, depth;
};

typedef double vector __attribute__((vector_size(STEP * sizeof(double)), aligned(sizeof(double))));

// Adds the product of the copied blocks to the sums. Both are padded with zeros to whole steps.
static inline __attribute__((always_inline)) void multiply(struct tile *tile, int rows, int columns,
                                                           int depth)
{
    for (int column = 0; column < columns; column += STEP)
        for (int row = 0; row < rows; row += STEP) {
            vector sums[STEP];
            for (int r = 0; r < STEP; r++)
                sums[r] = *(const vector *)&tile->sums[row + r][column];
            for (int k = 0; k < depth; k++) {
                vector right = *(const vector *)tile->right[column / STEP][k];
                for (int r = 0; r < STEP; r++)
                    sums[r] += tile->left[row + r][k] * right;
            }
            for (int r = 0; r < STEP; r++)
                *(vector *)&tile->sums[row + r][column] = sums[r];
        }
}

#if defined __x86_64__ && defined __GNUC__
__attribute__((target("avx512f"))) static void multiply_512(struct tile *tile, int rows,
                                                            int columns, int depth)
{
    multiply(tile, rows, columns, depth);
}

__attribute__((target("avx2,fma"))) static void multiply_256(struct tile *tile, int rows,
                                                             int columns, int depth)
{
    multiply(tile, rows, columns, depth);
}

static void multiply_best(struct tile *tile, int rows, int columns, int depth)
{
    if (__builtin_cpu_supports("avx512f"))
        multiply_512(tile, rows, columns, depth);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        multiply_256(tile, rows, columns, depth);
    else
        multiply(tile, rows, columns, depth);
}
#else
static void multiply_best(struct tile *tile, int rows, int columns, int depth)
{
    multiply(tile, rows, columns, depth);
}
#endif

// Copies a block of each factor: `left` and `right` are the batch's places in the factors.
static void copy_blocks(struct tile *tile, const double *left, const double *right, int rows,
                        int columns, int depth)
{
    const int64_t *along = tile->depth.left;
    bool dense = along[depth - 1] == depth - 1;
    for (int r = 0; r < rows; r++) {
        const double *from = left + tile->rows.left[r];
        if (dense)
            memcpy(tile->left[r], from, (size_t)depth * sizeof *from);
        for (int k = 0; k < depth && !dense; k++)
            tile->left[r][k] = from[along[k]];
    }
    for (int n = 0; n < columns; n++) {
        const double *from = right + tile->columns.right[n];
        for (int k = 0; k < depth; k++)
            tile->right[n / STEP][k][n % STEP] = from[tile->depth.right[k]];
    }
}

static int least(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

enum kg_status kg_product_run(const struct kg_program *program, const struct kg_pass *pass,
                              int64_t task)
{
    struct product product = describe(program, pass);
    struct tile *tile = calloc(1, sizeof *tile);
    if (!tile)
        return KG_ERROR_MEMORY;
    int64_t row_blocks = blocks(product.rows.points, ROWS);
    int64_t column_blocks = blocks(product.columns.points, COLUMNS);
    int64_t first_column = task % column_blocks * COLUMNS;
    int64_t first_row = task / column_blocks % row_blocks * ROWS;
    int rows = least(product.rows.points - first_row, ROWS);
    int columns = least(product.columns.points - first_column, COLUMNS);
    struct offsets batch;
    find_offsets(&product, &product.batches, task / column_blocks / row_blocks, 1, &batch);
    find_offsets(&product, &product.rows, first_row, rows, &tile->rows);
    find_offsets(&product, &product.columns, first_column, columns, &tile->columns);
    const double *left =
        product.left->real + origin(pass, pass->reads[0], product.left) + batch.left[0];
    const double *right =
        product.right->real + origin(pass, pass->reads[1], product.right) + batch.right[0];
    for (int64_t k = 0; k < product.depth.points; k += DEPTH) {
        int depth = least(product.depth.points - k, DEPTH);
        find_offsets(&product, &product.depth, k, depth, &tile->depth);
        copy_blocks(tile, left, right, rows, columns, depth);
        multiply_best(tile, rows, columns, depth);
    }
    for (int r = 0; r < rows; r++)
        for (int n = 0; n < columns; n++)
            product.result->real[batch.result[0] + tile->rows.result[r] + tile->columns.result[n]] =
                tile->sums[r][n];
    free(tile);
    return KG_OK;
}
