//! The next operation: file, offset and length of each operation of a job, from its seed.

use super::permutation::Permutation;
use crate::spec::{BlockSizes, Rw};
use rand::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use std::ops::Range;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub write: bool,
    pub file: usize,
    pub offset: u64,
    pub len: usize,
}

/// The properties that all operations of a job share.
#[derive(Clone, Debug)]
pub struct Outline {
    pub rw: Rw,
    /// Of 100 operations of a mix, how many are reads.
    pub rwmixread_percent: u32,
    pub read_bs: BlockSizes,
    pub write_bs: BlockSizes,
    /// The bytes of each file that are used.
    pub regions: Vec<Range<u64>>,
    /// Bytes of one loop; `None` is each region once.
    pub io_bytes: Option<u64>,
    /// How often the whole is done; `None` for as long as someone asks.
    pub loops: Option<u32>,
    pub norandommap: bool,
    pub seed: u64,
}

impl Outline {
    fn sizes(&self, write: bool) -> &BlockSizes {
        if write { &self.write_bs } else { &self.read_bs }
    }

    /// The directions that there are, writes as `true`.
    fn directions(&self) -> impl Iterator<Item = bool> {
        [(false, self.rw.read), (true, self.rw.write)]
            .into_iter()
            .filter_map(|(write, is)| is.then_some(write))
    }

    /// The one size of all operations, where they have one.
    fn one_size(&self) -> Option<u64> {
        let mut sizes =
            self.directions().flat_map(|write| &self.sizes(write).0).map(|share| share.bytes);
        let first = sizes.next()?;
        sizes.all(|other| other == first).then_some(first)
    }

    /// Whether each block comes once before any comes again: blocks of several sizes cannot be told
    /// apart by their number.
    pub fn maps(&self) -> bool {
        self.rw.random && !self.norandommap && self.one_size().is_some()
    }

    /// Whether an operation may fall on the bytes of another one shortly before it.
    pub fn comes_again(&self) -> bool {
        self.rw.random && !self.maps() || self.io_bytes.is_some() || self.loops != Some(1)
    }

    fn pass_bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.end - region.start).sum()
    }

    /// About how many bytes there are in all; `None` where only time ends it.
    pub fn total_bytes(&self) -> Option<u64> {
        let one = self.io_bytes.unwrap_or_else(|| self.pass_bytes());
        self.loops.map(|loops| one.saturating_mul(loops.into()))
    }
}

/// One file, and how far it was used.
#[derive(Clone, Debug)]
struct Place {
    start: u64,
    len_bytes: u64,
    /// Where the next read and the next write of a sequential job begin: each direction goes on
    /// from its own last operation, as fio's do.
    positions: [u64; 2],
    /// The order of the blocks of a random job, where each comes once, and how many were taken.
    order: Option<Permutation>,
    taken: u64,
}

/// A job's operations, one after the other. The same outline gives the same ones, so a clone taken
/// at the start tells later what was done.
#[derive(Clone, Debug)]
pub struct Sequence {
    outline: Outline,
    places: Vec<Place>,
    /// The only size of a direction, and the least one.
    one: [Option<u64>; 2],
    least: [u64; 2],
    chance: Xoshiro256PlusPlus,
    /// The index of the next file: one operation goes to each in turn.
    turn: usize,
    loop_left_bytes: u64,
    loops_left: Option<u32>,
    passes: u64,
    maps: bool,
}

