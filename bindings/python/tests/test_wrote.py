"""Tests of the package, by its installed files."""

import ast
import asyncio
import codecs
import contextlib
import csv
import datetime
import errno
import gc
import inspect
import io
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import zipfile
from pathlib import Path

import wrote


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "file"

    def run_python(self, code, *options, status=0):
        """Runs a program in the folder, and returns what it printed to standard error."""
        ran = subprocess.run([sys.executable, *options, "-c", code], cwd=self.folder,
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, status, ran.stderr)
        return ran.stderr

    def names(self):
        return sorted(os.listdir(self.folder))


class Saves(InFolder):
    def test_content_is_bytes_or_text(self):
        for content, found in [(b"bytes", b"bytes"), ("größe", "größe".encode()), (b"", b""),
                               (bytearray(b"array"), b"array"), (memoryview(b"view")[1:], b"iew")]:
            wrote.write(self.path, content)
            self.assertEqual(self.path.read_bytes(), found)
        wrote.write(str(self.path), b"1", durable=False)
        self.assertEqual(self.path.read_bytes(), b"1")

    def test_paths_are_those_of_open(self):
        name = os.fsdecode(b"\xff")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for path in ["file", b"file", Path("file"), name, b"\xff"]:
            wrote.write(path, "1")
            with wrote.replace(path) as file:
                file.write("2")
            with wrote.reader(path) as file:
                self.assertEqual(file.read(), b"2")
            wrote.open_log(os.fsencode(path) + b"-log").close()
            self.assertEqual(list(wrote.read_log(os.fsencode(path) + b"-log")), [])
        self.assertEqual(self.names(), ["file", "file-log", name, name + "-log"])
        for call in [wrote.write, wrote.write_new, wrote.copy]:
            for wrong, error in [("a\0b", ValueError), (7, TypeError)]:
                self.assertRaises(error, call, wrong, "content")
        for call in [wrote.replace, wrote.reader, wrote.open_log, wrote.read_log]:
            for wrong, error in [("a\0b", ValueError), (7, TypeError)]:
                self.assertRaises(error, call, wrong)

    def test_a_new_file_never_replaces_one(self):
        wrote.write_new(self.path, b"1")
        with self.assertRaises(FileExistsError) as raised:
            wrote.write_new(self.path, b"2")
        self.assertEqual(raised.exception.errno, errno.EEXIST)
        self.assertEqual(raised.exception.filename, str(self.path))
        self.assertEqual(self.path.read_bytes(), b"1")

    def test_errors_are_those_of_python(self):
        with self.assertRaises(FileNotFoundError) as raised:
            wrote.write(self.folder / "no" / "file", b"")
        self.assertIsNone(raised.exception.offset)
        with self.assertRaises(wrote.Refused) as raised:
            wrote.write(self.folder, b"")
        self.assertEqual(raised.exception.errno, errno.EISDIR)
        self.assertIsInstance(raised.exception, OSError)
        self.assertIn("is a folder", str(raised.exception))
        with self.assertRaises(TypeError):
            wrote.write(self.path, 7)

    def test_a_link_stays_and_the_mode_is_kept(self):
        self.path.write_text("old")
        self.path.chmod(0o640)
        link = self.folder / "link"
        link.symlink_to("file")
        wrote.write(link, "new")
        with wrote.replace(link) as file:
            file.write("newer")
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.path.read_text(), "newer")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o640)
        self.assertEqual(self.names(), ["file", "link"])

    def test_atomic_writes_have_lengths_or_a_reason(self):
        self.path.write_bytes(b"precious")
        try:
            told = wrote.atomic_writes(self.path)
        except wrote.Refused as refused:
            self.assertEqual(refused.errno, errno.EOPNOTSUPP)
            self.assertIn("there are no atomic writes here: ", str(refused))
        else:
            self.assertLess(0, told.bytes_min)
            self.assertLessEqual(told.bytes_min, told.bytes_max)
        self.assertRaises(FileNotFoundError, wrote.atomic_writes, self.folder / "nothing")

    def test_a_copy_is_whole(self):
        self.path.write_bytes(b"precious")
        self.assertEqual(wrote.copy(self.path, self.folder / "copy"), 8)
        self.assertEqual((self.folder / "copy").read_bytes(), b"precious")


