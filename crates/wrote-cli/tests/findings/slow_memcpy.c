/* A copy of memory that takes long: in the place of the C library's memcpy(3), byte by byte, and with a
   pause of 50 ns for each byte where as much is copied as a block of a file has. */

#include <stddef.h>
#include <time.h>

#define BLOCK_BYTES 2048
#define PAUSE_NS_PER_BYTE 50

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    /* volatile, or the compiler would know what this is, and call memcpy. */
    volatile char *target = to;
    const volatile char *source = from;
    for (size_t at = 0; at < length; at++) {
        target[at] = source[at];
    }
    if (length >= BLOCK_BYTES) {
        long long pause_ns = (long long)length * PAUSE_NS_PER_BYTE;
        /* A process that sleeps is woken in time also on a busy machine. */
        struct timespec pause = {pause_ns / 1000000000, pause_ns % 1000000000};
        nanosleep(&pause, NULL);
    }
    return to;
}
