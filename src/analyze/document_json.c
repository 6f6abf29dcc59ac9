// The definition document as JSON.

#include "analyze/document.h"
#include "base/json.h"

static void write_shape(struct kg_json *json, const struct kg_layout *layout, int rank)
{
    kg_json_begin_array(json, "shape");
    for (int i = 0; i < rank; i++)
        kg_json_integer(json, NULL, layout->shape[i]);
    kg_json_end_array(json);
    kg_json_begin_array(json, "strides");
    for (int i = 0; i < rank; i++)
        kg_json_integer(json, NULL, layout->stride[i]);
    kg_json_end_array(json);
    kg_json_boolean(json, "contiguous", layout->contiguous);
    kg_json_integer(json, "bytes", (int64_t)layout->bytes);
}

static void write_tensors(struct kg_json *json, const struct kg_problem *problem)
{
    static const char *const roles[] = {"input", "output", "local"};
    kg_json_begin_array(json, "tensors");
    for (int i = 0; i < problem->tensor_count; i++) {
        const struct kg_tensor *tensor = problem->tensors[i];
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "name", tensor->name);
        kg_json_text(json, "role", roles[tensor->role]);
        kg_json_text(json, "dtype",
                     tensor->role == KG_ROLE_LOCAL ? kg_type_name_of(tensor->compute)
                                                   : kg_dtypes[tensor->type.dtype].name);
        if (tensor->panel_rows)
            kg_json_boolean(json, "packed", true);
        write_shape(json, &problem->layouts[i], tensor->rank);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
}

static void write_access(struct kg_json *json, const struct kg_problem *problem,
                         const struct kg_nest *nest, const struct kg_access *access)
{
    struct kg_text text = {0};
    kg_lang_print_expr(&text, access->read);
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "tensor", access->tensor->name);
    kg_json_text(json, "read", kg_text_string(&text));
    kg_json_integer(json, "elements", kg_analyze_footprint(problem, nest, access));
    kg_json_begin_array(json, "map");
    for (int d = 0; d < access->tensor->rank; d++) {
        const struct kg_affine *map = &access->map[d];
        kg_json_begin_object(json, NULL);
        kg_json_boolean(json, "affine", map->is_affine);
        kg_json_boolean(json, "gather", map->is_gather);
        kg_json_begin_array(json, "coefficients");
        for (int a = 0; map->is_affine && a < nest->axis_count; a++)
            kg_json_integer(json, NULL, map->coefficient[a]);
        kg_json_end_array(json);
        kg_json_integer(json, "offset", map->offset);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
    kg_json_end_object(json);
    kg_text_free(&text);
}

static void write_nest(struct kg_json *json, const struct kg_problem *problem,
                       const struct kg_nest *nest)
{
    struct kg_text text = {0};
    kg_nest_print(&text, nest);
    kg_json_begin_object(json, NULL);
    kg_json_text(json, "statement", kg_text_string(&text));
    kg_json_text(json, "class", kg_class_names[nest->class]);
    kg_json_begin_array(json, "axes");
    for (int a = 0; a < nest->axis_count; a++) {
        kg_json_begin_object(json, NULL);
        kg_json_text(json, "name", nest->axes[a]->name);
        kg_json_integer(json, "extent", nest->extent[a]);
        kg_json_boolean(json, "reduced", a >= nest->output_axes);
        kg_json_end_object(json);
    }
    kg_json_end_array(json);
    kg_json_number(json, "operations", nest->operations);
    kg_json_number(json, "transcendentals", nest->transcendentals);
    kg_json_number(json, "iterations", nest->iterations);
    kg_json_begin_array(json, "accesses");
    for (int i = 0; i < nest->access_count; i++)
        write_access(json, problem, nest, &nest->accesses[i]);
    kg_json_end_array(json);
    kg_json_end_object(json);
    kg_text_free(&text);
}

static void write_device(struct kg_json *json, const struct kg_problem *problem,
                         const struct kg_device_facts *facts)
{
    struct kg_roofline roofline = kg_roofline_of(problem, facts);
    kg_json_begin_object(json, "device");
    kg_json_text(json, "name", facts->name);
    kg_json_text(json, "isa", facts->isa);
    kg_json_integer(json, "units", facts->units);
    kg_json_number(json, "bandwidth", facts->bandwidth);
    kg_json_end_object(json);
    kg_json_begin_object(json, "roofline");
    kg_json_number(json, "memory_seconds", roofline.memory_seconds);
    kg_json_number(json, "compute_seconds", roofline.compute_seconds);
    kg_json_number(json, "seconds", roofline.seconds);
    kg_json_number(json, "ridge", roofline.ridge);
    kg_json_boolean(json, "memory_bound", roofline.memory_bound);
    kg_json_end_object(json);
}

void kg_analyze_document_json(struct kg_text *text, const struct kg_problem *problem,
                              const struct kg_device_facts *facts)
{
    const struct kg_op *op = problem->op;
    struct kg_json json = {.text = text};
    kg_json_begin_object(&json, NULL);
    kg_json_text(&json, "name", op->name);
    kg_json_text(&json, "description", op->description);
    kg_json_text(&json, "source", op->source);
    kg_json_text(&json, "class", kg_class_names[problem->class]);
    kg_json_begin_object(&json, "sizes");
    for (int i = 0; i < op->size_count; i++)
        if (op->sizes[i]->is_real)
            kg_json_number(&json, op->sizes[i]->name, op->sizes[i]->real);
        else
            kg_json_integer(&json, op->sizes[i]->name, problem->sizes[i]);
    kg_json_end_object(&json);
    kg_json_begin_object(&json, "types");
    for (int i = 0; i < op->typevar_count; i++)
        kg_json_text(&json, op->typevars[i]->name, kg_dtypes[op->bound[i]].name);
    kg_json_end_object(&json);
    write_tensors(&json, problem);
    kg_json_begin_array(&json, "nests");
    for (int i = 0; i < problem->nest_count; i++)
        write_nest(&json, problem, problem->nests[i]);
    kg_json_end_array(&json);
    kg_json_number(&json, "operations", problem->operations);
    kg_json_number(&json, "transcendentals", problem->transcendentals);
    kg_json_number(&json, "read_bytes", problem->read_bytes);
    kg_json_number(&json, "write_bytes", problem->write_bytes);
    kg_json_number(&json, "intensity", problem->intensity);
    if (facts)
        write_device(&json, problem, facts);
    kg_json_boolean(&json, "goal_given", op->goal.given);
    kg_json_number(&json, "speedup", op->goal.given ? op->goal.speedup : 1);
    kg_json_integer(&json, "rounds", op->goal.given ? op->goal.rounds : 5);
    kg_json_end_object(&json);
}
