//! The rules for every call.

use crate::verbs::commands::draw::Call;
use crate::verbs::commands::run::Ended;
use crate::verbs::commands::world::World;

/// Success, failure, bad usage, garbage in a log; SIGINT and SIGTERM as shells report them.
const CODES: [i32; 6] = [0, 1, 2, 3, 130, 143];
/// Exit codes of `wrote trace`, as in shells: the program can't be run, or does not exist.
const CODES_OF_TRACE: [i32; 2] = [126, 127];
/// The broken rule of a call that SIGTERM does not end.
pub const HANGS: &str = "it goes on after SIGTERM";
const SIGPIPE: i32 = 1013;

/// Returns the first rule that does not hold.
pub fn judge(world: &World, call: &Call, ended: &Ended) -> Result<(), String> {
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.hangs {
        return Err(HANGS.to_owned());
    }
    if said.contains("panicked") || said.contains("RUST_BACKTRACE") {
        return Err(format!("a panic: {said}"));
    }
    // Under such a limit no thread can be created, or the loader fails.
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
