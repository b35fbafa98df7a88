"""The tasks of langs/README.md that write, by the Python package wrote.

Where the language's own program syncs nothing, `durable=False` gives the same: the bytes survive a
crash of the process. A save is atomic in addition, and with a sync also durable, with its name.
"""

import asyncio
import json
import os
import shutil
import sys
import time

import wrote
from by_hand import ByHand


def write_bytes(path, size, _count):
    with wrote.create(path, "wb", durable=False) as file:
        for number in range(size):
            file.write(bytes([number % 256]))
    return size


def save(path, text, _count):
    wrote.write(path, text, durable=False)
    return len(text)


def save_sync(path, text, _count):
    wrote.write(path, text)
    return len(text)


def append_lines(path, line, count):
    with wrote.append(path, durable=False) as file:
        for _ in range(count):
            file.write(line)
    return len(line) * count


def log(path, line, count):
    by_hand = sys.argv[5:] == ["by-hand"]

    async def tasks():
        log = ByHand(path) if by_hand else wrote.open_log(path + ".log")
        record = line + b"\n" if by_hand else line
        numbers = iter(range(count))

        async def task():
            for _ in numbers:
                await log.append(record)

        await asyncio.gather(*[task() for _ in range(64)])
        log.close()

    asyncio.run(tasks())
    return (len(line) + 1) * count


def take_out(path):
    """Writes the records of a log as lines to the file that is checked."""
    with open(path, "wb") as file:
        file.writelines(record.data + b"\n" for record in wrote.read_log(path + ".log"))
    shutil.rmtree(path + ".log")


def letters(size):
    return ("abcdefghijklmnopqrstuvwxyz" * (size // 26 + 1))[:size]


def main():
    task, path, size, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    action, argument, times = {
        "bytes-write": lambda: (write_bytes, size, count),
        "save": lambda: (save, letters(size), count),
        "save-sync": lambda: (save_sync, letters(size), count),
        "lines": lambda: (append_lines, letters(size - 1) + "\n", 1),
        "log": lambda: (log, letters(size - 1).encode(), 1),
    }[task]()
    elapsed_ns, written = [], 0
    for _ in range(times):
        begin = time.perf_counter_ns()
        written = action(path, argument, count)
        elapsed_ns.append(time.perf_counter_ns() - begin)
    if os.path.isdir(path + ".log"):
        take_out(path)
    print(json.dumps({"elapsed_ns": elapsed_ns, "bytes": written}))


main()
