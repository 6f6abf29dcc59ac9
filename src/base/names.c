// Finds the nearest name, for diagnostics. Three rows of the distance table are enough: the current
// one and the two before it.

#include "base/names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define LONGEST 127

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t kg_names_distance(const char *a, const char *b)
{
    size_t height = strlen(a), width = strlen(b);
    if (height > LONGEST || width > LONGEST)
        return strcasecmp(a, b) == 0 ? 0 : (height > width ? height : width);
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= width; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= height; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            int x = lower(a[i - 1]), y = lower(b[j - 1]);
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y)
                row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[height % 3][width];
}

const char *kg_names_nearest(const char *name, const char *const *names, size_t count)
{
    // Allows about one mistake in three letters: "sofmtax" means softmax, but "x" never means "y".
    size_t best = (strlen(name) + 1) / 3 + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t distance = kg_names_distance(name, names[i]);
        if (distance < best) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
