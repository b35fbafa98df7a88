"""One run of a program whose pattern `wrote fit` knows, or of that pattern: prints the outcome.

fit.py PROGRAM PATTERN, or fit.py PROGRAM PATTERN CLIENTS for the program itself. With COMMITS after
CLIENTS, it makes that many transactions. fit.py calls PROGRAM PATTERN [CLIENTS] KIND prints the
system calls of this kind per 1,000 transactions, by `wrote trace`.
"""

import contextlib, glob, http.client, json, os, re, shutil, subprocess, sys, tempfile, time

SECONDS = 3
START_SECONDS = 120
# The numbers of transactions in two runs. Their difference excludes the program's start and end.
TRACED = 200, 1200
COMMITS = None
# The files of servers whose calls are compared: those of the program, and those of its pattern.
FILES = {"etcd": ("/member/wal/", "fit-(wal|next)-"), "mysql": ("/ib_logfile0$", "fit-redo-"),
         "postgresql": ("/pg_wal/", "fit-wal-"), "redis": ("/appendonly", "fit-aof-"),
         "sqlite": ("", "")}


def printed(operations, seconds, p50_s, p99_s):
    latency = {"p50": round(p50_s * 1e9), "p99": round(p99_s * 1e9)}
    print(json.dumps({"bytes": 0, "operations": operations, "elapsed_s": seconds, "cpu_s": 0.0,
                      "latency_ns": latency}))


