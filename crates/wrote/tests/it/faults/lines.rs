//! A plain line file as a subject: some lines are awaited one by one, and the file has a torn end
//! before it is opened.

use super::{Kept, Outcome, Subject};
use crate::path;
use wrote::engine::Fault;
use wrote::{Error, Lines, Sim, SyncPolicy};

/// The content of the file before the work.
const BEFORE: &[u8] = b"before\n";
const COUNT: usize = 12;

/// A subject that appends lines, with a flush for each or a single flush at the end.
#[derive(Debug)]
struct LinesOf(SyncPolicy);

fn line(number: usize) -> Vec<u8> {
    let mut line = format!("line {number} ").into_bytes();
    line.resize(20 + number * 997 % 3000, b'a' + number as u8);
    line
}

impl LinesOf {
    /// Appends all lines. Returns the number of lines that were acknowledged as durable.
    fn append(&self, sim: &Sim, failures: &mut Vec<Error>) -> usize {
        let options = Lines::options().sync(self.0);
        let lines = match options.on(&sim.disk()).open(path()) {
            Ok(lines) => lines,
            Err(error) => {
                failures.push(error);
                return 0;
            }
        };
        let mut durable = 0;
        let mut note = |error: Error| -> bool {
            let is_not_yet = matches!(error, Error::NotYet { .. });
            failures.push(error);
            is_not_yet
        };
        for number in 0..COUNT {
            let waited = lines.append(&line(number)).and_then(|ticket| ticket.wait());
            match waited {
                Ok(()) if self.0 == SyncPolicy::Always => durable = number + 1,
                Ok(()) => {}
                // Once there is room again, the line is stored in its place.
                Err(error) => match note(error) {
                    true => match lines.flush() {
                        Ok(()) => durable = number + 1,
                        Err(error) => {
                            note(error);
                            return durable;
                        }
                    },
                    false => return durable,
                },
            }
        }
        match lines.close() {
            Ok(()) => COUNT,
            Err(error) => {
                note(error);
                durable
            }
        }
    }
}

impl Subject for LinesOf {
    fn disk(&self, seed: u64) -> Sim {
        let sim = Sim::new(seed);
        let lines = Lines::options().on(&sim.disk()).open(path()).unwrap();
        lines.append(&BEFORE[..BEFORE.len() - 1]).unwrap().wait().unwrap();
        lines.close().unwrap();
        sim.sync();
        sim
    }

    fn work(&self, sim: &Sim, _: Option<Fault>) -> Outcome {
        let mut failures = Vec::new();
        let durable = self.append(sim, &mut failures);
        let mut all = BEFORE.to_vec();
        let mut durable_bytes = all.len();
        for number in 0..COUNT {
            all.extend(line(number));
            all.push(b'\n');
            if number < durable {
                durable_bytes = all.len();
            }
        }
        let known = all.iter().enumerate();
        let known = known.map(|(at, byte)| (at < durable_bytes).then_some(*byte)).collect();
        let (len_min, len_max) = (durable_bytes, all.len());
        let now = Kept::Prefix { bytes: all, len_min, len_max };
        let stable = Kept::Bytes { known, len_min, len_max };
        Outcome { failures, files: vec![(path().to_owned(), now, stable)] }
    }
}

pub fn subjects() -> Vec<Box<dyn Subject>> {
    vec![Box::new(LinesOf(SyncPolicy::Always)), Box::new(LinesOf(SyncPolicy::No))]
}
