"""One run of a workload by the Python package or by hand: prints the outcome.

bindings.py WORK BY, in the folder to write to, where WORK is `save`, `lines` or `tasks`, and BY is
`wrote`, found by PYTHONPATH, or `hand`.
"""

import asyncio, json, os, random, sys, tempfile, time

langs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bindings/langs")
sys.path.append(os.path.join(langs, "python-wrote"))
sys.dont_write_bytecode = True
from by_hand import ByHand

SAVES, SAVE_BYTES = 200, 4096
LINES = 1_000_000
TASKS, RECORDS, RECORD_BYTES = 64, 2000, 100


def save_by_wrote(path, content):
    wrote.write(path, content)


def save_by_hand(path, content):
    """The steps that survive a power loss: temporary file, fsync, rename, fsync of the folder."""
    folder = os.path.dirname(path)
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(name, path)
    except BaseException:
        os.unlink(name)
        raise
    folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save(by, folder):
    path, content = os.path.join(folder, "saved"), random.randbytes(SAVE_BYTES)
    act = save_by_wrote if by == "wrote" else save_by_hand
    act(path, content)

    def run():
        for _ in range(SAVES):
            act(path, content)
        return SAVES, SAVES * SAVE_BYTES

    return run


def lines(by, folder):
    path, words = os.path.join(folder, "lines"), [f"{random.random()}\n" for _ in range(1000)]

    def run():
        if by == "wrote":
            with wrote.replace(path) as file:
                write_lines(file, words)
        else:
            with open(path, "w") as file:
                write_lines(file, words)
                file.flush()
                os.fsync(file.fileno())
        return LINES, os.path.getsize(path)

    return run


def write_lines(file, words):
    write = file.write
    for _ in range(LINES // len(words)):
        for word in words:
            write(word)


def tasks(by, folder):
    record = random.randbytes(RECORD_BYTES)

    async def task(log):
        for _ in range(RECORDS):
            await log.append(record)

    async def all_tasks():
        log = wrote.open_log(folder + "/log") if by == "wrote" else ByHand(folder + "/log")
        await asyncio.gather(*[task(log) for _ in range(TASKS)])
        log.close()

    def run():
        asyncio.run(all_tasks())
        return TASKS * RECORDS, TASKS * RECORDS * RECORD_BYTES

    return run


def main():
    work, by = sys.argv[1:]
    if by == "wrote":
        global wrote
        import wrote
    with tempfile.TemporaryDirectory(dir=".") as folder:
        run = {"save": save, "lines": lines, "tasks": tasks}[work](by, os.path.abspath(folder))
        begun, cpu_s = time.perf_counter(), time.process_time()
        operations, length = run()
        elapsed_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu_s
    print(json.dumps({"bytes": length, "operations": operations, "elapsed_s": elapsed_s,
                      "cpu_s": cpu_s}))


main()