impl Sequence {
    /// `None` where some direction finds no room for its smallest block in any file, so that it
    /// would never come to an end.
    pub fn new(outline: Outline) -> Option<Sequence> {
        let least = [outline.read_bs.least_bytes(), outline.write_bs.least_bytes()];
        let room = |write: bool| {
            let least = least[usize::from(write)];
            least > 0 && outline.regions.iter().any(|region| region.end - region.start >= least)
        };
        if outline.loops == Some(0) || !outline.directions().all(room) {
            return None;
        }
        let one = [&outline.read_bs, &outline.write_bs].map(|sizes| {
            let first = sizes.0.first().map(|share| share.bytes);
            first.filter(|first| sizes.0.iter().all(|share| share.bytes == *first))
        });
        let places = outline.regions.iter().map(|region| Place {
            start: region.start,
            len_bytes: region.end - region.start,
            positions: [0; 2],
            order: None,
            taken: 0,
        });
        let mut sequence = Sequence {
            places: places.collect(),
            one,
            least,
            chance: Xoshiro256PlusPlus::seed_from_u64(outline.seed),
            turn: 0,
            loop_left_bytes: outline.io_bytes.unwrap_or_else(|| outline.pass_bytes()),
            loops_left: outline.loops.map(|loops| loops - 1),
            passes: 0,
            maps: outline.maps(),
            outline,
        };
        sequence.begin_pass();
        Some(sequence)
    }

    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// A number below `bound`, by the upper half of a product (Lemire: Fast Random Integer
    /// Generation in an Interval, 2019); without its rejection, which no one would see at these
    /// bounds.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.chance.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    fn writes_next(&mut self) -> bool {
        match self.outline.rw {
            Rw { read: true, write: true, .. } => {
                self.below(100) >= u64::from(self.outline.rwmixread_percent)
            }
            Rw { write, .. } => write,
        }
    }

    /// A size by the shares; the largest up to `most`, which is at least the smallest.
    fn size(&mut self, write: bool, most: u64) -> u64 {
        if let Some(one) = self.one[usize::from(write)] {
            return one;
        }
        let mut left = self.below(100);
        let sizes = self.outline.sizes(write);
        let chosen = sizes.0.iter().find(|share| {
            let is = left < u64::from(share.percent);
            left = left.saturating_sub(share.percent.into());
            is
        });
        let chosen = chosen.or(sizes.0.last()).map_or(most, |share| share.bytes);
        let fits = sizes.0.iter().map(|share| share.bytes).filter(|bytes| *bytes <= most);
        if chosen <= most { chosen } else { fits.max().unwrap_or(most) }
    }

    /// Goes back to where each file begins; another pass has another order.
    fn begin_pass(&mut self) {
        let one = self.outline.one_size().filter(|_| self.maps);
        for (number, place) in self.places.iter_mut().enumerate() {
            place.positions = [0; 2];
            place.taken = 0;
            let key = self.outline.seed ^ (self.passes << 20) ^ number as u64;
            let key = SplitMix64::seed_from_u64(key).next_u64();
            place.order = one.map(|bytes| Permutation::new(place.len_bytes / bytes, key));
        }
        self.passes += 1;
    }

    /// Begins the next loop; `false` where there is none.
    fn begin_loop(&mut self) -> bool {
        match &mut self.loops_left {
            Some(0) => return false,
            Some(left) => *left -= 1,
            None => {}
        }
        self.loop_left_bytes = self.outline.io_bytes.unwrap_or_else(|| self.outline.pass_bytes());
        self.begin_pass();
        true
    }

    /// The next operation of this direction in the pass; `None` where no file has room for it.
    fn place(&mut self, write: bool) -> Option<Next> {
        let direction = usize::from(write);
        let least = self.least[direction];
        for _ in 0..self.places.len() {
            let file = self.turn;
            self.turn = if file + 1 == self.places.len() { 0 } else { file + 1 };
            let place = &mut self.places[file];
            if let Some(order) = &place.order {
                if place.taken < order.count() {
                    let offset = place.start + order.at(place.taken) * least;
                    place.taken += 1;
                    return Some(Next { write, file, offset, len: least as usize });
                }
                continue;
            }
            let (start, len_bytes) = (place.start, place.len_bytes);
            let position = if self.outline.rw.random { 0 } else { place.positions[direction] };
            let room = (len_bytes - position).min(self.loop_left_bytes);
            if room < least {
                continue;
            }
            let len = self.size(write, room);
            let offset = if self.outline.rw.random {
                self.below((len_bytes - len) / least + 1) * least
            } else {
                self.places[file].positions[direction] += len;
                position
            };
            return Some(Next { write, file, offset: start + offset, len: len as usize });
        }
        None
    }

    /// The next operation of a direction; `None` where there is no more to be done.
    pub fn next_of(&mut self, write: bool) -> Option<Next> {
        let least = self.least[usize::from(write)];
        loop {
            let next = if self.loop_left_bytes >= least { self.place(write) } else { None };
            if let Some(next) = next {
                self.loop_left_bytes -= next.len as u64;
                return Some(next);
            }
            if self.loop_left_bytes >= least && self.outline.io_bytes.is_some() {
                self.begin_pass();
            } else if !self.begin_loop() {
                return None;
            }
            // What is left for this direction is less than its smallest block: never.
            if self.loop_left_bytes < least {
                return None;
            }
        }
    }
}

impl Iterator for Sequence {
    type Item = Next;

    fn next(&mut self) -> Option<Next> {
        let write = self.writes_next();
        self.next_of(write)
    }
}

#[cfg(test)]
mod tests;
