// Finds and opens NVRTC: in the toolkit, the linker's path, or Python packages.

#include "device/cuda/nvrtc_library.h"

#include "base/loader.h"
#include "base/text.h"
#include "device/process.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LEAST_MAJOR 12
#define MAX_MAJOR 13 // newer ones are found by their unversioned name

// Library folders of a toolkit.
static const char *const toolkit_folders[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                              "targets/sbsa-linux/lib"};
// Library folders of its Python packages, below the folder of packages.
static const char *const package_folders[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"};
// Folders of packages, below the prefix of a Python installation.
static const char *const python_folders[] = {
    "lib/python3*/site-packages", "lib/python3*/dist-packages", "local/lib/python3*/dist-packages",
    "lib64/python3*/site-packages"};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

// The first usable library ends the search; `refusal` says why the last one found was not usable.
struct search {
    struct kg_nvrtc *nvrtc;
    int max_major;
    struct kg_text refusal;
};

static bool find_functions(struct kg_nvrtc *nvrtc)
{
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        {"nvrtcGetErrorString", &nvrtc->describe},
        {"nvrtcVersion", &nvrtc->version},
        {"nvrtcGetNumSupportedArchs", &nvrtc->sms_count},
        {"nvrtcGetSupportedArchs", &nvrtc->sms_list},
        {"nvrtcCreateProgram", &nvrtc->create},
        {"nvrtcDestroyProgram", &nvrtc->destroy},
        {"nvrtcCompileProgram", &nvrtc->compile},
        {"nvrtcGetPTXSize", &nvrtc->ptx_size},
        {"nvrtcGetPTX", &nvrtc->ptx},
        {"nvrtcGetCUBINSize", &nvrtc->cubin_size},
        {"nvrtcGetCUBIN", &nvrtc->cubin},
        {"nvrtcGetProgramLogSize", &nvrtc->log_size},
        {"nvrtcGetProgramLog", &nvrtc->log},
    };
    for (size_t i = 0; i < COUNT(functions); i++) {
        *(void **)functions[i].place = dlsym(nvrtc->library, functions[i].name);
        if (!*(void **)functions[i].place)
            return false;
    }
    return true;
}

// Determines the file of the library, its size, and the headers beside it.
static void locate(struct kg_nvrtc *nvrtc)
{
    Dl_info info;
    struct stat status;
    char *path = dladdr(*(void **)&nvrtc->compile, &info) ? realpath(info.dli_fname, NULL) : NULL;
    snprintf(nvrtc->path, sizeof nvrtc->path, "%s", path ? path : "libnvrtc.so");
    if (path && stat(path, &status) == 0)
        nvrtc->bytes = status.st_size;
    free(path);
    static const char *const below[] = {"../include", "../../include",
                                        "../../cuda_runtime/include"};
    char *slash = strrchr(nvrtc->path, '/');
    for (size_t i = 0; slash && i < COUNT(below) && !nvrtc->include[0]; i++) {
        char folder[600], header[640];
        snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - nvrtc->path), nvrtc->path,
                 below[i]);
        snprintf(header, sizeof header, "%s/cuda_fp16.h", folder);
        if (stat(header, &status) == 0 && strlen(folder) < sizeof nvrtc->include)
            memcpy(nvrtc->include, folder, strlen(folder) + 1);
    }
}

static void read_sms(struct kg_nvrtc *nvrtc)
{
    int count = 0, *sms = NULL;
    if (nvrtc->sms_count(&count) != 0 || count <= 0 || count > 1000 ||
        !(sms = calloc((size_t)count, sizeof *sms)) || nvrtc->sms_list(sms) != 0)
        count = 0;
    for (int i = 0; i < count && i < KG_NVRTC_MAX_SMS; i++)
        nvrtc->sms[nvrtc->sm_count++] = sms[i];
    free(sms);
}

// NVRTC opens this second library on the first compilation. Opening it here makes it available in
// every process forked to compile.
static void open_builtins(const struct kg_nvrtc *nvrtc)
{
    const char *slash = strrchr(nvrtc->path, '/');
    struct kg_text path = {0};
    kg_text_format(&path, "%.*slibnvrtc-builtins.so.%d.%d",
                   slash ? (int)(slash + 1 - nvrtc->path) : 0, nvrtc->path, nvrtc->major,
                   nvrtc->minor);
    if (!path.failed)
        kg_loader_open(path.data);
    kg_text_free(&path);
}

static void refuse(struct search *search, const char *name, const char *why)
{
    kg_text_cut(&search->refusal, 0);
    kg_text_format(&search->refusal, "%s %s", name, why);
}

// Opens the library `name`. True if it is usable, which ends the search.
static bool try_library(struct search *search, const char *name)
{
    struct kg_nvrtc found = {.library = kg_loader_open(name)};
    if (!found.library)
        return false;
    char why[128];
    if (!find_functions(&found) || found.version(&found.major, &found.minor) != 0) {
        refuse(search, name, "is no NVRTC that can be used");
    } else if (found.major < LEAST_MAJOR) {
        snprintf(why, sizeof why, "is version %d.%d, and %d.0 or newer is needed", found.major,
                 found.minor, LEAST_MAJOR);
        refuse(search, name, why);
    } else if (search->max_major > 0 && found.major > search->max_major) {
        snprintf(why, sizeof why, "is version %d.%d, and the driver takes CUDA %d at most",
                 found.major, found.minor, search->max_major);
        refuse(search, name, why);
    } else {
        locate(&found);
        read_sms(&found);
        open_builtins(&found);
        *search->nvrtc = found;
        return true;
    }
    kg_loader_close(found.library);
    return false;
}

