// The source of a contraction: the functions that hold the formula (kernels/host/contract.h
// declares them), between the parts of the skeleton.

#include "gen/host/contract_writer.h"

#include "gen/skeleton.h"

#include <stdio.h>
#include <string.h>

static const struct kg_nest *nest_at(const struct kg_contract *contract, int i)
{
    return contract->group->problem->nests[contract->group->first + i];
}

static void print_count(const struct kg_contract_writer *writer, enum kg_contract_role part)
{
    const struct kg_contract *contract = writer->contract;
    if (contract->axis_count[part] == 0)
        kg_text_add(writer->text, "1");
    for (int i = 0; i < contract->axis_count[part]; i++) {
        kg_text_add(writer->text, i > 0 ? " * " : "");
        kg_contract_extent(writer->text, contract->nest->axes[contract->axes[part][i]]);
    }
}

static void print_constants(const struct kg_contract_writer *writer)
{
    const struct kg_contract *contract = writer->contract;
    for (int i = 0; i < contract->constant_count; i++) {
        kg_text_add(writer->text, contract->constants[i].divides ? " / (" : " * (");
        kg_emit_value(writer->text, contract->nest, contract->constants[i].expr, contract->type,
                      &writer->names);
        kg_text_add(writer->text, ")");
    }
}

// Several axes are one when each step of an outer one is all the steps of the next.
static void emit_merge(const struct kg_contract_writer *writer,
                       const struct kg_contract_operand *operand, enum kg_contract_role part)
{
    const struct kg_contract *contract = writer->contract;
    for (int i = 0; i + 1 < contract->axis_count[part]; i++) {
        kg_text_add(writer->text, "    if (");
        kg_contract_stride(writer->text, operand->plain, contract->axes[part][i]);
        kg_text_add(writer->text, " != (");
        kg_contract_stride(writer->text, operand->plain, contract->axes[part][i + 1]);
        kg_text_add(writer->text, ") * ");
        kg_contract_extent(writer->text, contract->nest->axes[contract->axes[part][i + 1]]);
        kg_text_add(writer->text, ")\n        return false;\n");
    }
}

static void emit_stride(const struct kg_contract_writer *writer,
                        const struct kg_contract_operand *operand, enum kg_contract_role part,
                        const char *member)
{
    const struct kg_contract *contract = writer->contract;
    int count = contract->axis_count[part];
    kg_text_format(writer->text, "    part->%s = ", member);
    if (count > 0)
        kg_contract_stride(writer->text, operand->plain, contract->axes[part][count - 1]);
    else
        kg_text_add(writer->text, "0");
    kg_text_add(writer->text, ";\n");
}

static void emit_direct(const struct kg_contract_writer *writer, int index)
{
    const struct kg_contract *contract = writer->contract;
    const struct kg_contract_operand *operand = &contract->operands[index];
    struct kg_text *text = writer->text;
    enum kg_contract_role rows = index ? KG_CONTRACT_N : KG_CONTRACT_M;
    kg_text_format(text,
                   "static bool %c_direct(const struct kg_host_call *call, int64_t item, struct "
                   "view *part)\n{\n",
                   "ab"[index]);
    if (!operand->plain) {
        kg_text_add(text, "    (void)call, (void)item, (void)part;\n    return false;\n}\n\n");
        return;
    }
    kg_text_add(text, "    (void)item;\n");
    kg_emit_host_bindings(text, contract->group, false);
    emit_merge(writer, operand, rows);
    emit_merge(writer, operand, KG_CONTRACT_K);
    kg_contract_all_axes(writer, 1, KG_CONTRACT_BATCH, "item");
    struct kg_emit_names names = writer->names;
    struct kg_contract copy = *contract;
    names.user = &copy;
    names.axis = kg_contract_print_begin;
    kg_text_add(text, "    part->data = ");
    kg_emit_name(text, operand->plain->tensor->name);
    kg_text_add(text, " + ");
    kg_emit_offset(text, contract->nest, operand->plain, &names);
    kg_text_add(text, ";\n");
    emit_stride(writer, operand, rows, "x");
    emit_stride(writer, operand, KG_CONTRACT_K, "k");
    kg_text_format(text, "    part->halves = %s;\n", operand->halves ? "true" : "false");
    kg_text_add(text, "    return true;\n}\n\n");
}

