// A progress bar on stderr; silent unless that is a terminal.

#include "cli.h"

#include <stdio.h>
#include <unistd.h>

#define BAR 24

void cli_progress(void *user, const char *what, int done, int total)
{
    (void)user;
    if (!isatty(STDERR_FILENO))
        return;
    if (total < 1)
        total = 1;
    if (done > total)
        done = total;
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = i < done * BAR / total ? '#' : '-';
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K[%s] %d/%d %.40s", bar, done, total, what);
    fflush(stderr);
}

void cli_progress_clear(void)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
}
