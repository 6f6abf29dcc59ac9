// What a verdict is of: words about a kernel may change, the kernel may not.

#include "gen/source_identity.h"
#include "support/sample_problem.h"
#include "test.h"

static struct kg_hash hash_of(const char *source)
{
    return kg_source_hash(source, strlen(source));
}

static bool same(const char *one, const char *other)
{
    struct kg_hash a = hash_of(one), b = hash_of(other);
    return a.high == b.high && a.low == b.low;
}

static void words_do_not_count(void)
{
    static const char code[] = "int f(int a)\n{\n    return a / 2; \n}\n";
    CHECK(same(code, "// Halves.\nint f(int a) // of a\n{\n\n    return a / 2;\n}\n"));
    CHECK(same(code, "/* Halves\n   it. */ int f(int a)\n{ return a /* by */ / 2; }"));
    CHECK(same(code, "int f(int a)\n{\n    return\n        a / 2;\n}\n// the end"));
    CHECK(same("// one \\\n   more\nint a;", "int a;"));
    CHECK(same("#if A\nint a;\n#endif\n", "#if A // and so on\n\n  int a;\n\n #endif"));
    CHECK(same("#define A 1 + \\\n    2\nint a;", "#define A 1 + 2\nint a;\n"));
    CHECK(same("", "\n// nothing\n"));
}

static void code_counts(void)
{
    CHECK(!same("int f(int a) { return a / 2; }", "int f(int a) { return a / 3; }"));
    CHECK(!same("int ab;", "int a b;") && !same("int a;", "int a"));
    CHECK(!same("f(\"a  b\")", "f(\"a b\")") && !same("f(\"//a\")", "f(\"//b\")"));
    CHECK(!same("f(\"/*\"); a; /* */", "f(\"/*\"); b; /* */"));
    CHECK(!same("c = '\"'; a; // \"", "c = '\"'; b; // \""));
    CHECK(!same("c = \"\\\"//\"; a;", "c = \"\\\"//\"; b;"));
    CHECK(!same("n = 1'000; // '\na;", "n = 1'000; // '\nb;"));
    CHECK(!same("#define A 1\n2;", "#define A 1 2;"));
    CHECK(!same("a;\n#if B\nb;", "a; #if B\nb;"));
    CHECK(!same("a / b; c;", "a // b; c;"));
}

// Across the blocks that it is hashed in.
static void long_sources(void)
{
    static char text[20000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 7 ? 'a' : ' ';
    struct kg_hash first = hash_of(text);
    for (size_t at = 1000; at < sizeof text; at += 4001) {
        char was = text[at];
        text[at] = 'b';
        struct kg_hash now = hash_of(text);
        CHECK(now.high != first.high || now.low != first.low);
        text[at] = was;
    }
    // What is cut anywhere is read to its end and no further.
    for (size_t length = 0; length < 60; length++)
        kg_source_hash("a = \"text\\\" // \" + '\\'' /* and */ ; // more \\\n # x \\", length);
}

static const struct kg_device_facts facts = {.name = "Some CPU",
                                             .isa = "avx2",
                                             .units = 2,
                                             .clock = 2e9,
                                             .bandwidth = 1e10,
                                             .flops = {[KG_TYPE_F32] = 1e11, [KG_TYPE_F64] = 5e10},
                                             .cache = {0, 32 << 10, 1 << 20, 8 << 20},
                                             .vector_bytes = 32};

static bool same_choice(const struct kg_choice *one, const struct kg_choice *other)
{
    struct kg_hash a, b;
    CHECK(kg_choice_hash(one, &a) && (a.high || a.low));
    CHECK(kg_choice_hash(other, &b) && (b.high || b.low));
    return a.high == b.high && a.low == b.low;
}

static void choices_differ(void)
{
    struct made made =
        make("op scale(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] * 2 }", "P=64 D=1024");
    struct kg_choice guess, other;
    struct kg_space space = {0};
    CHECK_STATUS(made.status, KG_OK, &made.error);
    kg_choice_guess(made.problem, &facts, &kg_target_host, &guess);
    kg_choice_guess(made.problem, &facts, &kg_target_host, &other);
    CHECK(same_choice(&guess, &other));
    guess.matches[0]->family->space(guess.matches[0], &space);
    int differ = 0;
    for (int64_t n = 0; n < kg_space_size(&space); n++) {
        other.configs[0] = kg_space_config(&space, n);
        differ += !same_choice(&guess, &other);
    }
    CHECK(differ > 0);
    unmake(&made);
}

TEST_MAIN(words_do_not_count, code_counts, long_sources, choices_differ)
