// The reference against values worked out by hand or by the C library, one definition at a time.

#include "test.h"
#include "unit/verify/bench.h"

#include <math.h>

#define INF INFINITY

static bool close_to(double got, double wanted, double tolerance)
{
    if (isnan(wanted) || isinf(wanted))
        return isnan(wanted) ? isnan(got) : got == wanted;
    return fabs(got - wanted) <= tolerance * (1 + fabs(wanted));
}

// Runs an op of up to three inputs and compares its first output.
static void expect(const char *text, const char *dtype, const char *sizes, const double *a,
                   const double *b, const double *c, int64_t count, const double *wanted)
{
    struct bench bench;
    bench_make(&bench, text, dtype, sizes);
    const double *values[] = {a, b, c};
    for (int i = 0; i < bench.instance->input_count; i++)
        bench_input(&bench, i, values[i]);
    bench_run(&bench);
    bool right = bench.outputs[0].count == count;
    CHECK(bench.outputs[0].count == count);
    for (int64_t i = 0; right && i < count; i++)
        if (!close_to(bench.outputs[0].value[i], wanted[i], 1e-14)) {
            fprintf(stderr, "%s\n  [%d] is %.17g, not %.17g\n", text, (int)i,
                    bench.outputs[0].value[i], wanted[i]);
            right = false;
        }
    CHECK(right);
    bench_free(&bench);
}

#define X ((const double[]){-2.5, -0.75, 0, 0.5, 3, INF, -INF, NAN})
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))

// One-argument functions of floats, at X, the numbers written out from tables.
static void functions(void)
{
    static const struct {
        const char *name;
        double wanted[8];
    } rows[] = {
        {"relu", {0, 0, 0, 0.5, 3, INF, 0, NAN}},
        {"-", {2.5, 0.75, 0, -0.5, -3, -INF, INF, NAN}},
        {"abs", {2.5, 0.75, 0, 0.5, 3, INF, INF, NAN}},
        {"floor", {-3, -1, 0, 0, 3, INF, -INF, NAN}},
        {"ceil", {-2, 0, 0, 1, 3, INF, -INF, NAN}},
        {"round", {-2, -1, 0, 0, 3, INF, -INF, NAN}},
        {"sign", {-1, -1, 0, 1, 1, 1, -1, 0}},
        {"exp",
         {0.0820849986238988, 0.4723665527410147, 1, 1.6487212707001282, 20.085536923187668, INF, 0,
          NAN}},
        {"exp2", {0.17677669529663689, 0.5946035575013605, 1, 1.4142135623730951, 8, INF, 0, NAN}},
        {"expm1",
         {-0.9179150013761012, -0.5276334472589853, 0, 0.6487212707001282, 19.085536923187668, INF,
          -1, NAN}},
        {"log", {NAN, NAN, -INF, -0.6931471805599453, 1.0986122886681098, INF, NAN, NAN}},
        {"log2", {NAN, NAN, -INF, -1, 1.584962500721156, INF, NAN, NAN}},
        {"log1p",
         {NAN, -1.3862943611198906, 0, 0.4054651081081644, 1.3862943611198906, INF, NAN, NAN}},
        {"sqrt", {NAN, NAN, 0, 0.7071067811865476, 1.7320508075688772, INF, NAN, NAN}},
        {"rsqrt", {NAN, NAN, INF, 1.4142135623730951, 0.5773502691896258, 0, NAN, NAN}},
        {"sigmoid",
         {0.07585818002124355, 0.320821300824607, 0.5, 0.6224593312018546, 0.9525741268224334, 1, 0,
          NAN}},
        {"silu",
         {-0.18964545005310888, -0.24061597561845525, 0, 0.3112296656009273, 2.8577223804673, INF,
          NAN, NAN}},
        {"tanh",
         {-0.9866142981514303, -0.6351489523872873, 0, 0.46211715726000973, 0.9950547536867305, 1,
          -1, NAN}},
        {"erf",
         {-0.999593047982555, -0.7111556336535151, 0, 0.5204998778130465, 0.9999779095030014, 1, -1,
          NAN}},
        {"sin",
         {-0.5984721441039564, -0.6816387600233341, 0, 0.479425538604203, 0.1411200080598672, NAN,
          NAN, NAN}},
        {"cos",
         {-0.8011436155469337, 0.7316888688738209, 1, 0.8775825618903728, -0.9899924966004454, NAN,
          NAN, NAN}},
        {"softplus",
         {0.07888973429254963, 0.38687100611489994, 0.6931471805599453, 0.9740769841801067,
          3.048587351573742, INF, 0, NAN}},
        {"gelu",
         {-0.015524163314440337, -0.16997051428265114, 0, 0.34573123063700656, 2.99595030590511,
          INF, NAN, NAN}},
        {"gelu_tanh",
         {-0.015084266089998582, -0.1700394448343797, 0, 0.34571400982514394, 2.996362607918227,
          INF, NAN, NAN}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "op f(x: f64[N]) -> (y: f64[N]) { y[i] = %s(x[i]) }",
                 rows[i].name);
        struct bench bench;
        bench_make(&bench, text, NULL, "N=8");
        bench_input(&bench, 0, X);
        bench_run(&bench);
        for (int j = 0; j < 8; j++)
            if (!close_to(bench.outputs[0].value[j], rows[i].wanted[j], 1e-14)) {
                fprintf(stderr, "%s(%g) is %.17g, not %.17g\n", rows[i].name, X[j],
                        bench.outputs[0].value[j], rows[i].wanted[j]);
                test_failures++;
            }
        bench_free(&bench);
    }
    CHECK(true);
}

