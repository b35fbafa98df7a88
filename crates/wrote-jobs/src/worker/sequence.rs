//! A generator of a job's operations from its seed: the file, offset and length of each.

mod permutation;
mod spread;

use crate::spec::{BlockSizes, Distribution, JobSpec, Rw};
use permutation::Permutation;
use rand::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use spread::{Spread, below};
use std::ops::Range;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub write: bool,
    pub file: usize,
    pub offset: u64,
    pub len: usize,
}

/// A job, and the range of bytes that it uses in each of its files.
#[derive(Clone, Debug)]
pub struct Outline {
    pub spec: JobSpec,
    pub regions: Vec<Range<u64>>,
}

impl Outline {
    /// Returns the number of loops; `None` if the job repeats until the caller ends it.
    fn loops(&self) -> Option<u32> {
        (!self.spec.pace.time_based).then_some(self.spec.pace.loops)
    }

    /// Returns the directions of the job; `true` means writes.
    fn directions(&self) -> impl Iterator<Item = bool> {
        [(false, self.spec.order.rw.read), (true, self.spec.order.rw.write)]
            .into_iter()
            .filter_map(|(write, is)| is.then_some(write))
    }

    /// Returns whether each block is used once before any block is used again. With several sizes,
    /// this is possible only if operations are cut at used blocks.
    pub fn maps(&self) -> bool {
        self.spec.order.rw.random
            && !self.spec.order.norandommap
            && self.spec.order.percentage_random.is_none()
            && (self.spec.one_size().is_some() || self.spec.order.as_fio)
            && self.spec.order.random_distribution == Distribution::Uniform
    }

    /// Returns the size of a block in the map of used blocks; `None` unless operations of several
    /// sizes are cut at used blocks.
    fn cut_unit(&self) -> Option<u64> {
        let least = self.spec.used_sizes().map(BlockSizes::least_bytes).min();
        least.filter(|_| self.maps() && self.spec.one_size().is_none())
    }

    /// Returns whether an operation may overlap a recent one.
    pub fn comes_again(&self) -> bool {
        self.spec.order.rw.random && !self.maps()
            || self.spec.pace.io_bytes.is_some()
            || self.loops() != Some(1)
    }

    /// Returns the number of bytes in one loop. By default, each region is used once.
    fn loop_bytes(&self) -> u64 {
        let pass = || self.regions.iter().map(|region| region.end - region.start).sum();
        let bytes: u64 = self.spec.pace.io_bytes.unwrap_or_else(pass);
        bytes.min(self.spec.number_ios_bytes().unwrap_or(u64::MAX))
    }

    fn loop_ios(&self) -> u64 {
        self.spec.pace.number_ios.unwrap_or(u64::MAX)
    }

    /// Returns approximately how many bytes the job transfers; `None` if only its time limit ends
    /// it.
    pub fn total_bytes(&self) -> Option<u64> {
        self.loops().map(|loops| self.loop_bytes().saturating_mul(loops.into()))
    }
}

/// The order in which offsets follow each other, chosen before the clock starts.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// Each operation begins where the previous one of its direction ended.
    InOrder,
    Random,
    /// These percentages of the reads and of the writes are at a random offset. The others follow
    /// the previous operation.
    Mixed([u32; 2]),
}

/// One file, and how much of it has been used.
#[derive(Clone, Debug)]
struct Place {
    start: u64,
    len_bytes: u64,
    /// The positions at which the next read and the next write of a sequential job begin. As in
    /// fio, each direction continues where its last operation ended.
    positions: [u64; 2],
    /// The order of the blocks of a random job that uses each block once.
    order: Option<Permutation>,
    taken: u64,
    /// The map of used blocks, if operations are cut at these. The entry of an unused block is its
    /// own number. The entry of a used block is a later block, which leads to the next unused one.
    /// The number of blocks marks the end.
    unused: Vec<u32>,
    /// The distributions over the blocks of a random job without such an order, for reads and for
    /// writes.
    spreads: [Spread; 2],
}

impl Place {
    /// Returns the first unused block at or after `block`.
    fn unused_from(&mut self, mut block: usize) -> usize {
        while self.unused[block] as usize != block {
            self.unused[block] = self.unused[self.unused[block] as usize];
            block = self.unused[block] as usize;
        }
        block
    }
}

/// A job's operations, in order. Equal outlines give equal operations, so a clone made at the start
/// can repeat them later.
#[derive(Clone, Debug)]
pub struct Sequence {
    outline: Outline,
    places: Vec<Place>,
    walk: Walk,
    /// The size of each direction, if it has only one size.
    one: [Option<u64>; 2],
    least: [u64; 2],
    chance: Xoshiro256PlusPlus,
    /// The index of the next file. The files are used in turn.
    turn: usize,
    loop_left_bytes: u64,
    /// The number of operations left in the loop. It matters only if sizes are drawn; otherwise,
    /// the loop ends when no bytes are left.
    loop_left_ios: u64,
    loops_left: Option<u32>,
    passes: u64,
    maps: bool,
    /// See [`Outline::cut_unit`].
    cut_unit: Option<u64>,
}

