/* An existing file `b`, and operations on it through queues of the kernel, without a library. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int ring, b, dir;
static unsigned *tail, *array, *seen, *done, mask, done_mask, queued;
static struct io_uring_sqe *entries;
static struct io_uring_cqe *ends;
static char page[4096] = "new";
static struct iovec pieces[2] = {{page, 2048}, {page + 2048, 2048}};

static void check(int is_right, const char *what) {
    if (!is_right) {
        perror(what);
        exit(8);
    }
}

static void make(unsigned flags) {
    struct io_uring_params params = {.flags = flags};
    ring = syscall(SYS_io_uring_setup, 8, &params);
    check(ring >= 0, "io_uring_setup");
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof *ends + 4096;
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
    entries = mmap(0, 8 * sizeof *entries, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0x10000000);
    tail = (unsigned *)(at + params.sq_off.tail);
    array = (unsigned *)(at + params.sq_off.array);
    mask = *(unsigned *)(at + params.sq_off.ring_mask);
    seen = (unsigned *)(at + params.cq_off.head);
    done = (unsigned *)(at + params.cq_off.tail);
    done_mask = *(unsigned *)(at + params.cq_off.ring_mask);
    ends = (struct io_uring_cqe *)(at + params.cq_off.cqes);
}

/* Queues an operation whose key is its number. */
static struct io_uring_sqe *op(int code, int file, const void *address, unsigned length,
                               uint64_t offset) {
    unsigned at = *tail & mask;
    struct io_uring_sqe *entry = &entries[at];
    *entry = (struct io_uring_sqe){.opcode = code, .fd = file, .addr = (uintptr_t)address,
                                   .len = length, .off = offset, .user_data = *tail};
    array[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    queued++;
    return entry;
}

/* Waits for a completion in memory, without a system call, and returns its result. */
static int reaped(void) {
    while (__atomic_load_n(done, __ATOMIC_ACQUIRE) == *seen) {}
    int result = ends[*seen & done_mask].res;
    __atomic_store_n(seen, *seen + 1, __ATOMIC_RELEASE);
    return result;
}

static void submit(unsigned wait) {
    int count = syscall(SYS_io_uring_enter, ring, queued, wait, IORING_ENTER_GETEVENTS, 0, 0);
    check(count == (int)queued, "io_uring_enter");
    queued = 0;
}

/* Submits the queued operations, waits for them, and returns the last result. */
static int go(void) {
    int result = 0;
    unsigned count = queued;
    submit(count);
    while (count--) {
        result = reaped();
        errno = -result;
        check(result >= 0, "an operation");
    }
    return result;
}

static struct io_uring_sqe *put(void) { return op(IORING_OP_WRITE, b, page, 4096, 0); }
static struct io_uring_sqe *flush(int file) { return op(IORING_OP_FSYNC, file, 0, 0, 0); }

static aio_context_t queue;

static struct iocb *control(int code, int flags) {
    struct iocb *made = calloc(1, sizeof *made);
    made->aio_lio_opcode = code;
    made->aio_fildes = b;
    made->aio_rw_flags = flags;
    if (code == IOCB_CMD_PWRITE) {
        made->aio_buf = (uintptr_t)page;
        made->aio_nbytes = 4096;
    }
    return made;
}

static void submit_controls(int count, struct iocb **controls) {
    check(syscall(SYS_io_submit, queue, count, controls) == count, "io_submit");
}

static void await(int count) {
    struct io_event events[8];
    check(syscall(SYS_io_getevents, queue, count, 8, events, 0) == count, "io_getevents");
    while (count--) {
        errno = -events[count].res;
        check((long)events[count].res >= 0, "an operation");
    }
}

int main(int count, char **arguments) {
    dir = open(".", O_RDONLY);
    b = open("b", O_RDWR);
    switch (atoi(arguments[1])) {
        WORKS
    }
    return 0;
}