// Tries every version in a folder, the newest first. `folder` may contain wildcards.
static bool try_folder(struct search *search, const char *folder)
{
    glob_t matches = {0};
    struct kg_text pattern = {0};
    kg_text_format(&pattern, "%s/libnvrtc.so.[1-9][0-9]", folder);
    bool done = false;
    if (!pattern.failed && glob(pattern.data, 0, NULL, &matches) == 0)
        for (size_t i = matches.gl_pathc; i > 0 && !done; i--)
            done = try_library(search, matches.gl_pathv[i - 1]);
    globfree(&matches);
    kg_text_free(&pattern);
    return done;
}

static bool try_folders(struct search *search, const char *prefix, const char *const *folders,
                        size_t count)
{
    bool done = false;
    for (size_t i = 0; prefix && *prefix && i < count && !done; i++) {
        struct kg_text folder = {0};
        kg_text_format(&folder, "%s/%s", prefix, folders[i]);
        done = !folder.failed && try_folder(search, folder.data);
        kg_text_free(&folder);
    }
    return done;
}

static bool try_toolkit(struct search *search, const char *prefix)
{
    return try_folders(search, prefix, toolkit_folders, COUNT(toolkit_folders));
}

static bool try_linker_path(struct search *search)
{
    for (int major = MAX_MAJOR; major >= LEAST_MAJOR; major--) {
        char name[32];
        snprintf(name, sizeof name, "libnvrtc.so.%d", major);
        if (try_library(search, name))
            return true;
    }
    return try_library(search, "libnvrtc.so");
}

static bool try_python(struct search *search, const char *prefix)
{
    bool done = false;
    for (size_t i = 0; prefix && *prefix && i < COUNT(python_folders) && !done; i++) {
        struct kg_text packages = {0};
        kg_text_format(&packages, "%s/%s", prefix, python_folders[i]);
        done = !packages.failed &&
               try_folders(search, packages.data, package_folders, COUNT(package_folders));
        kg_text_free(&packages);
    }
    return done;
}

// Tries the folder of packages that this library is installed in: PACKAGES/kernelgen/lib/.
static bool try_own_packages(struct search *search)
{
    Dl_info info;
    enum kg_status (*const here)(int, struct kg_nvrtc *, struct kg_error *) = kg_nvrtc_open;
    void *address;
    memcpy(&address, &here, sizeof address);
    char *path = dladdr(address, &info) && info.dli_fname ? realpath(info.dli_fname, NULL) : NULL;
    char *package = path ? strstr(path, "/kernelgen/lib/") : NULL;
    if (package)
        *package = '\0';
    bool done = package && try_folders(search, path, package_folders, COUNT(package_folders));
    free(path);
    return done;
}

// Tries the prefix of the Python on PATH ("/usr" of "/usr/bin/python3"), and the user's folder.
static bool try_pythons(struct search *search)
{
    if (try_python(search, getenv("VIRTUAL_ENV")) || try_python(search, getenv("CONDA_PREFIX")))
        return true;
    char *python = kg_process_find("python3");
    char *bin = python ? strstr(python, "/bin/python3") : NULL;
    if (bin)
        *bin = '\0';
    bool done = bin && try_python(search, python);
    free(python);
    const char *home = getenv("HOME");
    struct kg_text local = {0};
    if (!done && home && *home) {
        kg_text_format(&local, "%s/.local", home);
        done = !local.failed && try_python(search, local.data);
    }
    kg_text_free(&local);
    return done;
}

static bool look_everywhere(struct search *search)
{
    return try_toolkit(search, getenv("CUDA_HOME")) || try_toolkit(search, getenv("CUDA_PATH")) ||
           try_linker_path(search) || try_toolkit(search, "/usr/local/cuda") ||
           try_toolkit(search, "/usr/local/cuda-[1-9]*") || try_toolkit(search, "/opt/cuda") ||
           try_own_packages(search) || try_pythons(search) || try_python(search, "/usr/local") ||
           try_python(search, "/usr");
}

enum kg_status kg_nvrtc_open(int max_major, struct kg_nvrtc *nvrtc, struct kg_error *error)
{
    *nvrtc = (struct kg_nvrtc){0};
    struct search search = {.nvrtc = nvrtc, .max_major = max_major};
    const char *wanted = getenv("KERNELGEN_NVRTC");
    bool found;
    if (wanted && *wanted) {
        refuse(&search, wanted, "(KERNELGEN_NVRTC) cannot be opened");
        found = try_library(&search, wanted);
    } else {
        refuse(&search, "libnvrtc.so", "was not found");
        found = look_everywhere(&search);
    }
    if (!found)
        kg_error_set(error, KG_ERROR_MISSING,
                     "no CUDA compiler: %s. Install the CUDA toolkit or the Python package "
                     "nvidia-cuda-nvrtc, version %d.0 or newer, or set KERNELGEN_NVRTC to the path "
                     "of a libnvrtc.so",
                     kg_text_string(&search.refusal), LEAST_MAJOR);
    kg_text_free(&search.refusal);
    return found ? KG_OK : KG_ERROR_MISSING;
}

bool kg_nvrtc_knows(const struct kg_nvrtc *nvrtc, int sm)
{
    bool found = nvrtc->sm_count == 0; // unknown: compiling will tell
    for (int i = 0; i < nvrtc->sm_count; i++)
        found = found || nvrtc->sms[i] == sm;
    return found;
}
