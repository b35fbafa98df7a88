/* A copy of memory that takes long: in the place of the C library's memcpy(3), byte by byte, and at most
   80 MB a second where as much is copied as a block of a file has. */

#include <stddef.h>
#include <time.h>

#define BLOCK_BYTES 2048
#define BYTES_PER_US 80

static long long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    /* volatile, or the compiler would know what this is, and call memcpy. */
    volatile char *target = to;
    const volatile char *source = from;
    long long until = length < BLOCK_BYTES ? 0 : now_ns() + (long long)(length * 1000 / BYTES_PER_US);
    for (size_t at = 0; at < length; at++) {
        target[at] = source[at];
    }
    while (until > 0 && now_ns() < until) {
    }
    return to;
}
