// Files that commands write. What is there before stays until the new file is whole: a full disk or
// Ctrl-C leaves the old one or none, never half of one. Devices and pipes are written directly.

#ifndef KERNELGEN_CLI_OUTPUT_H
#define KERNELGEN_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *stream;
    char *place;     // where the file will stand
    char *temporary; // where it is written; NULL: directly
};

// False: errno says why, and there is nothing to close.
bool output_open(struct output *output, const char *path);
// Moves the file to its place, unless `whole` is false: then it is removed, and errno, which must
// still say why, is kept. False: it is not there, and errno says why.
bool output_close(struct output *output, bool whole);

// Does errno `why` mean that the machine has no room left?
bool output_is_full(int why);
// `why` in words, and what to do where that is known.
const char *output_why(int why);

#endif
