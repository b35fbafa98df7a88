"""Saves a file or appends to a log by the Python package: subject.py save|log PATH.

The first line is 0, when all is ready. Requests come on standard input, each a length of 4 bytes
and its content. Each has a line as its answer, in order, once it is durable: the record's sequence,
or 0 for a file. The first error ends the program, with its negative number as the answer.
"""

import asyncio
import os
import sys

import wrote

work, path = sys.argv[1:]


def answer(number):
    os.write(1, b"%d\n" % number)


async def requests():
    reader = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while True:
        length = int.from_bytes(await reader.readexactly(4), "little")
        yield await reader.readexactly(length)


def save(number, content):
    if number % 2:
        return wrote.write(path, content)
    with wrote.replace(path, "wb") as file:
        for begin in range(0, len(content), 33_333):
            file.write(content[begin : begin + 33_333])


async def saves():
    number = 0
    answer(0)
    async for content in requests():
        number += 1
        save(number, content)
        answer(0)


async def appends():
    log = wrote.open_log(path, segment_bytes=256 << 10, buffer_bytes=128 << 10)
    tickets = asyncio.Queue()
    answer(0)

    async def answers():
        while True:
            answer(await (await tickets.get()))

    async def records():
        async for record in requests():
            tickets.put_nowait(log.append(record))

    await asyncio.gather(answers(), records())


try:
    asyncio.run(saves() if work == "save" else appends())
except OSError as error:
    answer(-error.errno)
    # Closing the log would only fail again.
    os._exit(0)
