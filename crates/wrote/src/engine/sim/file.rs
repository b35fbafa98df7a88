//! A file of a simulated disk: its stable bytes, and the bytes that the running system sees.

use super::Chance;
use crate::engine::op::Request;
use std::collections::HashSet;

/// The unit that a drive writes atomically.
pub(super) const SECTOR_BYTES: usize = 512;

#[derive(Default)]
pub(super) struct SimFile {
    /// The bytes on stable storage.
    pub stable: Vec<u8>,
    /// The bytes that the running system sees.
    pub cached: Vec<u8>,
    /// The sectors that a failed flush lost. Later flushes skip them, unless they have been
    /// rewritten.
    pub lost: HashSet<usize>,
    /// The number of descriptors that have the file open, over all boots.
    pub opened: usize,
}

impl SimFile {
    /// Makes all bytes stable, except sectors that a failed flush lost.
    pub(super) fn flush(&mut self) {
        let SimFile { stable, cached, lost, .. } = self;
        if lost.is_empty() {
            return stable.clone_from(cached);
        }
        stable.resize(cached.len(), 0);
        for (sector, bytes) in cached.chunks(SECTOR_BYTES).enumerate() {
            if !lost.contains(&sector) {
                stable[sector * SECTOR_BYTES..][..bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    fn unstable(&self) -> Vec<usize> {
        let is_stable = |(sector, bytes): (usize, &[u8])| {
            let start = sector * SECTOR_BYTES;
            self.stable.get(start..start + bytes.len()) == Some(bytes)
        };
        let sectors = self.cached.chunks(SECTOR_BYTES).enumerate();
        sectors.filter(|&sector| !is_stable(sector)).map(|(sector, _)| sector).collect()
    }

    /// Makes some unstable sectors stable, and marks the others as lost.
    pub(super) fn lose_some(&mut self, chance: &mut Chance) {
        self.harden_some(chance);
        self.lost.extend(self.unstable());
    }

    pub(super) fn harden_some(&mut self, chance: &mut Chance) {
        for sector in self.unstable() {
            if !self.lost.contains(&sector) && chance.below(2) == 0 {
                let start = sector * SECTOR_BYTES;
                let end = (start + SECTOR_BYTES).min(self.cached.len());
                self.stable.resize(self.stable.len().max(end), 0);
                self.stable[start..end].copy_from_slice(&self.cached[start..end]);
            }
        }
    }

    /// Discards the pages of lost sectors, so that later reads return what is on the disk.
    pub(super) fn forget_lost(&mut self) {
        for sector in self.lost.drain() {
            let start = sector * SECTOR_BYTES;
            let end = (start + SECTOR_BYTES).min(self.cached.len());
            for place in start..end {
                self.cached[place] = self.stable.get(place).copied().unwrap_or(0);
            }
        }
    }

    /// Flips bits of a byte, both as the running system sees it and on stable storage.
    pub(super) fn rot(&mut self, at: usize, bits: u8) {
        self.cached[at] ^= bits;
        if let Some(byte) = self.stable.get_mut(at) {
            *byte ^= bits;
        }
    }

    pub(super) fn write(&mut self, request: &Request, len: usize) {
        let start = request.offset as usize;
        // SAFETY: the engine keeps the request's bytes valid until it is done (W5).
        let bytes = unsafe { std::slice::from_raw_parts(request.address, len) };
        if len > 0 {
            self.cached.resize(self.cached.len().max(start + len), 0);
            self.cached[start..start + len].copy_from_slice(bytes);
            let sectors = start / SECTOR_BYTES..=(start + len - 1) / SECTOR_BYTES;
            sectors.for_each(|sector| _ = self.lost.remove(&sector));
        }
    }

    /// Makes a range of the file stable, and extends the file's stable length only as far as the
    /// range requires: `RWF_DSYNC` promises no more.
    pub(super) fn harden(&mut self, start: usize, len: usize) {
        if len == 0 {
            return;
        }
        let end = start + len;
        self.stable.resize(self.stable.len().max(end), 0);
        self.stable[start..end].copy_from_slice(&self.cached[start..end]);
    }

    pub(super) fn read(&self, request: &Request, offset: u64, bytes_max: u64) -> usize {
        let there = self.cached.get(offset as usize..).unwrap_or_default();
        // A disk never returns 0 bytes inside a file, because that would mean its end (`read(2)`).
        let len = there.len().min(request.len.min(bytes_max.max(1)) as usize);
        // SAFETY: as in `write`, and `len` is at most the request's.
        let bytes = unsafe { std::slice::from_raw_parts_mut(request.address, len) };
        bytes.copy_from_slice(&there[..len]);
        len
    }
}
