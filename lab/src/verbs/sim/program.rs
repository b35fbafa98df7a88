//! Programs for a log: lives made of steps, which are given or random.

use crate::verbs::without_each;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::LazyLock;
use wrote::engine::Fault;
use wrote::{Log, LogOptions, SyncPolicy};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

/// A program, which consists of some lives of one log.
#[derive(Clone, Debug)]
pub struct Program {
    /// The lives, which follow each other on one disk.
    pub lives: Vec<Life>,
}

/// One life of a log, from its opening to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// The options for opening the log.
    pub opening: Opening,
    /// The faults of the disk during the life.
    pub planned: Vec<PlannedFault>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The end.
    pub end: End,
}

/// A planned fault.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    /// The number of the operation that fails. The first operation of the life, in its opening, is
    /// 0.
    pub operation: u64,
    /// The fault.
    pub fault: Fault,
}

/// The options of a log when it is opened. Nothing is measured or timed, so that a program always
/// performs the same sequence of operations.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The policy for making records durable.
    pub sync: SyncPolicy,
    /// Whether records are made durable by writes with O_DSYNC.
    pub dsync: bool,
    /// Whether zeros are written into segments in advance.
    pub zeros: Option<bool>,
    /// The number of buffers.
    pub buffers: u32,
    /// The size of each buffer in bytes.
    pub buffer_bytes: usize,
    /// The approximate length of a segment, in buffers.
    pub segment_buffers: u64,
    /// The maximum number of bytes that are kept. If it is 0, every segment is removed as soon as
    /// possible.
    pub retain_bytes: Option<u64>,
    /// The number of bytes that the opening prepares.
    pub prepared_bytes: u64,
}

/// One step with an open log.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Appends a record of `len` bytes, or the longest record that certainly fits into a buffer.
    Append {
        /// The record's length in bytes.
        len: usize,
        /// The call that appends the record.
        how: How,
        /// The content of the record.
        flavour: Flavour,
    },
    /// Appends several records atomically.
    All {
        /// The number of records.
        count: usize,
        /// The maximum length of each record in bytes. Records are shorter if they do not all fit
        /// into a buffer.
        len: usize,
        /// Whether to use `try_append`, which does not wait for room.
        tries: bool,
        /// The content of the records.
        flavour: Flavour,
    },
    /// Removes all segments before the record that is `back` records before the end.
    Trim {
        /// The distance from the end.
        back: u64,
    },
    /// Cuts off the record that is `back` records before the end, and all later ones.
    Cut {
        /// The distance from the end.
        back: u64,
    },
    /// Appends a record that does not fit into any buffer.
    TooLong,
    /// Waits for the record that is `back` records before the last one.
    Wait {
        /// The distance from the last record.
        back: u64,
    },
    /// Waits for the record that is `back` records before the last one, with a future.
    Await {
        /// The distance from the last record.
        back: u64,
    },
    /// Makes all appended records durable.
    Sync,
    /// Compares the log's statistics with the model.
    Stats,
    /// Reads all records, beginning after `from` 256ths of the log.
    Read {
        /// The position in 256ths of the log.
        from: u8,
    },
    /// Continues with a reader that stays open.
    Follow,
    /// Limits the free space of the disk to `bytes`.
    Room {
        /// The number of free bytes.
        bytes: u64,
    },
}

/// A call that appends a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `append`, after which the ticket is dropped.
    Append,
    /// `append`, after which the ticket is waited for.
    AndWait,
    /// `try_append`.
    Try,
}

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Random bytes.
    Random,
    /// Zeros, after bytes that identify the record.
    Zeros,
    /// Blocks of the log's own file, in its state at that time.
    Own,
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The log is closed.
    Close,
    /// The log is closed, and then the power is lost.
    CloseAndCut,
    /// The log is dropped.
    Drop,
    /// The log is dropped, and then the power is lost.
    DropAndCut,
    /// The power is lost, and the log is dropped once the power has returned.
    Cut,
    /// The process is killed. Bytes that were passed to the kernel are kept.
    Kill,
}

impl Opening {
    /// Returns the options as the library's type.
    pub fn options(&self) -> LogOptions {
        let mut options = Log::options()
            .sync(self.sync)
            .dsync(self.dsync)
            .buffers(self.buffers)
            .buffer_bytes(self.buffer_bytes)
            .segment_bytes(self.segment_buffers * self.buffer_bytes as u64)
            .prepared_bytes(self.prepared_bytes);
        if let Some(zeros) = self.zeros {
            options = options.zeros(zeros);
        }
        if let Some(bytes) = self.retain_bytes {
            options = options.retain_bytes(bytes);
        }
        options
    }

    /// Returns the maximum length of a record that certainly fits into a buffer.
    pub fn len_max(&self) -> usize {
        self.buffer_bytes - 200
    }

    /// Returns whether anything is ever removed.
    pub fn removes(&self) -> bool {
        self.retain_bytes.is_some()
    }
}

