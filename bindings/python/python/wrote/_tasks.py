"""Tickets for asyncio: one descriptor for each log and event loop, and no thread."""

from ._wrote import Waits


def waits_of(loop, waits_by_loop):
    """Makes the descriptor of a loop, which calls `Waits.poll` when it is readable."""
    for other in [other for other in waits_by_loop if other.is_closed()]:
        del waits_by_loop[other]
    waits = waits_by_loop[loop] = Waits()
    loop.add_reader(waits.fileno(), waits.poll)
    return waits


def stop(waits_by_loop):
    """Takes the descriptors from their loops, after the last answers."""
    for loop, waits in list(waits_by_loop.items()):
        if not loop.is_closed():
            loop.call_soon_threadsafe(_stop, loop, waits)


def _stop(loop, waits):
    waits.poll()
    loop.remove_reader(waits.fileno())
