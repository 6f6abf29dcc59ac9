// For tests whose forked children start threads, which ThreadSanitizer refuses unless told.

#ifndef KG_TESTS_SUPPORT_FORKS_H
#define KG_TESTS_SUPPORT_FORKS_H

#ifdef __SANITIZE_THREAD__
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

#endif
