"""What one writes by hand for durable records of tasks."""

import asyncio
import os
import threading


class ByHand:
    """A file whose thread makes the records durable that came during its last flush."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self.loop, self.waiting = asyncio.get_running_loop(), []
        self.changed, self.is_over = threading.Condition(), False
        self.thread = threading.Thread(target=self.flush)
        self.thread.start()

    def append(self, record):
        future = self.loop.create_future()
        with self.changed:
            self.waiting.append((record, future))
            self.changed.notify()
        return future

    def flush(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.waiting or self.is_over)
                batch, self.waiting = self.waiting, []
            if not batch:
                return
            os.write(self.file, b"".join([record for record, _ in batch]))
            os.fdatasync(self.file)
            self.loop.call_soon_threadsafe(self.answer, batch)

    def answer(self, batch):
        for _, future in batch:
            future.set_result(None)

    def close(self):
        with self.changed:
            self.is_over = True
            self.changed.notify()
        self.thread.join()
        os.close(self.file)
