// Shared by the files assembly_*.c. Only they include this.

#ifndef KG_REPORT_ASSEMBLY_PARTS_H
#define KG_REPORT_ASSEMBLY_PARTS_H

#include "asm/advisories.h"
#include "base/json.h"
#include "report/assembly.h"

#define KG_ASSEMBLY_WIDTH 100 // columns of a text

enum kg_figure_kind {
    KG_FIGURE_COUNT,
    KG_FIGURE_BYTES,
    KG_FIGURE_SHARE,
    KG_FIGURE_RATE,
    KG_FIGURE_TIME
};

// One number of a kernel. Every kernel has the same ones in the same order.
struct kg_figure {
    const char *key;   // stable, for programs
    const char *label; // for display
    enum kg_figure_kind kind;
    double value; // NaN: unknown
};

#define KG_MAX_FIGURES (24 + KG_WORK_COUNT)
struct kg_figures {
    int count;
    struct kg_figure list[KG_MAX_FIGURES];
};

void kg_figures_of(const struct kg_asm_kernel *kernel, enum kg_asm_format format,
                   const struct kg_appraisal *appraisal, struct kg_figures *figures);
// "n/a" when it is unknown.
void kg_figure_print(const struct kg_figure *figure, char out[32]);

// "load global" as "load_global": a constant with static lifetime.
const char *kg_work_key(enum kg_work work);
// Advice about the code, followed by remarks about the launch.
struct kg_advice kg_advice_at(const struct kg_asm_kernel *kernel,
                              const struct kg_appraisal *appraisal, int index);
// FLOPs per byte; NaN if there are no bytes, or some are not known.
double kg_density(double flops, double bytes);

void kg_assembly_kernel_text(const struct kg_assembly_subject *subject,
                             const struct kg_asm_kernel *kernel,
                             const struct kg_assembly_launch *launch,
                             const struct kg_appraisal *appraisal, struct kg_text *text);
void kg_assembly_kernel_json(struct kg_json *json, const char *key,
                             const struct kg_assembly_subject *subject,
                             const struct kg_asm_kernel *kernel,
                             const struct kg_assembly_launch *launch,
                             const struct kg_appraisal *appraisal);
// Members "file", "format", "version", "positions", "notice".
void kg_assembly_file_json(struct kg_json *json, const struct kg_assembly_subject *subject);
void kg_assembly_file_text(const struct kg_assembly_subject *subject, struct kg_text *text);
// "0x9f0" or "line 12".
void kg_assembly_place(struct kg_text *text, enum kg_asm_format format, int64_t position);
// `string`, broken at spaces, each further line indented by `indent`; the first begins at `column`.
void kg_assembly_wrap(struct kg_text *text, int column, int indent, const char *string);
// A name in exactly `width` columns: padded, or shortened in the middle.
void kg_assembly_name(struct kg_text *text, const char *name, int width);

#endif
