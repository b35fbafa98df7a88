//! Tests of the reason shown for a level of survival if the file system keeps less of a flush than
//! a disk would.

use super::{CACHED, SAFE, file, traced, traced_there};
use crate::support::wrote;
use fixtures::{Loop, Mounted, finish, or_skip};
use tempfile::TempDir;
use wrote_result::document::Survives;
use wrote_result::trace::Verdict;

const MIB: u64 = 1 << 20;

/// The maximum width of a line in a report, in columns.
const COLUMNS: usize = 80;

fn tmpfs() -> Result<Mounted, String> {
    Mounted::tmpfs(64 * MIB)
}

fn ext4(options: &str) -> Result<Mounted, String> {
    Mounted::image_with("ext4", 32 * MIB, options)
}

/// Returns an ext4 file system on a loop device whose file is in this tmpfs.
fn over(memory: &Mounted) -> Result<Mounted, String> {
    let folder = TempDir::new_in(memory.path()).map_err(|error| error.to_string())?;
    Mounted::disks("ext4", vec![Loop::attach_in(folder, 32 * MIB)?])
}

#[test]
fn each_place_that_keeps_less_of_a_flush_is_named_in_the_table_the_last_line_and_the_document() {
    use Verdict::{Lost, Survives as Safe, Unknown};
    let (memory, disk) = (or_skip!(tmpfs()), or_skip!(Loop::attach(32 * MIB)));
    let volatile = || ext4("rw").and_then(|upper| Mounted::overlay_with(upper, "volatile"));
    let ext2 = || Mounted::image("ext2", 32 * MIB);
    let whole = "printf new > b; sync b; sync .";
    for (mounted, script, (verdict, survives), because) in [
        (tmpfs(), whole, (Lost, CACHED), "tmpfs"),
        (tmpfs().and_then(Mounted::overlay), whole, (Lost, CACHED), "overlay over tmpfs"),
        (volatile(), whole, (Lost, CACHED), "overlay, volatile"),
        (over(&memory), whole, (Lost, CACHED), "loop device over memory"),
        (ext4("nobarrier"), whole, (Lost, Survives::OsCrash), "ext4, nobarrier"),
        (ext4("nobarrier"), "printf new > b", (Lost, CACHED), "not flushed"),
        (ext2(), whole, (Unknown, CACHED), "ext2 has no journal"),
        (ext2().and_then(Mounted::overlay), whole, (Unknown, CACHED), "ext2 has no journal"),
        (ext4("rw").and_then(Mounted::overlay), whole, (Safe, SAFE), ""),
        // Only the device's node is in memory, not its content.
        (Mounted::disks("ext4", vec![or_skip!(Loop::on(disk.node()))]), whole, (Safe, SAFE), ""),
    ] {
        let mounted = or_skip!(mounted);
        let (trace, _) = traced_there(mounted.path(), script, &[]);
        let row = file(&trace, "b");
        assert_eq!((row.verdict, trace.verdict), (verdict, verdict), "{because}: {trace:?}");
        assert_eq!(row.survives, survives, "{because}: {trace:?}");
        let reason = if verdict == Unknown { &row.unjudged } else { &row.because };
        assert_eq!(reason.as_deref().unwrap_or_default(), because, "{trace:?}");
        let again = || std::fs::remove_file(mounted.path().join("b")).unwrap();
        again();
        let mut command = wrote(&["trace", "--fail-on", "warning", "sh", "-c", script]);
        let finished = finish(command.current_dir(mounted.path()));
        assert_eq!(finished.code(), Some(i32::from(verdict != Safe)), "{finished:?}");
        let screen = finished.stderr;
        assert!(screen.lines().all(|line| line.chars().count() <= COLUMNS), "{screen}");
        let said = screen.split_whitespace().collect::<Vec<_>>().join(" ");
        let (level, end) = match verdict {
            Safe => (survives.to_string(), "survives a power loss; 0 warnings.".into()),
            Lost => {
                (format!("{survives}: "), format!("does not survive a power loss ({because}); "))
            }
            Unknown => ("unknown: ".into(), format!("Cannot be judged: b ({because}). ")),
        };
        assert!(screen.contains(&format!("  {level}{because}\n")), "{screen}");
        assert!(said.contains(&end), "{screen}");
        // The same program, judged as if it ran on a disk.
        again();
        let (trace, _) = traced(mounted.path(), whole, &[]);
        assert_eq!((trace.verdict, trace.on_disk), (Safe, true), "{because}: {trace:?}");
    }
}
