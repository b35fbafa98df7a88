//! Starts servers in the site's folder, measures them, and stops them.

use super::contest::Contender;
use super::outcome::{Outcome, Percentiles};
use super::site::Site;
use lab::process::{Process, Stat, stat};
use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::repository::fresh;
use lab::tools::run::{check_interrupted, start, until};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde::Deserialize;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MESSAGE_BYTES: u64 = 500;
/// The time limit for a server to start listening, and to exit.
const HANG: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(2);
/// The time for which a file must not have grown to be considered complete.
const WHOLE: Duration = Duration::from_millis(500);
/// The name of the file that a peer writes.
const OUTPUT: &str = "messages";
/// A folder that is a tmpfs on every Linux (`shm_overview(7)`).
const MEMORY: &str = "/dev/shm";
/// The name of the file that receives a server's standard error.
const SAID: &str = "stderr";

/// A server program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// The server's name.
    pub name: String,
    /// The shell line that starts the server, with `PORT` for its port.
    line: String,
    /// A program unpacked next to the build, and the folder that replaces `MODULES`.
    unpacked: Option<(String, String)>,
    /// The name of the server's configuration file; its content is `text`, with `PORT` and
    /// `FOLDER`.
    file: Option<String>,
    #[serde(default)]
    text: String,
    /// Whether the server writes everything before it exits after a signal. If not, its file is
    /// watched until the file is complete.
    #[serde(default)]
    ends: bool,
}

/// The kind of load on a server, which determines how its figures are read.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// A program that prints its outcome. The time includes the wait until everything is in the
    /// server's file.
    Filed,
    /// A program that prints its outcome, including the time.
    Line,
    /// redis-benchmark with this number of messages.
    Redis(u64),
}

/// Creates the contender for a server under the load that the shell line `load` generates.
pub fn contender(
    name: &str,
    server: &'static Server,
    load: String,
    reads: Load,
    in_memory: bool,
) -> Contender {
    let command = format!("{} &\n{load}", server.line);
    Contender::new(name, command, move |site: &Site, _: &str| {
        let served = Served::start(in_memory, site, server)?;
        let line = served.told(&load).replace("VALUE", &"x".repeat(MESSAGE_BYTES as usize));
        let stdout = site.run(&line)?.stdout;
        let mut outcome = match reads {
            Load::Filed | Load::Line => Outcome::of_line(&stdout, &line)?,
            Load::Redis(messages) => benchmark(&stdout, messages)?,
        };
        (outcome.cpu_s, outcome.memory_bytes) = served.used()?;
        let took = served.finish()?;
        if matches!(reads, Load::Filed) {
            // The server's queues still held messages.
            outcome.elapsed_s += took.as_secs_f64();
        }
        Ok(outcome)
    })
}

/// Parses the last line of `redis-benchmark --csv`: the command, the requests per second, and
/// latencies in milliseconds, namely the average, the minimum, the 50th, 95th and 99th percentile
/// and the maximum.
fn benchmark(stdout: &str, messages: u64) -> Result<Outcome, Failure> {
    let line = stdout.trim_end().lines().last().unwrap_or_default();
    let figures: Vec<&str> = line.rsplit(',').map(|field| field.trim_matches('"')).collect();
    let [_, p99, _, p50, _, _, rate, ..] = figures[..] else {
        return Err(Failure::Failed(format!("redis-benchmark printed '{line}'")));
    };
    let number = |text: &str| text.parse::<f64>().tried("redis-benchmark's figures");
    let ns = |text: &str| number(text).map(|ms| (ms * 1e6) as u64);
    Ok(Outcome {
        bytes: messages * MESSAGE_BYTES,
        operations: messages,
        elapsed_s: messages as f64 / number(rate)?,
        latency_ns: Some(Percentiles { p50: ns(p50)?, p99: ns(p99)? }),
        ..Outcome::default()
    })
}

/// A running server. Dropping it stops the server.
pub struct Served {
    server: &'static Server,
    process: Process,
    folder: PathBuf,
    port: u16,
    /// The folder of the server's files in memory, which is removed after the server has exited.
    _memory: Option<TempDir>,
}

