/* The tasks of langs/README.md that write, using libwrote.

   After wrote_writer_close(), as after fclose(), the bytes survive a crash of the process.
   wrote_write() is an atomic save, durable together with the file's name. */

#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wrote.h>

static wrote_error *error;

static void check(int code)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s\n", wrote_error_message(error));
    exit(EXIT_FAILURE);
}

static void close_writer(wrote_writer *writer)
{
    check(wrote_writer_close(writer, NULL, &error));
    wrote_writer_free(writer);
}

static void write_bytes(const char *path, uint64_t size)
{
    wrote_writer *writer;
    check(wrote_writer_open(path, NULL, &writer, &error));
    for (uint64_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)i;
        check(wrote_writer_write(writer, &byte, 1, &error));
    }
    close_writer(writer);
}

static void append_lines(const char *path, const char *line, size_t size, uint64_t count)
{
    wrote_writer *writer;
    wrote_writer_options options = { sizeof options };
    options.append = true;
    check(wrote_writer_open(path, &options, &writer, &error));
    for (uint64_t i = 0; i < count; i++)
        check(wrote_writer_write(writer, line, size, &error));
    close_writer(writer);
}

int main(int argc, char **argv)
{
    if (argc < 5)
        return EXIT_FAILURE;
    const char *task = argv[1], *path = argv[2];
    uint64_t size = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10);
    int is_lines = strcmp(task, "lines") == 0;
    char *text = malloc(size);
    if (text == NULL)
        return EXIT_FAILURE;
    for (uint64_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 26);
    if (is_lines)
        text[size - 1] = '\n';
    for (uint64_t i = 0; i < (is_lines ? 1 : count); i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (is_lines)
            append_lines(path, text, size, count);
        else if (strcmp(task, "save-sync") == 0)
            check(wrote_write(path, text, size, &error));
        else
            write_bytes(path, size);
        clock_gettime(CLOCK_MONOTONIC, &end);
        int64_t elapsed_ns =
            (int64_t)(end.tv_sec - begin.tv_sec) * 1000000000 + (end.tv_nsec - begin.tv_nsec);
        printf("%s%" PRId64, i == 0 ? "{\"elapsed_ns\": [" : ", ", elapsed_ns);
    }
    printf("], \"bytes\": %" PRIu64 "}\n", is_lines ? size * count : size);
    return EXIT_SUCCESS;
}
