/* Calls every function of wrote.h at least once, in the folder given as argument. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wrote.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Exits with the library's message if a call fails. */
#define DO(call)                                                                                   \
    do {                                                                                           \
        wrote_error *error = NULL;                                                                 \
        if ((call) != 0) {                                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, wrote_error_message(error));        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Checks that a call fails with this number and kind. */
#define FAILS(call, number, the_kind)                                                              \
    do {                                                                                           \
        wrote_error *error = NULL;                                                                 \
        CHECK((call) == (number));                                                                 \
        CHECK(error && wrote_error_errno(error) == (number));                                      \
        CHECK(wrote_error_kind(error) == (the_kind));                                              \
        CHECK(strlen(wrote_error_message(error)) > 0);                                             \
        wrote_error_free(error);                                                                   \
    } while (0)

static char names[8][4096];

static const char *in(const char *folder, const char *name) {
    static int next;
    char *path = names[next++ % 8];
    snprintf(path, sizeof names[0], "%s/%s", folder, name);
    return path;
}

static int holds(const char *path, const char *text) {
    char found[256] = {0};
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    size_t len = fread(found, 1, sizeof found - 1, file);
    fclose(file);
    return len == strlen(text) && memcmp(found, text, len) == 0;
}

static void saves(const char *folder) {
    const char *path = in(folder, "settings"), *link = in(folder, "link");
    DO(wrote_write(path, "old", 3, &error));
    CHECK(chmod(path, 0640) == 0 && symlink("settings", link) == 0);
    DO(wrote_write(link, "new", 3, &error));
    struct stat about;
    CHECK(holds(path, "new") && stat(path, &about) == 0 && (about.st_mode & 0777) == 0640);
    CHECK(lstat(link, &about) == 0 && S_ISLNK(about.st_mode));
    DO(wrote_write(path, NULL, 0, &error));
    CHECK(holds(path, ""));
    DO(wrote_write_new(in(folder, "new"), "1", 1, &error));
    FAILS(wrote_write_new(in(folder, "new"), "2", 1, &error), EEXIST, WROTE_KIND_FILE);
    FAILS(wrote_write(folder, "x", 1, &error), EISDIR, WROTE_KIND_REFUSED);
    FAILS(wrote_write(NULL, "x", 1, &error), EINVAL, WROTE_KIND_REFUSED);
    FAILS(wrote_write(path, NULL, 1, &error), EINVAL, WROTE_KIND_REFUSED);
    CHECK(wrote_write(in(folder, "no/file"), "x", 1, NULL) == ENOENT);
    uint64_t bytes = 0;
    DO(wrote_copy(in(folder, "new"), in(folder, "copy"), &bytes, &error));
    CHECK(bytes == 1 && holds(in(folder, "copy"), "1"));
    wrote_error *error = NULL;
    wrote_atomic units;
    int told = wrote_atomic_writes(in(folder, "new"), &units, &error);
    CHECK(told == EOPNOTSUPP || (told == 0 && units.bytes_min <= units.bytes_max));
    wrote_error_free(told ? error : NULL);
    CHECK(wrote_copy(in(folder, "nothing"), in(folder, "x"), NULL, &error) == ENOENT);
    CHECK(strcmp(wrote_error_path(error), in(folder, "nothing")) == 0);
    CHECK(wrote_error_offset(error) == -1);
    wrote_error_free(error);
}

static void writers(const char *folder) {
    const char *path = in(folder, "written");
    wrote_writer *writer = NULL;
    wrote_written written = {0};
    wrote_writer_options options = {sizeof options};
    options.mode = 0600;
    DO(wrote_writer_open(path, &options, &writer, &error));
    struct iovec pieces[2] = {{"two ", 4}, {"three", 5}};
    DO(wrote_writer_write(writer, "one ", 4, &error));
    DO(wrote_writer_writev(writer, pieces, 2, &error));
    DO(wrote_writer_flush(writer, &error));
    CHECK(holds(path, "one two three"));
    DO(wrote_writer_sync(writer, &error));
    DO(wrote_writer_finish(writer, &written, &error));
    CHECK(written.bytes == 13 && written.durable);
    FAILS(wrote_writer_write(writer, "x", 1, &error), EINVAL, WROTE_KIND_REFUSED);
    wrote_writer_free(writer);
    struct stat about;
    CHECK(stat(path, &about) == 0 && (about.st_mode & 0777) == 0600);

    wrote_writer_options append = {sizeof append}, replace = {sizeof replace};
    append.append = replace.replace = true;
    DO(wrote_writer_open(path, &append, &writer, &error));
    DO(wrote_writer_write(writer, "!", 1, &error));
    DO(wrote_writer_close(writer, NULL, &error));
    wrote_writer_free(writer);
    CHECK(holds(path, "one two three!"));

    DO(wrote_writer_open(path, &replace, &writer, &error));
    DO(wrote_writer_write(writer, "abandoned", 9, &error));
    wrote_writer_free(writer);
    CHECK(holds(path, "one two three!"));
    DO(wrote_writer_open(path, &replace, &writer, &error));
    DO(wrote_writer_write(writer, "whole", 5, &error));
    CHECK(holds(path, "one two three!"));
    DO(wrote_writer_finish(writer, NULL, &error));
    wrote_writer_free(writer);
    CHECK(holds(path, "whole"));

    options.create_new = true;
    FAILS(wrote_writer_open(path, &options, &writer, &error), EEXIST, WROTE_KIND_FILE);
    options.sync = 99;
    FAILS(wrote_writer_open(path, &options, &writer, &error), EINVAL, WROTE_KIND_REFUSED);
    memset(&options, 0, sizeof options);
    FAILS(wrote_writer_open(path, &options, &writer, &error), EINVAL, WROTE_KIND_REFUSED);
    FAILS(wrote_writer_open(path, NULL, NULL, &error), EINVAL, WROTE_KIND_REFUSED);
    FAILS(wrote_writer_write(NULL, "x", 1, &error), EINVAL, WROTE_KIND_REFUSED);
    /* The options of a later version, whose new option is first unset and then set. */
    struct {
        wrote_writer_options known;
        uint64_t later;
    } longer = {{sizeof longer}, 0};
    longer.known.replace = true;
    DO(wrote_writer_open(path, &longer.known, &writer, &error));
    wrote_writer_free(writer);
    longer.later = 1;
    FAILS(wrote_writer_open(path, &longer.known, &writer, &error), EINVAL, WROTE_KIND_REFUSED);
    wrote_writer_free(NULL);
}

static void readers(const char *folder) {
    const char *path = in(folder, "lines"), *line;
    DO(wrote_write(path, "one\n\nthree", 10, &error));
    wrote_reader *reader = NULL;
    size_t len = 9;
    DO(wrote_reader_open(path, &reader, &error));
    DO(wrote_reader_line(reader, &line, &len, &error));
    CHECK(len == 3 && memcmp(line, "one", 3) == 0);
    DO(wrote_reader_line(reader, &line, &len, &error));
    CHECK(len == 0 && line);
    DO(wrote_reader_line(reader, &line, &len, &error));
    CHECK(len == 5 && memcmp(line, "three", 5) == 0);
    DO(wrote_reader_line(reader, &line, &len, &error));
    CHECK(!line && len == 0);
    char bytes[4];
    DO(wrote_reader_seek(reader, 5, &error));
    DO(wrote_reader_read(reader, bytes, sizeof bytes, &len, &error));
    CHECK(len == 4 && memcmp(bytes, "thre", 4) == 0);
    DO(wrote_reader_read(reader, bytes, sizeof bytes, &len, &error));
    CHECK(len == 1);
    DO(wrote_reader_read(reader, bytes, sizeof bytes, &len, &error));
    CHECK(len == 0);
    wrote_reader_free(reader);
    CHECK(wrote_reader_open(in(folder, "nothing"), &reader, NULL) == ENOENT);
}

static void *appends(void *log) {
    for (int number = 0; number < 100; number++)
        DO(wrote_log_append(log, "thread", 6, NULL, NULL, &error));
    uint64_t sequence;
    DO(wrote_log_append_wait(log, "waited", 6, &sequence, &error));
    wrote_survives survives;
    DO(wrote_log_survives(log, sequence, &survives, &error));
    CHECK(survives == WROTE_SURVIVES_POWER_LOSS);
    return NULL;
}

static void logs(const char *folder) {
    const char *path = in(folder, "events");
    wrote_log *log = NULL, *second = NULL;
    wrote_log_options options = {sizeof options};
    options.buffer_bytes = 64 << 10;
    DO(wrote_log_open(path, &options, &log, &error));
    FAILS(wrote_log_open(path, NULL, &second, &error), EBUSY, WROTE_KIND_REFUSED);
    static char longer[128 << 10];
    FAILS(wrote_log_append(log, longer, sizeof longer, NULL, NULL, &error), EMSGSIZE,
          WROTE_KIND_TOO_LONG);
    uint64_t sequence = 99;
    wrote_ticket *ticket = NULL;
    DO(wrote_log_append(log, "zero", 4, &sequence, &ticket, &error));
    CHECK(sequence == 0 && wrote_ticket_sequence(ticket) == 0);
    DO(wrote_ticket_until_durable(ticket, &error));
    DO(wrote_ticket_wait(ticket, &error));
    DO(wrote_ticket_wait(ticket, &error));
    wrote_ticket_free(ticket);

    struct iovec group[2] = {{"one", 3}, {"two", 3}};
    DO(wrote_log_append_all(log, group, 2, &sequence, &ticket, &error));
    CHECK(sequence == 1 && wrote_ticket_sequence(ticket) == 2);
    FAILS(wrote_log_append_all(log, group, 0, NULL, NULL, &error), EINVAL, WROTE_KIND_REFUSED);
    wrote_wakeup *wakeup = NULL;
    DO(wrote_wakeup_open(&wakeup, &error));
    bool done = false;
    for (;;) {
        wrote_wakeup_clear(wakeup);
        DO(wrote_ticket_poll(ticket, wakeup, &done, &error));
        if (done)
            break;
        struct pollfd fd = {wrote_wakeup_fd(wakeup), POLLIN, 0};
        CHECK(poll(&fd, 1, -1) == 1);
    }
    DO(wrote_ticket_poll(ticket, wakeup, &done, &error));
    CHECK(done);
    wrote_wakeup_free(wakeup);
    wrote_ticket_free(ticket);
    DO(wrote_log_ticket(log, 2, &ticket, &error));
    DO(wrote_ticket_wait(ticket, &error));
    wrote_ticket_free(ticket);
    DO(wrote_log_ticket(log, 1000000, &ticket, &error));
    FAILS(wrote_ticket_wait(ticket, &error), EINVAL, WROTE_KIND_REFUSED);
    wrote_ticket_free(ticket);

    pthread_t threads[4];
    for (int number = 0; number < 4; number++)
        CHECK(pthread_create(&threads[number], NULL, appends, log) == 0);
    for (int number = 0; number < 4; number++)
        pthread_join(threads[number], NULL);
    DO(wrote_log_sync(log, &error));
    wrote_log_stats stats;
    DO(wrote_log_get_stats(log, &stats, sizeof stats, &error));
    CHECK(stats.next_sequence == 407 && stats.durable_sequence == 407 && stats.flushes > 0);
    /* The call of a program that was built with an older header. */
    memset(&stats, 1, sizeof stats);
    DO(wrote_log_get_stats(log, &stats, sizeof stats.found_records, &error));
    CHECK(stats.found_records == 0 && stats.torn_bytes == 0x0101010101010101);

    wrote_log_reader *reader = NULL;
    wrote_record record;
    DO(wrote_log_reader_open(path, 1, false, &reader, &error));
    DO(wrote_log_reader_next(reader, 0, &record, &error));
    CHECK(record.sequence == 1 && record.len == 3 && memcmp(record.data, "one", 3) == 0);
    CHECK(record.written_at_ns > 0);
    DO(wrote_log_reader_seek(reader, 406, &error));
    DO(wrote_log_reader_next(reader, -1, &record, &error));
    CHECK(record.sequence == 406 && record.len == 6);
    DO(wrote_log_reader_next(reader, -1, &record, &error));
    CHECK(!record.data);
    DO(wrote_log_reader_seek_time(reader, 0, &error));
    DO(wrote_log_reader_next(reader, 0, &record, &error));
    CHECK(record.sequence == 0 && wrote_log_reader_passed_over(reader) == 0);
    wrote_log_reader_free(reader);

    DO(wrote_log_reader_open(path, 407, true, &reader, &error));
    DO(wrote_log_reader_next(reader, 1, &record, &error));
    CHECK(!record.data);
    DO(wrote_log_append_wait(log, "", 0, NULL, &error));
    DO(wrote_log_reader_next(reader, 60000, &record, &error));
    CHECK(record.data && record.len == 0 && record.sequence == 407);
    wrote_log_reader_free(reader);

    DO(wrote_log_truncate_from(log, 3, &error));
    uint64_t first = 9;
    DO(wrote_log_trim_before(log, 2, &first, &error));
    CHECK(first <= 2);
    DO(wrote_log_append_wait(log, "three again", 11, &sequence, &error));
    CHECK(sequence == 3);

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        FAILS(wrote_log_append(log, "x", 1, NULL, NULL, &error), EPERM, WROTE_KIND_FORKED);
        FAILS(wrote_log_sync(log, &error), EPERM, WROTE_KIND_FORKED);
        wrote_log_free(log);
        /* The child's copies of its parent's handles are not leaks. */
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);

    DO(wrote_log_append(log, "last", 4, NULL, &ticket, &error));
    DO(wrote_log_close(log, &error));
    FAILS(wrote_log_append(log, "x", 1, NULL, NULL, &error), EINVAL, WROTE_KIND_REFUSED);
    wrote_log_free(log);
    DO(wrote_ticket_wait(ticket, &error));
    wrote_ticket_free(ticket);
}

