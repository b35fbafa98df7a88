"""Logs, closed by `with`, and their readers."""

import os

from . import _open, _tasks
from ._wrote import Log as _Log
from ._wrote import Lines, LogReader


class Log(_Log):
    """An append-only log in a folder, for any number of threads and tasks. open_log() opens one."""

    def __new__(cls, path, **options):
        path = os.fsdecode(path)
        log = super().__new__(cls, path, **options)
        log.path = path
        log._is_closed = False
        _open.opened(log)
        return log

    def __init__(self, path, **options):
        pass

    def __repr__(self):
        return f"<wrote.Log {self.path!r}>"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.close()

    @property
    def closed(self):
        return self._is_closed

    def close(self):
        """Ends the log: makes all records durable, and marks the log as closed. Raises any error
        since the opening. On a full disk (NotYet) it can be called again."""
        super().close()
        self._is_closed = True
        _open.closed(self)
        _tasks.stop(self._waits)

    def __del__(self):
        if not getattr(self, "_is_closed", True):
            _open.warn(f"{self.path}: the log was never closed", self)
            self.close()

    def _at_exit(self):
        try:
            self.close()
        except OSError as error:
            return str(error)
        return None

    def _in_child(self):
        self._is_closed = True


def open_log(path, *, sync="always", **options):
    """Opens the log in a folder, or makes both. One writer at a time.

    `sync` decides what a record survives that was waited for: with "always" a power loss, and so does
    every record before it; with "everysec", "no" or a number of seconds a crash of the process.

    Options: segment_bytes (64 MiB), retain_bytes and retain_age in seconds (then the oldest segments
    go), buffers (8), buffer_bytes (1 MiB, into which a record must fit), permissions of new files.
    """
    return Log(path, sync=sync, **options)


def lines(path, *, sync="always", **options):
    """Opens a plain file of lines, or makes it: many threads append, each line is acknowledged when
    it is safe, and every tool reads the file. An end that a crash tore is moved to NAME.torn-0.

    `sync` is as for open_log(). Options: buffer_bytes (1 MiB, into which a line must fit), permissions
    of a new file, waits (for another writer; otherwise it is refused).
    """
    return Lines(os.fsdecode(path), sync=sync, **options)


def read_log(path, start=0, *, since=None, follow=False):
    """Reads the log in a folder from record `start`, while any process writes it, or from the first
    record written at `since` or later: a datetime, or seconds as time.time() returns them. With
    `follow` it waits for further records, and for a log that is not there yet. Loops by `for`, and
    tasks by `async for`."""
    return LogReader(os.fsdecode(path), start, since=since, follow=follow)
