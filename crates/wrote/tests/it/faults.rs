//! A harness for faults on the simulated disk. The work of each subject is executed with each fault
//! at each of its operations, and the same must hold for all subjects: what was acknowledged is
//! there, an error names the file, and nothing else is damaged. Each module below contains the work
//! of one kind of subject, and the tests that do not fit into the harness.

mod engine;
mod file;
mod lines;
mod streams;
mod whole;

use libc::{EAGAIN, EDQUOT, EINTR, EIO, ENOSPC};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;
use wrote::engine::Fault;
use wrote::{Error, Sim};

/// Work on a simulated disk.
trait Subject: Debug {
    /// Creates the disk in its state before the work, with everything on stable storage.
    fn disk(&self, seed: u64) -> Sim {
        Sim::new(seed)
    }

    /// Does the work in spite of all errors, and asserts what only this subject promises. `fault`
    /// is `None` if the disk is full or has no fault.
    fn work(&self, sim: &Sim, fault: Option<Fault>) -> Outcome;

    /// Returns the lengths to which transfers are shortened. A direct read that ends within a
    /// sector means the end of its file, so work that reads directly is given whole sectors.
    fn shorts(&self) -> &'static [u64] {
        &[0, 1, 700, 4095]
    }

    /// Returns whether the caller gets each error. Steps that only save time may fail silently.
    fn tells(&self) -> bool {
        true
    }

    /// Returns the sizes of disks that are too small for the work.
    fn capacities(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Returns the number of power losses that are tried at each operation.
    fn power_losses(&self) -> u64 {
        10
    }
}

/// The result of a subject's work.
struct Outcome {
    failures: Vec<Error>,
    /// All files that may exist, with their permitted contents on the running system and after a
    /// power loss.
    files: Vec<(PathBuf, Kept, Kept)>,
}

/// The contents that a file may have.
#[derive(Clone)]
enum Kept {
    /// One of these contents as a whole; `None` means that there is no file.
    OneOf(Vec<Option<Vec<u8>>>),
    /// Either the beginning of these bytes, or all of them followed by others, with the limits of
    /// the length.
    Prefix { bytes: Vec<u8>, len_min: usize, len_max: usize },
    /// The bytes that are known, with the limits of the length.
    Bytes { known: Vec<Option<u8>>, len_min: usize, len_max: usize },
}

impl Kept {
    fn anything() -> Kept {
        Kept::prefix(&[])
    }

    /// Returns the contents that begin with these bytes.
    fn prefix(bytes: &[u8]) -> Kept {
        Kept::Prefix { bytes: bytes.to_vec(), len_min: bytes.len(), len_max: usize::MAX }
    }

    fn check(&self, found: Option<&[u8]>, what: &str) {
        match self {
            Kept::OneOf(contents) => {
                let is_one = contents.iter().any(|content| content.as_deref() == found);
                assert!(is_one, "{what}: a part or a mix: {:?} bytes", found.map(<[u8]>::len));
            }
            Kept::Prefix { bytes, len_min, len_max } => {
                let found = found.unwrap_or_default();
                let (len, common) = (found.len(), found.len().min(bytes.len()));
                assert!((*len_min..=*len_max).contains(&len), "{what}: {len} bytes");
                assert!(found[..common] == bytes[..common], "{what}: other bytes");
            }
            Kept::Bytes { known, len_min, len_max } => {
                let found = found.unwrap_or_default();
                let len = found.len();
                assert!((*len_min..=*len_max).contains(&len), "{what}: {len} bytes");
                for (place, (byte, known)) in found.iter().zip(known).enumerate() {
                    assert!(known.is_none_or(|known| known == *byte), "{what}: byte {place}");
                }
            }
        }
    }
}

/// A guard that prints the case if the test fails.
struct Case(String);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

fn subjects() -> impl Iterator<Item = Box<dyn Subject>> {
    let all = [
        engine::subjects(),
        file::subjects(),
        lines::subjects(),
        streams::subjects(),
        whole::subjects(),
    ];
    all.into_iter().flatten()
}

impl dyn Subject {
    /// Does the work with the fault at every operation, on disks with `seeds` different seeds.
    fn at_every_operation(&self, fault: Fault, seeds: u64, check: &mut dyn FnMut(&Sim, &Outcome)) {
        let undisturbed = self.disk(0);
        let begun = undisturbed.operations();
        let outcome = self.work(&undisturbed, None);
        assert!(outcome.failures.is_empty(), "{self:?}: {:?}", outcome.failures);
        for operation in 0..undisturbed.operations() - begun {
            for seed in 0..seeds {
                let _case = Case(format!("{self:?}: {fault:?} at {operation}, seed {seed}"));
                let sim = self.disk(seed * 1000 + operation);
                sim.fault(sim.operations() + operation, fault);
                let outcome = self.work(&sim, Some(fault));
                check(&sim, &outcome);
            }
        }
    }
}

impl Outcome {
    fn has_failed_with(&self, errno: i32) {
        for error in &self.failures {
            assert_eq!(error.errno(), errno, "{error}");
            assert!(error.to_string().starts_with("/sim"), "the file is named: {error}");
        }
    }

