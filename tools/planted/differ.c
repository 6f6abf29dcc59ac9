// Follows a file with a planted fault: looks for inputs for which the kernel's results differ from
// the right one's, and prints whether the fault shows.
//
//     differ ROUNDS SIZE...    as many rounds for each row of sizes
//
// "same": bit for bit, but for the sign of zeros and the bits of NaN. "tolerated RATIO": within the
// tolerances of the dtypes, without what the formula's own rounding adds. "differs".

#define DIFFER_CLASSES 10
#define DIFFER_BYTES ((int64_t)1 << 31)

static uint64_t differ_state = 88172645463325252u;

static uint64_t differ_draw(void)
{
    differ_state ^= differ_state << 13;
    differ_state ^= differ_state >> 7;
    differ_state ^= differ_state << 17;
    return differ_state >> 8;
}

static double differ_real(int kind, int class)
{
    double sign = differ_draw() % 2 ? 1 : -1, part = (double)(differ_draw() % 100003) / 100003;
    uint64_t chance = differ_draw() % 100;
    switch (class) {
    case 1: // special values
        return chance < 5    ? NAN
               : chance < 10 ? sign * INFINITY
               : chance < 20 ? sign * 0.0
                             : sign * part;
    case 2: // subnormal
        return sign * part * ldexp(1.0, siege_least_exponent(kind) + (chance < 30));
    case 3: // huge
        return sign * siege_largest(kind) * (chance < 20 ? 1 : part);
    case 4: // nothing but NaN, or but minus infinity, in many rows
        return chance < 50 ? NAN : -INFINITY;
    case 5: // ties and whole numbers
        return sign * (double)(differ_draw() % 5);
    case 6: // eighths, that sums keep exactly
        return sign * (double)(differ_draw() % 64) / 8;
    case 7: // infinities of one sign, which nothing makes NaN
        return chance < 25 ? -INFINITY : sign * part;
    case 8:
        return chance < 25 ? INFINITY : sign * part;
    default:
        return sign * ldexp(part, (int)(differ_draw() % 9) - 4);
    }
}

static void differ_fill(const struct siege_tensor *t, int class)
{
    int64_t columns = t->rank > 0 ? t->shape[t->rank - 1] : 1;
    double row = NAN;
    for (int64_t n = 0; n < t->elements; n++) {
        uint64_t chance = differ_draw() % 10;
        if (n % columns == 0)
            row = differ_draw() % 3 ? differ_real(t->kind, 4) : 1;
        if (siege_is_real(t->kind))
            siege_set_real(t, n, class == 4 && row != 1 ? row : differ_real(t->kind, class),
                           SIEGE_TO_EVEN);
        else if (t->kind == SIEGE_bool)
            siege_set_bits(t, n, differ_draw() % 2);
        else if (chance == 0)
            siege_set_bits(t, n, (uint64_t)siege_least_integer(t->kind));
        else
            siege_set_bits(t, n,
                           chance < 5   ? differ_draw() % 8
                           : chance < 8 ? 0 - differ_draw() % 8
                                        : differ_draw());
    }
}

// How far the element is from the right one, in parts of what its dtype is allowed.
static double differ_element(const struct siege_tensor *right, const struct siege_tensor *other,
                             int64_t n, double scale)
{
    if (!siege_is_real(right->kind))
        return siege_bits(right, n) == siege_bits(other, n) ? 0 : INFINITY;
    double a = siege_real(right, n), b = siege_real(other, n), tolerance, step;
    if (a == b || (a != a && b != b))
        return 0;
    if (!(fabs(a) <= siege_largest(right->kind)) || !(fabs(b) <= siege_largest(right->kind)))
        return INFINITY;
    tolerance = siege_tolerance(right->kind);
    step = fmax(fabs(a), ldexp(1.0, siege_least_exponent(right->kind)));
    step = ldexp(1.0, ilogb(step) - siege_fraction(right->kind) - 1);
    return fabs(a - b) / (tolerance * fabs(a) + 1e-5 * fmin(1, scale) + step);
}

static double differ_output(const struct siege_tensor *right, const struct siege_tensor *other)
{
    double worst = 0, squares = 0;
    int64_t finite = 0;
    if (memcmp(right->data, other->data, (size_t)right->bytes) == 0)
        return 0;
    for (int64_t n = 0; siege_is_real(right->kind) && n < right->elements; n++) {
        double value = siege_real(right, n);
        if (fabs(value) <= siege_largest(right->kind)) {
            squares += value * value;
            finite++;
        }
    }
    for (int64_t n = 0; n < right->elements && worst < INFINITY; n++)
        worst = fmax(worst,
                     differ_element(right, other, n, finite ? sqrt(squares / (double)finite) : 0));
    return worst;
}

// The greatest distance of all outputs, for fresh inputs. Runs twice: some faults are in what a
// call leaves to the next.
static double differ_round(const int64_t *size, int class)
{
    struct siege_tensor t[TENSORS] = {{0}}, right[TENSORS];
    double worst = 0;
    int64_t bytes = 0;
    siege_describe(t, size);
    for (int i = 0; i < TENSORS; i++)
        bytes += t[i].bytes;
    if (bytes > DIFFER_BYTES)
        return 0;
    for (int i = 0; i < TENSORS; i++) {
        t[i].data = malloc((size_t)t[i].bytes + 64);
        right[i] = t[i];
        right[i].data = malloc((size_t)t[i].bytes + 64);
        if (!t[i].data || !right[i].data)
            abort();
    }
    for (int run = 0; run < 2; run++) {
        for (int i = 0; i < INPUTS; i++) {
            differ_fill(&t[i], class);
            memcpy(right[i].data, t[i].data, (size_t)t[i].bytes);
        }
        for (int i = INPUTS; i < TENSORS; i++) {
            memset(t[i].data, 0x5A + run, (size_t)t[i].bytes);
            memset(right[i].data, 0xA5 - run, (size_t)t[i].bytes);
        }
        if (siege_run(right, size) != 0 || siege_planted(t, size) != 0)
            worst = INFINITY;
        for (int i = INPUTS; i < TENSORS; i++)
            worst = fmax(worst, differ_output(&right[i], &t[i]));
    }
    for (int i = 0; i < TENSORS; i++) {
        free(t[i].data);
        free(right[i].data);
    }
    return worst;
}

int main(int count, char **words)
{
    long rounds = count > 1 ? strtol(words[1], NULL, 10) : 0;
    double worst = 0;
    for (int at = 2; at + SIZES <= count; at += SIZES > 0 ? SIZES : count) {
        int64_t size[SIZES + 1];
        for (int i = 0; i < SIZES; i++)
            size[i] = strtoll(words[at + i], NULL, 10);
        for (long n = 0; n < rounds && worst < INFINITY; n++)
            worst = fmax(worst, differ_round(size, (int)(n % DIFFER_CLASSES)));
    }
    if (worst == 0)
        printf("same\n");
    else
        printf(worst <= 1 ? "tolerated %.3g\n" : "differs %.3g\n", worst);
    return 0;
}
