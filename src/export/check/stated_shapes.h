// Shapes and dtypes as one text states them: a function's checks, a docstring, the tables of an
// accuracy test. Sizes may have any names; they are known by the dimensions that they are of.

#ifndef KG_EXPORT_CHECK_STATED_SHAPES_H
#define KG_EXPORT_CHECK_STATED_SHAPES_H

#include "export/check/bundle_facts.h"
#include "lang/op.h"

struct kg_size_tree; // an expression of sizes

struct kg_size_variable {
    const char *name;
    int order; // the least one names all that are equal
    struct kg_size_variable *same;
    const struct kg_size_tree *value; // what all of them are worth; NULL: they are free
};

struct kg_stated_extent {
    struct kg_size_variable variable;
    const struct kg_size_tree *tree; // that it must be; NULL: nothing was said, or but one name
    struct kg_python_place place;
};

struct kg_stated_tensor {
    const char *name;
    bool is_output;
    int rank; // -1: not stated, -2: not understood
    struct kg_python_place rank_place;
    struct kg_stated_extent extents[KG_MAX_RANK];
    bool are_extents_opaque; // stated, and not understood
    bool is_packed;          // two elements in a byte
    struct kg_python_place packed_place;
    const char *dtype; // "float16|float32", "like x", "argument T"; NULL: not stated
    bool is_dtype_opaque;
    struct kg_python_place dtype_place;
};

#define KG_STATED_NAMES 256

struct kg_stated_name {
    const char *name;
    const struct kg_size_tree *tree; // NULL: not a size, or not understood
    const char *dtype;
};

struct kg_stated {
    struct kg_bundle_facts *facts;
    const struct kg_bundle_source *source;
    int role;
    bool is_code;
    bool takes_new_names; // a name that is not known is a size
    int tensor_count;
    struct kg_stated_tensor tensors[2 * KG_MAX_TENSORS];
    int output_count;
    int outputs[KG_MAX_TENSORS]; // those that callers get, in their order
    int name_count;
    struct kg_stated_name names[KG_STATED_NAMES];
};

void kg_stated_open(struct kg_stated *stated, struct kg_bundle_facts *facts, int role,
                    const struct kg_bundle_source *source, bool is_code);

// NULL: there is none of the name, or no room.
struct kg_stated_tensor *kg_stated_find(struct kg_stated *stated, const char *name);
struct kg_stated_tensor *kg_stated_add(struct kg_stated *stated, const char *name, bool is_output);

// It holds two elements in a byte: its shape tells no sizes. To be called before shapes are stated.
void kg_stated_pack(struct kg_stated_tensor *tensor, struct kg_python_place place);

// What a name means from here on.
void kg_stated_bind(struct kg_stated *stated, const char *name, const struct kg_size_tree *tree,
                    const char *dtype);
const struct kg_stated_name *kg_stated_name(const struct kg_stated *stated, const char *name);
const struct kg_size_tree *kg_stated_integer(struct kg_stated *stated, int64_t value);
const struct kg_size_tree *kg_stated_variable(struct kg_stated *stated, const char *name);
const struct kg_size_tree *kg_stated_dimension(struct kg_stated *stated,
                                               struct kg_stated_tensor *tensor, int dimension);
// NULL: not understood.
const struct kg_size_tree *kg_stated_size(struct kg_stated *stated,
                                          const struct kg_python_tokens *tokens,
                                          struct kg_python_range range);
// "torch.float16", "(torch.float16, T)", "x.dtype" as a stated dtype; NULL: not understood.
const char *kg_stated_dtype(struct kg_stated *stated, const struct kg_python_tokens *tokens,
                            struct kg_python_range range);
// "float16" of "f16"; packed types give "uint8". NULL: no dtype.
const char *kg_stated_dtype_named(const char *name, bool *is_packed);
// "a|b" in a fixed order, each once.
const char *kg_stated_dtype_set(struct kg_arena *arena, const char **names, int count);

// The tensor has this shape: a tuple.
void kg_stated_shape(struct kg_stated *stated, struct kg_stated_tensor *tensor,
                     const struct kg_python_tokens *tokens, struct kg_python_range tuple,
                     bool sets_rank);
void kg_stated_extent(struct kg_stated *stated, struct kg_stated_tensor *tensor, int dimension,
                      const struct kg_size_tree *tree, struct kg_python_place place);

// Callers get the tensor.
void kg_stated_gives(struct kg_stated *stated, const struct kg_stated_tensor *tensor);
// Turns all of it into statements. Tensors that callers do not get are the function's own.
void kg_stated_publish(struct kg_stated *stated);

#endif
