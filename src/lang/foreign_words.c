// One table of what people write who come from Python, C, PyTorch or Triton. In the advice `$1` to
// `$3` are the arguments of a call, `$a` and `$b` the tensors in them, `$y` is the left side, `$i`
// its indices, `$d` the last and `$p` the others.

#include "lang/foreign_words.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct foreign {
    enum kg_foreign_place place;
    const char *words; // separated by blanks
    const char *advice;
} table[] = {
    {KG_FOREIGN_TYPE, "float32 float fp32 single float32_t", "f32"},
    {KG_FOREIGN_TYPE, "float64 double fp64 float64_t", "f64"},
    {KG_FOREIGN_TYPE, "float16 half fp16 float16_t", "f16"},
    {KG_FOREIGN_TYPE, "bfloat16 bfloat brain nv_bfloat16", "bf16"},
    {KG_FOREIGN_TYPE, "float8 fp8 e4m3 float8_e4m3 float8_e4m3fn fp8e4m3 fp8_e4m3 f8", "f8e4m3"},
    {KG_FOREIGN_TYPE, "e5m2 float8_e5m2 fp8e5m2 fp8_e5m2", "f8e5m2"},
    {KG_FOREIGN_TYPE, "int4 s4", "i4"},
    {KG_FOREIGN_TYPE, "uint4", "u4"},
    {KG_FOREIGN_TYPE, "int8 int8_t char s8", "i8"},
    {KG_FOREIGN_TYPE, "uint8 uint8_t byte uchar", "u8"},
    {KG_FOREIGN_TYPE, "int16 int16_t short s16", "i16"},
    {KG_FOREIGN_TYPE, "uint16 uint16_t ushort", "u16"},
    {KG_FOREIGN_TYPE, "int int32 int32_t s32", "i32"},
    {KG_FOREIGN_TYPE, "uint uint32 uint32_t unsigned", "u32"},
    {KG_FOREIGN_TYPE, "int64 int64_t long s64", "i64"},
    {KG_FOREIGN_TYPE, "boolean _bool i1 u1 int1", "bool"},
    {KG_FOREIGN_TYPE, "u64 uint64 uint64_t size_t",
     "help: the widest integer is i64; integer arithmetic is 64-bit and wraps"},
    {KG_FOREIGN_TYPE, "tf32 tfloat32", "help: the dtype is f32; tf32 is never used on its own"},
    {KG_FOREIGN_TYPE, "complex complex64 complex128 c64 c128",
     "help: write two tensors, of the real and of the imaginary parts"},

    {KG_FOREIGN_SIGN, "**", "help: a power is pow(x, y), and a square x * x"},
    {KG_FOREIGN_SIGN, "//",
     "help: / of two integers rounds down; for real numbers write floor(a / b); comments begin "
     "with #"},
    {KG_FOREIGN_SIGN, "/*", "help: comments begin with # and end with the line"},
    {KG_FOREIGN_SIGN, ";", "help: leave it out; a statement ends where the next one begins"},
    {KG_FOREIGN_SIGN, "?", "help: c ? a : b is written where(c, a, b)"},
    {KG_FOREIGN_SIGN, "<>", "help: write !="},
    {KG_FOREIGN_SIGN, "=<", "help: write <="},
    {KG_FOREIGN_SIGN, "=>", "help: write >="},
    {KG_FOREIGN_SIGN, ":=", "help: write ="},
    {KG_FOREIGN_SIGN, "+=", "help: a sum over an index is written y[i] = sum(k) x[i, k]"},
    {KG_FOREIGN_SIGN, "-= *= /= %=", "help: every tensor is defined once, as in y[i] = x[i] * 2"},
    {KG_FOREIGN_SIGN, "...", "help: a range is written a..b"},
    {KG_FOREIGN_SIGN, ".",
     "help: nothing is called with a point; write sum(k) x[i, k], exp(x[i]), or x[j, i] for the "
     "transpose"},
    {KG_FOREIGN_SIGN, "@",
     "help: a product of matrices is written c[m, n] = sum(k) a[m, k] * b[k, n]"},
    {KG_FOREIGN_SIGN, "\\", "help: leave it out; statements go on over line breaks"},
    {KG_FOREIGN_SIGN, "'", "help: strings stand between \" and \""},

    {KG_FOREIGN_FILE, "def func function kernel void lambda class import from module",
     "help: an op is written op name(x: f32[N]) -> (y: f32[N]) { y[i] = ... }, and a function fn "
     "name(x) = ..."},

    {KG_FOREIGN_STATEMENT, "and", "help: write &&"},
    {KG_FOREIGN_STATEMENT, "or", "help: write ||"},
    {KG_FOREIGN_STATEMENT, "not", "help: write !"},
    {KG_FOREIGN_STATEMENT, "xor", "help: write != between two conditions"},
    {KG_FOREIGN_STATEMENT, "is", "help: write =="},
    {KG_FOREIGN_STATEMENT, "mod rem", "help: write %"},
    {KG_FOREIGN_STATEMENT, "div", "help: write /, which rounds down for two integers"},
    {KG_FOREIGN_STATEMENT, "=", "help: equality is =="},
    {KG_FOREIGN_STATEMENT, "if elif else then when unless switch case",
     "help: a choice is a value: y[i] = where(c, a, b) is a where c holds, and b elsewhere"},
    {KG_FOREIGN_STATEMENT, "for foreach while loop do",
     "help: there are no loops: y[i] = ... holds for every i, and sum(k) x[i, k] adds over every "
     "k"},
    {KG_FOREIGN_STATEMENT, "return yield",
     "help: a result is defined by its name in the signature, as in y[i] = ..."},
    {KG_FOREIGN_STATEMENT, "let var val const auto def float double int half",
     "help: an intermediate is written without a type, as in t[i] = ..."},
    {KG_FOREIGN_STATEMENT, "fn", "help: a function stands outside of ops, above them"},

    {KG_FOREIGN_VALUE, "if when unless switch case", "help: a choice is where(c, a, b)"},
    {KG_FOREIGN_VALUE, "not", "help: write !"},
    {KG_FOREIGN_VALUE, "lambda for", "help: name the indices: y[i] = ... holds for every i"},
    {KG_FOREIGN_VALUE, "infinity m_inf float_max flt_max", "help: infinity is inf"},
    {KG_FOREIGN_VALUE, "m_pi", "help: write pi"},
    {KG_FOREIGN_VALUE, "m_e euler", "help: write exp(1.0)"},
    {KG_FOREIGN_VALUE, "none null nullptr", "help: write a number, such as 0"},

    {KG_FOREIGN_FUNCTION, "clamp clip minmax", "help: write min(max($1, $2), $3)"},
    {KG_FOREIGN_FUNCTION, "clamp_min", "help: write max($1, $2)"},
    {KG_FOREIGN_FUNCTION, "clamp_max", "help: write min($1, $2)"},
    {KG_FOREIGN_FUNCTION, "maximum fmax fmaxf maxi", "help: write max($1, $2)"},
    {KG_FOREIGN_FUNCTION, "minimum fmin fminf mini", "help: write min($1, $2)"},
    {KG_FOREIGN_FUNCTION, "ln logf loge", "help: the natural logarithm is log($1)"},
    {KG_FOREIGN_FUNCTION, "log10", "help: write log($1) / log(10.0)"},
    {KG_FOREIGN_FUNCTION, "exp10", "help: write pow(10.0, $1)"},
    {KG_FOREIGN_FUNCTION, "expf", "help: write exp($1)"},
    {KG_FOREIGN_FUNCTION, "tan", "help: write sin($1) / cos($1)"},
    {KG_FOREIGN_FUNCTION, "sinh", "help: write (exp($1) - exp(-($1))) / 2"},
    {KG_FOREIGN_FUNCTION, "cosh", "help: write (exp($1) + exp(-($1))) / 2"},
    {KG_FOREIGN_FUNCTION, "erfc", "help: write 1 - erf($1)"},
    {KG_FOREIGN_FUNCTION, "fabs fabsf absolute magnitude", "help: write abs($1)"},
    {KG_FOREIGN_FUNCTION, "sqr square", "help: write ($1) * ($1)"},
    {KG_FOREIGN_FUNCTION, "sqrtf", "help: write sqrt($1)"},
    {KG_FOREIGN_FUNCTION, "cbrt", "help: write sign($1) * pow(abs($1), 1.0/3.0)"},
    {KG_FOREIGN_FUNCTION, "power powf powi", "help: write pow($1, $2)"},
    {KG_FOREIGN_FUNCTION, "rcp reciprocal", "help: write 1.0 / ($1)"},
    {KG_FOREIGN_FUNCTION, "rsqrtf inversesqrt", "help: write rsqrt($1)"},
    {KG_FOREIGN_FUNCTION, "fma mad fmaf addcmul", "help: write ($1) * ($2) + ($3)"},
    {KG_FOREIGN_FUNCTION, "fmod mod remainder", "help: write ($1) % ($2)"},
    {KG_FOREIGN_FUNCTION, "floordiv floor_divide idiv", "help: write floor(($1) / ($2))"},
    {KG_FOREIGN_FUNCTION, "ceildiv cdiv ceil_div", "help: write ($1 + $2 - 1) / ($2)"},
    {KG_FOREIGN_FUNCTION, "trunc fix", "help: write sign($1) * floor(abs($1))"},
    {KG_FOREIGN_FUNCTION, "rint nearbyint", "help: write round($1)"},
    {KG_FOREIGN_FUNCTION, "sgn", "help: write sign($1)"},
    {KG_FOREIGN_FUNCTION, "isinf", "help: write abs($1) == inf"},
    {KG_FOREIGN_FUNCTION, "isfinite", "help: write abs($1) < inf"},
    {KG_FOREIGN_FUNCTION, "select ifelse iif cond if", "help: write where($1, $2, $3)"},
    {KG_FOREIGN_FUNCTION, "and logical_and", "help: write ($1) && ($2)"},
    {KG_FOREIGN_FUNCTION, "or logical_or", "help: write ($1) || ($2)"},
    {KG_FOREIGN_FUNCTION, "not logical_not", "help: write !($1)"},
    {KG_FOREIGN_FUNCTION, "logistic expit", "help: write sigmoid($1)"},
    {KG_FOREIGN_FUNCTION, "swish", "help: write silu($1)"},
    {KG_FOREIGN_FUNCTION, "mish", "help: write ($1) * tanh(softplus($1))"},
    {KG_FOREIGN_FUNCTION, "relu6", "help: write min(relu($1), 6)"},
    {KG_FOREIGN_FUNCTION, "leaky_relu lrelu", "help: write where($1 < 0, 0.01 * ($1), $1)"},
    {KG_FOREIGN_FUNCTION, "elu", "help: write where($1 > 0, $1, expm1($1))"},
    {KG_FOREIGN_FUNCTION, "hard_sigmoid hardsigmoid", "help: write min(max($1 + 3, 0), 6) / 6"},
    {KG_FOREIGN_FUNCTION, "hard_swish hardswish", "help: write ($1) * min(max($1 + 3, 0), 6) / 6"},
    {KG_FOREIGN_FUNCTION, "softmax",
     "help: write it out:\n"
     "    v[$i] = $1\n"
     "    m[$p] = max($d) v[$i]\n"
     "    e[$i] = exp(v[$i] - m[$p])\n"
     "    $y = e[$i] / (sum($d) e[$i])"},
    {KG_FOREIGN_FUNCTION, "log_softmax logsoftmax",
     "help: write it out:\n"
     "    v[$i] = $1\n"
     "    m[$p] = max($d) v[$i]\n"
     "    s[$p] = sum($d) exp(v[$i] - m[$p])\n"
     "    $y = v[$i] - m[$p] - log(s[$p])"},
    {KG_FOREIGN_FUNCTION, "logsumexp",
     "help: write it out, over an index d:\n"
     "    m[p] = max(d) x[p, d]\n"
     "    y[p] = m[p] + log(sum(d) exp(x[p, d] - m[p]))"},
    {KG_FOREIGN_FUNCTION, "layer_norm layernorm",
     "help: write it out:\n"
     "    v[$i] = $1\n"
     "    m[$p] = mean($d) v[$i]\n"
     "    s[$p] = mean($d) ((v[$i] - m[$p]) * (v[$i] - m[$p]))\n"
     "    $y = (v[$i] - m[$p]) * rsqrt(s[$p] + 1e-5)"},
    {KG_FOREIGN_FUNCTION, "rms_norm rmsnorm",
     "help: write it out:\n"
     "    v[$i] = $1\n"
     "    s[$p] = mean($d) v[$i] * v[$i]\n"
     "    $y = v[$i] * rsqrt(s[$p] + 1e-5)"},
    {KG_FOREIGN_FUNCTION, "var variance std",
     "help: write it out, over an index d:\n"
     "    m[p] = mean(d) x[p, d]\n"
     "    y[p] = mean(d) ((x[p, d] - m[p]) * (x[p, d] - m[p]))"},
    {KG_FOREIGN_FUNCTION, "norm", "help: write sqrt(sum(d) x[p, d] * x[p, d])"},
    {KG_FOREIGN_FUNCTION, "avg average", "help: write mean(d) x[p, d], over an index d"},
    {KG_FOREIGN_FUNCTION, "matmul mm bmm dot gemm linear",
     "help: write sum(k) $a[m, k] * $b[k, n], with m and n on the left"},
    {KG_FOREIGN_FUNCTION, "einsum",
     "help: write the sum with its indices, as in c[m, n] = sum(k) "
     "a[m, k] * b[k, n]"},
    {KG_FOREIGN_FUNCTION, "cumsum", "help: write sum(j <= i) x[j], for the i on the left"},
    {KG_FOREIGN_FUNCTION, "cumprod", "help: write prod(j <= i) x[j], for the i on the left"},
    {KG_FOREIGN_FUNCTION, "cummax", "help: write max(j <= i) x[j], for the i on the left"},
    {KG_FOREIGN_FUNCTION, "transpose permute reshape view",
     "help: write the element at its place, as in y[i, j] = x[j, i]"},
    {KG_FOREIGN_FUNCTION, "concat concatenate cat stack",
     "help: write where(i < M, pad(a[i], 0), pad(b[i - M], 0))"},
    {KG_FOREIGN_FUNCTION, "gather take index_select embedding",
     "help: an element of an integer tensor may be a subscript, as in table[ids[i], d]"},
    {KG_FOREIGN_FUNCTION, "one_hot", "help: write where(ids[i] == d, 1, 0)"},
    {KG_FOREIGN_FUNCTION, "arange iota range", "help: an index is a value: write i"},
    {KG_FOREIGN_FUNCTION, "len shape size numel", "help: write the size by its name, as in N"},
    {KG_FOREIGN_FUNCTION, "zeros zeros_like", "help: write 0"},
    {KG_FOREIGN_FUNCTION, "ones ones_like", "help: write 1"},
    {KG_FOREIGN_FUNCTION, "rand randn random dropout",
     "help: nothing is random here; make the random numbers an input"},
    {KG_FOREIGN_FUNCTION, "sort argsort topk unique",
     "help: there is no sorting; argmax gives the "
     "place of the largest"},
};

