//! The servers that are compared: started in the site's folder, asked how much they used, ended.

use super::site::Site;
use lab::process::Process;
use lab::tools::clients;
use lab::tools::failure::{Failure, Tried};
use lab::tools::run::{check_interrupted, start, until};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a server may take to listen, and to end.
const HANG: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(2);
/// A file that has not grown for this long is whole.
const WHOLE: Duration = Duration::from_millis(500);
/// The file that a peer writes.
const OUTPUT: &str = "messages";
/// A tmpfs of every Linux (`shm_overview(7)`).
const MEMORY: &str = "/dev/shm";
/// The file of a server's own words.
const SAID: &str = "stderr";

/// A program that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `wrote serve`.
    Wrote,
    /// The reader of lines that throws them away.
    Reader,
    /// rsyslog's imptcp or imrelp, into omfile.
    Rsyslog,
    /// syslog-ng's network source, into a file, with flow control.
    SyslogNg,
    /// redis-server with `appendfsync always`.
    Redis,
    /// nats-server with a stream in files and `sync_interval: always`.
    Nats,
}

/// Where a server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the site's folder.
    Disk,
    /// In a folder of tmpfs: no disk is waited for.
    Memory,
}

/// A server that runs. It ends when it is dropped.
pub struct Served {
    kind: Kind,
    process: Process,
    folder: PathBuf,
    port: u16,
    /// Removes what the server wrote in memory, once it has ended.
    _memory: Option<TempDir>,
}

/// The use of a process so far.
pub struct Used {
    /// CPU seconds, user and kernel.
    pub cpu_s: f64,
    /// Resident memory at its peak.
    pub memory_bytes: u64,
}

impl Kind {
    /// The line of a shell that starts it, with `PORT` in the place of its port.
    pub fn line(self, scheme: &str) -> String {
        match self {
            Kind::Wrote => format!("wrote serve log --listen {scheme}://127.0.0.1:PORT"),
            Kind::Reader => "line-reader PORT".into(),
            Kind::Rsyslog => format!("rsyslogd -n -iNONE -f rsyslog-{scheme}.conf -M MODULES"),
            Kind::SyslogNg => {
                "syslog-ng -F --no-caps -f syslog-ng.conf -R persist -c control -p pid \
                               --module-path MODULES"
                    .into()
            }
            Kind::Redis => "redis-server --port PORT --save '' --appendonly yes \
                            --appendfsync always"
                .into(),
            Kind::Nats => "nats-server -c nats.conf".into(),
        }
    }

    /// Its configuration file: the name and the text.
    fn configuration(self, scheme: &str, folder: &Path, port: u16) -> Option<(String, String)> {
        let output = folder.join(OUTPUT);
        let output = output.display();
        match self {
            Kind::Wrote | Kind::Reader | Kind::Redis => None,
            Kind::Rsyslog => {
                let (module, sync) =
                    if scheme == "relp" { ("imrelp", "on") } else { ("imptcp", "off") };
                // imptcp listens with a queue of 5: of 1,000 clients at once, most are refused.
                let backlog = if module == "imptcp" { " socketBacklog=\"1000\"" } else { "" };
                let text = format!(
                    "global(workDirectory=\"{folder}\" maxMessageSize=\"64k\")\n\
                     module(load=\"{module}\")\n\
                     template(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\n\
                     input(type=\"{module}\" port=\"{port}\"{backlog})\n\
                     action(type=\"omfile\" file=\"{output}\" template=\"raw\" sync=\"{sync}\")\n",
                    folder = folder.display(),
                );
                Some((format!("rsyslog-{scheme}.conf"), text))
            }
            Kind::Nats => {
                let text = format!(
                    "listen: 127.0.0.1:{port}\n\
                     jetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
                    folder.display(),
                );
                Some(("nats.conf".into(), text))
            }
            Kind::SyslogNg => {
                let text = format!(
                    "@version: 3.38\n\
                     options {{ stats-freq(0); }};\n\
                     source s {{ network(ip(127.0.0.1) port({port}) transport(tcp) flags(no-parse) \
                     max-connections(2000) log-iw-size(200000)); }};\n\
                     destination d {{ file(\"{output}\" template(\"$MSG\\n\") \
                     log-fifo-size(200000)); }};\n\
                     log {{ source(s); destination(d); flags(flow-control); }};\n"
                );
                Some(("syslog-ng.conf".into(), text))
            }
        }
    }

