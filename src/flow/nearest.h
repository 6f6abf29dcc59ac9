// The nearest shape of which something is known. Its choice is a suggestion: raced against the
// rules' where a search may measure, and used unmeasured only where it cannot well be slower.

#ifndef KG_FLOW_NEAREST_H
#define KG_FLOW_NEAREST_H

#include "flow/request.h"

struct kg_nearest {
    char *choice;   // valid for the problem; NULL: nothing is known of any shape like it
    char *sizes;    // of the shape it is the best known choice of
    bool from_file; // from the wisdom file beside the records
    bool is_close;  // no size is more than twice the other's
    // At that shape the rules' choice for this problem was measured, and was slower.
    bool beat_rules;
};

// Shapes of the same op, dtypes, device, compiler, protocol and generator, whose tensors lie alike:
// contiguous or not, rows aligned alike. Nearest is what has the least distance in the logarithms
// of the sizes; of equals, the records' before the file's, and the one known longer. `file` may be
// NULL.
enum kg_status kg_nearest_find(const struct kg_request *request, struct kg_store *file,
                               const struct kg_key *key, struct kg_nearest *nearest,
                               struct kg_error *error);
void kg_nearest_free(struct kg_nearest *nearest);

// May its choice be used here without measuring? `asked`: the caller wants it although it was never
// compared with the rules' choice; bounds above those of the rules still forbid it.
bool kg_nearest_may_stand(const struct kg_nearest *nearest, const struct kg_problem *problem,
                          const struct kg_device *device, bool asked);

#endif
