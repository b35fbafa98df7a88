"""The tasks of langs/README.md that write, by the Python package wrote.

Where the language's own program syncs nothing, `durable=False` gives the same: the bytes survive a
crash of the process. A save is atomic in addition, and with a sync also durable, with its name.
"""

import asyncio
import json
import os
import shutil
import sys
import threading
import time

import wrote


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


class ByHand:
    """A file whose thread makes the records durable that came during its last flush."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self.loop, self.waiting = asyncio.get_running_loop(), []
        self.changed, self.is_over = threading.Condition(), False
        self.thread = threading.Thread(target=self.flush)
        self.thread.start()

    def append(self, line):
        future = self.loop.create_future()
        with self.changed:
            self.waiting.append((line, future))
            self.changed.notify()
        return future

    def flush(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.is_over)
                batch, self.waiting = self.waiting, []
            if not batch:
                return
            os.write(self.file, b"".join([line + b"\n" for line, _ in batch]))
            os.fdatasync(self.file)
            self.loop.call_soon_threadsafe(self.answer, batch)

    def answer(self, batch):
        for _, future in batch:
            future.set_result(None)

    def close(self):
        with self.changed:
            self.is_over = True
            self.changed.notify()
        self.thread.join()
        os.close(self.file)


def log(path, line, count):
    by_hand = sys.argv[5:] == ["by-hand"]

    async def tasks():
        # One segment, so that one file is checked.
        options = {"format": "lines", "segment_bytes": 1 << 40}
        log = ByHand(path) if by_hand else wrote.open_log(path + ".log", **options)
        numbers = iter(range(count))

        async def task():
            for _ in numbers:
                await log.append(line)

        await asyncio.gather(*[task() for _ in range(64)])
        log.close()

    asyncio.run(tasks())
    return (len(line) + 1) * count


def take_out(path):
    """Puts the file of a log in the place where its lines are checked."""
    [name] = set(os.listdir(path + ".log")) - {"lock"}
    os.replace(os.path.join(path + ".log", name), path)
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