#define PAIR "op f(x: f64[N], z: f64[N]) -> (y: f64[N]) { y[i] = "

static void operators(void)
{
    const double a[] = {7, -7, 7.5, 0, INF, NAN, 2, 1};
    const double b[] = {2, 2, -2, 0, INF, 1, NAN, 3};
    expect(PAIR "x[i] + z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){9, -5, 5.5, 0, INF, NAN, NAN, 4});
    expect(PAIR "x[i] - z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){5, -9, 9.5, 0, NAN, NAN, NAN, -2});
    expect(PAIR "x[i] * z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){14, -14, -15, 0, INF, NAN, NAN, 3});
    expect(PAIR "x[i] / z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){3.5, -3.5, -3.75, NAN, NAN, NAN, NAN, 1.0 / 3});
    expect(PAIR "x[i] % z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){1, 1, -0.5, NAN, NAN, NAN, NAN, 1});
    expect(PAIR "min(x[i], z[i]) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){2, -7, -2, 0, INF, NAN, NAN, 1});
    expect(PAIR "max(x[i], z[i]) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){7, 2, 7.5, 0, INF, NAN, NAN, 3});
    expect(PAIR "pow(x[i], z[i]) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){49, 49, 1 / 56.25, 1, INF, NAN, NAN, 1});
    expect(PAIR "where(x[i] < z[i], 1, 0) + where(x[i] <= z[i], 10, 0) + "
                "where(x[i] == z[i], 100, 0) }",
           NULL, "N=8", a, b, NULL, 8, (const double[]){0, 11, 0, 110, 110, 0, 0, 11});
    expect(PAIR "where(x[i] > z[i], 1, 0) + where(x[i] >= z[i], 10, 0) + "
                "where(x[i] != z[i], 100, 0) + where(isnan(x[i]), 1000, 0) }",
           NULL, "N=8", a, b, NULL, 8, (const double[]){111, 100, 111, 10, 10, 1100, 100, 100});
    expect(PAIR "where(x[i] < 1 && !(z[i] > 0) || x[i] == 1, 1, 0) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){0, 0, 0, 1, 0, 0, 0, 1});
}

// Integers wrap, divide down, and give 0 over 0.
static void integers(void)
{
    const double a[] = {7, -7, 7, -7, 5, 127, -128, 0};
    const double b[] = {2, 2, -2, -2, 0, 127, -1, 3};
#define INTEGERS "op f(x: i8[N], z: i8[N]) -> (y: i8[N]) { y[i] = "
    expect(INTEGERS "x[i] / z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){3, -4, -4, 3, 0, 1, -128, 0});
    expect(INTEGERS "x[i] % z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){1, 1, -1, -1, 0, 0, 0, 0});
    expect(INTEGERS "x[i] * z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){14, -14, -14, 14, 0, 1, -128, 0});
    expect(INTEGERS "x[i] + z[i] }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){9, -5, 5, -9, 5, -2, 127, 3});
    expect(INTEGERS "abs(x[i]) - relu(z[i]) + sign(x[i]) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){6, 4, 8, 6, 6, 1, 127, -3});
    expect(INTEGERS "min(x[i], z[i]) + 2 * max(x[i], z[i]) }", NULL, "N=8", a, b, NULL, 8,
           (const double[]){16, -3, 12, -11, 10, 125, 126, 6});
    // Sums of int64 wrap instead of being undefined.
    struct bench bench;
    bench_make(&bench,
               "op f(x: i64[N]) -> (s: i64[], p: i64[]) { s[] = sum(i) x[i]\n"
               " p[] = prod(i) x[i] }",
               NULL, "N=3");
    int64_t *x = bench.inputs[0];
    x[0] = INT64_MAX;
    x[1] = 3;
    x[2] = INT64_MAX;
    bench_run(&bench);
    CHECK(bench.outputs[0].integer[0] == 1);
    CHECK(bench.outputs[1].integer[0] == 3);
    bench_free(&bench);
    // An output is read as it was stored, whether a formula or a reduction (here: of nothing) made
    // it.
    bench_make(&bench,
               "op f(x: i8[N]) -> (a: u8[], b: u8[N], y: i32[N]) { a[] = argmin(i < 0) x[i]\n"
               " b[i] = x[i] * 2\n y[i] = a[] * 1000 + b[i] }",
               NULL, "N=1");
    *(int8_t *)bench.inputs[0] = -1;
    bench_run(&bench);
    CHECK(bench.outputs[0].integer[0] == 255);
    CHECK(bench.outputs[2].integer[0] == 255254);
    bench_free(&bench);
}

static void casts(void)
{
    const double x[] = {2.7, -2.7, 300, NAN, INF, -INF, 1.00048828125, 70000};
    expect("op f(x: f64[N]) -> (y: i32[N]) { y[i] = cast(i32, x[i]) }", NULL, "N=8", x, NULL, NULL,
           8, (const double[]){2, -2, 300, 0, -1, 0, 1, 70000});
    expect("op f(x: f64[N]) -> (y: i32[N]) { y[i] = cast(i8, x[i]) }", NULL, "N=8", x, NULL, NULL,
           8, (const double[]){2, -2, 44, 0, -1, 0, 1, 112});
    expect("op f(x: f64[N]) -> (y: f64[N]) { y[i] = cast(f64, cast(f16, x[i])) }", NULL, "N=8", x,
           NULL, NULL, 8, (const double[]){2.69921875, -2.69921875, 300, NAN, INF, -INF, 1, INF});
    expect(
        "op f(x: f64[N]) -> (y: f64[N]) { y[i] = cast(f32, x[i]) }", NULL, "N=8", x, NULL, NULL, 8,
        (const double[]){(double)2.7f, (double)-2.7f, 300, NAN, INF, -INF, 1.00048828125, 70000});
    expect("op f(x: u4[N]) -> (y: f32[N]) { y[i] = x[i] * 0.5 }", NULL, "N=5",
           (const double[]){1, 15, 7, 8, 3}, NULL, NULL, 5,
           (const double[]){0.5, 7.5, 3.5, 4, 1.5});
    expect("op f(x: i4[N]) -> (y: i32[N]) { y[i] = x[i] + 1 }", NULL, "N=3",
           (const double[]){-8, 7, -1}, NULL, NULL, 3, (const double[]){-7, 8, 0});
    expect("op f(x: bool[N]) -> (y: i32[]) { y[] = sum(i) x[i] }", NULL, "N=3",
           (const double[]){1, 0, 1}, NULL, NULL, 1, (const double[]){2});
}

static void bits(void)
{
    const double x[] = {-8, 5, 3, -1, 1, -1, 6, -2147483648.0}, n[] = {1, 0, 40, 3, 63, 64, -1, 31};
#define BITS(formula)                                                                              \
    "op f(x: i32[N], n: i32[N]) -> (y: i64[N]) { y[i] = " formula " }", NULL, "N=8", x, n, NULL, 8
    expect(BITS("x[i] & n[i]"), (const double[]){0, 0, 0, 3, 1, 64, 6, 0});
    expect(BITS("x[i] | n[i]"), (const double[]){-7, 5, 43, -1, 63, -1, -1, -2147483617.0});
    expect(BITS("x[i] ^ n[i]"), (const double[]){-7, 5, 43, -4, 62, -65, -7, -2147483617.0});
    expect(BITS("~x[i]"), (const double[]){7, -6, -4, 0, -2, 0, -7, 2147483647});
    expect(BITS("x[i] << n[i]"), (const double[]){-16, 5, 0x3p40, -8, -0x1p63, 0, 0, -0x1p62});
    expect(BITS("x[i] >> n[i]"), (const double[]){-4, 5, 0, -1, 0, -1, 0, -1});
    // Elements without a sign have none to copy.
    expect("op f(x: u16[N], n: i32[N]) -> (y: u16[N]) { y[i] = x[i] >> n[i] | ~0 << 15 }", NULL,
           "N=3", (const double[]){65535, 65535, 9}, (const double[]){1, -1, 3}, NULL, 3,
           (const double[]){65535, 32768, 32769});
    expect("op f(x: bool[N], n: bool[N]) -> (y: i32[N]) { y[i] = (x[i] ^ n[i]) << 4 & 0xff }", NULL,
           "N=2", (const double[]){1, 1}, (const double[]){0, 1}, NULL, 2, (const double[]){16, 0});
}

#define REDUCE(kind) "op f(x: f64[P, D]) -> (y: f64[P]) { y[p] = " kind "(d) x[p, d] }"
#define REDUCE_TO(type, kind)                                                                      \
    "op f(x: f64[P, D]) -> (y: " type "[P]) { y[p] = " kind "(d) x[p, d] }"

static void reductions(void)
{
    const double x[] = {1, -2, 3, 3, 4, NAN, 4, NAN, -5, -INF, -5, 2};
    expect(REDUCE("sum"), NULL, "P=3 D=4", x, NULL, NULL, 3, (const double[]){5, NAN, -INF});
    expect(REDUCE("mean"), NULL, "P=3 D=4", x, NULL, NULL, 3, (const double[]){1.25, NAN, -INF});
    expect(REDUCE("prod"), NULL, "P=3 D=4", x, NULL, NULL, 3, (const double[]){-18, NAN, -INF});
    expect(REDUCE("max"), NULL, "P=3 D=4", x, NULL, NULL, 3, (const double[]){3, NAN, 2});
    expect(REDUCE("min"), NULL, "P=3 D=4", x, NULL, NULL, 3, (const double[]){-2, NAN, -INF});
    expect(REDUCE_TO("i64", "argmax"), NULL, "P=3 D=4", x, NULL, NULL, 3,
           (const double[]){2, 1, 3});
    expect(REDUCE_TO("i64", "argmin"), NULL, "P=3 D=4", x, NULL, NULL, 3,
           (const double[]){1, 1, 1});
    expect("op f(x: f64[P, D]) -> (y: bool[P]) { y[p] = any(d) (x[p, d] > 3) }", NULL, "P=3 D=4", x,
           NULL, NULL, 3, (const double[]){0, 1, 0});
    expect("op f(x: f64[P, D]) -> (y: bool[P]) { y[p] = all(d) (x[p, d] > -3) }", NULL, "P=3 D=4",
           x, NULL, NULL, 3, (const double[]){1, 0, 0});
    // Over nothing.
    expect(REDUCE("sum"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){0, 0});
    expect(REDUCE("mean"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){NAN, NAN});
    expect(REDUCE("prod"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){1, 1});
    expect(REDUCE("max"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){-INF, -INF});
    expect(REDUCE("min"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){INF, INF});
    expect(REDUCE_TO("i64", "argmax"), NULL, "P=2 D=0", x, NULL, NULL, 2, (const double[]){-1, -1});
    // Several indices: the place in row-major order, counted from the beginnings of their ranges.
    expect("op f(x: f64[A, B, C]) -> (y: i64[A]) { y[a] = argmax(b, c) x[a, b, c] }", NULL,
           "A=2 B=2 C=3", x, NULL, NULL, 2, (const double[]){5, 1});
    expect("op f(x: f64[A, B, C]) -> (y: i64[A]) { y[a] = argmax(c, b) x[a, b, c] }", NULL,
           "A=2 B=2 C=3", x, NULL, NULL, 2, (const double[]){5, 2});
    expect("op f(x: f64[A, B, C]) -> (y: i64[B]) { y[b] = argmin(a, c) x[a, b, c] }", NULL,
           "A=2 B=2 C=3", x, NULL, NULL, 2, (const double[]){4, 2});
    expect("op f(x: f64[A, B, C]) -> (y: i64[A])\n"
           "{ y[a] = argmin(b in 1..B, c in 1..C) x[a, b, c] }",
           NULL, "A=2 B=2 C=3", x, NULL, NULL, 2, (const double[]){1, 0});
    expect("op f(x: f64[A, B, C]) -> (y: i64[C])\n"
           "{ y[c] = argmax(a, b, k <= c) x[a, b, k] }",
           NULL, "A=1 B=2 C=3", x, NULL, NULL, 3, (const double[]){3, 4, 5});
    expect("op f(x: f64[A, B, C]) -> (y: i64[A]) { y[a] = argmax(b, c) x[a, b, c] }", NULL,
           "A=2 B=3 C=0", x, NULL, NULL, 2, (const double[]){-1, -1});
    expect("op f(x: f64[P, D]) -> (y: bool[]) { y[] = any(p, d) (x[p, d] > 3) }", NULL, "P=0 D=4",
           x, NULL, NULL, 1, (const double[]){0});
    expect("op f(x: f64[P, D]) -> (y: bool[]) { y[] = all(p, d) (x[p, d] > 3) }", NULL, "P=0 D=4",
           x, NULL, NULL, 1, (const double[]){1});
    expect(REDUCE("sum"), NULL, "P=0 D=3", x, NULL, NULL, 0, NULL);
    expect("op f(x: i32[P, D]) -> (y: i64[P], z: i32[P]) { y[p] = argmax(d) x[p, d]\n"
           " z[p] = max(d) x[p, d] }",
           NULL, "P=2 D=3", (const double[]){4, 9, 9, -3, -2, -8}, NULL, NULL, 2,
           (const double[]){1, 1});
}

// Long reductions, by lanes of outputs and by lanes of points; sums that cancel to the last bit.
static void long_sums(void)
{
    enum { P = 3, D = 1001 };
    static double x[P * D], transposed[P * D], wanted[P];
    for (int p = 0; p < P; p++) {
        wanted[p] = p + 0.125;
        for (int d = 0; d < D; d++) {
            double value = d == D / 2 ? wanted[p] : (d % 2 ? 1e17 : -1e17) * (d < D / 2 ? 1 : -1);
            x[p * D + d] = transposed[d * P + p] = value;
        }
    }
    double last = 0;
    for (int d = 0; d < D; d++)
        last += d == D / 2 ? 0 : x[d]; // whole multiples of 1e17
    for (int p = 0; p < P; p++)
        wanted[p] += last;
    expect(REDUCE("sum"), NULL, "P=3 D=1001", x, NULL, NULL, P, wanted);
    expect("op f(x: f64[D, P]) -> (y: f64[P]) { y[p] = sum(d) x[d, p] }", NULL, "P=3 D=1001",
           transposed, NULL, NULL, P, wanted);
    x[700] = transposed[700 * P] = 2e17;
    const double index[] = {700, 1, 1};
    expect(REDUCE_TO("i64", "argmax"), NULL, "P=3 D=1001", x, NULL, NULL, P, index);
    expect("op f(x: f64[D, P]) -> (y: i64[P]) { y[p] = argmax(d) x[d, p] }", NULL, "P=3 D=1001",
           transposed, NULL, NULL, P, index);
}

#define SCAN(relation) "op f(x: f64[P, D]) -> (y: f64[P, D]) { y[p, d] = " relation " x[p, j] }"

static void scans(void)
{
    const double x[] = {1, 2, 3, 4, 5, -1, 7, 0};
    expect(SCAN("sum(j <= d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){1, 3, 6, 10, 5, 4, 11, 11});
    expect(SCAN("sum(j < d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){0, 1, 3, 6, 0, 5, 4, 11});
    expect(SCAN("sum(j >= d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){10, 9, 7, 4, 11, 6, 7, 0});
    expect(SCAN("sum(j > d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){9, 7, 4, 0, 6, 7, 0, 0});
    expect(SCAN("prod(j <= d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){1, 2, 6, 24, 5, -5, -35, 0});
    expect(SCAN("max(j <= d)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){1, 2, 3, 4, 5, 5, 7, 7});
    expect(SCAN("sum(j <= d - 1)"), NULL, "P=2 D=4", x, NULL, NULL, 8,
           (const double[]){0, 1, 3, 6, 0, 5, 4, 11});
    expect("op f(x: f64[P, D]) -> (y: i64[P, D]) { y[p, d] = argmin(j >= d) x[p, j] }", NULL,
           "P=2 D=4", x, NULL, NULL, 8, (const double[]){0, 1, 2, 3, 1, 1, 3, 3});
    expect("op f(x: f64[D, P]) -> (y: f64[D, P]) { y[d, p] = sum(j <= d) x[j, p] }", NULL,
           "P=2 D=4", x, NULL, NULL, 8, (const double[]){1, 2, 4, 6, 9, 5, 16, 5});
    // The body knows the output's index: no single sweep.
    expect("op f(x: f64[D]) -> (y: f64[D]) { y[d] = sum(j <= d) x[j] * (d + 1) }", NULL, "D=4", x,
           NULL, NULL, 4, (const double[]){1, 6, 18, 40});
    // A triangle, bounded by an index of an outer reduction.
    expect("op f(x: f64[D, D]) -> (y: f64[]) { y[] = sum(i) sum(j <= i) x[i, j] }", NULL, "D=2", x,
           NULL, NULL, 1, (const double[]){8});
    // Many blocks of lanes, forwards and backwards.
    enum { D = 1000 };
    static double ones[D], up[D], down[D];
    for (int d = 0; d < D; d++) {
        ones[d] = 1;
        up[d] = d + 1;
        down[d] = D - d;
    }
    expect("op f(x: f64[D]) -> (y: f64[D]) { y[d] = sum(j <= d) x[j] }", NULL, "D=1000", ones, NULL,
           NULL, D, up);
    expect("op f(x: f64[D]) -> (y: f64[D]) { y[d] = sum(j >= d) x[j] }", NULL, "D=1000", ones, NULL,
           NULL, D, down);
}

static void subscripts(void)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    expect("op f(x: f64[N]) -> (y: f64[N]) { y[i] = pad(x[i - 1], -1) + 10 * pad(x[i + 1], 0) }",
           NULL, "N=6", x, NULL, NULL, 6, (const double[]){19, 31, 42, 53, 64, 5});
    expect("op f(x: f64[N], k: i64[M]) -> (y: f64[M]) { y[i] = x[k[i]] }", NULL, "N=6 M=4", x,
           (const double[]){5, 0, 9, -3}, NULL, 4, (const double[]){6, 1, 6, 1});
    expect("op f(x: f64[N], k: i64[M]) -> (y: f64[M]) { y[i] = pad(x[k[i] + 1], 7) }", NULL,
           "N=6 M=4", x, (const double[]){5, 0, 9, -1}, NULL, 4, (const double[]){7, 2, 7, 1});
    const double extremes[] = {-0x1p63, 0x1p62, -1, 3};
    const double clamped[] = {1, 6, 1, 4};
    for (int k = 0; k < 4; k++) {
        expect("op f(x: f64[N], k: i64[]) -> (y: f64[]) { y[] = x[k[]] }", NULL, "N=6", x,
               &extremes[k], NULL, 1, &clamped[k]);
        expect("op f(x: f64[N], k: i64[]) -> (y: f64[2]) { y[i] = pad(x[k[]], 7) }", NULL, "N=6", x,
               &extremes[k], NULL, 2, k < 3 ? (const double[]){7, 7} : (const double[]){4, 4});
    }
    expect("op f(x: f64[N]) -> (y: f64[N]) { y[i] = x[i / 2] + 10 * x[i % 4] }", NULL, "N=6", x,
           NULL, NULL, 6, (const double[]){11, 21, 32, 42, 13, 23});
    expect("op f(x: f64[N, M]) -> (y: f64[M, N]) { y[i, j] = x[N - 1 - j, i] }", NULL, "N=2 M=3", x,
           NULL, NULL, 6, (const double[]){4, 1, 5, 2, 6, 3});
    expect("op f(x: f64[H, W]) -> (y: f64[(H+2-3)/2+1, (W+2-3)/2+1])\n"
           "{ y[h, w] = max(r in 0..3, t in 0..3) pad(x[h*2+r-1, w*2+t-1], -inf) }",
           NULL, "H=2 W=3", x, NULL, NULL, 2, (const double[]){5, 6});
    expect("op f(x: f64[N], w: f64[R]) -> (y: f64[N-R+1]) { y[i] = sum(r) x[i + r] * w[r] }", NULL,
           "N=6 R=3", x, (const double[]){1, 0, -1}, NULL, 4, (const double[]){-2, -2, -2, -2});
}

static void inner_reductions(void)
{
    const double x[] = {0, 0, 1, 3};
    double e = exp(-2.0);
    expect("op softmax(x: f64[P, D]) -> (y: f64[P, D])\n"
           "{ m[p] = max(d) x[p, d]\n e[p, d] = exp(x[p, d] - m[p])\n"
           "  y[p, d] = e[p, d] / (sum(d) e[p, d]) }",
           NULL, "P=2 D=2", x, NULL, NULL, 4, (const double[]){0.5, 0.5, e / (1 + e), 1 / (1 + e)});
    expect("op f(x: f64[P, D]) -> (y: f64[P, D])\n"
           "{ y[p, d] = (x[p, d] - (mean(d) x[p, d])) * "
           "rsqrt(mean(k) (x[p, k] - (mean(l) x[p, l])) * (x[p, k] - (mean(l) x[p, l]))) }",
           NULL, "P=1 D=2", (const double[]){1, 5}, NULL, NULL, 2, (const double[]){-1, 1});
    expect("op f(x: f64[P, D]) -> (y: f64[])\n"
           "{ y[] = sum(p) (max(d) x[p, d]) * (min(d) x[p, d]) }",
           NULL, "P=2 D=2", x, NULL, NULL, 1, (const double[]){3});
    expect("op f(x: f64[N]) -> (s: f64[], y: f64[N]) { s[] = sum(i) x[i]\n y[i] = x[i] / s[] }",
           NULL, "N=4", x, NULL, NULL, 1, (const double[]){4});
    expect("op f(x: f64[N]) -> (y: f64[N]) { y[i] = where(i < N - 1, x[i], i) }", NULL, "N=4", x,
           NULL, NULL, 4, (const double[]){0, 0, 1, 3});
}

static void contraction(void)
{
    enum { M = 5, N = 300, K = 7 };
    static double a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = i % 11 - 5;
    for (int i = 0; i < K * N; i++)
        b[i] = i % 13 - 6;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            for (int k = 0; k < K; k++)
                c[m * N + n] += a[m * K + k] * b[k * N + n];
    expect("op f(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) where T in f32 f64\n"
           "{ c[m, n] = sum(k) a[m, k] * b[k, n] }",
           "f32", "M=5 N=300 K=7", a, b, NULL, M * N, c);
}

// Only a part of an output, and only what it needs.
static void windows(void)
{
    struct bench bench;
    bench_make(&bench,
               "op f(x: f64[N, M]) -> (y: f64[N, M])\n"
               "{ t[i, j] = 2 * x[i, j]\n y[i, j] = (sum(k <= j) t[i, k]) + pad(x[i - 1, j], 0) }",
               NULL, "N=6 M=200");
    double x[1200];
    for (int i = 0; i < 1200; i++)
        x[i] = i % 200;
    bench_input(&bench, 0, x);
    bench_run(&bench);
    struct kg_window window = {.low = {3, 150}, .extent = {2, 20}};
    struct kg_expected part;
    CHECK_STATUS(kg_reference_window(&bench.problem, (const void *const *)bench.inputs, &window, 1,
                                     NULL, &part, &bench.error),
                 KG_OK, &bench.error);
    CHECK(part.count == 40 && part.low[1] == 150 && part.extent[0] == 2);
    bool same = true;
    for (int i = 0; i < 40; i++)
        same &= part.value[i] == bench.outputs[0].value[(3 + i / 20) * 200 + 150 + i % 20];
    CHECK(same);
    kg_expected_free(&part, 1);
    bench_free(&bench);
}

// Of outputs that nobody asked for, what others are made of, and no more.
static void unasked_outputs(void)
{
    struct bench bench;
    bench_make(&bench,
               "op f(x: f64[N]) -> (s: f64[N], y: f64[N], all: f64[])\n"
               "{ s[i] = 2 * x[i]\n y[i] = s[i] + 1\n all[] = sum(i) x[i] }",
               NULL, "N=100");
    double x[100];
    for (int i = 0; i < 100; i++)
        x[i] = i;
    bench_input(&bench, 0, x);
    const struct kg_window windows[] = {
        {.none = true}, {.low = {60}, .extent = {2}}, {.none = true}};
    struct kg_expected part[3];
    CHECK_STATUS(kg_reference_window(&bench.problem, (const void *const *)bench.inputs, windows, 1,
                                     NULL, part, &bench.error),
                 KG_OK, &bench.error);
    CHECK(part[0].count == 2 && part[0].low[0] == 60 && part[0].value[1] == 122);
    CHECK(part[1].count == 2 && part[1].value[1] == 123);
    CHECK(part[2].count == 0);
    kg_expected_free(part, 3);
    bench_free(&bench);
}

static void strides(void)
{
    struct bench bench;
    bench_make(&bench, "op f(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = x[i, j] }", NULL,
               "N=2 M=2");
    free(bench.inputs[0]);
    float memory[] = {1, -1, 2, -1, -1, -1, 3, -1, 4};
    bench.inputs[0] = memory;
    bench.problem.layouts[0].stride[0] = 6;
    bench.problem.layouts[0].stride[1] = 2;
    bench_run(&bench);
    for (int i = 0; i < 4; i++)
        CHECK(bench.outputs[0].value[i] == i + 1);
    bench.inputs[0] = NULL;
    bench_free(&bench);
}

static void cancelling(void)
{
    struct bench bench;
    bench_make(&bench, "op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }", NULL, "N=3");
    volatile int cancel = 1;
    CHECK_STATUS(kg_reference_run(&bench.problem, (const void *const *)bench.inputs, 1, &cancel,
                                  bench.outputs, &bench.error),
                 KG_ERROR_CANCELLED, &bench.error);
    CHECK(bench.outputs[0].value == NULL);
    bench_free(&bench);
}

TEST_MAIN(functions, operators, integers, casts, bits, reductions, long_sums, scans, subscripts,
          inner_reductions, contraction, windows, unasked_outputs, strides, cancelling)
