// See packed.h; docs/packed.md describes the layout.

#include "weights/packed.h"

#include "base/hash.h"
#include "weights/panel_order.h"

#include <string.h>

#define MAGIC "KGPACKED"
#define PANEL_BYTES (KG_PANEL_PACKED * sizeof(uint32_t))
#define FLAG_ORDERED 1u
#define STRIP                                                                                      \
    256 // columns that are read from the first row to the last, where what they need lies
        // column by column: it stays in the cache

static int64_t round_up(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static int64_t padded_columns(const struct kg_packed *packed)
{
    return round_up(packed->columns, KG_PANEL_COLUMNS);
}

static int64_t groups_of(const struct kg_packed *packed)
{
    return round_up(packed->rows, packed->group) / packed->group;
}

// Places and lengths of the sections, from the members before them.
static void lay_out(struct kg_packed *packed)
{
    size_t columns = (size_t)padded_columns(packed), groups = (size_t)groups_of(packed);
    size_t scales = kg_dtype_bytes(packed->dtype, groups * columns);
    size_t *length = packed->length;
    length[KG_SECTION_CODES] = (size_t)round_up(packed->rows, KG_PANEL_ROWS) * columns / 2;
    length[KG_SECTION_SCALES] = scales;
    length[KG_SECTION_ZEROS] = packed->zero == KG_ZERO_CODES     ? groups * columns / 2
                               : packed->zero == KG_ZERO_OFFSETS ? scales
                                                                 : 0;
    length[KG_SECTION_ORDER] = packed->ordered ? (size_t)packed->rows * sizeof(int32_t) : 0;
    size_t end = KG_PACKED_HEADER;
    for (int i = 0; i < KG_SECTION_COUNT; i++) {
        packed->offset[i] = end;
        end = (size_t)round_up((int64_t)(end + length[i]), KG_PACKED_HEADER);
    }
    packed->bytes = end;
}

void kg_packed_lay_out(const struct kg_layer *layer, struct kg_packed *packed)
{
    *packed = (struct kg_packed){
        .rows = layer->rows,
        .columns = layer->columns,
        .group = layer->group,
        .dtype = layer->dtype,
        .zero = layer->zero,
        .ordered = layer->order != NULL,
    };
    lay_out(packed);
}

// ---- Codes

static uint32_t *panel_at(const struct kg_packed *packed, const void *memory, int64_t row,
                          int64_t column)
{
    int64_t across = padded_columns(packed) / KG_PANEL_COLUMNS;
    int64_t number = row / KG_PANEL_ROWS * across + column / KG_PANEL_COLUMNS;
    char *codes = (char *)memory + packed->offset[KG_SECTION_CODES];
    return (uint32_t *)(codes + (size_t)number * PANEL_BYTES);
}

// Zeros where the layer has nothing.
static void read_panel(const struct kg_layer *layer, int64_t row, int64_t column, kg_panel panel)
{
    if (column + KG_PANEL_COLUMNS > layer->columns || row + KG_PANEL_ROWS > layer->rows)
        memset(panel, 0, sizeof(kg_panel));
    layer->reader->codes(layer, row, column, panel);
}

// ---- Scales, zeros, offsets

typedef void values_reader(const struct kg_layer *layer, int64_t group, int64_t column,
                           void *values);

// What one panel's columns have in a section, for one group; at most 8 bytes each.
struct values {
    unsigned char bytes[KG_PANEL_COLUMNS * sizeof(double)];
    size_t length;
};

static struct values read_values(const struct kg_layer *layer, enum kg_section section,
                                 int64_t group, int64_t column)
{
    struct values values = {.length = KG_PANEL_COLUMNS / 2};
    unsigned char read[sizeof values.bytes] = {0};
    bool exists = column < layer->columns;
    if (section == KG_SECTION_ZEROS && layer->zero == KG_ZERO_CODES) {
        if (exists)
            layer->reader->zeros(layer, group, column, read);
        for (int g = 0; g < 8; g++)
            values.bytes[g] = (unsigned char)(read[2 * g] | read[2 * g + 1] << 4);
        return values;
    }
    size_t item = kg_dtype_bytes(layer->dtype, 1);
    values_reader *reader =
        section == KG_SECTION_SCALES ? layer->reader->scales : layer->reader->offsets;
    if (exists)
        reader(layer, group, column, read);
    values.length = KG_PANEL_COLUMNS * item;
    memcpy(values.bytes, read, values.length);
    return values;
}

static char *values_at(const struct kg_packed *packed, const void *memory, enum kg_section section,
                       int64_t group, int64_t column)
{
    size_t row = packed->length[section] / (size_t)groups_of(packed);
    size_t before = row / (size_t)padded_columns(packed) * (size_t)column;
    if (section == KG_SECTION_ZEROS && packed->zero == KG_ZERO_CODES)
        before = (size_t)column / 2;
    return (char *)memory + packed->offset[section] + (size_t)group * row + before;
}

// ---- The whole piece

static void put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

enum { // places in the header
    AT_VERSION = 8,
    AT_LENGTH = 12,
    AT_ROWS = 16,
    AT_COLUMNS = 24,
    AT_GROUP = 32,
    AT_DTYPE = 40, // its name
    AT_ZERO = 48,
    AT_FLAGS = 52,
    AT_BYTES = 56,
    AT_HASH = 64,
    AT_END = 80, // zeros behind it
};

static struct kg_hash hash_of(const struct kg_packed *packed, const unsigned char *memory)
{
    struct kg_hash hash = kg_hash_bytes(memory, AT_HASH);
    return kg_hash_chain(hash, memory + AT_END, packed->bytes - AT_END);
}

static void write_header(const struct kg_packed *packed, unsigned char *memory)
{
    memset(memory, 0, KG_PACKED_HEADER);
    memcpy(memory, MAGIC, strlen(MAGIC));
    put(memory + AT_VERSION, KG_PACKED_VERSION, 4);
    put(memory + AT_LENGTH, KG_PACKED_HEADER, 4);
    put(memory + AT_ROWS, (uint64_t)packed->rows, 8);
    put(memory + AT_COLUMNS, (uint64_t)packed->columns, 8);
    put(memory + AT_GROUP, (uint64_t)packed->group, 8);
    strncpy((char *)memory + AT_DTYPE, kg_dtypes[packed->dtype].name, 7);
    put(memory + AT_ZERO, packed->zero, 4);
    put(memory + AT_FLAGS, packed->ordered ? FLAG_ORDERED : 0, 4);
    put(memory + AT_BYTES, packed->bytes, 8);
    struct kg_hash hash = hash_of(packed, memory);
    put(memory + AT_HASH, hash.high, 8);
    put(memory + AT_HASH + 8, hash.low, 8);
}

// Bytes between the sections.
static void clear_gaps(const struct kg_packed *packed, char *memory)
{
    for (int i = 0; i < KG_SECTION_COUNT; i++) {
        size_t end = packed->offset[i] + packed->length[i];
        size_t next = i + 1 < KG_SECTION_COUNT ? packed->offset[i + 1] : packed->bytes;
        memset(memory + end, 0, next - end);
    }
}

static void write_codes(const struct kg_layer *layer, const struct kg_packed *packed, void *memory,
                        int64_t first, int64_t end)
{
    for (int64_t row = 0; row < packed->rows; row += KG_PANEL_ROWS)
        for (int64_t column = first; column < end; column += KG_PANEL_COLUMNS) {
            kg_panel panel;
            read_panel(layer, row, column, panel);
            kg_panel_pack((const uint32_t(*)[KG_PANEL_COLUMNS])panel,
                          panel_at(packed, memory, row, column));
        }
}

static void write_values(const struct kg_layer *layer, const struct kg_packed *packed, void *memory,
                         enum kg_section section, int64_t first, int64_t end)
{
    for (int64_t group = 0; packed->length[section] && group < groups_of(packed); group++)
        for (int64_t column = first; column < end; column += KG_PANEL_COLUMNS) {
            struct values values = read_values(layer, section, group, column);
            memcpy(values_at(packed, memory, section, group, column), values.bytes, values.length);
        }
}

// Columns that are read from the first row to the last.
static int64_t strip_of(const struct kg_layer *layer, int64_t columns)
{
    return layer->reader->by_rows || columns < STRIP ? columns : STRIP;
}

void kg_packed_write(const struct kg_layer *layer, const struct kg_packed *packed, void *memory)
{
    int64_t columns = padded_columns(packed), strip = strip_of(layer, columns);
    for (int64_t first = 0; first < columns; first += strip) {
        int64_t end = first + strip < columns ? first + strip : columns;
        write_codes(layer, packed, memory, first, end);
        write_values(layer, packed, memory, KG_SECTION_SCALES, first, end);
        write_values(layer, packed, memory, KG_SECTION_ZEROS, first, end);
    }
    if (packed->ordered)
        memcpy((char *)memory + packed->offset[KG_SECTION_ORDER], layer->order,
               packed->length[KG_SECTION_ORDER]);
    clear_gaps(packed, memory);
    write_header(packed, memory);
}

// The first element of a panel that differs, if it exists in the layer.
static bool find_difference(const struct kg_packed *packed, const kg_panel a, const kg_panel b,
                            int64_t *row, int64_t *column)
{
    for (int word = 0; word < KG_PANEL_WORDS; word++)
        for (int c = 0; c < KG_PANEL_COLUMNS; c++) {
            uint32_t differs = a[word][c] ^ b[word][c];
            if (!differs)
                continue;
            *row += 8 * word + __builtin_ctz(differs) / 4;
            *column += c;
            return *row < packed->rows && *column < packed->columns;
        }
    return false;
}

static bool holds_codes(const struct kg_layer *layer, const struct kg_packed *packed,
                        const void *memory, int64_t first, int64_t end, int64_t *at_row,
                        int64_t *at_column)
{
    for (int64_t row = 0; row < packed->rows; row += KG_PANEL_ROWS)
        for (int64_t column = first; column < end; column += KG_PANEL_COLUMNS) {
            kg_panel read, held;
            read_panel(layer, row, column, read);
            kg_panel_unpack(panel_at(packed, memory, row, column), held);
            *at_row = row;
            *at_column = column;
            if (memcmp(read, held, sizeof read) != 0 &&
                find_difference(packed, (const uint32_t(*)[KG_PANEL_COLUMNS])read,
                                (const uint32_t(*)[KG_PANEL_COLUMNS])held, at_row, at_column))
                return false;
        }
    return true;
}

static bool holds_values(const struct kg_layer *layer, const struct kg_packed *packed,
                         const void *memory, enum kg_section section, int64_t first, int64_t end,
                         int64_t *row, int64_t *column)
{
    for (int64_t group = 0; packed->length[section] && group < groups_of(packed); group++)
        for (int64_t at = first; at < end; at += KG_PANEL_COLUMNS) {
            struct values values = read_values(layer, section, group, at);
            const char *held = values_at(packed, memory, section, group, at);
            *row = group * packed->group;
            *column = at;
            if (memcmp(values.bytes, held, values.length) != 0)
                return false;
        }
    return true;
}

bool kg_packed_holds(const struct kg_layer *layer, const struct kg_packed *packed,
                     const void *memory, int64_t *row, int64_t *column)
{
    int64_t strip = strip_of(layer, packed->columns);
    for (int64_t first = 0; first < packed->columns; first += strip) {
        int64_t end = first + strip < packed->columns ? first + strip : packed->columns;
        if (!holds_codes(layer, packed, memory, first, end, row, column) ||
            !holds_values(layer, packed, memory, KG_SECTION_SCALES, first, end, row, column) ||
            !holds_values(layer, packed, memory, KG_SECTION_ZEROS, first, end, row, column))
            return false;
    }
    *row = *column = 0;
    return !packed->ordered || memcmp((const char *)memory + packed->offset[KG_SECTION_ORDER],
                                      layer->order, packed->length[KG_SECTION_ORDER]) == 0;
}

// ---- Reading

static enum kg_status refuse(struct kg_error *error, const char *what)
{
    return kg_error_set(error, KG_ERROR_ARGUMENT, "packed weights: %s", what);
}

static bool is_size(uint64_t value)
{
    return value >= 1 && value <= KG_PACKED_MOST;
}

static bool is_order(const struct kg_packed *packed, const char *memory)
{
    for (int64_t i = 0; packed->ordered && i < packed->rows; i++) {
        int32_t row;
        memcpy(&row, memory + packed->offset[KG_SECTION_ORDER] + (size_t)i * sizeof row,
               sizeof row);
        if (row < 0 || row >= packed->rows)
            return false;
    }
    return true;
}

enum kg_status kg_packed_read(const void *memory, size_t length, struct kg_packed *packed,
                              struct kg_error *error)
{
    const unsigned char *header = memory;
    if (length < KG_PACKED_HEADER || memcmp(header, MAGIC, strlen(MAGIC)) != 0)
        return refuse(error, "this is none: it does not begin with " MAGIC);
    uint64_t version = get(header + AT_VERSION, 4);
    if (version == 1)
        return refuse(error, "of version 1, whose columns are padded to 64: pack them again");
    if (version != KG_PACKED_VERSION || get(header + AT_LENGTH, 4) != KG_PACKED_HEADER)
        return refuse(error, "of another version: pack them again");
    uint64_t rows = get(header + AT_ROWS, 8), columns = get(header + AT_COLUMNS, 8);
    uint64_t group = get(header + AT_GROUP, 8), zero = get(header + AT_ZERO, 4);
    const char *name = (const char *)header + AT_DTYPE;
    enum kg_dtype dtype = kg_dtype_find(name, strnlen(name, AT_ZERO - AT_DTYPE));
    bool is_float = dtype == KG_F16 || dtype == KG_BF16 || dtype == KG_F32;
    if (!is_size(rows) || !is_size(columns) || !is_size(group) || group > rows || !is_float ||
        zero >= KG_ZERO_KIND_COUNT || get(header + AT_FLAGS, 4) > FLAG_ORDERED)
        return refuse(error, "their header makes no sense");
    *packed = (struct kg_packed){.rows = (int64_t)rows,
                                 .columns = (int64_t)columns,
                                 .group = (int64_t)group,
                                 .dtype = dtype,
                                 .zero = (enum kg_zero_kind)zero,
                                 .ordered = get(header + AT_FLAGS, 4) & FLAG_ORDERED};
    lay_out(packed);
    if (packed->bytes != get(header + AT_BYTES, 8) || packed->bytes != length)
        return refuse(error, "they are cut short, or too long");
    struct kg_hash hash = hash_of(packed, header);
    if (hash.high != get(header + AT_HASH, 8) || hash.low != get(header + AT_HASH + 8, 8))
        return refuse(error, "they were changed: the checksum is another one");
    return is_order(packed, memory) ? KG_OK : refuse(error, "their order of rows makes no sense");
}

int kg_packed_code(const struct kg_packed *packed, const void *memory, int64_t row, int64_t column)
{
    int k = (int)(row % 16), n = (int)(column % KG_PANEL_COLUMNS);
    int lane = n / 2 * 4 + k % 8 / 2, nibble = k % 2 * 4 + k / 8 * 2 + n % 2;
    const uint32_t *lanes = panel_at(packed, memory, row, column);
    return lanes[lane * KG_PANEL_LANE_WORDS + row % KG_PANEL_ROWS / 16] >> (4 * nibble) & 15;
}

double kg_packed_weight(const struct kg_packed *packed, const void *memory, int64_t row,
                        int64_t column)
{
    int64_t group = row / packed->group, panel = column - column % KG_PANEL_COLUMNS;
    size_t place = (size_t)(column % KG_PANEL_COLUMNS);
    int code = kg_packed_code(packed, memory, row, column);
    double scale = kg_dtype_load(packed->dtype,
                                 values_at(packed, memory, KG_SECTION_SCALES, group, panel), place);
    if (packed->zero == KG_ZERO_FIXED)
        return (code - KG_FIXED_ZERO) * scale;
    const char *zeros = values_at(packed, memory, KG_SECTION_ZEROS, group, panel);
    if (packed->zero == KG_ZERO_OFFSETS)
        return code * scale + kg_dtype_load(packed->dtype, zeros, place);
    return (code - (zeros[place / 2] >> (place % 2 * 4) & 15)) * scale;
}
