/* Writes a file one byte at a time with C's own buffered I/O: `putc FILE BYTES`. Prints the figures
   as one line of JSON, as the other trials do. */

#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int failed(const char *what) {
    fprintf(stderr, "putc: %s: %s\n", what, strerror(errno));
    return 1;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu_seconds(const struct rusage *usage) {
    return usage->ru_utime.tv_sec + usage->ru_stime.tv_sec +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* Writes the values 0 to 255 in turn. Returns 0 on success. */
static int write_bytes(const char *path, long long bytes) {
    FILE *file = fopen(path, "wx");
    if (file == NULL)
        return -1;
    for (long long number = 0; number < bytes; number++) {
        if (putc_unlocked((int)(number & 255), file) == EOF) {
            fclose(file);
            unlink(path);
            return -1;
        }
    }
    if (fclose(file) == 0)
        return 0;
    unlink(path);
    return -1;
}

int main(int argc, char **argv) {
    char *end;
    long long bytes = argc == 3 ? strtoll(argv[2], &end, 10) : -1;
    if (bytes < 0 || *end != '\0') {
        fputs("usage: putc FILE BYTES\n", stderr);
        return 2;
    }
    const char *path = argv[1];
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    double begin_s = seconds();
    if (write_bytes(path, bytes) != 0)
        return failed(path);
    double elapsed_s = seconds() - begin_s;
    getrusage(RUSAGE_SELF, &after);

    struct stat status;
    int is_known = stat(path, &status) == 0;
    if (unlink(path) != 0 || !is_known)
        return failed(path);
    if (status.st_size != bytes) {
        fprintf(stderr, "putc: %s: %lld bytes, not %lld\n", path, (long long)status.st_size, bytes);
        return 1;
    }
    printf("{\"bytes\":%lld,\"elapsed_s\":%.9f,\"cpu_s\":%.6f,\"memory_bytes\":%lld}\n", bytes,
           elapsed_s, cpu_seconds(&after) - cpu_seconds(&before),
           (after.ru_maxrss - before.ru_maxrss) * 1024LL);
    return 0;
}
