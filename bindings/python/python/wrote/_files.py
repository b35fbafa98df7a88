"""Files in the sense of Python's io module, based on the library's writers and readers."""

import codecs
import io
import locale
import os
import sys

from . import _open
from ._wrote import RawReader, RawWriter

_TEXT = {"w", "wt", "a", "at", "x", "xt"}
_BINARY = {"wb", "ab", "xb"}


def replace(path, mode="w", *, encoding=None, errors=None, newline=None, durable=True,
            permissions=None, size_hint=0):
    """Opens a file that replaces the one at `path` when it is closed.

    Until then, after an exception inside `with`, and after a crash at any moment, the old file is
    unchanged. Readers see either the old content or the new. When `close()` or the `with` has
    ended, the new content survives a power loss; with durable=False, it survives only a crash of
    the process. After an exception inside `with`, the old file is kept even if another object, such
    as a TextIOWrapper, closes the new file inside the `with`.

    `mode` is "w" for text or "wb" for bytes; with "x" and "xb", an existing name is a
    FileExistsError. `encoding`, `errors` and `newline` are those of open(). The new file gets the
    old one's permissions, owner and attributes, or `permissions`; symbolic links are followed and
    kept. `size_hint` is the number of bytes to reserve when the file is opened.

    A process that is killed leaves a file ".NAME.wrote-PROCESS-NUMBER", which `wrote clean`
    removes.
    """
    return _file(path, mode, "replace", "wx", encoding, errors, newline, durable=durable,
                 permissions=permissions, size_hint=size_hint)


def create(path, mode="w", *, encoding=None, errors=None, newline=None, durable=True,
           permissions=None, size_hint=0, sync=None, direct=True):
    """Opens a file for writing, and truncates an existing one: a faster open(path, "w").

    After flush(), the bytes survive a crash of the process. After sync() and close(), they survive
    a power loss, with the name of a new file. `sync` also makes them durable before the end:
    "always", "everysec", or a number of seconds. A crash before that leaves any part of the file;
    replace() would keep the old one. After an exception inside `with`, a new file is removed.
    """
    return _file(path, mode, "create", "wx", encoding, errors, newline, durable=durable,
                 permissions=permissions, size_hint=size_hint, sync=sync, direct=direct)


def append(path, mode="a", *, encoding=None, errors=None, newline=None, durable=True,
           permissions=None, sync=None):
    """Opens a file for appending, or creates it. Only one process at a time can: the file is
    locked.

    The promises are those of create(). Programs that share a file should use a log.
    """
    return _file(path, mode, "append", "a", encoding, errors, newline, durable=durable,
                 permissions=permissions, sync=sync)


def reader(path):
    """Opens a file for reading bytes: a faster open(path, "rb") for long files that are not
    cached."""
    return io.BufferedReader(_Reader(path), 128 << 10)


def _file(path, mode, purpose, letters, encoding, errors, newline, *, durable, permissions,
          size_hint=0, sync=None, direct=True):
    if mode not in _TEXT | _BINARY or mode[0] not in letters:
        first = letters[0]
        raise ValueError(f'mode {mode!r}: use "{first}" for text or "{first}b" for bytes')
    is_text = mode not in _BINARY
    if not is_text and (encoding, errors, newline) != (None, None, None):
        raise ValueError("binary mode takes no encoding, errors or newline argument")
    if newline not in (None, "", "\n", "\r", "\r\n"):
        raise ValueError(f"illegal newline value: {newline!r}")
    if is_text:
        encoding = encoding if encoding not in (None, "locale") else locale.getencoding()
        codec = codecs.lookup(encoding).name
    path = os.fsdecode(path)
    raw = RawWriter(path, purpose, permissions=permissions, sync=sync, size_hint=size_hint,
                    create_new=mode[0] == "x", direct=direct, text=is_text)
    binary = Writer(raw, path, mode, purpose, durable)
    if not is_text:
        return binary
    # There is nothing to translate: the library accepts the text unchanged.
    if codec == "utf-8" and errors in (None, "strict") and newline in (None, "", "\n"):
        return TextWriter(binary, encoding)
    # Without write_through, its buffer would hold back bytes that `sync` should make durable.
    return EncodedWriter(binary, encoding=encoding, errors=errors, newline=newline,
                         write_through=sync is not None)


