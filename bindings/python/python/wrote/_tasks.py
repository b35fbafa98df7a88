"""Tickets and readers for asyncio. Tickets need one descriptor for each log and event loop, and no
thread. The records of readers are read ahead by a thread."""

import asyncio

from ._wrote import Waits


def waits_of(loop, waits_by_loop):
    """Adds a descriptor to a loop, which calls `Waits.poll` when the descriptor is readable."""
    for other in [other for other in waits_by_loop if other.is_closed()]:
        del waits_by_loop[other]
    waits = waits_by_loop[loop] = Waits()
    loop.add_reader(waits.fileno(), waits.poll)
    return waits


def stop(waits_by_loop):
    """Removes the descriptors from their loops, after the last results."""
    for loop, waits in list(waits_by_loop.items()):
        if not loop.is_closed():
            loop.call_soon_threadsafe(_stop, loop, waits)


def _stop(loop, waits):
    waits.poll()
    loop.remove_reader(waits.fileno())


async def records(reader):
    """Yields the records of a reader. A thread waits for them, a tenth of a second at a time, but
    does not take them, so that a cancelled task loses none."""
    while True:
        record = reader._take()
        if record is False:
            return
        if record is None:
            await asyncio.to_thread(reader._look)
        else:
            yield record
