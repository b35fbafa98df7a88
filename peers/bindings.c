/* Runs a workload once, with libwrote or with hand-written code, and prints the outcome.

   bindings WORK BY, in the folder to write to, where WORK is `save` or `append`, and BY is `wrote`
   or `hand`. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <wrote.h>

enum { SAVES = 200, SAVE_BYTES = 4096 };
enum { THREADS = 4, RECORDS = 1000000, RECORD_BYTES = 100 };

static char bytes[SAVE_BYTES];

static void failed(const char *what) {
    fprintf(stderr, "bindings: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int code, const char *what) {
    if (code != 0) {
        errno = code > 0 ? code : errno;
        failed(what);
    }
}

static void save_by_wrote(void) {
    check(wrote_write("saved", bytes, SAVE_BYTES, NULL), "wrote_write");
}

/* A save that survives a power loss: temporary file, fsync, rename, fsync of the folder. */
static void save_by_hand(void) {
    char name[] = "saved.XXXXXX";
    int saved = mkstemp(name);
    if (saved < 0 || write(saved, bytes, SAVE_BYTES) != SAVE_BYTES)
        failed(name);
    check(fsync(saved), "fsync");
    check(close(saved), "close");
    check(rename(name, "saved"), "rename");
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    if (folder < 0)
        failed("the folder");
    check(fsync(folder), "fsync of the folder");
    close(folder);
}

static wrote_log *records;
static FILE *file;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *append_by_wrote(void *unused) {
    for (int number = 0; number < RECORDS; number++)
        check(wrote_log_append(records, bytes, RECORD_BYTES, NULL, NULL, NULL), "wrote_log_append");
    return unused;
}

static void *append_by_hand(void *unused) {
    for (int number = 0; number < RECORDS; number++) {
        pthread_mutex_lock(&mutex);
        if (fwrite(bytes, 1, RECORD_BYTES, file) != RECORD_BYTES)
            failed("fwrite");
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void by_threads(void *(*append)(void *)) {
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        check(pthread_create(&threads[number], NULL, append, NULL), "pthread_create");
    for (int number = 0; number < THREADS; number++)
        check(pthread_join(threads[number], NULL), "pthread_join");
}

static void wait_until_written(void) {
    wrote_log_stats stats;
    wrote_ticket *ticket;
    check(wrote_log_get_stats(records, &stats, sizeof stats, NULL), "wrote_log_get_stats");
    check(wrote_log_ticket(records, stats.next_sequence - 1, &ticket, NULL), "wrote_log_ticket");
    check(wrote_ticket_wait(ticket, NULL), "wrote_ticket_wait");
    wrote_ticket_free(ticket);
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    int saves = argc == 3 && strcmp(argv[1], "save") == 0;
    int by_hand = argc == 3 && strcmp(argv[2], "hand") == 0;
    if (argc != 3 || (!saves && strcmp(argv[1], "append") != 0)) {
        fputs("usage: bindings save|append wrote|hand\n", stderr);
        return 2;
    }
    char folder[] = "run-XXXXXX";
    if (getrandom(bytes, SAVE_BYTES, 0) != SAVE_BYTES || mkdtemp(folder) == NULL || chdir(folder))
        failed("a temporary folder");
    void (*save)(void) = by_hand ? save_by_hand : save_by_wrote;
    wrote_log_options options = {.size = sizeof options, .sync = WROTE_SYNC_NO};
    if (saves)
        save();
    else if (by_hand)
        file = fopen("appended", "a");
    else
        check(wrote_log_open("appended", &options, &records, NULL), "wrote_log_open");

    double begun_s = seconds(CLOCK_MONOTONIC), cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (saves) {
        for (int number = 0; number < SAVES; number++)
            save();
    } else {
        by_threads(by_hand ? append_by_hand : append_by_wrote);
        /* After this, all records survive a crash of the process. */
        if (by_hand)
            check(fflush(file), "fflush");
        else
            wait_until_written();
    }
    double elapsed_s = seconds(CLOCK_MONOTONIC) - begun_s;
    cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;

    if (file != NULL)
        check(fclose(file), "fclose");
    wrote_log_free(records);
    long long operations = saves ? SAVES : (long long)THREADS * RECORDS;
    printf("{\"bytes\":%lld,\"operations\":%lld,\"elapsed_s\":%f,\"cpu_s\":%f}\n",
           operations * (saves ? SAVE_BYTES : RECORD_BYTES), operations, elapsed_s, cpu_s);
    return 0;
}
