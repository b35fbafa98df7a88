//! What is done to a log: its lives, step by step, given or drawn by chance.

use crate::content::LEN_MAX;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use wrote::log::Prepare;
use wrote::{Durable, Fault, Format, Log, LogOptions, Sync};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOSPC: i32 = 28;

/// Some lives of one log.
#[derive(Clone, Debug)]
pub struct Program {
    /// How records stand in its files.
    pub format: Format,
    /// One after the other, on one disk.
    pub lives: Vec<Life>,
}

/// One life of a log, from its opening to its end.
#[derive(Clone, Debug)]
pub struct Life {
    /// What is asked of the log.
    pub opening: Opening,
    /// What goes wrong on the disk.
    pub planned: Vec<Planned>,
    /// What is done.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: End,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// With which operation of the life, its opening among them; the first is 0.
    pub operation: u64,
    /// What.
    pub fault: Fault,
}

/// What is asked of a log when it is opened. What is measured or timed is not asked for: the same
/// program does the same operations each time.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// When records are made durable.
    pub sync: Sync,
    /// How.
    pub durable: Durable,
    /// How segments are made ready.
    pub prepare: Option<Prepare>,
    /// How many buffers.
    pub buffers: u32,
    /// Bytes of each.
    pub buffer_bytes: usize,
    /// About how long a segment gets, in buffers.
    pub segment_buffers: u64,
    /// The most that is kept, in bytes. With 0 everything is removed as soon as it may be.
    pub retain_bytes: Option<u64>,
}

/// Something that is done to an open log.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// A record of so many bytes is appended, or as many as fit into a buffer for sure.
    Append {
        /// Its length in bytes.
        len: usize,
        /// By which call.
        how: How,
        /// What is in it.
        flavour: Flavour,
    },
    /// Whoever fills a place panics.
    Panic {
        /// The length of the place in bytes.
        len: usize,
    },
    /// A record is appended that no buffer holds.
    TooLong,
    /// The record so many before the last is waited for.
    Wait {
        /// How many.
        back: u64,
    },
    /// The same, as a future.
    Await {
        /// How many.
        back: u64,
    },
    /// All that was appended is made durable.
    Sync,
    /// What the log says that it has done is held against what was done.
    Stats,
    /// Everything is read, from a place in the log on: so many 256ths of it.
    Read {
        /// How many.
        from: u8,
    },
    /// A reader that was there all the time reads on.
    Follow,
    /// The disk gets room for so many bytes more, and no more.
    Room {
        /// How many.
        bytes: u64,
    },
}

/// By which call a record is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// `append`, and the ticket is dropped.
    Append,
    /// `append`, and the ticket is waited for.
    AndWait,
    /// `append_with`.
    With,
    /// `try_append`.
    Try,
}

/// What is in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Bytes by chance.
    Random,
    /// Zeros, behind what makes it one of its own.
    Zeros,
    /// Blocks of the log's own file as it is at the time.
    Own,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The log is closed.
    Close,
    /// It is closed, and then the power goes.
    CloseAndCut,
    /// It is dropped.
    Drop,
    /// It is dropped, and then the power goes.
    DropAndCut,
    /// The power goes, and the log is dropped when it is on again.
    Cut,
    /// The process is killed: what it has handed to the kernel is there.
    Kill,
}

impl Opening {
    /// The options that ask for this.
    pub fn options(&self, format: Format) -> LogOptions {
        let mut options = Log::options()
            .format(format)
            .sync(self.sync)
            .durable(self.durable)
            .buffers(self.buffers)
            .buffer_bytes(self.buffer_bytes)
            .segment_bytes(self.segment_buffers * self.buffer_bytes as u64);
        if let Some(prepare) = self.prepare {
            options = options.prepare(prepare);
        }
        if let Some(bytes) = self.retain_bytes {
            options = options.retain_bytes(bytes);
        }
        options
    }

    /// Bytes of the longest record that fits for sure.
    pub fn len_max(&self) -> usize {
        self.buffer_bytes - 200
    }

    /// Whether anything is ever removed.
    pub fn removes(&self) -> bool {
        self.retain_bytes.is_some()
    }
}

impl Program {
    /// The program of this seed.
    pub fn of_seed(seed: u64) -> Program {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let format = if one_in(&mut random, 3) { Format::Lines } else { Format::Framed };
        let lives = random.random_range(2..=5);
        // The same is asked for most of the time: what changes between lives is one more thing to break.
        let usual = opening(&mut random);
        let lives = (0..lives).map(|_| life(&mut random, usual)).collect();
        Program { format, lives }
    }
}

type Random = Xoshiro256PlusPlus;

fn one_in(random: &mut Random, count: u32) -> bool {
    random.random_range(0..count) == 0
}

fn opening(random: &mut Random) -> Opening {
    let sync = match random.random_range(0..8) {
        0..5 => Sync::Always,
        5..7 => Sync::No,
        _ => Sync::EverySec,
    };
    let buffer_bytes = [4096, 4096, 8192, 16384][random.random_range(0..4)];
    let retain_bytes = random.random_range(0..8) * buffer_bytes as u64;
    Opening {
        sync,
        durable: if one_in(random, 2) { Durable::Dsync } else { Durable::Fdatasync },
        prepare: [None, Some(Prepare::Allocate), Some(Prepare::Write)][random.random_range(0..3)],
        buffers: random.random_range(2..=4),
        buffer_bytes,
        segment_buffers: random.random_range(2..=4),
        retain_bytes: one_in(random, 5).then_some(retain_bytes),
    }
}

fn life(random: &mut Random, usual: Opening) -> Life {
    let opening = if one_in(random, 3) { opening(random) } else { usual };
    let planned = (0..[0, 1, 1, 2][random.random_range(0..4)]).map(|_| planned(random)).collect();
    let steps = random.random_range(0..=25);
    // Some lives are of short records only, some of long ones: so many share a batch, so few.
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

fn planned(random: &mut Random) -> Planned {
    // As often within the first few operations as within some hundred.
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
    Planned { operation: random.random_range(0..1 << bits), fault }
}

fn step(random: &mut Random, len_max: usize) -> Step {
    let len = random.random_range(0..=len_max);
    let flavour = match random.random_range(0..10) {
        0 => Flavour::Zeros,
        1 => Flavour::Own,
        _ => Flavour::Random,
    };
    let back = if one_in(random, 2) { 0 } else { random.random_range(0..8) };
    match random.random_range(0..40) {
        0..10 => Step::Append { len, how: How::Append, flavour },
        10..18 => Step::Append { len, how: How::AndWait, flavour },
        18..20 => Step::Append { len, how: How::With, flavour },
        20..23 => Step::Append { len, how: How::Try, flavour },
        23..25 => Step::Panic { len },
        25 => Step::TooLong,
        26..30 => Step::Wait { back },
        30..32 => Step::Await { back },
        32..34 => Step::Sync,
        34 => Step::Stats,
        35 => Step::Read { from: random.random_range(0..=255) },
        36..39 => Step::Follow,
        _ => Step::Room { bytes: random.random_range(0..30_000) },
    }
}