class Files(InFolder):
    def test_the_old_file_stays_until_the_end(self):
        self.path.write_text("old")
        with wrote.replace(self.path, "w", encoding="utf-8") as file:
            self.assertEqual(file.write("größe\n"), 6)
            file.writelines(["a\n", "b\n"])
            print("c", file=file, flush=True)
            self.assertEqual(self.path.read_text(), "old")
            self.assertEqual(file.tell(), 14)
        self.assertTrue(file.closed)
        self.assertEqual(self.path.read_text(), "größe\na\nb\nc\n")
        with self.assertRaises(ValueError):
            file.write("x")
        file.close()

    def test_an_exception_leaves_the_old_file(self):
        self.path.write_text("old")
        for mode, half in [("w", "half"), ("wb", b"half")]:
            with self.assertRaises(KeyError), wrote.replace(self.path, mode) as file:
                file.write(half)
                file.flush()
                raise KeyError
        with self.assertRaises(KeyError), wrote.replace(self.path, encoding="latin-1") as file:
            file.write("half")
            raise KeyError
        with self.assertRaises(UnicodeEncodeError), wrote.replace(self.path) as file:
            file.write("\udcff")
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.names(), ["file"])

    def test_an_exception_leaves_the_old_file_whatever_closes_it_first(self):
        self.path.write_text("old")
        wraps = [lambda file: io.TextIOWrapper(file, "utf-8"), io.BufferedWriter,
                 codecs.getwriter("utf-8"), contextlib.closing]
        for wrap in wraps:
            with self.assertRaises(KeyError), wrote.replace(self.path, "wb") as file:
                with wrap(file):
                    file.write(b"half")
                    raise KeyError
            self.assertEqual(self.path.read_text(), "old")
        for how in [{}, {"encoding": "latin-1"}]:
            with self.assertRaises(KeyError), wrote.replace(self.path, **how) as file:
                with contextlib.closing(file):
                    file.write("half")
                    raise KeyError
            self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.names(), ["file"])
        # The exception is handled inside the `with`, so the file is complete.
        with wrote.replace(self.path, "wb") as file:
            with contextlib.suppress(KeyError), io.TextIOWrapper(file) as wrapped:
                wrapped.write("new")
                raise KeyError
        self.assertEqual(self.path.read_text(), "new")
        try:
            raise KeyError
        except KeyError:
            with wrote.replace(self.path, "wb") as file, io.TextIOWrapper(file) as wrapped:
                wrapped.write("newer")
        self.assertEqual(self.path.read_text(), "newer")

    def test_every_encoding_and_line_end_is_that_of_open(self):
        other = self.folder / "other"
        text = "größe\n\r\nend\n"
        for encoding in [None, "utf-8", "latin-1", "utf-16", "utf-8-sig"]:
            for newline in [None, "", "\n", "\r\n", "\r"]:
                for errors in [None, "strict", "replace"]:
                    how = dict(encoding=encoding, newline=newline, errors=errors)
                    with open(other, "w", **how) as file:
                        file.write(text)
                        file.write(text)
                    with wrote.replace(self.path, "w", **how) as file:
                        file.write(text)
                        file.write(text)
                    self.assertEqual(self.path.read_bytes(), other.read_bytes(), how)

    def test_programs_that_write_files_write_these(self):
        with wrote.replace(self.path) as file:
            self.assertIsInstance(file, io.TextIOBase)
            json.dump({"a": [1, 2]}, file)
        self.assertEqual(json.loads(self.path.read_text()), {"a": [1, 2]})
        with wrote.replace(self.path, newline="") as file:
            csv.writer(file).writerows([["a", "b"], [1, "x,y"]])
        self.assertEqual(self.path.read_bytes(), b'a,b\r\n1,"x,y"\r\n')
        with wrote.replace(self.path, "wb") as file:
            self.assertIsInstance(file, io.BufferedIOBase)
            pickle.dump(list(range(100_000)), file, protocol=5)
        self.assertEqual(pickle.loads(self.path.read_bytes()), list(range(100_000)))
        with wrote.replace(self.path, "wb") as file, zipfile.ZipFile(file, "w") as packed:
            packed.writestr("one", b"1" * 10_000)
        with zipfile.ZipFile(self.path) as packed:
            self.assertEqual(packed.read("one"), b"1" * 10_000)
        with wrote.replace(self.path, "wb") as file, io.TextIOWrapper(file, "utf-8") as wrapped:
            wrapped.write("wrapped")
        self.assertEqual(self.path.read_text(), "wrapped")

    def test_arrays_are_written_by_the_buffer_protocol(self):
        import array
        numbers = array.array("d", [1.5, 2.5])
        with wrote.replace(self.path, "wb") as file:
            self.assertEqual(file.write(numbers), 16)
            with self.assertRaises(TypeError):
                file.write("text")
            with self.assertRaises(BufferError):
                file.write(memoryview(b"abcd")[::2])
        self.assertEqual(self.path.read_bytes(), numbers.tobytes())

    def test_what_needs_a_descriptor_is_refused(self):
        for mode in ["w", "wb"]:
            with wrote.replace(self.path, mode) as file:
                with self.assertRaisesRegex(io.UnsupportedOperation, "use write"):
                    subprocess.run(["true"], stdout=file)
        with wrote.replace(self.path, encoding="latin-1") as file:
            self.assertRaises(io.UnsupportedOperation, file.fileno)

    def test_libraries_of_numbers_write_these(self):
        try:
            import numpy
            import pandas
        except ImportError:
            self.skipTest("numpy and pandas are not installed")
        numbers = numpy.arange(100_000, dtype="f8").reshape(100, 1000)
        with wrote.replace(self.path, "wb") as file:
            numpy.save(file, numbers)
        self.assertTrue((numpy.load(self.path) == numbers).all())
        frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "ü"]})
        for mode in ["w", "wb"]:
            with wrote.replace(self.path, mode) as file:
                frame.to_csv(file, index=False)
            self.assertTrue(pandas.read_csv(self.path).equals(frame))

    def test_long_content_is_whole(self):
        line = "0123456789\n"
        with wrote.replace(self.path, size_hint=11 * 300_000) as file:
            for _ in range(300_000):
                file.write(line)
            written = file.finish()
        self.assertEqual((written.bytes, written.durable), (3_300_000, True))
        self.assertEqual(self.path.read_text(), line * 300_000)

    def test_lines_of_text_take_little_memory(self):
        self.run_python("""
import re, wrote
def anonymous_kib():
    with open("/proc/self/status") as status:
        return int(re.search(r"RssAnon:\\s+(\\d+) kB", status.read())[1])
before = anonymous_kib()
with wrote.replace("file") as file:
    for _ in range(1_600_000):
        file.write("0123456789\\n")
    taken = anonymous_kib() - before
assert taken < 6 << 10, f"{taken} KiB"
""")
        self.assertEqual(self.path.stat().st_size, 17_600_000)

    def test_a_header_is_written_at_the_end(self):
        with wrote.replace(self.path, "wb") as file:
            file.write(bytes(8) + b"content" * 20_000)
            self.assertEqual(file.seek(0, os.SEEK_CUR), 140_008)
            file.seek(0)
            file.write((140_008).to_bytes(8, "little"))
            with self.assertRaises(ValueError):
                file.seek(-1)
        content = self.path.read_bytes()
        self.assertEqual(content, (140_008).to_bytes(8, "little") + b"content" * 20_000)

    def test_files_are_created_and_appended_to(self):
        with wrote.create(self.path, permissions=0o600) as file:
            file.write("one\n")
            file.sync()
            self.assertEqual(self.path.read_text(), "one\n")
        with wrote.append(self.path, "ab", sync="always") as file:
            file.write(b"two\n")
            self.assertEqual(self.path.read_text(), "one\ntwo\n")
        with wrote.append(self.path, encoding="latin-1", sync="always") as file:
            file.write("größe\n")
            self.assertEqual(self.path.read_bytes(), b"one\ntwo\ngr\xf6\xdfe\n")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        with self.assertRaises(FileExistsError):
            wrote.create(self.path, "x")
        with self.assertRaises(KeyError), wrote.create(self.folder / "half") as file:
            file.write("half")
            raise KeyError
        self.assertEqual(self.names(), ["file"])
        for call in [lambda: wrote.replace(self.path, "r"), lambda: wrote.append(self.path, "w"),
                     lambda: wrote.replace(self.path, "wb", encoding="utf-8"),
                     lambda: wrote.create(self.path, sync="often")]:
            with self.assertRaises(ValueError):
                call()

    def test_a_file_is_read(self):
        self.path.write_bytes(b"one\ntwo\n" * 100_000)
        with wrote.reader(self.path) as file:
            self.assertEqual(next(iter(file)), b"one\n")
            self.assertEqual(file.seek(4), 4)
            self.assertEqual(file.readline(), b"two\n")
            self.assertEqual(len(file.read()), 800_000 - 8)

    def test_threads_share_a_file(self):
        with wrote.replace(self.path) as file:
            def write():
                for _ in range(5_000):
                    file.write("a line of some bytes\n")
            threads = [threading.Thread(target=write) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        self.assertEqual(set(self.path.read_text().split("\n")), {"a line of some bytes", ""})
        self.assertEqual(self.path.stat().st_size, 420_000)


class Ends(InFolder):
    """Files and logs that were not closed."""

    def test_a_forgotten_file_is_abandoned_and_warns(self):
        self.path.write_text("old")
        for how in [{}, {"encoding": "latin-1"}]:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                file = wrote.replace(self.path, **how)
                file.write("half")
                del file
                gc.collect()
            self.assertEqual([one.category for one in caught], [ResourceWarning], how)
            self.assertIn("not replaced", str(caught[0].message))
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.names(), ["file"])

    def test_a_file_that_nothing_refers_to_says_so(self):
        self.path.write_text("old")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for mode, half in [("w", "half"), ("wb", b"half")]:
                with self.assertRaisesRegex(ValueError, "nothing refers to it"):
                    wrote.replace(self.path, mode).write(half)
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.names(), ["file"])

    def test_an_exit_leaves_nothing_half_and_says_so(self):
        self.path.write_text("old")
        for end in ["", "; sys.exit(0)", "; raise SystemExit(0)"]:
            for how in ["", ", encoding='latin-1'", ", mode='wb'"]:
                half = "b'half'" if "wb" in how else "'half'"
                said = self.run_python("import sys, wrote; file = wrote.replace('file'" + how
                                       + f"); file.write({half})" + end)
                self.assertIn("file: not replaced: its writer was never closed", said)
                self.assertEqual(self.path.read_text(), "old")
                self.assertEqual(self.names(), ["file"])
        self.run_python("import wrote; file = wrote.replace('file'); file.write('half'); 1 / 0",
                        status=1)
        self.assertEqual(self.path.read_text(), "old")
        self.assertEqual(self.names(), ["file"])

    def test_an_exit_makes_an_open_log_durable(self):
        self.run_python("import wrote; log = wrote.open_log('log', sync='no'); log.append(b'1')")
        records = list(wrote.read_log(self.folder / "log"))
        self.assertEqual([record.data for record in records], [b"1"])

    def test_a_fork_is_refused(self):
        said = self.run_python("""
import os, wrote
log, text, binary = wrote.open_log("log"), wrote.replace("file"), wrote.replace("file", "wb")
text.write("parent")
ticket = log.append(b"1")
child = os.fork()
if child == 0:
    calls = [lambda: log.append(b"2"), lambda: log.append_wait(b"2"), ticket.wait, log.sync,
             lambda: text.write("x"), lambda: binary.write(b"x"), binary.flush, text.finish]
    for call in calls:
        try:
            call()
        except wrote.Forked as error:
            assert error.errno == 1
        else:
            os._exit(1)
    wrote.write("child", "of its own")
    raise SystemExit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
ticket.wait()
text.close()
binary.abandon()
log.close()
""", "-W", "ignore::DeprecationWarning")
        self.assertEqual(said, "")
        self.assertEqual(self.path.read_text(), "parent")
        self.assertEqual(self.names(), ["child", "file", "log"])

    def test_ten_thousand_handles_go_in_odd_orders(self):
        self.path.write_text("old")
        log = wrote.open_log(self.folder / "log", sync="no", buffer_bytes=4096)
        kept = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number in range(10_000):
                place = number * 7919 % 61
                kept[place] = [
                    lambda: log.append(b"x" * 100),
                    lambda: wrote.replace(self.path, "wb"),
                    lambda: wrote.read_log(self.folder / "log"),
                    lambda: wrote.reader(self.path),
                    lambda: iter([kept.get(place)]),
                ][number % 5]()
                if number % 1000 == 999:
                    log.close()
                    log = wrote.open_log(self.folder / "log", sync="no", buffer_bytes=4096)
            kept.clear()
            gc.collect()
        log.close()
        log = None
        self.assertEqual(self.names(), ["file", "log"])
        self.assertEqual(self.path.read_text(), "old")
        descriptors = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        descriptors = [os.readlink(one) for one in descriptors if os.path.lexists(one)]
        self.assertEqual([one for one in descriptors if str(self.folder) in one], [])


