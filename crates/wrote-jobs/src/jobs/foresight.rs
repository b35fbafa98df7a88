//! A prediction of the files that each group will find, made before the run creates or changes any.

use super::files::{Files, Found};
use super::place::{Identity, Kind, allocated_bytes, file_key};
use crate::machine::target;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wrote_result::{Error, units};

/// The files that the groups added so far create or write.
#[derive(Default)]
pub struct Foresight {
    files: BTreeMap<Identity, Foreseen>,
}

struct Foreseen {
    path: PathBuf,
    found: Found,
    /// The offset up to which jobs with a size write into the file; 0 if there are none.
    grows_to: u64,
    /// Whether the group removes the file at its end (`unlink`).
    removed: bool,
}

impl Foresight {
    /// Returns the state in which the next group will find the file.
    pub fn find(&self, path: &Path) -> Result<Found, Error> {
        match self.files.get(&Identity::of(path)) {
            Some(foreseen) if !foreseen.removed => Ok(foreseen.found),
            _ => Found::now(path),
        }
    }

    /// Adds the files that a group leaves behind.
    pub fn pass(&mut self, files: &Files) {
        for using in files.all() {
            let end = using.region.end;
            let (len_bytes, ours) = match using.found.kind {
                Kind::Missing => (end, true),
                Kind::File { len_bytes } if using.spec.order.rw.write => {
                    (len_bytes.max(end), using.found.ours)
                }
                Kind::File { .. } | Kind::Device { .. } => continue,
            };
            let foreseen = self.files.entry(Identity::of(using.path)).or_insert(Foreseen {
                path: file_key(using.path),
                found: Found { kind: Kind::File { len_bytes: 0 }, ours, will_change: true },
                grows_to: 0,
                removed: false,
            });
            if std::mem::take(&mut foreseen.removed) {
                foreseen.found.kind = Kind::File { len_bytes: 0 };
            }
            if let Kind::File { len_bytes: len } = &mut foreseen.found.kind {
                *len = len_bytes.max(*len);
            }
            if using.spec.files.file_bytes.is_some() {
                foreseen.grows_to = end.max(foreseen.grows_to);
            }
        }
        // The group removes these files at its end.
        for using in files.all().filter(|using| using.spec.files.unlink) {
            if let Some(foreseen) = self.files.get_mut(&Identity::of(using.path)) {
                foreseen.removed = true;
            }
        }
    }

    /// Refuses files that would leave too little space free on a file system.
    pub fn check_space(&self) -> Result<(), Error> {
        let mut wanted: BTreeMap<PathBuf, (u64, wrote::device::Target)> = BTreeMap::new();
        for Foreseen { path, grows_to, .. } in self.files.values() {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let Ok(target) = wrote::device::examine(folder) else { continue };
            let entry = wanted.entry(target.mount_point.clone()).or_insert((0, target));
            entry.0 = entry.0.saturating_add(grows_to.saturating_sub(allocated_bytes(path)));
        }
        for (bytes, target) in wanted.values() {
            let budget = target::budget(target.capacity_bytes, target.free_bytes);
            if target.capacity_bytes > 0 && *bytes > budget {
                return Err(Error::Failed(format!(
                    "{}: {} of files do not fit: only {} may be used, so that enough stays free; \
                     give a smaller size",
                    target.mount_point.display(),
                    units::bytes(*bytes),
                    units::bytes(budget)
                )));
            }
        }
        Ok(())
    }
}
