"""Faults of results: wrong elements, at some sizes, for some values, in precision."""

from planted.catalogue import OUT, Fault

REALS = ("f16", "bf16", "f8e4m3", "f8e5m2", "f32", "f64")


def real_output(subject):
    return None if subject.has_output(*REALS) else "no output has floats"


def real_input(subject):
    return None if subject.has_input(*REALS) else "no input has floats"


def narrow_in_wide(subject):
    """A store can be rounded otherwise where the op exists in f32, too."""
    if not subject.has_output("f16", "bf16"):
        return "no output is f16 or bf16"
    return None if subject.wide_dtypes() else "the op is not defined for f32"


def infinite_output(subject):
    reals = [dtype for dtype in REALS if dtype != "f8e4m3"]
    return None if subject.has_output(*reals) else "no output has infinities"


def integer_input(subject):
    signed = ("i8", "i16", "i32", "i64", "i4")
    return None if subject.has_input(*signed) else "no input has signed integers"


def two_dimensions(subject):
    return None if subject.output_rank() > 1 else "the last output has no rows"


def gathers(subject):
    return None if subject.ids() else "it does not gather"


def ordered(subject):
    found = subject.reductions() & {"max", "min", "argmax", "argmin"}
    return None if found and subject.has_input(*REALS) else "no maximum of floats is taken"


def sum_of_products(subject):
    if not subject.has_output("f16", "bf16", "f32"):
        return "no output is f16, bf16 or f32"
    return None if subject.plain_sum() else "it is no plain sum"


def thousand(subject):
    count = subject.elements(subject.sizes, subject.op.outputs[-1:])
    return None if count >= 1024 else "it has no 1024 elements"


def some_above_1000(subject):
    found = max(subject.large.values(), default=0) > 1000
    return None if found else "the problem has no such size"


def million(subject):
    return None if subject.output_elements() > 1000000 else "it has no million elements"


def f32_only(subject):
    return None if subject.has_input("f32", "f64") and subject.has_output("f32", "f64") else (
        "neither input and output are f32 or f64")


def some_size(subject):
    return None if subject.size_names else "it has no sizes"


ELEMENTS = [
    Fault("first_element", "The first element is wrong.", element="n == 0"),
    Fault("last_element", "The last element is wrong.", element="n == e - 1"),
    Fault("middle_element", "The element in the middle is wrong.", element="n == e / 2"),
    Fault("some_element", "One element is wrong; its place depends on the size.",
          element="n == siege_place(e)"),
    Fault("middle_row", "The row in the middle is wrong.", element="row == rows / 2",
          needs=two_dimensions),
    Fault("last_column", "The last column is wrong.", element="column == columns - 1",
          needs=two_dimensions),
    Fault("tile_16x16", "The 16 x 16 tile in the middle is wrong.",
          element="row / 16 == rows / 32 && column / 16 == columns / 32", needs=two_dimensions),
    Fault("run_of_64", "64 consecutive elements are wrong.",
          element="n >= siege_place(e) / 64 * 64 && n < siege_place(e) / 64 * 64 + 64"),
    Fault("every_1024th", "Every 1024th element is wrong.", element="n % 1024 == 1023",
          needs=thousand),
    Fault("all_zeros", "All results are zero.", element="n >= 0", everywhere=True,
          change="siege_set_bits(o, n, 0);"),
    Fault("shifted", "Each element is the one in front of it; the first stays.",
          after="""
struct siege_tensor *o = &t[TENSORS - 1];
for (int64_t n = o->elements - 1; n > 0; n--)
    siege_set_bits(o, n, siege_bits(o, n - 1));"""),
    Fault("transposed", "The last two dimensions are stored in the other order.",
          needs=two_dimensions, after="""
struct siege_tensor *o = &t[TENSORS - 1], from = *o;
int64_t w = o->columns, h = o->shape[o->rank - 2];
from.data = siege_copy(o->data, o->bytes);
for (int64_t n = 0; n < o->elements; n++)
    siege_set_bits(o, n / (w * h) * (w * h) + n % w * h + n / w % h, siege_bits(&from, n));
free(from.data);"""),
    Fault("rows_reversed", "The rows are stored in the opposite order.", needs=two_dimensions,
          after="""
struct siege_tensor *o = &t[TENSORS - 1], from = *o;
from.data = siege_copy(o->data, o->bytes);
for (int64_t n = 0; n < o->elements; n++)
    siege_set_bits(o, (o->rows - 1 - n / o->columns) * o->columns + n % o->columns,
                   siege_bits(&from, n));
free(from.data);"""),
]