static void emit_extents(const struct kg_contract_writer *writer)
{
    static const char *const members[] = {"batch", "m", "n", "k"};
    kg_text_add(writer->text,
                "static struct extents extents(const struct kg_host_call *call)\n{\n");
    kg_emit_host_bindings(writer->text, writer->contract->group, false);
    kg_text_add(writer->text, "    return (struct extents){");
    for (int part = 0; part < KG_CONTRACT_ROLES; part++) {
        kg_text_format(writer->text, "%s.%s = ", part > 0 ? ", " : "", members[part]);
        print_count(writer, (enum kg_contract_role)part);
    }
    kg_text_add(writer->text, "};\n}\n\n");
}

// A value made earlier in the group, as it is read back: an output has the dtype it is stored in.
static bool print_made(void *user, struct kg_text *text, const struct kg_access *access)
{
    const struct kg_contract *contract = user;
    const struct kg_tensor *tensor = access->tensor;
    const struct kg_nest *maker = NULL;
    for (int i = 0; i < contract->group->count; i++)
        if (nest_at(contract, i)->output == tensor)
            maker = nest_at(contract, i);
    if (!maker)
        return false;
    enum kg_dtype dtype = kg_emit_tensor_dtype(tensor);
    char value[32];
    snprintf(value, sizeof value, "v%d", tensor->id);
    if (!kg_dtype_is_computed(dtype))
        kg_text_format(text, "kg_cast_%s(", kg_dtypes[dtype].name);
    else
        kg_text_add(text, "(");
    kg_emit_convert(text, kg_emit_nest_type(maker), tensor->compute, value);
    kg_text_add(text, ")");
    return true;
}

static void emit_follower(const struct kg_contract_writer *writer, int level, int i)
{
    const struct kg_nest *nest = nest_at(writer->contract, i);
    struct kg_contract copy = *writer->contract;
    struct kg_emit_names names = writer->names;
    names.user = &copy;
    names.read = print_made;
    enum kg_type type = kg_emit_nest_type(nest);
    kg_text_format(writer->text, "%*sconst %s v%d = ", 4 * level, "", kg_emit_type(type),
                   nest->output->id);
    kg_emit_value(writer->text, nest, nest->body, type, &names);
    kg_text_add(writer->text, ";\n");
}

static void emit_sum(const struct kg_contract_writer *writer, int level)
{
    const struct kg_contract *contract = writer->contract;
    kg_text_format(writer->text, "%*sconst %s v%d = %stile[at0 * width + at1]", 4 * level, "",
                   kg_emit_type(contract->type), contract->nest->output->id,
                   contract->negative ? "-" : "");
    print_constants(writer);
    kg_text_add(writer->text, ";\n");
}

static void emit_store(const struct kg_contract_writer *writer, int level, int i)
{
    const struct kg_nest *nest = nest_at(writer->contract, i);
    if (kg_group_is_private(writer->contract->group, nest->output))
        return;
    char value[32];
    snprintf(value, sizeof value, "v%d", nest->output->id);
    kg_text_format(writer->text, "%*s", 4 * level, "");
    kg_emit_store(writer->text, nest, &writer->names, kg_emit_nest_type(nest), value);
    kg_text_add(writer->text, "\n");
}

static const char finish_dispatch[] =
    "static void finish(const struct kg_host_call *call, int64_t item, int64_t row, int64_t rows,\n"
    "                   int64_t first, int64_t count, const KG_REAL *restrict tile, int64_t "
    "width)\n{\n"
    "    if (rows == KG_ROWS && count == KG_COLUMNS && width == KG_COLUMNS) // known lengths\n"
    "        finish_tile(call, item, row, KG_ROWS, first, KG_COLUMNS, tile, KG_COLUMNS);\n"
    "    else if (KG_SHORT_PATH && rows == KG_ROWS && count == KG_SHORT_COLUMNS &&\n"
    "             width == KG_SHORT_COLUMNS)\n"
    "        finish_tile(call, item, row, KG_ROWS, first, KG_SHORT_COLUMNS, tile, "
    "KG_SHORT_COLUMNS);\n"
    "    else if (KG_PAIR_PATH && count == KG_PAIR_TILE && width == KG_PAIR_TILE)\n"
    "        finish_tile(call, item, row, rows, first, KG_PAIR_TILE, tile, KG_PAIR_TILE);\n"
    "    else\n"
    "        finish_tile(call, item, row, rows, first, count, tile, width);\n}\n\n";

