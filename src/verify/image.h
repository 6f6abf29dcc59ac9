// The memory of a case: all its tensors, each in a room of its own with bytes around it that a
// kernel must not write. On the host the rooms lie between pages that cannot be accessed, and a
// tensor begins or ends exactly at such a page; elsewhere it begins at a multiple of 512 bytes, or
// behind one, at the least alignment that kernels must expect. Internal to src/verify.

#ifndef KG_VERIFY_IMAGE_H
#define KG_VERIFY_IMAGE_H

#include "analyze/problem.h"

struct kg_case;

enum kg_placement { KG_PLACED_AT_BEGIN, KG_PLACED_AT_END };

// Where the tensors of a case lie: inputs, then outputs.
struct kg_image_plan {
    bool is_guarded; // pages between rooms cannot be accessed
    size_t low[KG_MAX_TENSORS];
    size_t offset[KG_MAX_TENSORS]; // of the tensor, low <= offset
    size_t high[KG_MAX_TENSORS];
    size_t room; // the bytes of all rooms
    size_t bytes;
};

// `alignment`: that kernels must expect where no pages guard tensors, in bytes; 0: of elements.
void kg_image_plan(const struct kg_problem *problem, bool is_guarded, enum kg_placement placement,
                   size_t alignment, struct kg_image_plan *plan);

// Memory for images of up to `bytes`. That of guarded ones is always at the same address; only the
// rooms of the last plan that was opened can be accessed.
struct kg_image_memory {
    unsigned char *at;
    size_t bytes;
    struct kg_image_plan opened;
    bool is_guarded;
};
enum kg_status kg_image_memory_make(struct kg_image_memory *memory, bool is_guarded, size_t bytes,
                                    struct kg_error *error);
enum kg_status kg_image_memory_open(struct kg_image_memory *memory,
                                    const struct kg_image_plan *plan, struct kg_error *error);
// Makes the inputs' rooms of a guarded image read-only, or writable again.
enum kg_status kg_image_memory_seal(const struct kg_image_memory *memory,
                                    const struct kg_image_plan *plan, int input_count, bool sealed,
                                    struct kg_error *error);
void kg_image_memory_free(struct kg_image_memory *memory);

// The fill bytes before the first and the second run of a subject: as floats NaN and a number, as
// integers -1 and a large value.
extern const unsigned char kg_image_fills[2];

// `fill` is the byte in outputs, in the gaps between elements, and around tensors.
void kg_image_compose(const struct kg_case *item, unsigned char fill, unsigned char *image);
// Did a kernel change nothing but elements of outputs? Otherwise `reason` says what it wrote.
enum kg_status kg_image_intact(const struct kg_case *item, unsigned char fill,
                               const unsigned char *image, bool *intact, char *reason, size_t room,
                               struct kg_error *error);
// Outputs of a run, kept for the comparison with another run: the elements, as they are laid out.
// Those of large cases are kept as a checksum.
struct kg_kept {
    unsigned char *bytes;
    uint64_t sum;
    bool is_there;
};
enum kg_status kg_image_keep(const struct kg_case *item, const unsigned char *image,
                             struct kg_kept *kept, struct kg_error *error);
void kg_kept_free(struct kg_kept *kept);
// Do two runs agree bit for bit in every element of every output?
bool kg_image_same(const struct kg_case *item, const struct kg_kept *kept,
                   const unsigned char *image, char *reason, size_t room);

// The offset of an output's element number `number`, in elements.
int64_t kg_layout_offset(const struct kg_layout *layout, int rank, int64_t number);

// What lies at an address of an image: "4 bytes past the end of x", "input x at byte 8". False if
// no tensor is near.
bool kg_image_describe(const struct kg_problem *problem, const struct kg_image_plan *plan,
                       size_t at, char *text, size_t room);

#endif