def printed_of(latencies_s):
    order = sorted(latencies_s)
    printed(len(order), SECONDS, order[len(order) // 2], order[len(order) * 99 // 100])


def version(path):
    return [int(number) for number in re.findall(r"\d+", path)]


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def repeated(transaction):
    """Returns the time of each transaction of one client."""
    begun, latencies_s = time.perf_counter(), []
    until = begun + SECONDS
    while begun < until if COMMITS is None else len(latencies_s) < COMMITS:
        transaction()
        now = time.perf_counter()
        latencies_s.append(now - begun)
        begun = now
    return latencies_s


@contextlib.contextmanager
def server(words, answers):
    """Runs a server, once it answers, until the end of the block."""
    with open("said", "w") as said, subprocess.Popen(words, stdout=said, stderr=said) as process:
        try:
            # A hard disk takes a long time to write a server's first files.
            until = time.monotonic() + START_SECONDS
            while True:
                time.sleep(0.2)
                with contextlib.suppress(OSError, subprocess.CalledProcessError):
                    answers()
                    break
                if process.poll() is not None or time.monotonic() > until:
                    with open("said") as file:
                        raise SystemExit(f"{words[0]} does not answer: {file.read()[-300:]}")
            yield
        finally:
            process.terminate()


def calls_of(kind, path, *words):
    """Returns the calls of this kind on such files that a command makes, and its output."""
    said = run("wrote", "trace", "--format", "json", "--output", "calls.json", "--force", "--", *words)
    with open("calls.json") as file:
        files = json.load(file)["timeline"]["files"]
    calls = (call for of in files if re.search(path, of["path"]) for call in of["calls"])
    return sum(call["count"] for call in calls if call["kind"] == kind), said


def traced(program, pattern, *rest):
    """Prints the calls of a kind per 1,000 transactions."""
    (*clients, kind), (real, ours) = rest, FILES[program]
    if clients:
        words = [sys.executable, script, program, pattern, clients[0]]
        few, many = (calls_of(kind, real, *words, str(commits))[0] for commits in TRACED)
        calls, commits = many - few, TRACED[1] - TRACED[0]
    else:
        calls, said = calls_of(kind, ours, sys.executable, script, program, pattern)
        commits = json.loads(said)["operations"]
    printed(round(calls * 1000 / commits), 1, 0, 0)


def predicted(program, pattern):
    head, *patterns = re.split(r"^\[\[pattern\]\]", run("wrote", "fit", program, "--show"), flags=re.M)
    one = next(text for text in patterns if f'name = "{pattern}"' in text)
    with open("one.toml", "w") as file:
        file.write(f"{head}[[pattern]]{one.split('[[rule]]')[0]}")
    words = "fit ./one.toml . --quiet --format json --runs 3 --time"
    # The exit code is 4, because the file has no rule.
    fit = subprocess.run(["wrote", *words.split(), f"{SECONDS}s"], capture_output=True, text=True)
    row = json.loads(fit.stdout)["scenarios"][0]["rows"][0]
    operations = round(sum(run["iops"] * run["elapsed_s"] for run in row["runs"]))
    # The program's own figures time only its flushes.
    of = row["flush_latency_ns" if program == "etcd" else "latency_ns"]
    p50 = of["mean" if program == "etcd" else "p50"]
    printed(operations, sum(run["elapsed_s"] for run in row["runs"]), p50 / 1e9, of["p99"] / 1e9)


def sqlite(_folder, pattern, _clients):
    """By its shell. A WAL has passed its first checkpoint: until then, flushes also commit its size."""
    journal, synchronous = pattern.split("-")
    journal = "DELETE" if journal == "rollback" else journal
    insert = f"INSERT INTO t VALUES('{'x' * 100}');\n"
    now = "SELECT printf('%.6f', (julianday('now') - 2440587.5) * 86400);\n"

    def seconds(commits):
        fill = f"PRAGMA journal_mode={journal}; PRAGMA synchronous=OFF; CREATE TABLE t(a);\n"
        fill += insert * 1100 + f"PRAGMA synchronous={synchronous};\n" + insert
        text = fill + now + insert * commits + now
        shell = subprocess.run(["sqlite3", "db"], input=text, check=True, capture_output=True, text=True)
        os.remove("db")
        begun, ended = map(float, shell.stdout.split()[-2:])
        return ended - begun

    commits = COMMITS or max(1, round(20 * SECONDS / seconds(20)))
    took_s = seconds(commits)
    printed(commits, took_s, took_s / commits, took_s / commits)


def postgresql(folder, _pattern, clients):
    shutil.chown(folder, "postgres", "postgres")
    user = "setpriv --reuid postgres --regid postgres --clear-groups".split()
    programs = max(glob.glob("/usr/lib/postgresql/*/bin/"), key=version)
    run(*user, programs + "initdb", "-D", "data", "-A", "trust", "--no-sync")
    ask = lambda words: run(*user, "psql", "-h", folder, "-c", words, "postgres")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c autovacuum=off"
    words = [*user, programs + "postgres", "-D", "data", *options.split()]
    with server(words, lambda: ask("CREATE TABLE t(a bigint, b bigint)")):
        # Makes the WAL use segments that were written before, unless calls are counted: the number
        # of writes to such segments varies.
        full = "INSERT INTO t SELECT g, g FROM generate_series(1, 400000) g"
        fill = [full, "CHECKPOINT", "TRUNCATE t", "SELECT pg_switch_wal()", "CHECKPOINT"]
        for words in fill if COMMITS is None else []:
            ask(words)
        with open("insert.sql", "w") as file:
            file.write("INSERT INTO t VALUES (1, 2);\n")
        limit = f"-t {COMMITS // int(clients)}" if COMMITS else f"-T {SECONDS}"
        words = f"pgbench -h {folder} -n -f insert.sql -c {clients} {limit} -l postgres"
        run(*user, *words.split())
        logs = [open(name) for name in os.listdir(".") if name.startswith("pgbench_log.")]
        printed_of([int(line.split()[2]) / 1e6 for log in logs for line in log])


def mysql(folder, _pattern, clients):
    shutil.chown(folder, "mysql", "mysql")
    options = f"--no-defaults --user=mysql --datadir={folder}/data".split()
    run("mariadb-install-db", *options, "--auth-root-authentication-method=normal")
    ask = lambda words: run("mariadb", "--no-defaults", "-uroot", f"-S{folder}/s", "-e", words)
    words = ["mariadbd", *options, f"--socket={folder}/s", "--skip-networking"]
    with server(words, lambda: ask("CREATE DATABASE sbtest")):
        # Writes the whole log of 96 MiB first, because flushes of a new log also write metadata.
        full = "CREATE TABLE f AS SELECT REPEAT('x', 60000) FROM seq_1_to_1800; DROP TABLE f"
        dirty = "SET GLOBAL innodb_max_dirty_pages_pct ="
        fill = f"USE sbtest; {full}; {dirty} 0; DO SLEEP(2); {dirty} DEFAULT"
        if COMMITS is None:
            ask(fill)
        bench = f"sysbench oltp_insert --mysql-socket={folder}/s --mysql-user=root --tables=1"
        run(*bench.split(), "prepare")
        limit = f"--events={COMMITS} --time=0" if COMMITS else f"--time={SECONDS}"
        words = f"{bench} --threads={clients} {limit} --histogram run".split()
        bins = re.findall(r"^\s+([\d.]+) \|\**\s+(\d+)$", run(*words), flags=re.M)
        printed_of([float(ms) / 1e3 for ms, count in bins for _ in range(int(count))])


def redis(folder, pattern, clients):
    options = f"--port 0 --unixsocket {folder}/s --dir {folder} --save --appendonly yes"
    words = f"redis-server {options} --appendfsync {pattern.removeprefix('aof-')}".split()
    ask = ["redis-cli", "-s", f"{folder}/s", "ping"]
    bench = f"redis-benchmark -s {folder}/s -c {clients} -t set -d 100 --csv -n".split()

    def sets(number):
        figures = run(*bench, str(number)).splitlines()[1].replace('"', "").split(",")
        return [float(figure) for figure in figures[1:]]

    with server(words, lambda: run(*ask)):
        number = COMMITS or round(sets(200)[0] * SECONDS)
        begun = time.perf_counter()
        _, _, _, p50_ms, _, p99_ms, _ = sets(number)
        printed(number, time.perf_counter() - begun, p50_ms / 1e3, p99_ms / 1e3)


def etcd(folder, _pattern, _clients):
    client, peer = "http://127.0.0.1:23790", "http://127.0.0.1:23800"
    words = f"etcd --data-dir {folder}/data --listen-client-urls {client} " \
        f"--advertise-client-urls {client} --listen-peer-urls {peer} " \
        f"--initial-advertise-peer-urls {peer} --initial-cluster default={peer}"
    connection = http.client.HTTPConnection("127.0.0.1", 23790)

    def ask(*request):
        try:
            connection.request(*request)
            return connection.getresponse().read().decode()
        except (http.client.HTTPException, OSError) as error:
            connection.close()
            raise OSError from error

    put = lambda: ask("POST", "/v3/kv/put", json.dumps({"key": "a2V5", "value": "eHh4" * 85}))
    with server(words.split(), put):
        puts = len(repeated(put))
        of = lambda key: float(re.search(f"etcd_disk_wal_fsync_duration_seconds_{key} (.*)",
                                         ask("GET", "/metrics"))[1])
        # The mean is used because the first bucket of the histogram ends at 1 ms.
        printed(puts, SECONDS, of("sum") / of("count"), 0)


script = os.path.abspath(__file__)
program, *words = sys.argv[1:]
with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
    os.chmod(folder, 0o755)
    os.chdir(folder)
    if program == "calls":
        traced(*words)
    elif len(words) == 1:
        predicted(program, *words)
    else:
        COMMITS = int(words[2]) if len(words) > 2 else None
        globals()[program](folder, *words[:2])
    os.chdir("..")
