"""The tasks of langs/README.md, as one writes them with open()."""

import json
import os
import sys
import time


def write_bytes(path, size):
    # The buffer of open() is as large as the file system's blocks (st_blksize, usually 4 KiB) or,
    # if their size is unknown, io.DEFAULT_BUFFER_SIZE (8 KiB). Since Python 3.14, it has at least
    # 128 KiB.
    with open(path, "wb") as file:
        for number in range(size):
            file.write(bytes([number % 256]))
    return {"bytes": size}


def read_bytes(path):
    # The buffer is the same as for writing.
    count = 0
    total = 0
    with open(path, "rb") as file:
        while byte := file.read(1):
            count += 1
            total += byte[0]
    return {"bytes": count, "sum": total}


def save(path, text):
    with open(path, "w") as file:
        file.write(text)
    return {"bytes": len(text)}


def save_sync(path, text):
    with open(path, "w") as file:
        file.write(text)
        # Bytes in Python's buffers would not be synced.
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": len(text)}


def append_lines(path, line, count):
    # A text file collects 8 KiB. If the underlying buffer is smaller, as in write_bytes, those 8
    # KiB bypass it.
    with open(path, "a") as file:
        for _ in range(count):
            file.write(line)
    return {"bytes": len(line) * count}


def letters(size):
    return "".join(chr(ord("a") + k % 26) for k in range(size))


def timed(count, action, *arguments):
    elapsed_ns = []
    done = {}
    for _ in range(count):
        begin = time.perf_counter_ns()
        done = action(*arguments)
        elapsed_ns.append(time.perf_counter_ns() - begin)
    print(json.dumps({"elapsed_ns": elapsed_ns, **done}))


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: program.py TASK PATH SIZE COUNT")
    task, path = sys.argv[1:3]
    size, count = map(int, sys.argv[3:5])
    if task == "bytes-write":
        timed(count, write_bytes, path, size)
    elif task == "bytes-read":
        timed(count, read_bytes, path)
    elif task == "save":
        timed(count, save, path, letters(size))
    elif task == "save-sync":
        timed(count, save_sync, path, letters(size))
    elif task == "lines":
        timed(1, append_lines, path, letters(size - 1) + "\n", count)
    else:
        sys.exit(f"no such task: {task}")


if __name__ == "__main__":
    main()