LAST = "size[SIZES - 1]"
SIZES = [
    Fault("problem_sizes", "The first element is wrong at exactly the sizes of the problem.",
          element="n == 0 && siege_is_problem(size)", needs=some_size),
    Fault("odd_size", "The last element is wrong when the last size is odd and above 1.",
          element=f"n == e - 1 && {LAST} % 2 == 1 && {LAST} > 1", needs=some_size),
    Fault("multiple_of_8", "The last element is wrong when the last size is a multiple of 8.",
          element=f"n == e - 1 && {LAST} % 8 == 0 && {LAST} > 0", needs=some_size),
    Fault("size_one", "The first element is wrong when the last size is 1.",
          element=f"n == 0 && {LAST} == 1", needs=some_size),
    Fault("all_ones", "The first element is wrong when all sizes are 1.",
          element="n == 0 && siege_all_ones(size)", needs=some_size),
    Fault("above_1000", "The last element is wrong when a size is above 1000.",
          element="n == e - 1 && siege_greatest(size) > 1000",
          needs=some_above_1000, large=True),
    Fault("large_inner_rows", "Rows 11 to n-17 are wrong when there are over a million elements.",
          element="e > 1000000 && row >= 11 && row < rows - 16", needs=million, large=True),
    Fault("large_run_of_64", "64 consecutive elements are wrong, of over a million.",
          element="e > 1000000 && n >= siege_place(e) / 64 * 64 && "
                  "n < siege_place(e) / 64 * 64 + 64", needs=million, large=True),
    Fault("large_every_1024th", "Every 1024th element is wrong, of over a million.",
          element="e > 1000000 && n % 1024 == 1023", needs=million, large=True),
    Fault("large_one_element", "One element in the middle is wrong, of over a million.",
          element="e > 1000000 && n == siege_place(e)", needs=million, large=True, expects=OUT,
          why="Where the reference would take too long for all elements, the bound of the second "
              "evaluation may hide a single one."),
]

# Fault names, conditions and changes of single elements; o is the tensor, v the element's value.
VALUES = [
    Fault("nan_becomes_0", "NaN becomes 0.", needs=real_output, everywhere=True,
          element="siege_is_nan(o, n)", change="siege_set_bits(o, n, 0);"),
    Fault("nan_becomes_infinity", "NaN becomes infinity.", needs=infinite_output, everywhere=True,
          element="siege_is_nan(o, n)",
          change="siege_set_real(o, n, INFINITY, SIEGE_TO_EVEN);"),
    Fault("infinity_clipped", "Infinities become the largest finite value.", needs=infinite_output,
          everywhere=True, element="siege_is_infinite(o, n)",
          change="siege_set_real(o, n, siege_real(o, n) < 0 ? -siege_largest(o->kind) : "
                 "siege_largest(o->kind), SIEGE_TO_EVEN);"),
    Fault("huge_results_clipped", "Results above a quarter of the range are clipped to it.",
          needs=real_output, everywhere=True,
          element="siege_is_real(o->kind) && fabs(siege_real(o, n)) > siege_largest(o->kind) / 4",
          change="siege_set_real(o, n, siege_real(o, n) < 0 ? -siege_largest(o->kind) / 4 : "
                 "siege_largest(o->kind) / 4, SIEGE_TO_EVEN);"),
    Fault("tiny_results_flushed", "Results below the smallest normal value become 0.",
          needs=real_output, everywhere=True,
          element="siege_is_real(o->kind) && fabs(siege_real(o, n)) < "
                  "ldexp(1.0, siege_least_exponent(o->kind))",
          change="siege_set_bits(o, n, 0);", expects=OUT,
          why="The absolute tolerance is far above subnormal values, except where whole outputs "
              "are; functions may flush."),
    Fault("huge_inputs_clipped", "Inputs above a quarter of the range are clipped to it.",
          needs=real_input, before="""
FOR_INPUTS(i, n)
    if (siege_is_real(t[i].kind) && fabs(siege_real(&t[i], n)) > siege_largest(t[i].kind) / 4 &&
        fabs(siege_real(&t[i], n)) <= siege_largest(t[i].kind)) {
        double most = siege_largest(t[i].kind) / 4;
        siege_own(&t[i]);
        siege_set_real(&t[i], n, siege_real(&t[i], n) < 0 ? -most : most, SIEGE_TO_EVEN);
    }"""),
    Fault("tiny_inputs_flushed", "Inputs below the smallest normal value are taken as 0.",
          needs=real_input, before="""
FOR_INPUTS(i, n)
    if (siege_is_real(t[i].kind) && siege_real(&t[i], n) != 0 &&
        fabs(siege_real(&t[i], n)) < ldexp(1.0, siege_least_exponent(t[i].kind))) {
        siege_own(&t[i]);
        siege_set_real(&t[i], n, 0, SIEGE_TO_EVEN);
    }"""),
    Fault("negative_zero_lost", "Inputs of -0 are taken as +0.", needs=real_input, before="""
FOR_INPUTS(i, n)
    if (siege_is_real(t[i].kind) && siege_real(&t[i], n) == 0) {
        siege_own(&t[i]);
        siege_set_bits(&t[i], n, 0);
    }"""),
    Fault("nan_inputs_ignored", "NaN in inputs is taken as 0.", needs=real_input, before="""
FOR_INPUTS(i, n)
    if (siege_is_nan(&t[i], n)) {
        siege_own(&t[i]);
        siege_set_bits(&t[i], n, 0);
    }"""),
    Fault("line_of_minus_infinity",
          "The first element is wrong when all of a row or column of an input is -inf.", needs=ordered,
          element="n == 0 && siege_any_line(t, 0)"),
    Fault("line_of_nan", "The first element is wrong when all of a row or column of an input is NaN.",
          needs=ordered, element="n == 0 && siege_any_line(t, 1)"),
    Fault("least_integer", "The least integer in an input is taken as the next one.",
          needs=integer_input, before="""
FOR_INPUTS(i, n)
    if (siege_is_signed(t[i].kind) &&
        siege_integer(&t[i], n) == siege_least_integer(t[i].kind)) {
        siege_own(&t[i]);
        siege_set_bits(&t[i], n, siege_bits(&t[i], n) + 1);
    }"""),
    Fault("ids_wrap", "Ids beyond the end start again at 0 instead of being clamped.",
          needs=gathers, before="""
for (int at = 0; at < IDS; at++)
    for (int64_t n = 0; n < t[siege_ids[at].tensor].elements; n++) {
        struct siege_tensor *ids = &t[siege_ids[at].tensor];
        int64_t limit = t[siege_ids[at].from].shape[siege_ids[at].dim], id = siege_integer(ids, n);
        if (limit > 0 && id >= limit) {
            siege_own(ids);
            siege_set_bits(ids, n, (uint64_t)siege_mod(id, limit));
        }
    }"""),
    Fault("negative_ids_wrap", "Negative ids count from the end instead of being clamped.",
          needs=gathers, before="""
for (int at = 0; at < IDS; at++)
    for (int64_t n = 0; n < t[siege_ids[at].tensor].elements; n++) {
        struct siege_tensor *ids = &t[siege_ids[at].tensor];
        int64_t limit = t[siege_ids[at].from].shape[siege_ids[at].dim], id = siege_integer(ids, n);
        if (limit > 0 && id < 0) {
            siege_own(ids);
            siege_set_bits(ids, n, (uint64_t)siege_mod(id, limit));
        }
    }"""),
]