static void lines(const char *folder) {
    char path[4096], rotated[4200];
    snprintf(path, sizeof path, "%s/a.log", folder);
    snprintf(rotated, sizeof rotated, "%s.1", path);
    wrote_lines *lines = NULL, *second = NULL;
    wrote_lines_options options = {sizeof options};
    options.buffer_bytes = 64 << 10;
    DO(wrote_lines_open(path, &options, &lines, &error));
    FAILS(wrote_lines_open(path, NULL, &second, &error), EBUSY, WROTE_KIND_REFUSED);
    wrote_ticket *ticket = NULL;
    DO(wrote_lines_append(lines, "one", 3, &ticket, &error));
    DO(wrote_ticket_wait(ticket, &error));
    wrote_ticket_free(ticket);
    FAILS(wrote_lines_append(lines, "t\no", 3, NULL, &error), EINVAL, WROTE_KIND_REFUSED);
    CHECK(rename(path, rotated) == 0);
    DO(wrote_lines_reopen(lines, &error));
    DO(wrote_lines_append_wait(lines, "two", 3, &error));
    DO(wrote_lines_append(lines, "three", 5, NULL, &error));
    DO(wrote_lines_flush(lines, &error));
    DO(wrote_lines_close(lines, &error));
    wrote_lines_free(lines);
    char found[16] = {0};
    FILE *file = fopen(path, "r");
    CHECK(file && fread(found, 1, sizeof found - 1, file) == 10 && !strcmp(found, "two\nthree\n"));
    fclose(file);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    CHECK(strchr(wrote_version(), '.'));
    saves(arguments[1]);
    writers(arguments[1]);
    readers(arguments[1]);
    logs(arguments[1]);
    lines(arguments[1]);
    puts("the surface is whole");
    return 0;
}
