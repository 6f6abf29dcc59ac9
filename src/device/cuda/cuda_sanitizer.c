// NVIDIA's compute-sanitizer, which comes with the CUDA toolkit.

#include "device/cuda/cuda_device.h"
#include "device/process.h"
#include "device/sanitizer.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "compute-sanitizer"

// The newest in the toolkits that match. The caller frees the path.
static char *find_in(const char *toolkits)
{
    struct kg_text pattern = {0};
    glob_t matches = {0};
    char *found = NULL;
    kg_text_format(&pattern, "%s/bin/" PROGRAM, toolkits);
    if (!pattern.failed && glob(pattern.data, 0, NULL, &matches) == 0)
        for (size_t i = matches.gl_pathc; i > 0 && !found; i--)
            found = kg_process_find(matches.gl_pathv[i - 1]);
    globfree(&matches);
    kg_text_free(&pattern);
    return found;
}

static char *find_program(void)
{
    const char *const toolkits[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda",
                                    "/usr/local/cuda-[1-9]*", "/opt/cuda"};
    char *found = kg_process_find(PROGRAM);
    for (size_t i = 0; i < sizeof toolkits / sizeof toolkits[0] && !found; i++)
        if (toolkits[i] && *toolkits[i])
            found = find_in(toolkits[i]);
    return found;
}

static enum kg_status watch_gpu(struct kg_device *device, const char *name,
                                struct kg_sanitizer_command *command, struct kg_error *error)
{
    (void)device;
    char *program = find_program();
    if (!program)
        return kg_error_set(error, KG_ERROR_MISSING,
                            "there is no " PROGRAM ": it comes with the CUDA toolkit; put it on "
                            "PATH, or set CUDA_HOME to the toolkit's folder");
    // Probing the driver fails on purpose now and then, so failed calls are no findings.
    const char *const words[] = {
        program, "--tool",        name, "--target-processes", "all", "--report-api-errors",
        "no",    "--print-limit", "3"};
    enum kg_status status = KG_OK;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !status; i++)
        status = kg_sanitizer_add(command, error, "%s", words[i]);
    free(program);
    return status;
}

const struct kg_sanitizer kg_cuda_sanitizers[] = {
    {"memcheck", watch_gpu, kg_sanitizer_read_cuda},
    {"racecheck", watch_gpu, kg_sanitizer_read_cuda},
    {"synccheck", watch_gpu, kg_sanitizer_read_cuda},
    {0},
};