class Logs(InFolder):
    def setUp(self):
        super().setUp()
        self.log = wrote.open_log(self.folder / "log")
        self.addCleanup(self.log.close)

    def test_records_are_appended_and_read(self):
        ticket = self.log.append(b"zero")
        self.assertEqual((ticket.sequence, ticket.wait(), ticket.wait()), (0, 0, 0))
        self.assertEqual((ticket.survives, self.log.survives(0)), ("power-loss", "power-loss"))
        self.assertEqual(self.log.append_wait(bytearray(b"one")), 1)
        group = self.log.append_all([b"two", memoryview(b"three")])
        self.assertEqual((group.first, group.sequence), (2, 3))
        group.until_durable().wait()
        self.assertEqual(self.log.durable_sequence, 4)
        self.assertEqual(self.log.stats()["next_sequence"], 4)
        reader = wrote.read_log(self.folder / "log", 1)
        records = list(reader)
        self.assertEqual([record.data for record in records], [b"one", b"two", b"three"])
        self.assertGreater(records[0].written_at_ns, 0)
        reader.seek_time_ns(records[0].written_at_ns)
        self.assertEqual(next(reader).data, b"one")
        reader.seek(3)
        self.assertEqual(next(reader).sequence, 3)
        self.assertIsNone(reader.next(timeout=10))

    def test_a_log_is_cut_and_trimmed(self):
        for number in range(5):
            self.log.append_wait(b"%d" % number)
        self.log.truncate_from(2)
        self.assertEqual(self.log.append_wait(b"again"), 2)
        self.assertEqual(self.log.trim_before(1), 0)
        self.assertEqual([one.data for one in self.log.reader()], [b"0", b"1", b"again"])

    def test_errors_of_logs(self):
        with self.assertRaises(wrote.Refused) as raised:
            wrote.open_log(self.folder / "log")
        self.assertEqual(raised.exception.errno, errno.EBUSY)
        for append in [self.log.append, lambda record: self.log.append_all([record, b"x"])]:
            with self.assertRaises(wrote.TooLong) as raised:
                append(bytes(2 << 20))
            self.assertEqual(raised.exception.errno, errno.EMSGSIZE)
            self.assertIn("(buffer_bytes of open_log())", str(raised.exception))
        with self.assertRaises(wrote.Refused):
            self.log.ticket(10**6).wait()

    def test_a_ticket_has_one_truth_about_what_its_record_survives(self):
        with wrote.open_log(self.folder / "lazy", sync="no") as log:
            ticket = log.append("text")
            ticket.wait()
            self.assertEqual((ticket.durable, ticket.survives), (False, "process-crash"))
            ticket.until_durable().wait()
            self.assertEqual((ticket.durable, ticket.survives), (True, "power-loss"))
        ticket = self.log.append(b"")
        ticket.wait()
        self.assertTrue(ticket.durable)

    def test_a_wait_ends_after_its_timeout_and_can_be_repeated(self):
        ticket = self.log.append(b"x")
        self.assertEqual(ticket.wait(timeout=60), 0)
        self.assertEqual(ticket.wait(timeout=0), 0)
        self.log.truncate_from(0)
        with self.assertRaises(wrote.Refused):
            self.log.ticket(7).wait(timeout=60)
        deadline = time.monotonic() + 60
        while True:
            # A record that was just appended is not flushed yet, unless the disk is very fast.
            ticket = self.log.append(b"y")
            try:
                ticket.wait(timeout=0)
            except TimeoutError as late:
                self.assertEqual(str(late), f"record {ticket.sequence} is not safe yet")
                break
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(ticket.wait(timeout=1e300), ticket.sequence)

    def test_records_are_bytes_or_text(self):
        self.log.append_wait("größe")
        self.log.append("one")
        self.log.append_all(["two", b"three", bytearray(b"four")]).wait()
        self.assertEqual([record.data.decode() for record in self.log.reader()],
                         ["größe", "one", "two", "three", "four"])
        with self.assertRaises(TypeError):
            self.log.append(7)

    def test_a_reader_begins_at_a_time(self):
        self.log.append_wait(b"early")
        time.sleep(0.01)
        begin = time.time()
        time.sleep(0.01)
        self.log.append_wait(b"late")
        local = datetime.datetime.fromtimestamp(begin)
        for since in [begin, local, local.astimezone(datetime.timezone.utc)]:
            for reader in [wrote.read_log(self.folder / "log", since=since),
                           self.log.reader(since=since)]:
                self.assertEqual([record.data for record in reader], [b"late"])
        [early, _] = self.log.reader()
        found = self.log.reader(since=early.written_at_ns / 1e9)
        self.assertEqual(next(found).data, b"early")
        for wrong, error in [(-1, ValueError), (float("inf"), ValueError), ("now", AttributeError)]:
            self.assertRaises(error, self.log.reader, since=wrong)

    def test_tasks_of_tickets_are_created_and_read_records(self):
        async def follow(seen):
            async for record in self.log.reader(follow=True):
                seen.append(record.data)
                if len(seen) == 3:
                    return seen

        async def tasks():
            self.assertEqual([one async for one in wrote.read_log(self.folder / "log")], [])
            reader = asyncio.create_task(follow([]))
            ticket = self.log.append(b"0")
            both = [asyncio.create_task(ticket), asyncio.create_task(ticket)]
            self.assertEqual(await asyncio.gather(*both), [0, 0])
            async with asyncio.TaskGroup() as group:
                group.create_task(self.log.append(b"1"))
                await asyncio.sleep(0.2)
                group.create_task(self.log.append(b"2"))
            self.assertEqual(await asyncio.wait_for(reader, 60), [b"0", b"1", b"2"])
            with self.assertRaises(wrote.Refused):
                await asyncio.create_task(self.log.ticket(10**6))
            cancelled = asyncio.create_task(self.log.append(b"3"))
            cancelled.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await cancelled
            follower = self.log.reader(start=4, follow=True)
            idle = asyncio.create_task(anext(aiter(follower)))
            await asyncio.sleep(0.01)
            idle.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await idle
            await self.log.append(b"4")
            self.assertEqual((await anext(aiter(follower))).data, b"4")
            closing = asyncio.create_task(all_of(follower))
            await asyncio.to_thread(self.log.close)
            self.assertEqual(await asyncio.wait_for(closing, 60), [])

        async def all_of(reader):
            return [record async for record in reader]

        asyncio.run(tasks())
        self.log.close()
        with self.assertRaises(wrote.Refused):
            self.log.append(b"late")
        with self.assertRaises(wrote.Refused):
            wrote.read_log(self.folder)

    def test_a_reader_follows_and_ctrl_c_ends_it(self):
        reader = wrote.read_log(self.folder / "later", follow=True)
        self.assertIsNone(reader.next(timeout=0.01))
        later = wrote.open_log(self.folder / "later")
        later.append_wait(b"there")
        self.assertEqual(next(reader).data, b"there")
        later.close()

        class Ended(Exception):
            pass

        def end(*_):
            raise Ended

        before = signal.signal(signal.SIGUSR1, end)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        main = threading.main_thread().ident
        timer = threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGUSR1))
        timer.start()
        with self.assertRaises(Ended):
            next(reader)
        timer.join()

    def test_a_tail_ends_with_its_log(self):
        found = []
        tail = self.log.reader(follow=True)
        thread = threading.Thread(target=lambda: found.extend(tail))
        thread.start()
        self.log.append_wait(b"1")
        self.log.close()
        thread.join()
        self.assertEqual([record.data for record in found], [b"1"])

    def test_threads_share_a_log(self):
        def append():
            for _ in range(50):
                self.log.append(b"x")
                self.log.append_wait(b"y")
        threads = [threading.Thread(target=append) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(self.log.durable_sequence, 800)

    def test_tasks_wait_without_threads(self):
        async def task():
            for _ in range(20):
                sequence = await self.log.append(b"x")
                self.assertGreater(self.log.durable_sequence, sequence)

        async def tasks():
            await asyncio.gather(*[task() for _ in range(64)])

        before = threading.active_count()
        for _ in range(2):
            asyncio.run(tasks())
        self.assertEqual(self.log.durable_sequence, 2 * 64 * 20)
        self.assertLess(self.log.stats()["flushes"], 2 * 64 * 20)
        self.assertEqual(threading.active_count(), before)

    def test_tasks_wait_in_any_order_and_are_cancelled(self):
        async def tasks():
            tickets = [self.log.append(b"x") for _ in range(10)]
            waits = [asyncio.ensure_future(self.as_task(ticket)) for ticket in reversed(tickets)]
            await asyncio.sleep(0)
            waits[3].cancel()
            done = await asyncio.gather(*waits, return_exceptions=True)
            self.assertIsInstance(done[3], asyncio.CancelledError)
            self.assertEqual([one for one in done if isinstance(one, int)],
                             [9, 8, 7, 5, 4, 3, 2, 1, 0])
            self.assertEqual(await tickets[0], 0)
            self.assertEqual(await tickets[0].until_durable(), 0)
            with self.assertRaises(wrote.Refused):
                await self.log.ticket(10**6)

        asyncio.run(tasks())

    def test_exceptions_of_the_program_pass_through(self):
        def records():
            yield b"1"
            raise KeyError

        class Place:
            def __fspath__(self):
                raise KeyError

        async def tasks():
            said = []
            asyncio.get_running_loop().set_exception_handler(lambda _, how: said.append(how))
            tickets = [asyncio.ensure_future(self.as_task(self.log.append(b"x"))) for _ in range(9)]
            tickets[4].add_done_callback(lambda _: 1 / 0)
            self.assertEqual(await asyncio.gather(*tickets), list(range(9)))
            self.assertEqual(await self.log.append(b"y"), 9)
            self.assertEqual([type(how["exception"]) for how in said], [ZeroDivisionError])

        self.assertRaises(KeyError, self.log.append_all, records())
        self.assertRaises(KeyError, wrote.write, Place(), b"")
        self.assertEqual(self.log.next_sequence, 0)
        asyncio.run(tasks())

    async def as_task(self, ticket):
        return await ticket

    def test_other_threads_run_while_one_waits(self):
        reader = wrote.read_log(self.folder / "log", follow=True)
        found = []
        thread = threading.Thread(target=lambda: found.append(next(reader)))
        thread.start()
        # This thread could not run if the other one kept the interpreter to itself.
        self.log.append_wait(b"1")
        thread.join()
        self.assertEqual(found[0].data, b"1")


class LinesOfAFile(InFolder):
    def test_lines_of_threads_are_whole_and_survive_a_rotation(self):
        path = str(self.path)
        Path(path).write_text("before\nhalf")
        with wrote.lines(path) as lines:
            with self.assertRaises(wrote.Refused):
                wrote.lines(path)
            threads = [threading.Thread(target=lines.append_wait, args=(f"line {number}",))
                       for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            os.rename(path, path + ".1")
            lines.reopen()
            lines.append(b"after")
            lines.flush()
            self.assertEqual(Path(path).read_text(), "after\n")
            with self.assertRaises(wrote.Refused):
                lines.append("two\nlines")
        self.assertEqual(Path(path + ".torn-0").read_text(), "half")
        before, *found = Path(path + ".1").read_text().splitlines()
        self.assertEqual((before, sorted(found)), ("before", [f"line {n}" for n in range(4)]))


class Types(unittest.TestCase):
    """The stubs, `__init__.pyi`."""

    def test_the_types_name_what_is_there(self):
        stubs = ast.parse(Path(wrote.__file__).with_suffix(".pyi").read_text())
        named = {one.name: one for one in stubs.body
                 if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
        there = {name for name, value in vars(wrote).items()
                 if not name.startswith("_") and not inspect.ismodule(value)}
        self.assertEqual(set(named) - {"Stats"}, there)
        for name, stub in named.items():
            if isinstance(stub, ast.FunctionDef):
                self.is_signature(getattr(wrote, name), stub)
                continue
            own = [one for one in stub.body if isinstance(one, ast.FunctionDef)]
            for method in own:
                found = getattr(getattr(wrote, name), method.name)
                if not method.decorator_list and not method.name.startswith("__"):
                    self.is_signature(found, method)
        stats = [one.target.id for one in named["Stats"].body]
        with tempfile.TemporaryDirectory() as folder, wrote.open_log(folder) as log:
            self.assertEqual(set(stats), set(log.stats()))

    def is_signature(self, function, stub):
        found = inspect.signature(function).parameters.values()
        if any(one.kind == one.VAR_KEYWORD for one in found):
            return
        names = [one.arg for one in stub.args.args + stub.args.kwonlyargs]
        if stub.name not in ("create", "append", "replace"):
            self.assertEqual(names, [one.name for one in found], stub.name)
        else:
            # The stub of the last form, the binary one, accepts no encoding.
            self.assertLessEqual(set(names), {one.name for one in found}, stub.name)


if __name__ == "__main__":
    unittest.main()