impl Program {
    /// Draws the program of a seed. The disk reports all of its faults.
    pub fn of_seed(seed: u64) -> Program {
        Program::draw(&mut Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Draws the same program, but adds faults that the disk hides.
    pub fn with_hidden_faults(seed: u64) -> Program {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut program = Program::draw(&mut random);
        hide_faults(&mut random, &mut program.lives);
        program
    }

    fn draw(random: &mut Random) -> Program {
        let lives = random.random_range(2..=5);
        // Most lives use the same options, because a change of options between lives is only one of
        // many risks.
        let usual = opening(random);
        let lives = (0..lives).map(|_| life(random, usual)).collect();
        Program { lives }
    }
}

type Random = Xoshiro256PlusPlus;

fn one_in(random: &mut Random, count: u32) -> bool {
    random.random_range(0..count) == 0
}

fn opening(random: &mut Random) -> Opening {
    let sync = match random.random_range(0..8) {
        0..5 => SyncPolicy::Always,
        5..7 => SyncPolicy::No,
        _ => SyncPolicy::EverySec,
    };
    let buffer_bytes = [4096, 4096, 8192, 16384][random.random_range(0..4)];
    let retain_bytes = random.random_range(0..8) * buffer_bytes as u64;
    Opening {
        sync,
        dsync: one_in(random, 2),
        zeros: [None, Some(false), Some(true)][random.random_range(0..3)],
        buffers: random.random_range(2..=4),
        buffer_bytes,
        segment_buffers: random.random_range(2..=4),
        retain_bytes: one_in(random, 3).then_some(retain_bytes),
        prepared_bytes: random.random_range(0..4) * 5000,
    }
}

fn life(random: &mut Random, usual: Opening) -> Life {
    let opening = if one_in(random, 3) { opening(random) } else { usual };
    let planned = (0..[0, 1, 1, 2][random.random_range(0..4)]).map(|_| planned(random)).collect();
    let steps = random.random_range(0..=25);
    // Some lives have only short records, others only long ones, so that a batch contains many or
    // few.
    let len_max = [40, 600, 5000, LEN_MAX][random.random_range(0..4)];
    let steps = (0..steps).map(|_| step(random, len_max)).collect();
    let end = match random.random_range(0..10) {
        0 => End::Close,
        1 => End::CloseAndCut,
        2..4 => End::Drop,
        4 => End::DropAndCut,
        5 => End::Kill,
        _ => End::Cut,
    };
    Life { opening, planned, steps, end }
}

fn planned(random: &mut Random) -> PlannedFault {
    // The first few operations are as likely as all later ones up to some hundred.
    let bits = random.random_range(0..8);
    let fault = match random.random_range(0..12) {
        0 => Fault::Short([0, 1, 512, 700, 4096][random.random_range(0..5)]),
        1 => Fault::Once([EINTR, EAGAIN][random.random_range(0..2)]),
        2..4 => Fault::Once(EIO),
        4 => Fault::Once(ENOSPC),
        5 => Fault::Forever(EIO),
        6 => Fault::Forever(ENOSPC),
        _ => Fault::PowerLoss,
    };
    PlannedFault { operation: random.random_range(0..1 << bits), fault }
}

/// Adds faults that the disk does not report. In most of these programs, they are of one kind.
fn hide_faults(random: &mut Random, lives: &mut [Life]) {
    let kind = random.random_range(0..4);
    for life in lives {
        let count = [0, 1, 1, 3][random.random_range(0..4)];
        for _ in 0..count {
            let kind = if kind == 3 { random.random_range(0..3) } else { kind };
            let bits = random.random_range(0..8);
            let operation = random.random_range(0..1 << bits);
            let (fault, operations) = match kind {
                0 => (Fault::Lie, [1, 10, 100, 300][random.random_range(0..4)]),
                1 => (Fault::Rot, 1),
                _ => (Fault::Misdirected, 1),
            };
            let all = operation..operation + operations;
            let hidden = all.map(|operation| PlannedFault { operation, fault });
            // If two faults are planned for the same operation, the last one applies, and the disk
            // reports it.
            life.planned.splice(0..0, hidden);
        }
    }
}

fn step(random: &mut Random, len_max: usize) -> Step {
    let len = random.random_range(0..=len_max);
    let flavour = match random.random_range(0..10) {
        0 => Flavour::Zeros,
        1 => Flavour::Own,
        _ => Flavour::Random,
    };
    let back = if one_in(random, 2) { 0 } else { random.random_range(0..8) };
    match random.random_range(0..46) {
        0..10 => Step::Append { len, how: How::Append, flavour },
        10..18 => Step::Append { len, how: How::AndWait, flavour },
        18..22 => Step::Append { len, how: How::Try, flavour },
        22..25 => Step::All { count: random.random_range(1..8), len, tries: true, flavour },
        25 => Step::TooLong,
        26..30 => Step::Wait { back },
        30..32 => Step::Await { back },
        32..34 => Step::Sync,
        34 => Step::Stats,
        35 => Step::Read { from: random.random_range(0..=255) },
        36..39 => Step::Follow,
        39..42 => Step::All { count: random.random_range(1..12), len, tries: false, flavour },
        42 => Step::Trim { back: random.random_range(0..30) },
        43..45 => {
            let most = if one_in(random, 2) { 3 } else { 30 };
            Step::Cut { back: random.random_range(0..most) }
        }
        _ => Step::Room { bytes: random.random_range(0..30_000) },
    }
}

/// The maximum length of a record.
pub const LEN_MAX: usize = 64 << 10;

/// Random bytes without line feeds and NULs, so that they are suitable for both formats.
static SOURCE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    (0..2 * LEN_MAX).map(|_| random.random_range(b'\n' + 1..=255)).collect()
});