static void emit_finish(const struct kg_contract_writer *writer)
{
    const struct kg_contract *contract = writer->contract;
    kg_text_add(writer->text,
                "KG_INLINE void finish_tile(const struct kg_host_call *call, int64_t item, int64_t "
                "row,\n                           int64_t rows, int64_t first, int64_t count,\n"
                "                           const KG_REAL *restrict tile, int64_t width)\n{\n");
    kg_text_add(writer->text, "    (void)item, (void)row;\n");
    kg_emit_host_bindings(writer->text, contract->group, false);
    kg_contract_all_axes(writer, 1, KG_CONTRACT_BATCH, "item");
    kg_emit_line(writer->text, 1, "for (int64_t at0 = 0; at0 < rows; at0++) {");
    kg_contract_all_axes(writer, 2, KG_CONTRACT_M, "row + at0");
    struct kg_contract_run run =
        kg_contract_open_run(writer, 2, KG_CONTRACT_N, "first", "count", 0);
    int level = kg_contract_open_elements(writer, &run);
    emit_sum(writer, level);
    emit_store(writer, level, 0);
    for (int i = 1; i < contract->group->count; i++) {
        emit_follower(writer, level, i);
        emit_store(writer, level, i);
    }
    kg_emit_line(writer->text, run.level, "}");
    kg_contract_close_run(writer, &run);
    kg_text_add(writer->text, "    }\n}\n\n");
    kg_text_add(writer->text, finish_dispatch);
}

// Do both operands lie in memory as narrow floats, whatever the strides?
static bool only_halves(const struct kg_contract *contract)
{
    bool single = contract->operands[0].halves && contract->operands[1].halves;
    for (int part = KG_CONTRACT_M; part < KG_CONTRACT_ROLES; part++)
        single = single && contract->axis_count[part] <= 1; // else they may not merge
    return single;
}

static void emit_defines(const struct kg_contract_writer *writer,
                         const struct kg_device_facts *facts, const struct kg_config *config,
                         const char *entry)
{
    static const char *const names[KG_CONTRACT_PARAMETERS] = {
        [KG_CONTRACT_ROWS] = "KG_ROWS",
        [KG_CONTRACT_VECTORS] = "KG_VECTORS",
        [KG_CONTRACT_DEPTH] = "KG_BLOCK_K",
        [KG_CONTRACT_BLOCK_ROWS] = "KG_BLOCK_ROWS",
        [KG_CONTRACT_COLUMNS] = "KG_ITEM_COLUMNS",
    };
    const struct kg_contract *contract = writer->contract;
    kg_emit_line(writer->text, 0, "#define KG_ENTRY(name) %s_##name", entry);
    kg_emit_line(writer->text, 0, "#define KG_REAL %s", kg_emit_type(contract->type));
    kg_emit_line(writer->text, 0, "#define KG_LANES %d", kg_contract_lanes(contract, facts));
    kg_emit_line(writer->text, 0, "#define KG_HALF %s",
                 contract->half == KG_F16    ? "KG_F16"
                 : contract->half == KG_BF16 ? "KG_BF16"
                                             : "KG_NONE");
    kg_emit_line(writer->text, 0, "#define KG_ONLY_HALVES %d", only_halves(contract));
    kg_emit_line(writer->text, 0, "#define KG_PAIRS %d", kg_contract_pairs(contract, facts));
    const struct kg_contract_shorts shorts = kg_contract_shorts(contract, facts);
    kg_emit_line(writer->text, 0, "#define KG_WORDS %d", (int)shorts.words);
    kg_emit_line(writer->text, 0, "#define KG_SHORTS %d", shorts.parts[0] > 0);
    if (shorts.parts[0] > 0) {
        kg_emit_line(writer->text, 0, "#define KG_A_PARTS %d", shorts.parts[0]);
        kg_emit_line(writer->text, 0, "#define KG_B_PARTS %d", shorts.parts[1]);
        kg_emit_line(writer->text, 0, "#define KG_A_UNSIGNED %d", shorts.is_unsigned[0]);
        kg_emit_line(writer->text, 0, "#define KG_B_UNSIGNED %d", shorts.is_unsigned[1]);
        kg_emit_line(writer->text, 0, "#define KG_SHORT_STEPS %lld", (long long)shorts.steps);
    }
    for (int i = 0; i < KG_CONTRACT_PARAMETERS; i++)
        kg_emit_line(writer->text, 0, "#define %s %lld", names[i], (long long)config->value[i]);
    kg_emit_line(writer->text, 0, "#define KG_A_ALONG_K %d", contract->operands[0].k_major);
    kg_emit_line(writer->text, 0, "#define KG_B_ALONG_K %d", contract->operands[1].k_major);
}

