"""Tickets for asyncio: one descriptor for each log and event loop, and no thread."""

from asyncio import get_running_loop

from ._wrote import Waits


def wait(ticket, waiters):
    """Returns the iterator of `await ticket`."""
    loop = get_running_loop()
    waiter = waiters.get(loop)
    if waiter is None:
        for other in [other for other in waiters if other.is_closed()]:
            del waiters[other]
        waiter = waiters[loop] = _Waiter(loop)
    future = loop.create_future()
    waiter.waits.add(ticket, future)
    return future.__await__()


class _Waiter:
    """The tasks of one event loop that wait for records of one log."""

    def __init__(self, loop):
        self.loop, self.waits = loop, Waits()
        loop.add_reader(self.waits.fileno(), self.waits.poll)

    def stop(self):
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._stop)

    def _stop(self):
        self.waits.poll()
        self.loop.remove_reader(self.waits.fileno())
