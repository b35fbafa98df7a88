"""One run of a program whose pattern `wrote fit` knows, or of that pattern: prints the outcome.

fit.py PROGRAM PATTERN, or fit.py PROGRAM PATTERN CLIENTS for the program itself.
"""

import contextlib, http.client, json, os, re, shutil, sqlite3, subprocess, sys, tempfile, time

SECONDS = 3


def printed(operations, seconds, p50_s, p99_s):
    latency = {"p50": round(p50_s * 1e9), "p99": round(p99_s * 1e9)}
    print(json.dumps({"bytes": 0, "operations": operations, "elapsed_s": seconds, "cpu_s": 0.0,
                      "latency_ns": latency}))


def printed_of(latencies_s):
    order = sorted(latencies_s)
    printed(len(order), SECONDS, order[len(order) // 2], order[len(order) * 99 // 100])


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def repeated(transaction):
    """Returns the time of each transaction of one client."""
    begun, latencies_s = time.perf_counter(), []
    until = begun + SECONDS
    while begun < until:
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
            for attempt in range(100):
                time.sleep(0.2)
                with contextlib.suppress(OSError, subprocess.CalledProcessError):
                    answers()
                    break
            else:
                raise SystemExit(f"{words[0]} does not answer")
            yield
        finally:
            process.terminate()


def predicted(program, pattern):
    head, *patterns = re.split(r"^\[\[pattern\]\]", run("wrote", "fit", program, "--show"), flags=re.M)
    one = next(text for text in patterns if f'name = "{pattern}"' in text)
    with open("one.toml", "w") as file:
        file.write(f"{head}[[pattern]]{one.split('[[rule]]')[0]}")
    words = "fit ./one.toml . --quiet --format json --time"
    row = json.loads(run("wrote", *words.split(), f"{SECONDS}s"))["scenarios"][0]["rows"][0]
    operations = round(sum(run["iops"] * run["elapsed_s"] for run in row["runs"]))
    # The program's own clock is that of its flushes.
    of = row["flush_latency_ns" if program == "etcd" else "latency_ns"]
    p50 = of["mean" if program == "etcd" else "p50"]
    printed(operations, sum(run["elapsed_s"] for run in row["runs"]), p50 / 1e9, of["p99"] / 1e9)


def sqlite(_folder, pattern, _clients):
    database = sqlite3.connect("db", isolation_level=None)
    journal, synchronous = pattern.split("-")
    database.execute(f"PRAGMA journal_mode={'DELETE' if journal == 'rollback' else journal}")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("CREATE TABLE t(a)")
    insert = lambda: database.execute("INSERT INTO t VALUES(?)", ("x" * 100,))
    [insert() for _ in range(1100)]
    printed_of(repeated(insert))


def postgresql(folder, _pattern, clients):
    shutil.chown(folder, "postgres", "postgres")
    user = "setpriv --reuid postgres --regid postgres --clear-groups".split()
    programs = "/usr/lib/postgresql/15/bin/"
    run(*user, programs + "initdb", "-D", "data", "-A", "trust", "--no-sync")
    ask = lambda words: run(*user, "psql", "-h", folder, "-c", words, "postgres")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c autovacuum=off"
    words = [*user, programs + "postgres", "-D", "data", *options.split()]
    with server(words, lambda: ask("CREATE TABLE t(a bigint, b bigint)")):
        # Segments of the WAL that were written before.
        ask("INSERT INTO t SELECT g, g FROM generate_series(1, 400000) g")
        for words in ("CHECKPOINT", "TRUNCATE t", "SELECT pg_switch_wal()", "CHECKPOINT"):
            ask(words)
        with open("insert.sql", "w") as file:
            file.write("INSERT INTO t VALUES (1, 2);\n")
        words = f"pgbench -h {folder} -n -f insert.sql -c {clients} -T {SECONDS} -l postgres"
        run(*user, *words.split())
        logs = [open(name) for name in os.listdir(".") if name.startswith("pgbench_log.")]
        printed_of([int(line.split()[2]) / 1e6 for log in logs for line in log])


def mysql(folder, _pattern, clients):
    shutil.chown(folder, "mysql", "mysql")
    options = f"--no-defaults --user=mysql --datadir={folder}/data".split()
    run("mariadb-install-db", *options, "--auth-root-authentication-method=normal")
    ask = ["mariadb", "--no-defaults", "-uroot", f"-S{folder}/s", "-e", "CREATE DATABASE sbtest"]
    words = ["mariadbd", *options, f"--socket={folder}/s", "--skip-networking"]
    with server(words, lambda: run(*ask)):
        bench = f"sysbench oltp_insert --mysql-socket={folder}/s --mysql-user=root --tables=1"
        run(*bench.split(), "prepare")
        words = f"{bench} --threads={clients} --time={SECONDS} --histogram run".split()
        bins = re.findall(r"^\s+([\d.]+) \|\**\s+(\d+)$", run(*words), flags=re.M)
        printed_of([float(ms) / 1e3 for ms, count in bins for _ in range(int(count))])


def etcd(folder, _pattern, _clients):
    client, peer = "http://127.0.0.1:23790", "http://127.0.0.1:23800"
    words = f"etcd --data-dir {folder}/data --listen-client-urls {client} " \
        f"--advertise-client-urls {client} --listen-peer-urls {peer} " \
        f"--initial-advertise-peer-urls {peer} --initial-cluster default={peer}"
    connection = http.client.HTTPConnection("127.0.0.1", 23790)

    def ask(*request):
        connection.request(*request)
        return connection.getresponse().read().decode()

    put = lambda: ask("POST", "/v3/kv/put", json.dumps({"key": "a2V5", "value": "eHh4" * 85}))
    with server(words.split(), put):
        puts = len(repeated(put))
        of = lambda key: float(re.search(f"etcd_disk_wal_fsync_duration_seconds_{key} (.*)",
                                         ask("GET", "/metrics"))[1])
        # The mean: the first bucket of its histogram ends at 1 ms.
        printed(puts, SECONDS, of("sum") / of("count"), 0)


program, pattern, *clients = sys.argv[1:]
with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
    os.chmod(folder, 0o755)
    os.chdir(folder)
    if clients:
        globals()[program](folder, pattern, clients[0])
    else:
        predicted(program, pattern)
    os.chdir("..")
