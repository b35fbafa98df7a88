/*
 * The tasks of `wrote langs` in C, using the standard I/O of the C library.
 *
 * A FILE has a buffer, which the library allocates at the first write or read. In glibc, its size is the
 * st_blksize of the file, 4096 bytes on ext4, but at most BUFSIZ, 8192 (libio/filedoalloc.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Prints what failed and why, and exits. */
static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (file == NULL)
        fail(path);
    return file;
}

/* This writes what is still in the buffer, so an error of the disk may first appear here. */
static void close_file(FILE *file, const char *path)
{
    if (fclose(file) == EOF)
        fail(path);
}

/* This uses putc, not its unlocked variant: with a single thread, glibc's putc takes no lock. */
static void write_bytes(const char *path, uint64_t size)
{
    FILE *file = open_file(path, "wb");
    for (uint64_t i = 0; i < size; i++)
        if (putc((int)(i % 256), file) == EOF)
            fail(path);
    close_file(file, path);
}

/* EOF means both the end of the file and an error; ferror distinguishes them. */
static uint64_t read_bytes(const char *path, uint64_t *sum)
{
    FILE *file = open_file(path, "rb");
    uint64_t count = 0;
    int byte;
    *sum = 0;
    while ((byte = getc(file)) != EOF) {
        *sum += (uint64_t)byte;
        count++;
    }
    if (ferror(file))
        fail(path);
    close_file(file, path);
    return count;
}

/*
 * C itself has no sync. POSIX has fsync, for the descriptor below the FILE, once its buffer is
 * empty.
 */
static void save(const char *path, const char *text, size_t size, int sync)
{
    FILE *file = open_file(path, "wb");
    if (fwrite(text, 1, size, file) != size)
        fail(path);
    if (sync && (fflush(file) == EOF || fsync(fileno(file)) == -1))
        fail(path);
    close_file(file, path);
}

static void append_lines(const char *path, const char *line, uint64_t count)
{
    FILE *file = open_file(path, "ab");
    for (uint64_t i = 0; i < count; i++)
        if (fputs(line, file) == EOF)
            fail(path);
    close_file(file, path);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == -1)
        fail("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The letters a to z, repeated, as a string. */
static char *make_text(size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        fail("malloc");
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + i % 26);
    text[size] = '\0';
    return text;
}

static uint64_t parse(const char *word)
{
    char *end;
    uint64_t number = strtoull(word, &end, 10);
    if (*end != '\0' || number == 0) {
        fprintf(stderr, "not a number above 0: %s\n", word);
        exit(EXIT_FAILURE);
    }
    return number;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: %s TASK PATH SIZE COUNT\n", argv[0]);
        return EXIT_FAILURE;
    }
    const char *task = argv[1], *path = argv[2];
    uint64_t size = parse(argv[3]), count = parse(argv[4]);
    int lines = strcmp(task, "lines") == 0;
    uint64_t timings = lines ? 1 : count;
    uint64_t bytes = lines ? size * count : size, sum = 0;

    char *text = strncmp(task, "bytes", 5) == 0 ? NULL : make_text(size);
    if (lines)
        text[size - 1] = '\n';
    uint64_t *elapsed_ns = calloc(timings, sizeof *elapsed_ns);
    if (elapsed_ns == NULL)
        fail("calloc");

    for (uint64_t i = 0; i < timings; i++) {
        uint64_t start_ns = now_ns();
        if (strcmp(task, "bytes-write") == 0) {
            write_bytes(path, size);
        } else if (strcmp(task, "bytes-read") == 0) {
            bytes = read_bytes(path, &sum);
        } else if (strcmp(task, "save") == 0) {
            save(path, text, size, 0);
        } else if (strcmp(task, "save-sync") == 0) {
            save(path, text, size, 1);
        } else if (lines) {
            append_lines(path, text, count);
        } else {
            fprintf(stderr, "unknown task: %s\n", task);
            return EXIT_FAILURE;
        }
        elapsed_ns[i] = now_ns() - start_ns;
    }

    for (uint64_t i = 0; i < timings; i++)
        printf("%s%" PRIu64, i == 0 ? "{\"elapsed_ns\": [" : ", ", elapsed_ns[i]);
    printf("], \"bytes\": %" PRIu64, bytes);
    if (strcmp(task, "bytes-read") == 0)
        printf(", \"sum\": %" PRIu64, sum);
    printf("}\n");
    return fflush(stdout) == EOF ? EXIT_FAILURE : EXIT_SUCCESS;
}
