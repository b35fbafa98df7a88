//! Disk space shared between ranks, and their device.

use crate::request::Request;
use std::path::PathBuf;
use wrote::device::Target;
use wrote_jobs::findings::{Sharing, User};
use wrote_jobs::machine::space;
use wrote_jobs::machine::target::device_of;
use wrote_jobs::peers::Peers;
use wrote_result::Error;

/// Returns the disk with the space that a rank may use, the same for each, so that all plan alike.
///
/// A disk's space is divided between the ranks that use it. If no block device identifies disks, as
/// on network storage, all ranks are assumed to share one.
///
/// # Errors
///
/// Like [`Peers::meet`].
pub fn share(target: &Target, peers: &dyn Peers) -> Result<Target, Error> {
    if !peers.are_many() {
        return Ok(target.clone());
    }
    let device = device_of(target).map(|device| device.name.clone());
    let mine = (device, target.capacity_bytes, target.free_bytes, target.path.clone());
    let places = peers.places();
    let (path, capacity_bytes, free_bytes) = peers.agree("the room", mine, |all| {
        let users = |rank: usize| {
            let shares = |(other, theirs): (usize, &(Option<String>, u64, u64, PathBuf))| {
                let is_beside = places.of_rank[other] == places.of_rank[rank];
                theirs.0 == all[rank].0 && (is_beside || theirs.0.is_none())
            };
            all.iter().enumerate().filter(|one| shares(*one)).count() as u64
        };
        let rooms = all.iter().enumerate().map(|(rank, (_, capacity_bytes, free_bytes, path))| {
            let room_bytes = space::budget(*capacity_bytes, *free_bytes);
            let kept_bytes = free_bytes - room_bytes;
            (room_bytes / users(rank), *capacity_bytes, kept_bytes, path.clone())
        });
        let known = rooms.filter(|(_, capacity_bytes, ..)| *capacity_bytes > 0);
        let least = known.min().map(|(room_bytes, capacity_bytes, kept_bytes, path)| {
            (path, capacity_bytes, room_bytes + kept_bytes)
        });
        Ok(least.unwrap_or((all[0].3.clone(), 0, 0)))
    })?;
    // The path with the least space, for error messages.
    let mut shared = target.clone();
    (shared.path, shared.capacity_bytes, shared.free_bytes) = (path, capacity_bytes, free_bytes);
    Ok(shared)
}

/// Returns the information about ranks that findings need; only on rank 0.
pub(crate) fn of(
    target: &Target,
    request: &Request,
    peers: &dyn Peers,
) -> Result<Option<Sharing>, Error> {
    if !peers.are_many() {
        return Ok(None);
    }
    let device = device_of(target).map(|device| device.name.clone());
    let user = User { path: request.path.display().to_string(), device };
    let users = peers.gather("the devices", user)?;
    let places = peers.places();
    let shift = request.ranks.reorder.then(|| peers.shift());
    let ranks = places.shown(request.ranks.files, shift);
    let own_paths = request.ranks.own_paths;
    Ok(peers.is_first().then_some(Sharing { ranks, users, own_paths }))
}
