// Declarations shared by the files of the definition document. Every sentence is written once, with
// both languages in one call, so that neither can change without the other.

#ifndef KG_ANALYZE_DOCUMENT_H
#define KG_ANALYZE_DOCUMENT_H

#include "analyze/analyze.h"
#include "analyze/roofline.h"

struct kg_document {
    struct kg_text *text;
    const struct kg_problem *problem;
    const struct kg_device_facts *facts; // NULL: no device was chosen
    struct kg_roofline roofline;         // of `facts`
    enum kg_language language;
    const struct kg_nest *main; // the most expensive nest
};

// Whether its device is a CPU: no warps, no shared memory.
static inline bool kg_document_is_of_host(const struct kg_document *document)
{
    return document->facts && document->facts->shared_bytes == 0;
}

// Appends the sentence in the document's language. Both formats take the same arguments in the same
// order.
void kg_document_say(struct kg_document *document, const char *english, const char *chinese, ...)
    __attribute__((format(printf, 2, 4), format(printf, 3, 4)));

// "1.25 MB", "16.4 MFLOP", "3.35 TB/s", "12.3 µs". Decimal prefixes.
struct kg_amount {
    char text[32];
};
struct kg_amount kg_document_amount(double value, const char *unit);
struct kg_amount kg_document_seconds(double seconds);
// A count: "4096", "16.4 M".
struct kg_amount kg_document_count(double value);

// A statement inside a table cell, code-quoted.
void kg_document_nest(struct kg_document *document, const struct kg_nest *nest);

// Elements of a thread block that keep all lanes of an SM busy.
#define KG_DOCUMENT_BLOCK 1024
// Edge of an output tile at which on-chip traffic stops to limit a contraction.
#define KG_DOCUMENT_TILE 128

// Output axes of a contraction: of the first factor only (m), of the others only (n), and of both
// (batch).
struct kg_document_product {
    double m;
    double n;
    double batch;
};
struct kg_document_product kg_document_product_of(const struct kg_nest *nest);
// Running results, and the length of each; false: a running result is not kept.
bool kg_document_scans(const struct kg_nest *nest, double *rows, double *length);
// Whether some input of the main nest does not vary with every axis.
bool kg_document_has_broadcast(const struct kg_document *document);

// Elements of the output, and of what is reduced into each; products of extents.
double kg_document_rows(const struct kg_nest *nest);
double kg_document_columns(const struct kg_nest *nest);

void kg_document_definition(struct kg_document *document); // section 1
void kg_document_analysis(struct kg_document *document);   // section 2
void kg_document_strategy(struct kg_document *document);   // section 3
void kg_document_cores(struct kg_document *document);      // section 3.1, of a CPU
void kg_document_remedies(struct kg_document *document);   // section 4

#endif
