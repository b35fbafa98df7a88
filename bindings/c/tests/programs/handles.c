/* Opens and frees ten thousand handles in unusual orders, in the folder given as argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wrote.h>

enum { AT_ONCE = 100, ROUNDS = 2000, KINDS = 5 };

static void fail(int line, wrote_error *error) {
    fprintf(stderr, "line %d: %s\n", line, error ? wrote_error_message(error) : "not so");
    exit(1);
}

#define DO(call)                                                                                   \
    do {                                                                                           \
        wrote_error *error = NULL;                                                                 \
        if ((call) != 0)                                                                           \
            fail(__LINE__, error);                                                                 \
    } while (0)

static struct handle {
    int kind;
    void *raw;
} handles[AT_ONCE];

static void release(struct handle *handle) {
    switch (handle->kind) {
    case 0:
        wrote_ticket_free(handle->raw);
        break;
    case 1:
        wrote_writer_free(handle->raw);
        break;
    case 2:
        wrote_reader_free(handle->raw);
        break;
    case 3:
        wrote_log_reader_free(handle->raw);
        break;
    case 4:
        wrote_wakeup_free(handle->raw);
        break;
    }
    handle->raw = NULL;
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    char folder[4096], file[4096];
    snprintf(folder, sizeof folder, "%s/log", arguments[1]);
    snprintf(file, sizeof file, "%s/file", arguments[1]);
    DO(wrote_write(file, "content", 7, &error));
    wrote_log_options options = {sizeof options};
    options.sync = WROTE_SYNC_NO;
    options.buffer_bytes = 4096;
    wrote_log *log = NULL;
    DO(wrote_log_open(folder, &options, &log, &error));
    unsigned state = 7;
    wrote_writer_options replace = {sizeof replace};
    replace.replace = true;
    for (int number = 0; number < ROUNDS * KINDS; number++) {
        state = state * 1103515245 + 12345;
        struct handle *handle = &handles[(state >> 16) % AT_ONCE];
        release(handle);
        handle->kind = number % KINDS;
        switch (handle->kind) {
        case 0:
            DO(wrote_log_append(log, file, 100, NULL, (wrote_ticket **)&handle->raw, &error));
            break;
        case 1:
            DO(wrote_writer_open(file, &replace, (wrote_writer **)&handle->raw, &error));
            DO(wrote_writer_write(handle->raw, "half of it", 10, &error));
            break;
        case 2:
            DO(wrote_reader_open(file, (wrote_reader **)&handle->raw, &error));
            break;
        case 3:
            DO(wrote_log_reader_open(folder, 0, false, (wrote_log_reader **)&handle->raw, &error));
            break;
        case 4:
            DO(wrote_wakeup_open((wrote_wakeup **)&handle->raw, &error));
            break;
        }
        if (number % 500 == 0) {
            /* The log is freed while its tickets and readers still exist. */
            wrote_log_free(log);
            DO(wrote_log_open(folder, &options, &log, &error));
        }
    }
    wrote_log_free(log);
    for (int number = 0; number < AT_ONCE; number++)
        release(&handles[number]);
    wrote_reader *reader = NULL;
    const char *line;
    size_t len;
    DO(wrote_reader_open(file, &reader, &error));
    DO(wrote_reader_line(reader, &line, &len, &error));
    if (len != 7 || memcmp(line, "content", 7) != 0)
        fail(__LINE__, NULL);
    wrote_reader_free(reader);
    puts("every handle was freed");
    return 0;
}