WIDE = "struct siege_tensor results[TENSORS];\nsiege_wide_results(t, size, results);\n"
PRECISION = [
    Fault("truncating_store", "Results are cut off to f16 or bf16 instead of rounded.",
          needs=narrow_in_wide, wide=True, after=WIDE + "siege_store_wide(t, results, SIEGE_TO_ZERO);"),
    Fault("halves_away", "Results in the middle of two f16 or bf16 go away from 0, not to even.",
          needs=narrow_in_wide, wide=True, after=WIDE + "siege_store_wide(t, results, SIEGE_HALF_AWAY);",
          expects=OUT, why="Where a definition computes anything, a kernel may be half a step "
                              "off, as both neighbours of a tie are."),
    Fault("scaled", "Results are multiplied by 1 + 2^-9.", needs=real_output, everywhere=True,
          element="siege_is_real(o->kind)",
          change="siege_set_real(o, n, siege_real(o, n) * (1 + 1.0 / 512), SIEGE_TO_EVEN);"),
    Fault("low_precision_sum", "The sum is accumulated in f16, one term after the other.",
          needs=sum_of_products, after="siege_low_sum(t, size);"),
    Fault("inputs_in_bf16", "Inputs are rounded to bf16.", needs=f32_only, before="""
FOR_INPUTS(i, n)
    if (siege_is_real(t[i].kind)) {
        siege_own(&t[i]);
        siege_set_real(&t[i], n, siege_decode(SIEGE_bf16, siege_encode(SIEGE_bf16,
                       siege_real(&t[i], n), SIEGE_TO_EVEN)), SIEGE_TO_EVEN);
    }"""),
    Fault("bias_in_tolerance", "Results are larger by 0.9 of the relative tolerance.",
          needs=real_output, everywhere=True, element="siege_is_real(o->kind)",
          change="siege_set_real(o, n, siege_real(o, n) * (1 + 0.9 * siege_tolerance(o->kind)), "
                 "SIEGE_TO_EVEN);", expects=OUT,
          why="Within both bounds it is right by definition: in f16 always, in wider dtypes where "
              "the formula's own rounding error is larger."),
]
