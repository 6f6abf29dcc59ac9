// What --json prints: one value on standard output, also when a command fails.

#include "cli.h"

#include <math.h>
#include <stdio.h>

static bool is_wanted, is_begun;

void cli_json_want(void)
{
    is_wanted = true;
}

void cli_json_begin(void)
{
    is_begun = true;
}

void cli_json_text(const char *text)
{
    putchar('"');
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            printf("\\u%04x", (unsigned)*c);
        else
            putchar(*c);
    }
    putchar('"');
}

void cli_json_number(const char *key, double value)
{
    printf(", \"%s\": ", key);
    if (isfinite(value)) // JSON has no other numbers
        printf("%.9g", value);
    else
        printf("null");
}

void cli_json_verdict_members(const struct kg_verify_result *verdict)
{
    printf("\"passed\": %s, \"seed\": \"%llu\", \"cases\": %d, \"skipped\": %d, "
           "\"elements\": %lld",
           verdict->passed ? "true" : "false", (unsigned long long)verdict->seed, verdict->cases,
           verdict->skipped, (long long)verdict->elements);
    cli_json_number("worst", verdict->worst);
    printf(", \"impostors\": %d, \"reason\": ", verdict->impostors);
    cli_json_text(verdict->reason);
    printf(", \"remarks\": ");
    cli_json_text(verdict->remarks);
    printf(", \"sanitized\": ");
    cli_json_text(verdict->sanitized);
}

void cli_json_verdict(const struct kg_verify_result *verdict)
{
    printf("{");
    cli_json_verdict_members(verdict);
    printf("}");
}

void cli_json_bench(const struct kg_bench_result *bench)
{
    cli_json_number("seconds", bench->seconds);
    cli_json_number("spread", bench->spread);
    cli_json_number("baseline_seconds", bench->baseline_seconds);
    cli_json_number("roofline_seconds", bench->bound_seconds);
    cli_json_number("original_seconds", bench->original_seconds);
    cli_json_number("speedup", bench->speedup);
    cli_json_number("goal", bench->goal);
    cli_json_number("noise", bench->noise);
}

void cli_json_failure(const char *message)
{
    if (!is_wanted || is_begun)
        return;
    is_begun = true;
    printf("{\"error\": ");
    cli_json_text(message);
    printf("}\n");
}
