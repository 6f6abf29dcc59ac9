// How processes end that do not end by themselves: signals, and what they mean.

#ifndef KG_DEVICE_ENDING_H
#define KG_DEVICE_ENDING_H

struct kg_ending {
    int signal;
    const char *name;    // "SIGKILL"
    const char *words;   // what strsignal calls it in the C locale
    const char *meaning; // of what ran when it came
    // Why a compiler ends so, in words for a user who can do something about it: it lies in the
    // machine. NULL: the compiler crashed on what it was given.
    const char *cause;
};

extern const struct kg_ending kg_endings[]; // signal 0 at the end
// NULL: it is not in the table.
const struct kg_ending *kg_ending_find(int signal);

#endif
