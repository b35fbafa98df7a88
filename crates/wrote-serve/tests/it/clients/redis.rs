//! Redis clients: redis-cli, redis-benchmark, redis-py, go-redis, ioredis, node-redis.

use super::programs::{feed, feed_all, provided};
use super::{COUNT, assert_same, lines};
use crate::serving::Serving;
use std::process::{Command, Stdio};

const PYTHON: &str = "
import sys, threading
import redis
client = redis.Redis(port=int(sys.argv[1]), decode_responses=True, protocol=int(sys.argv[2]))
def read(**arguments):
    answer = client.xread(**arguments)
    return answer['log'][0] if isinstance(answer, dict) else answer[0][1]
first = []
wait = lambda: first.extend(read(streams={'log': '0'}, count=1, block=0))
reader = threading.Thread(target=wait, daemon=True)
reader.start()
lines, some = [], []
for line in open(0, encoding='utf-8', newline='\\n'):
    some.append(line.rstrip('\\n'))
    if len(some) < 50:
        continue
    lines += some
    if len(lines) <= 5000:
        assert client.rpush('log', *some) == len(lines)
    else:
        # By default a pipeline is a transaction.
        pipe = client.pipeline() if len(lines) % 100 else client.pipeline(transaction=False)
        for message in some:
            pipe.xadd('log', {'message': message})
        pipe.execute()
    some = []
reader.join()
assert client.xlen('log') == len(lines)
entries = client.xrange('log')
assert [fields['message'] for _, fields in entries] == lines
assert first == entries[:1], first
last = read(streams={'log': entries[-2][0]})
assert last == entries[-1:], last
try:
    client.execute_command('SET', 'a', 'b')
    raise SystemExit('SET was taken')
except redis.ResponseError as error:
    assert 'unknown command' in str(error), error
";

#[test]
fn redis_cli_delivers_commands_that_it_reads() {
    fixtures::or_skip!(fixtures::is_installed("redis-cli"));
    let lines = lines();
    // redis-cli waits for each answer, and if answers were durable, each would wait for a flush.
    let serving = Serving::start("resp://127.0.0.1:0?ack=written", |_| ());
    let quoted =
        |line: &String| -> String { line.bytes().map(|byte| format!("\\x{byte:02x}")).collect() };
    let command = |line: &String| format!("XADD log * message \"{}\"", quoted(line));
    let commands: Vec<String> = lines.iter().map(command).collect();
    let mut cli = Command::new("redis-cli");
    feed(&serving, cli.args(["-p", serving.port()]).stdout(Stdio::null()), &commands);
    assert_same(serving.stop(), &lines);
}

#[test]
fn redis_benchmark_delivers_each_request() {
    fixtures::or_skip!(fixtures::is_installed("redis-benchmark"));
    for (command, window) in
        [("XADD log * message", "16"), ("RPUSH log", "1"), ("LPUSH log", "128")]
    {
        let serving = Serving::start("resp://127.0.0.1:0", |_| ());
        let mut benchmark = Command::new("redis-benchmark");
        let count = COUNT.to_string();
        benchmark.args(["-p", serving.port(), "-n", &count, "-c", "20", "-P", window, "-q"]);
        benchmark.args(command.split(' ')).arg("a value");
        let finished = fixtures::finish(benchmark.stdout(Stdio::piped()).stderr(Stdio::piped()));
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let values = serving.stop();
        // redis-benchmark sends whole windows, and may exceed the count by the requests in flight.
        assert!(values.len() >= COUNT, "{command}: {} values", values.len());
        assert!(values.iter().all(|value| value == b"a value"), "{command}");
    }
}

#[test]
#[ignore = "nightly"]
fn redis_py_appends_and_reads_back_by_both_protocols() {
    fixtures::or_skip!(fixtures::is_installed("python3"));
    let folder = fixtures::or_skip!(provided("redis-py"));
    let lines = lines();
    for protocol in ["2", "3"] {
        // A transaction must fit into one buffer.
        let serving = Serving::start("resp://127.0.0.1:0", |config| {
            config.logs[0].buffer_bytes = Some(64 << 10);
        });
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &folder);
        feed_all(python.args(["-c", PYTHON, serving.port(), protocol]), &lines);
        assert_same(serving.stop(), &lines);
    }
}

#[test]
#[ignore = "nightly"]
fn go_redis_appends_and_reads_back() {
    let program = fixtures::or_skip!(provided("go-redis"));
    let lines = lines();
    // A transaction must fit into one buffer.
    let serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.logs[0].buffer_bytes = Some(64 << 10);
    });
    feed(&serving, Command::new(program).arg(serving.address()), &lines);
    assert_same(serving.stop(), &lines);
}

#[test]
#[ignore = "nightly"]
fn clients_of_node_append_in_pipelines_and_transactions_and_read_back() {
    fixtures::or_skip!(fixtures::is_installed("node"));
    let folder = fixtures::or_skip!(provided("node-redis"));
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/clients/node-redis.cjs");
    let lines = lines();
    for client in ["ioredis", "redis"] {
        // A transaction must fit into one buffer.
        let serving = Serving::start("resp://127.0.0.1:0", |config| {
            config.logs[0].buffer_bytes = Some(64 << 10);
        });
        let mut node = Command::new("node");
        node.arg(program).arg(&folder).args([client, serving.port()]);
        feed_all(&mut node, &lines);
        assert_same(serving.stop(), &lines);
    }
}