class _Ending:
    """The ways in which a file ends: closed by `with`, abandoned, or garbage-collected."""

    #: Inside a `with`: the exception that was being handled when the `with` began.
    _outside = ()
    #: Whether an exception left an inner `with`, which then closed the file.
    _is_left = False

    def __enter__(self):
        self._outside = (sys.exception(),)
        return super().__enter__()

    def __exit__(self, kind, value, traceback):
        self._outside, self._is_left = (), False
        if kind is not None:
            self.abandon()
        elif not self.closed:
            self.finish()

    def close(self):
        """Like finish(), but does nothing if the file has ended. While an exception leaves an inner
        `with`, such as that of a TextIOWrapper, the end of the file's own `with` decides how the
        file ends; finish() ends it at once."""
        if self._outside and sys.exception() not in (None, *self._outside):
            self._is_left = True
        if not self.closed and not self._is_left:
            self.finish()

    def __del__(self):
        """Does nothing. The method of io would close the file, and so give a partial file its
        name."""

    def fileno(self):
        # subprocess and ndarray.tofile would write to a descriptor directly, past the buffers.
        raise io.UnsupportedOperation("fileno: the file has no descriptor for others; use write()")


class Writer(_Ending, io.BufferedIOBase):
    """A binary file of replace(), create() or append(). Threads may share it."""

    # This is not a property, because an encoder on top reads it before each write.
    __slots__ = ("closed",)

    def __init__(self, raw, path, mode, purpose, durable):
        self._raw, self.name, self.mode = raw, path, mode
        self._purpose, self._durable = purpose, durable
        self.closed = False
        # These are the native functions themselves, so that a call needs no Python frame.
        self.write, self.tell, self.seek = raw.write, raw.tell, raw.seek
        _open.opened(self)

    def __repr__(self):
        return f"<wrote.Writer name={self.name!r} mode={self.mode!r}>"

    def writable(self):
        return True

    def seekable(self):
        return True

    def flush(self):
        """Writes all bytes to the file, and waits for that. Does not make them durable."""
        self._raw.flush()

    def sync(self):
        """Makes earlier writes durable. Only close() replaces an existing file."""
        self._raw.sync()

    def finish(self):
        """Writes the rest, makes the file durable, and gives it its name, which commits it. Returns
        a Written. After an error, the old file of replace() is unchanged."""
        self.closed = True
        _open.closed(self)
        return self._raw.finish(self._durable)

    def abandon(self):
        """Ends without writing the rest. The old file of replace() is unchanged, a file that
        create() created is removed, and an older file keeps the bytes written so far."""
        self.closed = True
        _open.closed(self)
        self._raw.abandon()

    def __del__(self):
        if not getattr(self, "closed", True):
            _open.warn(self._left(), self)
            self._raw.forget()
            self.abandon()

    def _left(self):
        if self._purpose == "replace":
            return f"{self.name}: not replaced: its writer was never closed"
        return f"{self.name}: not whole: its writer was never closed"

    def _at_exit(self):
        self.abandon()
        return self._left()

    def _in_child(self):
        # The raw writer is not closed, so that a write fails with the error for a forked process.
        # Only the parent can abandon the file.
        self._raw.fork()
        self.closed = True


class TextWriter(_Ending, io.TextIOBase):
    """A text file in UTF-8 of replace(), create() or append()."""

    errors = "strict"
    newlines = None

    def __init__(self, binary, encoding):
        self._binary, self._encoding = binary, encoding
        self.name, self.mode = binary.name, binary.mode
        self.write = binary._raw.write_text

    def __repr__(self):
        return f"<wrote.TextWriter name={self.name!r} mode={self.mode!r} encoding={self.encoding!r}>"

    @property
    def buffer(self):
        return self._binary

    @property
    def encoding(self):
        return self._encoding

    @property
    def closed(self):
        return self._binary.closed

    def writable(self):
        return True

    def tell(self):
        return self._binary.tell()

    def flush(self):
        self._binary.flush()

    def sync(self):
        self._binary.sync()

    def finish(self):
        return self._binary.finish()

    def abandon(self):
        self._binary.abandon()


class EncodedWriter(_Ending, io.TextIOWrapper):
    """A text file with another encoding or line end."""

    @property
    def mode(self):
        return self.buffer.mode

    def sync(self):
        self.flush()
        self.buffer.sync()

    def finish(self):
        try:
            self.flush()
        except BaseException:
            self.abandon()
            raise
        return self.buffer.finish()

    def abandon(self):
        self.buffer.abandon()


class _Reader(io.RawIOBase):
    def __init__(self, path):
        self.name, self.mode = path, "rb"
        self._raw = RawReader(os.fsdecode(path))
        self.readinto, self.seek = self._raw.readinto, self._raw.seek

    def readable(self):
        return True

    def seekable(self):
        return True
