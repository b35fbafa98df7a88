/* A slow copy: replaces the C library's memcpy(3) with a function that copies byte by byte, and
   that pauses for 50 ns per byte if it copies at least as much as a block of a file. */

#include <stddef.h>
#include <time.h>

#define BLOCK_BYTES 2048
#define PAUSE_NS_PER_BYTE 50

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    /* Without `volatile`, the compiler would recognise this loop and call memcpy. */
    volatile char *target = to;
    const volatile char *source = from;
    for (size_t at = 0; at < length; at++) {
        target[at] = source[at];
    }
    if (length >= BLOCK_BYTES) {
        long long pause_ns = (long long)length * PAUSE_NS_PER_BYTE;
        /* Even on a busy machine, a sleeping process is woken up in time. */
        struct timespec pause = {pause_ns / 1000000000, pause_ns % 1000000000};
        nanosleep(&pause, NULL);
    }
    return to;
}
