#include <stdio.h>
#include <unistd.h>

int main(void) {
    char records[3 * 408 + 1];
    const void *pieces[] = {"stream\n"};
    const size_t sizes[] = {7};
    int size = 0;
    for (int each = 0; each < 3; each++) size += sprintf(records + size, "record%401s\n", "");
    FILE *file = fopen("f", "wb");
    return replace("a", "new\n", 4) || fputs("new\n", file) < 0 || flush(file) ||
        flush_folder(".") || unlink("d") || flush_folder(".") ||
        append("log", records, size) || flush_folder(".") ||
        write_stream("n/s", pieces, sizes, 1) || overwrite("b", 1, "block", 5);
}