    /// Its program, with the folder of its modules.
    fn program(self) -> (&'static str, Option<&'static str>) {
        match self {
            Kind::Wrote => ("wrote", None),
            Kind::Reader => ("line-reader", None),
            Kind::Redis => ("redis-server", None),
            Kind::Nats => ("nats-server", None),
            Kind::Rsyslog => ("usr/sbin/rsyslogd", Some("rsyslog")),
            Kind::SyslogNg => ("usr/sbin/syslog-ng", Some("syslog-ng/3.38")),
        }
    }
}

impl Served {
    /// Starts a server in a new folder below the site's, and waits until it listens.
    pub fn start(site: &Site, kind: Kind, scheme: &str) -> Result<Served, Failure> {
        Served::start_in(Place::Disk, site, kind, scheme)
    }

    /// Starts a server in a new folder, and waits until it listens.
    pub fn start_in(
        place: Place,
        site: &Site,
        kind: Kind,
        scheme: &str,
    ) -> Result<Served, Failure> {
        let memory = match place {
            Place::Disk => None,
            Place::Memory => Some(tempfile::tempdir_in(MEMORY).tried(MEMORY)?),
        };
        let folder = memory.as_ref().map_or(&*site.folder, TempDir::path).join("served");
        if folder.exists() {
            std::fs::remove_dir_all(&folder).tried(folder.display())?;
        }
        std::fs::create_dir(&folder).tried(folder.display())?;
        let port = free_port()?;
        if let Some((name, text)) = kind.configuration(scheme, &folder, port) {
            std::fs::write(folder.join(&name), text).tried(name)?;
        }
        let (program, modules) = kind.program();
        let line = kind.line(scheme).replace("PORT", &port.to_string());
        let mut command = match modules {
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {line}")]);
                command
            }
            Some(modules) => {
                let (mut command, modules) = clients::program(program, modules)?;
                let words = line.split(' ').skip(1);
                command.args(words.map(|word| if word == "MODULES" { &modules } else { word }));
                command
            }
        };
        raise_files_limit();
        command.current_dir(&folder).env("PATH", &site.path);
        command.stdout(Stdio::null());
        let said = File::create(folder.join(SAID)).tried(SAID)?;
        command.stderr(said);
        let process = start(&mut command)?;
        let mut served = Served { kind, process, folder, port, _memory: memory };
        served.wait_until("listen", |_| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(served)
    }

    /// Puts its port and process into a line of a shell.
    pub fn told(&self, line: &str) -> String {
        let words = [("PORT", u32::from(self.port)), ("PID", self.process.id())];
        words
            .iter()
            .fold(line.to_owned(), |line, (word, value)| line.replace(word, &value.to_string()))
    }

    /// Returns what it used so far (`proc(5)`).
    pub fn used(&self) -> Result<Used, Failure> {
        let read = |name: &str| {
            let path = format!("/proc/{}/{name}", self.process.id());
            std::fs::read_to_string(&path).tried(path)
        };
        let (stat, status) = (read("stat")?, read("status")?);
        let lacks = || Failure::Failed("a figure of /proc".into());
        // The name before may have spaces: utime and stime are fields 14 and 15, state is 3.
        let fields = stat.rsplit_once(") ").ok_or_else(lacks)?.1.split(' ').skip(11);
        let ticks: f64 = fields.take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or_else(lacks)?;
        let peak_kib: u64 = peak.trim().trim_end_matches(" kB").parse().tried("VmHWM")?;
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        Ok(Used { cpu_s: ticks / ticks_per_s, memory_bytes: peak_kib << 10 })
    }

    /// Waits until everything that it took is in its file, ends it, and returns how long the first
    /// took.
    pub fn finish(mut self) -> Result<Duration, Failure> {
        let began = Instant::now();
        if !matches!(self.kind, Kind::Wrote | Kind::Reader) {
            return self.until_whole(began);
        }
        self.process.send(Signal::TERM);
        self.wait_until("end", Process::has_ended)?;
        Ok(began.elapsed())
    }

    /// Returns how long the file still grew.
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
        Failure::Failed(format!("{:?} does not {what}: {}", self.kind, said.trim()))
    }
}

/// Raises the limit of open files as far as it may be, for the servers that are started.
fn raise_files_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it fails, the connection that has no room says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").tried("a port")?;
    Ok(listener.local_addr().tried("a port")?.port())
}