impl Sequence {
    /// Returns the sequence of operations. `None` if, in some direction, no file has room for the
    /// smallest block, because the sequence would never end.
    pub fn new(outline: Outline) -> Option<Sequence> {
        let order = &outline.spec.order;
        let least = [false, true].map(|write| order.sizes(write).least_bytes());
        let room = |write: bool| {
            let least = least[usize::from(write)];
            least > 0 && outline.regions.iter().any(|region| region.end - region.start >= least)
        };
        if outline.loops() == Some(0) || !outline.directions().all(room) {
            return None;
        }
        let one = [false, true].map(|write| order.sizes(write).only());
        // With several sizes, operations are counted where their sizes are drawn.
        let counted = outline.spec.pace.number_ios.is_some() && outline.spec.one_size().is_none();
        let one = if counted { [None; 2] } else { one };
        let spreads = |number: usize, region: &Range<u64>| {
            let (distribution, len_bytes) = (&order.random_distribution, region.end - region.start);
            let key = outline.spec.seed ^ number as u64;
            least.map(|least| Spread::new(distribution, len_bytes / least.max(1), key))
        };
        let places = outline.regions.iter().enumerate().map(|(number, region)| Place {
            start: region.start,
            len_bytes: region.end - region.start,
            positions: [0; 2],
            order: None,
            taken: 0,
            unused: Vec::new(),
            spreads: spreads(number, region),
        });
        let places = places.collect();
        let walk = match order.rw.random {
            true => order.percentage_random.map_or(Walk::Random, Walk::Mixed),
            false => Walk::InOrder,
        };
        let mut sequence = Sequence {
            places,
            walk,
            one,
            least,
            chance: Xoshiro256PlusPlus::seed_from_u64(outline.spec.seed),
            turn: 0,
            loop_left_bytes: outline.loop_bytes(),
            loop_left_ios: outline.loop_ios(),
            loops_left: outline.loops().map(|loops| loops - 1),
            passes: 0,
            maps: outline.maps(),
            cut_unit: outline.cut_unit(),
            outline,
        };
        sequence.begin_pass();
        Some(sequence)
    }

    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    fn writes_next(&mut self) -> bool {
        match self.outline.spec.order.rw {
            Rw { read: true, write: true, .. } => {
                below(&mut self.chance, 100) >= u64::from(self.outline.spec.order.rwmixread_percent)
            }
            Rw { write, .. } => write,
        }
    }

    /// Draws a size according to the shares. If the size exceeds `most`, returns the largest size
    /// that does not. `most` is at least the smallest size.
    fn size(&mut self, write: bool, most: u64) -> u64 {
        if let Some(one) = self.one[usize::from(write)] {
            return one;
        }
        let sizes = self.outline.spec.order.sizes(write);
        let chosen = match sizes {
            BlockSizes::Split(shares) => {
                let mut left = below(&mut self.chance, 100);
                let chosen = shares.iter().find(|share| {
                    let is = left < u64::from(share.percent);
                    left = left.saturating_sub(share.percent.into());
                    is
                });
                chosen.or(shares.last()).map_or(most, |share| share.bytes)
            }
            BlockSizes::Range { least_bytes, most_bytes } => {
                (below(&mut self.chance, most_bytes / least_bytes) + 1) * least_bytes
            }
        };
        let size = if chosen <= most { chosen } else { sizes.at_most(most).unwrap_or(most) };
        self.loop_left_ios -= 1;
        if self.loop_left_ios == 0 {
            self.loop_left_bytes = size;
        }
        size
    }

    /// Begins a new pass, at the start of each file. Each pass has a different order.
    fn begin_pass(&mut self) {
        let one = self.outline.spec.one_size().filter(|_| self.maps);
        for (number, place) in self.places.iter_mut().enumerate() {
            place.positions = [0; 2];
            place.taken = 0;
            let key = self.outline.spec.seed ^ (self.passes << 20) ^ number as u64;
            let key = SplitMix64::seed_from_u64(key).next_u64();
            if let Some(unit) = self.cut_unit {
                place.unused.clear();
                place.unused.extend(0..=(place.len_bytes / unit) as u32);
            }
            place.order = one.map(|bytes| Permutation::new(place.len_bytes / bytes, key));
        }
        self.passes += 1;
    }

    /// Begins the next loop. Returns `false` if there are no more loops.
    fn begin_loop(&mut self) -> bool {
        match &mut self.loops_left {
            Some(0) => return false,
            Some(left) => *left -= 1,
            None => {}
        }
        self.loop_left_bytes = self.outline.loop_bytes();
        self.loop_left_ios = self.outline.loop_ios();
        self.begin_pass();
        true
    }