/// Returns the bytes of the record with this number among all records that a program appends. The
/// first 16 bytes, or all if there are fewer, encode the number.
pub fn bytes(number: u64, len: usize, flavour: Flavour) -> Vec<u8> {
    let start = (number.wrapping_mul(0x9E37_79B9) % LEN_MAX as u64) as usize;
    let mut bytes = match flavour {
        Flavour::Zeros => vec![0; len],
        _ => SOURCE[start..start + len].to_vec(),
    };
    // The lowest digit comes first, because it distinguishes short records best.
    for (place, byte) in bytes.iter_mut().take(16).enumerate() {
        *byte = b'a' + (number >> (4 * place) & 0xf) as u8;
    }
    bytes
}

/// Returns a record that contains pieces of the log's own file, at offsets where a reader may
/// search for a batch. This simulates a program that stores a copy of the log in the log.
pub fn with_pieces_of(file: &[u8], number: u64, len: usize) -> Vec<u8> {
    let mut bytes = bytes(number, len, Flavour::Random);
    // The pieces follow the headers of the batch and the record and, in the first segment, the
    // segment's header.
    let to_block = BLOCK_BYTES - if number.is_multiple_of(2) { 56 } else { 120 };
    let blocks = file.chunks_exact(BLOCK_BYTES).rev().filter(|block| block[..4] != [0; 4]);
    let places = (to_block..len).step_by(BLOCK_BYTES);
    for (place, block) in places.zip(blocks) {
        let part = &block[..BLOCK_BYTES.min(len - place)];
        bytes[place..place + part.len()].copy_from_slice(part);
    }
    bytes
}

const BLOCK_BYTES: usize = 4096;

impl Program {
    /// Returns smaller versions of the program: each lacks one life, or has one smaller life.
    pub fn smaller(&self) -> Vec<Program> {
        let mut all: Vec<_> = without_each(&self.lives).map(|lives| Program { lives }).collect();
        for (number, life) in self.lives.iter().enumerate() {
            all.extend(life.smaller().into_iter().map(|smaller| {
                let mut with = self.clone();
                with.lives[number] = smaller;
                with
            }));
        }
        all
    }
}

impl Life {
    /// Returns smaller versions of the life: each lacks one fault or step, or has a record of half
    /// the length.
    fn smaller(&self) -> Vec<Life> {
        let faults = without_each(&self.planned).map(|planned| Life { planned, ..self.clone() });
        let steps = without_each(&self.steps).map(|steps| Life { steps, ..self.clone() });
        let mut all: Vec<_> = faults.chain(steps).collect();
        for (number, step) in self.steps.iter().enumerate() {
            if let Step::Append { len: 9.., .. } = step {
                let mut shorter = self.clone();
                if let Step::Append { len, .. } = &mut shorter.steps[number] {
                    *len /= 2;
                }
                all.push(shorter);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::least;
    use std::convert::Infallible;

    #[test]
    fn a_record_of_16_bytes_is_like_no_other() {
        let sixteen = |number| bytes(number, 16, Flavour::Random);
        for number in 0..300 {
            assert_ne!(sixteen(number), sixteen(number + 1));
            assert_ne!(sixteen(number), sixteen(number + 256));
        }
    }

    #[test]
    fn pieces_of_the_file_stand_at_the_blocks_of_a_record_that_is_alone_in_its_batch() {
        let file = [vec![0; BLOCK_BYTES], vec![9; BLOCK_BYTES]].concat();
        let bytes = with_pieces_of(&file, 2, 6000);
        assert_eq!(bytes[BLOCK_BYTES - 56..][..BLOCK_BYTES.min(6000 - 4040)], [9; 1960]);
        assert_ne!(bytes[..BLOCK_BYTES - 56], file[..BLOCK_BYTES - 56]);
    }

    fn syncs(program: &Program) -> usize {
        let steps = program.lives.iter().flat_map(|life| &life.steps);
        steps.filter(|step| matches!(step, Step::Sync)).count()
    }

    #[test]
    fn needless_parts_of_a_program_are_taken_away() {
        let large = (0..).map(Program::of_seed).find(|program| syncs(program) > 1).unwrap();
        let is_broken = |program: &Program| Ok::<_, Infallible>(syncs(program) > 0);
        let Ok(least) = least(large, Program::smaller, is_broken);
        assert_eq!(least.lives.len(), 1);
        assert_eq!(least.lives[0].steps.len(), 1);
        assert!(least.lives[0].planned.is_empty());
    }
}
