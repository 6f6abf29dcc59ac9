// Foreign kernels judged by the accuracy gate, any number of them by one gate.

#ifndef KG_FLOW_VERIFY_FILES_H
#define KG_FLOW_VERIFY_FILES_H

#include "flow/request.h"
#include "verify/gate.h"

// Is told what became of a file: its verdict or, with a status that is not KG_OK, why there is
// none.
typedef void kg_file_judged(void *user, int index, enum kg_status status,
                            const struct kg_verdict *verdict, const struct kg_error *error);

// Judges the kernels in files by the same inputs, see kg_problem_verify_files. The verdicts are in
// the log.
enum kg_status kg_flow_verify_files(const struct kg_request *request, const char *const *paths,
                                    int count, uint64_t seed, kg_file_judged *judged, void *user,
                                    struct kg_error *error);
// Judges the kernel in a file, see kg_problem_verify_file.
enum kg_status kg_flow_verify_file(const struct kg_request *request, const char *path,
                                   uint64_t seed, struct kg_verdict *verdict,
                                   struct kg_error *error);

#endif