impl Served {
    /// Starts a server in a new folder, on the site or in tmpfs, and waits until it listens.
    pub fn start(in_memory: bool, site: &Site, server: &'static Server) -> Result<Served, Failure> {
        let memory = in_memory.then(|| tempfile::tempdir_in(MEMORY).tried(MEMORY)).transpose()?;
        let folder = fresh(memory.as_ref().map_or(&*site.folder, TempDir::path).join("served"))?;
        let port = free_port()?;
        if let Some(name) = &server.file {
            let text = server.text.replace("PORT", &port.to_string());
            let text = text.replace("FOLDER", &folder.display().to_string());
            std::fs::write(folder.join(name), text).tried(name)?;
        }
        let line = server.line.replace("PORT", &port.to_string());
        let mut command = match &server.unpacked {
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command
            }
            Some((program, modules)) => {
                let (mut command, modules) = clients::program(program, modules)?;
                let words = line.split(' ').skip(1);
                command.args(words.map(|word| if word == "MODULES" { &modules } else { word }));
                command
            }
        };
        raise_files_limit();
        command.current_dir(&folder).env("PATH", &site.path);
        command.stdout(Stdio::null());
        command.stderr(File::create(folder.join(SAID)).tried(SAID)?);
        let process = start(&mut command)?;
        let mut served = Served { server, process, folder, port, _memory: memory };
        served.wait_until("listen", |_| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(served)
    }

    /// Replaces the placeholder for the port in a shell line.
    pub fn told(&self, line: &str) -> String {
        line.replace("PORT", &self.port.to_string())
    }

    /// Returns the CPU time so far, in seconds, and the peak memory (`proc(5)`).
    fn used(&self) -> Result<(f64, Option<u64>), Failure> {
        let path = PathBuf::from(format!("/proc/{}", self.process.id()));
        let status = std::fs::read_to_string(path.join("status")).tried(path.display())?;
        let lacks = || Failure::Failed("a figure of /proc".into());
        let Stat { user, kernel, .. } = stat(&path).ok_or_else(lacks)?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or_else(lacks)?;
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().tried("VmHWM")?;
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        Ok(((user + kernel) as f64 / ticks_per_s, Some(peak_kib << 10)))
    }

    /// Waits until everything that the server has received is in its file, and stops the server.
    /// Returns how long the wait took.
    pub fn finish(mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        if !self.server.ends {
            return self.until_whole(began);
        }
        self.process.send(Signal::TERM);
        self.wait_until("end", Process::has_ended)?;
        Ok(began.elapsed())
    }

    /// Waits until the file is complete, and returns how long it kept growing.
    fn until_whole(&self, began: Instant) -> Result<Duration, Failure> {
        let path = self.folder.join(OUTPUT);
        let len = || std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let (mut last, mut grown, mut looked) = (len(), Duration::ZERO, Instant::now());
        while looked.elapsed() < WHOLE {
            check_interrupted()?;
            thread::sleep(LOOK);
            let now = len();
            if now != last {
                (last, grown, looked) = (now, began.elapsed(), Instant::now());
            }
        }
        Ok(grown)
    }

    fn wait_until(
        &mut self,
        what: &str,
        mut is_done: impl FnMut(&mut Process) -> bool,
    ) -> Result<(), Failure> {
        let done = until(HANG, LOOK, || {
            let is_done = is_done(&mut self.process);
            if !is_done && what != "end" && self.process.has_ended() {
                return Err(self.failure(what));
            }
            Ok(is_done.then_some(()))
        })?;
        done.ok_or_else(|| self.failure(what))
    }

    fn failure(&self, what: &str) -> Failure {
        let said = std::fs::read_to_string(self.folder.join(SAID)).unwrap_or_default();
        Failure::Failed(format!("{} does not {what}: {}", self.server.name, said.trim()))
    }
}

/// Raises the limit on open files as far as allowed, for the servers.
fn raise_files_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, a connection that gets no descriptor will report it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").tried("a port")?;
    Ok(listener.local_addr().tried("a port")?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_redis_benchmark_are_read() {
        let stdout = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                      \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                      \"XADD log * message x\",\"50000.00\",\"1.5\",\"0.1\",\
                      \"1.250\",\"2.0\",\"3.5\",\"9.0\"\n";
        let outcome = benchmark(stdout, 100_000).expect("figures");
        assert_eq!((outcome.operations, outcome.elapsed_s), (100_000, 2.0));
        assert_eq!(outcome.latency_ns, Some(Percentiles { p50: 1_250_000, p99: 3_500_000 }));
        let message = benchmark("Could not connect\n", 1).expect_err("no figures").to_string();
        assert_eq!(message, "redis-benchmark printed 'Could not connect'");
    }
}
