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
        """Ends the log: makes all records durable, and marks the log as closed. Raises the first
        error since the log was opened. If the disk is full (NotYet), it can be called again."""
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
    """Opens the log in a folder, and creates both if they are missing. A log has one writer.

    `sync` decides what a record survives after a wait for it. With "always", it and every record
    before it survive a power loss; with "everysec", "no" or a number of seconds, a crash of the
    process.

    Options: segment_bytes (64 MiB), retain_bytes and retain_age in seconds (beyond these, the
    oldest segments are removed), buffers (8), buffer_bytes (1 MiB, a record must fit), permissions
    of new files.
    """
    return Log(path, sync=sync, **options)


def lines(path, *, sync="always", **options):
    """Opens a plain line file, or creates it. Many threads can append to it, each line is
    acknowledged once it is safe, and every tool can read the file. An end that a crash has torn is
    moved to NAME.torn-0.

    `sync` is as for open_log(). Options: buffer_bytes (1 MiB, a line must fit), permissions of a
    new file, waits (whether to wait until another writer has closed the file; otherwise, opening
    fails).
    """
    return Lines(os.fsdecode(path), sync=sync, **options)


def read_log(path, start=0, *, since=None, follow=False):
    """Reads the log in a folder while any process writes to it, from record `start`, or from the
    first record written at `since` or later: a datetime, or seconds as time.time() returns them.
    With `follow`, it waits for further records, and for the log to be created if it does not exist
    yet. Use it with `for` or, in a task, with `async for`."""
    return LogReader(os.fsdecode(path), start, since=since, follow=follow)
