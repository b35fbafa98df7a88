//! Runs a call with its limits, and collects its output.

use super::draw::Call;
use super::world::World;
use lab::process::Process;
use lab::verbs::Trouble;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The time after which a call is sent SIGTERM, because it may measure or follow a log.
const LONG: Duration = Duration::from_millis(1500);
/// A time limit that only a hang exceeds.
const HANG: Duration = Duration::from_secs(60);

/// A shell command that runs its arguments in a private mount namespace, with the folders in
/// `$HIDDEN` empty.
const HIDE: &str = "for hidden in $HIDDEN; do mount -n -t tmpfs tmpfs $hidden; done; unset HIDDEN; \
                    exec \"$0\" \"$@\"";

/// Returns whether calls can be run with hidden folders, which usually requires root.
pub fn can_hide() -> bool {
    let words = ["--mount", "sh", "-c", HIDE, "true"];
    let ended = Command::new("unshare").args(words).env("HIDDEN", "/sys").output();
    ended.is_ok_and(|ended| ended.status.success() && ended.stderr.is_empty())
}

/// The outcome of a call.
pub struct Ended {
    /// The exit code, or 1000 plus the number of a signal.
    pub code: i32,
    /// Whether the call did not end within [`HANG`] after SIGTERM.
    pub hangs: bool,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a call through a shell that hides folders, closes descriptors and sets limits.
pub fn run(program: &Path, world: &World, call: &Call) -> Result<Ended, Trouble> {
    let outside = tempfile::tempdir()?;
    let (stdout, stderr) = (outside.path().join("stdout"), outside.path().join("stderr"));
    let stdin = outside.path().join("stdin");
    fs::write(&stdin, call.input.map_or_else(Vec::new, input))?;
    let limit = call.limit.map_or_else(String::new, |limit| format!("ulimit {limit}; "));
    let closed = call.closed.iter().map(|number| format!(" {number}>&-"));
    let script = format!("{limit}exec \"$0\" \"$@\"{}", closed.collect::<String>());
    let mut command = Command::new(if call.hidden.is_empty() { "sh" } else { "unshare" });
    if !call.hidden.is_empty() {
        command.args(["--mount", "sh", "-c", HIDE, "sh"]).env("HIDDEN", call.hidden.join(" "));
    }
    command.arg("-c").arg(script).arg(program).args(&call.words).current_dir(world.folder());
    command.stdin(File::open(&stdin)?);
    command.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
    let mut process = Process::lead(&mut command)?;
    let (status, hangs) = match process.wait(LONG, || true) {
        Some(status) => (status, false),
        None => {
            process.send(Signal::TERM);
            match process.wait(HANG, || true) {
                Some(status) => (status, false),
                None => (process.kill().ok_or("it cannot be killed")?, true),
            }
        }
    };
    let code = status.code().unwrap_or_else(|| 1000 + status.signal().unwrap_or(0));
    Ok(Ended { code, hangs, stdout: fs::read(stdout)?, stderr: fs::read(stderr)? })
}

/// Returns random input that consists of lines and other bytes.
fn input(seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut bytes = vec![0; random.random_range(0..5000)];
    random.fill(&mut bytes[..]);
    if random.random_range(0..2) == 0 {
        bytes
            .iter_mut()
            .for_each(|byte| *byte = if *byte < 10 { b'\n' } else { b'a' + *byte % 26 });
    }
    bytes
}

/// The allowed exit codes: success, failure, bad usage, garbage in a log, and SIGINT and SIGTERM as
/// shells report them.
const CODES: [i32; 6] = [0, 1, 2, 3, 130, 143];
/// The exit codes of `wrote trace` for a program that cannot be run or does not exist, as in
/// shells.
const CODES_OF_TRACE: [i32; 2] = [126, 127];
/// The rule that is broken by a call that SIGTERM does not end.
pub const HANGS: &str = "it goes on after SIGTERM";
const SIGPIPE: i32 = 1013;

/// Fails with the first rule that is broken.
pub fn judge(world: &World, call: &Call, ended: &Ended) -> Result<(), String> {
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.hangs {
        return Err(HANGS.to_owned());
    }
    if said.contains("panicked") || said.contains("RUST_BACKTRACE") {
        return Err(format!("a panic: {said}"));
    }
    // Under such a limit, no thread can be created, or the loader fails.
    let is_starved = matches!(call.limit, Some("-u 1" | "-v 200000" | "-n 8"));
    let is_not_run = call.words[0] == "trace" && CODES_OF_TRACE.contains(&ended.code);
    let is_known = CODES.contains(&ended.code) || ended.code == SIGPIPE || is_not_run;
    if !is_known && !is_starved {
        return Err(format!("exit code {}: {said}", ended.code));
    }
    let is_failure = matches!(ended.code, 1 | 2);
    let can_speak = !call.closed.contains(&2) && call.limit != Some("-f 0");
    if is_failure && can_speak && said.trim().is_empty() && ended.stdout.is_empty() {
        return Err(format!("exit code {} without a word", ended.code));
    }
    if said.contains('\u{1b}') {
        return Err(format!("an escape sequence reaches stderr: {said:?}"));
    }
    let is_raw = call.words.iter().any(|word| matches!(&**word, "cat" | "tail" | "copy"));
    if !is_raw && ended.stdout.contains(&0x1b) {
        return Err("an escape sequence reaches stdout".to_owned());
    }
    world.changed(call.may_change_files())
}
