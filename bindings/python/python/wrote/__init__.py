"""Files and logs that state what each write survives.

    wrote.write("settings.json", text)               # complete and durable, or not at all

    with wrote.replace("report.csv", "w") as file:   # the old file is kept until the end
        csv.writer(file).writerows(rows)

    with wrote.open_log("events") as log:
        log.append_wait(b"saved the report")         # now survives a power loss
        await log.append(b"from a task")             # likewise, for asyncio

    with wrote.lines("session.jsonl") as lines:      # a plain file
        lines.append_wait(json.dumps(event))         # now survives a power loss

Errors are OSError, with errno, filename, and the library's text. Every call that waits lets other
threads run. After os.fork(), the child can't use its parent's files and logs: calls raise Forked.
"""

from ._files import TextWriter, Writer, append, create, reader, replace
from ._logs import Log, lines, open_log, read_log
from ._wrote import (
    Alignment,
    AtomicWrites,
    Damaged,
    Differs,
    Engine,
    Foreign,
    Forked,
    Interfered,
    Interrupted,
    Lines,
    LogReader,
    NotYet,
    Poisoned,
    Record,
    Refused,
    Ticket,
    TooLong,
    Truncated,
    Written,
    __version__,
    atomic_writes,
    copy,
    write,
    write_new,
)
