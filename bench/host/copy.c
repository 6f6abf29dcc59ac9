// A streaming copy: each thread copies one contiguous part with non-temporal stores.

#include "copy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define MOST_THREADS 256

struct copier {
    int threads;
    int stop;
    char *to;
    const char *from;
    size_t bytes;
    pthread_barrier_t start, end;
    pthread_t handles[MOST_THREADS];
};

struct share {
    struct copier *copier;
    int thread;
};

static void copy_part(char *to, const char *from, size_t bytes)
{
#ifdef __x86_64__
    size_t i = 0;
    for (; i + 64 <= bytes; i += 64) {
        __m128i a = _mm_load_si128((const __m128i *)(from + i));
        __m128i b = _mm_load_si128((const __m128i *)(from + i + 16));
        __m128i c = _mm_load_si128((const __m128i *)(from + i + 32));
        __m128i d = _mm_load_si128((const __m128i *)(from + i + 48));
        _mm_stream_si128((__m128i *)(to + i), a);
        _mm_stream_si128((__m128i *)(to + i + 16), b);
        _mm_stream_si128((__m128i *)(to + i + 32), c);
        _mm_stream_si128((__m128i *)(to + i + 48), d);
    }
    _mm_sfence();
    memcpy(to + i, from + i, bytes - i);
#else
    memcpy(to, from, bytes);
#endif
}

static void copy_share(const struct copier *copier, int thread)
{
    size_t lines = copier->bytes / 64;
    size_t first = lines * (size_t)thread / (size_t)copier->threads * 64;
    size_t last = thread + 1 == copier->threads
                      ? copier->bytes
                      : lines * (size_t)(thread + 1) / (size_t)copier->threads * 64;
    copy_part(copier->to + first, copier->from + first, last - first);
}

static void *serve(void *argument)
{
    struct share share = *(struct share *)argument;
    free(argument);
    for (;;) {
        pthread_barrier_wait(&share.copier->start);
        if (share.copier->stop)
            return NULL;
        copy_share(share.copier, share.thread);
        pthread_barrier_wait(&share.copier->end);
    }
}

struct copier *copier_create(int threads)
{
    struct copier *copier = calloc(1, sizeof *copier);
    if (!copier)
        return NULL;
    copier->threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    pthread_barrier_init(&copier->start, NULL, (unsigned)copier->threads);
    pthread_barrier_init(&copier->end, NULL, (unsigned)copier->threads);
    for (int i = 1; i < copier->threads; i++) {
        struct share *share = malloc(sizeof *share);
        if (!share)
            abort();
        *share = (struct share){copier, i};
        if (pthread_create(&copier->handles[i], NULL, serve, share))
            abort();
    }
    return copier;
}

void copier_destroy(struct copier *copier)
{
    copier->stop = 1;
    if (copier->threads > 1)
        pthread_barrier_wait(&copier->start);
    for (int i = 1; i < copier->threads; i++)
        pthread_join(copier->handles[i], NULL);
    pthread_barrier_destroy(&copier->start);
    pthread_barrier_destroy(&copier->end);
    free(copier);
}

void copier_run(struct copier *copier, void *to, const void *from, size_t bytes)
{
    copier->to = to;
    copier->from = from;
    copier->bytes = bytes;
    if (copier->threads > 1)
        pthread_barrier_wait(&copier->start);
    copy_share(copier, 0);
    if (copier->threads > 1)
        pthread_barrier_wait(&copier->end);
}
