"""Open files and logs. They are notified at the interpreter's exit, and in the child of a fork."""

import atexit
import os
import sys
import warnings
import weakref

_opened = weakref.WeakSet()


def opened(thing):
    """Adds a file or log, which has the methods _at_exit and _in_child."""
    _opened.add(thing)


def closed(thing):
    _opened.discard(thing)


def warn(text, source):
    warnings.warn(text, ResourceWarning, stacklevel=3, source=source)


@atexit.register
def _at_exit():
    for thing in list(_opened):
        # This is printed because Python hides a ResourceWarning by default, and data may be lost.
        text = thing._at_exit()
        if text and sys.stderr is not None:
            print(f"wrote: {text}", file=sys.stderr)


def _in_child():
    for thing in list(_opened):
        thing._in_child()
    _opened.clear()


os.register_at_fork(after_in_child=_in_child)
