#include <stdio.h>

int replace(const char *path, const void *data, size_t size) {
    FILE *file = fopen("a.tmp", "wb");
    return fwrite(data, 1, size, file) != size || fclose(file) || rename("a.tmp", path);
}

int flush(FILE *file) { return fflush(file); }

int flush_folder(const char *path) { return !path; }

int append(const char *path, const void *records, size_t size) {
    FILE *file = fopen(path, "ab");
    setvbuf(file, NULL, _IONBF, 0);
    for (size_t at = 0; at < size; at++) fputc(((const char *)records)[at], file);
    return fclose(file);
}