bool kg_contract_emit(const struct kg_contract *contract, const struct kg_device_facts *facts,
                      const struct kg_config *config, const struct kg_space *space,
                      const char *entry, struct kg_text *source)
{
    struct kg_contract_writer writer = {.text = source, .contract = contract};
    writer.names.contiguous = contract->group->problem->contiguous;
    kg_emit_host_opening(source, contract->group, "contract", config, space);
    bool pairs = kg_contract_pairs(contract, facts);
    bool shorts = kg_contract_shorts(contract, facts).parts[0] > 0;
    struct kg_scaled_operand scaled;
    enum kg_contract_layout layout = kg_contract_scaled(contract, &scaled);
    emit_defines(&writer, facts, config, entry);
    kg_contract_define_scaled(&writer, layout, &scaled);
    const bool tiles = kg_contract_tiles(contract, facts, layout, &scaled);
    kg_emit_line(source, 0, "#define KG_TILES %d\n", tiles);
    if (pairs || tiles)
        kg_text_add(source, kg_skeleton_find("host/amx.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_names.h"));
    kg_text_add(source, kg_skeleton_find("host/contract.h"));
    emit_extents(&writer);
    for (int operand = 0; operand < 2; operand++) {
        emit_direct(&writer, operand);
        kg_contract_emit_fill(&writer, operand);
        if (shorts)
            kg_contract_emit_shorts(&writer, operand);
    }
    if (layout != KG_CONTRACT_OTHER)
        kg_contract_emit_scaled(&writer, layout, &scaled);
    emit_finish(&writer);
    kg_text_add(source, kg_skeleton_find("host/contract_view.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_pack.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_panels.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_dots.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_few.h"));
    if (pairs)
        kg_text_add(source, kg_skeleton_find("host/contract_pairs.h"));
    if (shorts)
        kg_text_add(source, kg_skeleton_find("host/contract_shorts.h"));
    if (layout != KG_CONTRACT_OTHER) {
        kg_text_add(source, kg_skeleton_find("host/contract_strips.h"));
        kg_text_add(source, kg_skeleton_find("host/contract_scaled_dots.h"));
    }
    if (layout == KG_CONTRACT_PANELS)
        kg_text_add(source, kg_skeleton_find("host/contract_scaled_panel_dots.h"));
    if (layout == KG_CONTRACT_ALONG_N || layout == KG_CONTRACT_PANELS) {
        kg_text_add(source, kg_skeleton_find("host/contract_scaled.h"));
        kg_text_add(source, kg_skeleton_find("host/contract_scaled_panels.h"));
    } else if (layout == KG_CONTRACT_ALONG_K) {
        kg_text_add(source, kg_skeleton_find("host/contract_scaled_lines.h"));
    }
    if (tiles) {
        kg_text_add(source, kg_skeleton_find("host/contract_scaled_tiles.h"));
        kg_text_add(source, kg_skeleton_find(layout == KG_CONTRACT_ALONG_K
                                                 ? "host/contract_scaled_tile_lines.h"
                                                 : "host/contract_scaled_tile_strips.h"));
    }
    kg_text_add(source, kg_skeleton_find("host/contract_entry.h"));
    kg_text_add(source, kg_skeleton_find("host/contract_end.h"));
    return !source->failed;
}
