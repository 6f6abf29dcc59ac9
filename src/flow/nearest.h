// The nearest shape of which something is known. Its choice is a suggestion: a search races it
// against the rules' choice; without measuring it is used only if it is unlikely to be slower.

#ifndef KG_FLOW_NEAREST_H
#define KG_FLOW_NEAREST_H

#include "flow/request.h"

struct kg_nearest {
    char *choice;   // valid for the problem; NULL: no similar shape is known
    char *sizes;    // of the shape whose best known choice this is
    bool from_file; // from the wisdom file beside the records
    bool is_close;  // no size differs by more than a factor of two
    // At that shape the rules' choice for this problem was measured to be slower.
    bool beat_rules;
};

// Considers shapes of the same op, dtypes, device, compiler, protocol and generator with the same
// kind of layout: contiguous or not, equal alignment of rows. The nearest has the least distance in
// the logarithms of the sizes; of equals, the records' comes before the file's, and the older one
// first. `file` may be NULL.
enum kg_status kg_nearest_find(const struct kg_request *request, struct kg_store *file,
                               const struct kg_key *key, struct kg_nearest *nearest,
                               struct kg_error *error);
void kg_nearest_free(struct kg_nearest *nearest);

// Whether its choice may be used here without measuring. `asked`: the caller allows it although it
// was never compared with the rules' choice; a bound above that of the rules still forbids it.
bool kg_nearest_may_stand(const struct kg_nearest *nearest, const struct kg_problem *problem,
                          const struct kg_device *device, bool asked);

#endif