static const struct kg_foreign_names manual_names = {
    {"x[p, d]", "a", "b"}, {"a", "b"}, "y[p, d]", "p, d", "p", "d",
};

// The word of a row that `text` equals; `prefix`: with which it begins.
static const char *find_word(const struct foreign *row, const char *text, size_t length,
                             bool prefix)
{
    for (const char *word = row->words; *word; word += strspn(word, " ")) {
        size_t width = strcspn(word, " ");
        if ((prefix ? width <= length : width == length) && strncasecmp(word, text, width) == 0)
            return word;
        word += width;
    }
    return NULL;
}

static const char *either(const char *at_hand, const char *manual)
{
    return at_hand ? at_hand : manual;
}

static const char *value_of(char letter, const struct kg_foreign_names *names)
{
    const struct kg_foreign_names *manual = &manual_names;
    // The left side is at hand as a whole, or not at all.
    const struct kg_foreign_names *left = names->indices && names->indices[0] ? names : manual;
    switch (letter) {
    case '1':
    case '2':
    case '3':
        return either(names->arguments[letter - '1'], manual->arguments[letter - '1']);
    case 'a':
    case 'b':
        return either(names->tensors[letter - 'a'], manual->tensors[letter - 'a']);
    case 'y':
        return left->result;
    case 'i':
        return left->indices;
    case 'p':
        return left->rows;
    default:
        return left->last;
    }
}

