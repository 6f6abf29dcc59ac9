// Signals that end processes, and their meanings.

#ifndef KG_DEVICE_ENDING_H
#define KG_DEVICE_ENDING_H

struct kg_ending {
    int signal;
    const char *name;    // "SIGKILL"
    const char *words;   // the text of strsignal in the C locale
    const char *meaning; // for the process that received it
    // For a compiler that ended so: the failure of the machine, in words that tell users what to
    // do. NULL: the compiler crashed on its input.
    const char *cause;
};

extern const struct kg_ending kg_endings[]; // signal 0 at the end
// NULL: it is not in the table.
const struct kg_ending *kg_ending_find(int signal);

#endif