    /// Asserts that the files on the running system have permitted contents.
    fn holds_now(&self, sim: &Sim) {
        for (path, now, _) in &self.files {
            now.check(sim.contents(path).as_deref(), "on the running system");
        }
    }

    fn holds_after_power_loss(&self, sim: &Sim) {
        for (path, _, stable) in &self.files {
            stable.check(sim.after_power_loss(path).as_deref(), "W1, after a power loss");
        }
    }

    fn leaves_nothing_else(&self, sim: &Sim) {
        let is_own = |path: &PathBuf| self.files.iter().any(|(own, ..)| own == path);
        assert!(sim.names().iter().all(is_own), "{:?}", sim.names());
    }
}

#[test]
fn work_without_a_fault_is_whole() {
    for subject in subjects() {
        for seed in 0..30 {
            let _case = Case(format!("{subject:?}, seed {seed}"));
            let sim = subject.disk(seed);
            let outcome = subject.work(&sim, None);
            assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
            outcome.holds_now(&sim);
            outcome.leaves_nothing_else(&sim);
            outcome.holds_after_power_loss(&sim);
        }
    }
}

#[test]
fn short_and_interrupted_operations_are_brought_to_their_end() {
    // W4
    for subject in subjects() {
        let short = subject.shorts().iter().map(|bytes| Fault::Short(*bytes));
        for fault in short.chain([Fault::Once(EINTR), Fault::Once(EAGAIN)]) {
            subject.at_every_operation(fault, 1, &mut |sim, outcome| {
                assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
                outcome.holds_now(sim);
                outcome.leaves_nothing_else(sim);
                outcome.holds_after_power_loss(sim);
            });
        }
    }
}

#[test]
fn an_error_at_any_operation_is_told_and_damages_nothing_else() {
    // W1, W2
    for subject in subjects() {
        for errno in [EIO, ENOSPC, EDQUOT] {
            subject.at_every_operation(Fault::Once(errno), 2, &mut |sim, outcome| {
                assert!(!outcome.failures.is_empty() || !subject.tells(), "nobody was told");
                outcome.has_failed_with(errno);
                outcome.holds_now(sim);
                outcome.leaves_nothing_else(sim);
                outcome.holds_after_power_loss(sim);
            });
        }
    }
}

#[test]
fn a_disk_that_fails_for_good_fails_everything_after_it_and_keeps_its_promises() {
    // W1, W2
    for subject in subjects() {
        for errno in [EIO, ENOSPC] {
            subject.at_every_operation(Fault::Forever(errno), 1, &mut |sim, outcome| {
                assert!(!outcome.failures.is_empty() || !subject.tells(), "nobody was told");
                outcome.has_failed_with(errno);
                outcome.holds_now(sim);
                // On a disk that fails, no temporary file can be removed.
                assert!(sim.names().len() <= outcome.files.len() + 1, "{:?}", sim.names());
                outcome.holds_after_power_loss(sim);
            });
        }
    }
}

#[test]
fn a_promise_is_kept_after_a_power_loss_at_any_operation() {
    // W1
    let mut subjects_by_luck = [0, 0];
    for subject in subjects() {
        let mut found = BTreeSet::new();
        let seeds = subject.power_losses();
        subject.at_every_operation(Fault::PowerLoss, seeds, &mut |sim, outcome| {
            outcome.has_failed_with(EIO);
            outcome.holds_after_power_loss(sim);
            found.insert(outcome.files.iter().map(|file| sim.after_power_loss(&file.0)).collect());
        });
        let found: BTreeSet<Vec<_>> = found;
        subjects_by_luck[usize::from(found.len() > 1)] += 1;
    }
    // For most subjects, the disk must show several states, so that a promise that is kept is not
    // mere luck.
    let [same, different] = subjects_by_luck;
    assert!(different > same, "{different} subjects were found in several states, {same} in one");
}

#[test]
fn a_flush_that_lies_changes_nothing_on_the_running_system() {
    for subject in subjects() {
        subject.at_every_operation(Fault::Lie, 1, &mut |sim, outcome| {
            assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
            outcome.holds_now(sim);
        });
    }
}

#[test]
fn a_full_disk_fails_what_does_not_fit_and_keeps_the_rest() {
    for subject in subjects() {
        for capacity_bytes in subject.capacities() {
            let _case = Case(format!("{subject:?} on {capacity_bytes} bytes"));
            let sim = subject.disk(capacity_bytes);
            sim.set_capacity(capacity_bytes);
            let outcome = subject.work(&sim, None);
            assert!(!outcome.failures.is_empty());
            outcome.has_failed_with(ENOSPC);
            outcome.holds_now(&sim);
            outcome.leaves_nothing_else(&sim);
            outcome.holds_after_power_loss(&sim);
        }
    }
}

#[test]
fn work_is_whole_where_direct_io_is_refused() {
    // W6: the tests of each subject check what it reports about the refusal.
    for subject in subjects() {
        for refuse in [Sim::refuse_direct_at_open, Sim::refuse_direct_at_transfer] {
            let _case = Case(format!("{subject:?}"));
            let sim = subject.disk(9);
            refuse(&sim);
            let outcome = subject.work(&sim, None);
            assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
            outcome.holds_now(&sim);
            outcome.holds_after_power_loss(&sim);
        }
    }
}