    /// Returns the next operation of the pass in this direction; `None` if no file has room for
    /// one.
    #[inline]
    fn place(&mut self, write: bool) -> Option<Next> {
        for _ in 0..self.places.len() {
            let file = self.turn;
            self.turn = if file + 1 == self.places.len() { 0 } else { file + 1 };
            let next = match self.walk {
                Walk::Random => self.anywhere(write, file),
                Walk::InOrder => {
                    let position = self.places[file].positions[usize::from(write)];
                    self.along(write, file, position)
                }
                Walk::Mixed(percents) => {
                    self.here_or_anywhere(write, file, percents[usize::from(write)])
                }
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Returns the operation at this position in a file's region; `None` if there is no room for
    /// it.
    #[inline]
    fn along(&mut self, write: bool, file: usize, position: u64) -> Option<Next> {
        let place = &self.places[file];
        let offset = place.start + position;
        let room = (place.len_bytes - position).min(self.loop_left_bytes);
        if room < self.least[usize::from(write)] {
            return None;
        }
        let len = self.size(write, room);
        self.places[file].positions[usize::from(write)] = position + len;
        Some(Next { write, file, offset, len: len as usize })
    }

    /// Returns an operation at a random offset; `None` if every block has been used, or if there is
    /// no room.
    // Inlining this saves the caller 35 instructions for each random operation.
    #[inline(always)]
    fn anywhere(&mut self, write: bool, file: usize) -> Option<Next> {
        if let Some(unit) = self.cut_unit {
            return self.cut(write, file, unit);
        }
        let least = self.least[usize::from(write)];
        let place = &mut self.places[file];
        let (start, len_bytes) = (place.start, place.len_bytes);
        if let Some(order) = &place.order {
            if place.taken == order.count() {
                return None;
            }
            let offset = start + order.at(place.taken) * least;
            place.taken += 1;
            return Some(Next { write, file, offset, len: least as usize });
        }
        let room = len_bytes.min(self.loop_left_bytes);
        if room < least {
            return None;
        }
        let len = self.size(write, room);
        let blocks = (len_bytes - len) / least + 1;
        let offset = start
            + self.places[file].spreads[usize::from(write)].draw(&mut self.chance, blocks) * least;
        Some(Next { write, file, offset, len: len as usize })
    }

    /// Returns an operation of a drawn size that begins at an unused block and ends at the latest
    /// before a used one. As in fio, it begins at the first unused block after a random position.
    /// `None` if every block has been used.
    fn cut(&mut self, write: bool, file: usize, unit: u64) -> Option<Next> {
        let place = &mut self.places[file];
        let count = place.unused.len() - 1;
        let drawn = below(&mut self.chance, count as u64) as usize;
        let first = [drawn, 0].into_iter().map(|from| place.unused_from(from));
        let first = first.into_iter().find(|first| *first < count)?;
        let room = (place.len_bytes - first as u64 * unit).min(self.loop_left_bytes).max(unit);
        let wanted = self.size(write, room);
        let place = &mut self.places[file];
        let mut end = first;
        while end < count
            && end - first < wanted.div_ceil(unit) as usize
            && place.unused[end] as usize == end
        {
            place.unused[end] += 1;
            end += 1;
        }
        let offset = place.start + first as u64 * unit;
        let len = wanted.min((end - first) as u64 * unit) as usize;
        Some(Next { write, file, offset, len })
    }

    /// Returns an operation at a random offset with a probability of `percent` percent, and
    /// otherwise one that follows the previous operation, if there is room for it. `None` under the
    /// conditions of [`Sequence::anywhere`].
    fn here_or_anywhere(&mut self, write: bool, file: usize, percent: u32) -> Option<Next> {
        let is_random = below(&mut self.chance, 100) < u64::from(percent);
        let position = self.places[file].positions[usize::from(write)];
        let along = if is_random { None } else { self.along(write, file, position) };
        let next = along.or_else(|| self.anywhere(write, file))?;
        let place = &mut self.places[file];
        place.positions[usize::from(write)] = next.offset - place.start + next.len as u64;
        Some(next)
    }

    /// Returns the next operation in a direction; `None` if none is left.
    #[inline]
    pub fn next_of(&mut self, write: bool) -> Option<Next> {
        let least = self.least[usize::from(write)];
        loop {
            let next = if self.loop_left_bytes >= least { self.place(write) } else { None };
            if let Some(next) = next {
                self.loop_left_bytes -= next.len as u64;
                return Some(next);
            }
            if self.loop_left_bytes >= least && self.outline.spec.pace.io_bytes.is_some() {
                self.begin_pass();
            } else if !self.begin_loop() {
                return None;
            }
            // The rest of the loop is smaller than the smallest block of this direction.
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
