// Opens shared libraries, in turn with forks: the C library's loader cannot be used in a process
// that was forked while another thread was in it.

#ifndef KG_BASE_LOADER_H
#define KG_BASE_LOADER_H

// As dlopen, with all symbols resolved and visible to this library alone. NULL: dlerror() says why.
void *kg_loader_open(const char *path);
void kg_loader_close(void *library);

// Before a fork, and after it in both processes: no library is opened or closed meanwhile.
void kg_loader_hold(void);
void kg_loader_release(void);

#endif
