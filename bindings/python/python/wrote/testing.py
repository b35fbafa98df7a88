"""A fixture of pytest, `crash(save, check)`, that tests what a power loss leaves of a save.

It needs the program `wrote`, in `PATH` or named by the variable `WROTE`. See docs/ci.md.
"""

import contextlib
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import traceback
import uuid

import pytest

# A program that asks the test, through a socket, to check a folder. Its imports take only a few
# milliseconds.
_CLIENT = """import os, socket, sys
asked = socket.socket(socket.AF_UNIX)
asked.connect("\\0" + sys.argv[1])
asked.sendall((os.environ["WROTE_ANSWERS"] + " " + sys.argv[2]).encode())
told = asked.makefile().read()
sys.exit(told or 0)
"""


class Crash:
    """Runs a save under `wrote trace`, and a check on each folder that a power loss could leave."""

    has_returned = False
    """Within a check: whether the save had returned before the power loss."""

    def __init__(self, request):
        self._node, self._config, self._is_used = request.node.nodeid, request.config, False

    def __call__(self, save, check, folder=None, within="30s"):
        """Fails with the smallest state for which `check(folder)` raises an exception, if any.

        `save(folder)` runs in a child process, in which pytest runs this test again up to this
        call. It starts with the content of `folder`, or with an empty folder. A test may call this
        only once.
        """
        # In a child: the job, the folder for the mark that the save has returned, and its folder.
        job, *of_child = os.environ.get("WROTE_CRASH", "").split(":", 2)
        if of_child:
            save(of_child[1])
            open(f"{of_child[0]}/save", "w").close()
            sys.stdout.flush()
            os._exit(0)
        if self._is_used:
            pytest.fail("crash() is called twice in this test: write another test for each call")
        self._is_used = True
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="wrote-"))
            folder = os.path.realpath(folder or os.path.join(place, "folder"))
            os.makedirs(folder, exist_ok=True)
            name = f"wrote-{uuid.uuid4()}"
            client = [sys.executable, "-S", "-E", "-c", _CLIENT, name, "DIR"]
            command = [os.environ.get("WROTE", "wrote"), "trace", "--under", folder]
            command += ["--within", within, "--check", shlex.join(client), "--"]
            # The child gets the options of this run, and runs only this test.
            ran, tests = self._config.invocation_params, self._config.option.file_or_dir
            command += [sys.executable, "-m", "pytest", *(a for a in ran.args if a not in tests)]
            command += ["-n0"] if self._config.pluginmanager.hasplugin("xdist") else []
            command += ["-q", "-s", "-o", f"cache_dir={place}/cache", "-o", "addopts="]
            command += [f"--basetemp={place}/pytest", f"{self._config.rootpath}/{self._node}"]
            env = {**os.environ, "WROTE_CRASH": f"save:{place}:{folder}", "PYTEST_ADDOPTS": ""}
            said = stack.enter_context(tempfile.TemporaryFile())
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind("\0" + name)
            server.listen(256)
            server.settimeout(0.02)
            try:
                wrote = subprocess.Popen(
                    command, cwd=ran.dir, env=env, stdout=said, stderr=subprocess.STDOUT
                )
            except FileNotFoundError as error:
                told = f"{error}: install wrote, or set WROTE to its path (docs/ci.md)"
                pytest.fail(told, pytrace=False)
            while wrote.poll() is None:
                # The client is gone if its check took too long.
                with contextlib.suppress(TimeoutError, OSError):
                    asked, _ = server.accept()
                    with asked:
                        asked.settimeout(None)
                        asked.sendall(self._told(check, asked.recv(1 << 16).decode()).encode())
            said.seek(0)
            text = said.read().decode(errors="replace")
            is_saved = os.path.exists(f"{place}/save")
            missed = "" if is_saved else "the child did not reach the end of the save:\n"
        if wrote.returncode == 125 and job == "skip":
            pytest.skip(text)
        if wrote.returncode or missed:
            pytest.fail(missed + text, pytrace=False)

    def _told(self, check, asked):
        answers, _, folder = asked.partition(" ")
        self.has_returned = answers != "0"
        try:
            check(folder)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return traceback.format_exc()
        return ""


@pytest.fixture
def crash(request):
    """`crash(save, check)`: see `Crash`."""
    return Crash(request)