const char *kg_lang_foreign(struct kg_lang_job *job, enum kg_foreign_place place, const char *word,
                            const struct kg_foreign_names *names)
{
    const struct foreign *row = table;
    const struct foreign *end = table + sizeof table / sizeof table[0];
    while (row < end && !(row->place == place && find_word(row, word, strlen(word), false)))
        row++;
    if (row == end)
        return NULL;
    struct kg_text text = {0};
    for (const char *at = row->advice; *at; at++)
        if (*at == '$')
            kg_text_add(&text, value_of(*++at, names ? names : &manual_names));
        else
            kg_text_add_bytes(&text, at, 1);
    const char *advice = kg_lang_copy(job, kg_text_string(&text), text.length);
    kg_text_free(&text);
    return advice;
}

const char *kg_lang_foreign_type(struct kg_lang_job *job, const char *word, const char *before,
                                 const char *behind)
{
    const char *name = kg_lang_foreign(job, KG_FOREIGN_TYPE, word, NULL);
    bool is_name = name && kg_dtype_find(name, strlen(name)) != KG_DTYPE_COUNT;
    return is_name ? kg_lang_format(job, "%s%s%s", before, name, behind) : name;
}

size_t kg_lang_foreign_sign(const char *text, size_t length)
{
    size_t longest = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const char *word =
            table[i].place == KG_FOREIGN_SIGN ? find_word(&table[i], text, length, true) : NULL;
        size_t width = word ? strcspn(word, " ") : 0;
        longest = width > longest ? width : longest;
    }
    return longest;
}
