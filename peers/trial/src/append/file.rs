//! A file by hand: each message is written and flushed before the next one. It is a separate file,
//! as each way to append is.

use super::{Messages, crew};
use crate::Result;
use crate::outcome::Outcome;
use crate::place::{Place, sync_folder, zeros};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

/// The locked state.
struct Shared {
    file: File,
    next_offset: u64,
}

/// Appends to a file that grows by each message.
pub fn growing(messages: &Messages, path: &Path) -> Result<Outcome> {
    let place = Place::take(path)?;
    let file = File::create_new(path)?;
    sync_folder(path)?;
    one_by_one(messages, &place, file)
}

/// Writes over a file of zeros.
pub fn prepared(messages: &Messages, path: &Path) -> Result<Outcome> {
    let place = Place::take(path)?;
    one_by_one(messages, &place, zeros(path, messages.total_bytes())?)
}

fn one_by_one(messages: &Messages, place: &Place, file: File) -> Result<Outcome> {
    let shared = Mutex::new(Shared { file, next_offset: 0 });
    let step = |message: &[u8]| {
        let mut shared = shared.lock().map_err(|_| "a producer panicked")?;
        shared.file.write_all_at(message, shared.next_offset)?;
        shared.next_offset += message.len() as u64;
        Ok(shared.file.sync_data()?)
    };
    let appended = crew::append_each(messages, step)?;
    place.check_length(appended.bytes)?;
    Ok(appended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::append::Work;

    const WORK: Work = Work { messages: 20, producers: 1, shortest: 300, longest: 2000 };

    #[test]
    fn messages_stand_one_behind_the_other() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let messages = Messages::new(&WORK).expect("a range");
        let expected: Vec<u8> = messages.share(0).flatten().copied().collect();
        for (name, zeros_bytes) in [("grown", 0), ("prepared", messages.total_bytes())] {
            let path = folder.path().join("file");
            // A second name keeps the file that `Place` removes.
            let kept = folder.path().join(name);
            let place = Place::take(&path).expect("nothing there");
            let file = zeros(&path, zeros_bytes).expect("room");
            std::fs::hard_link(&path, &kept).expect("room");
            one_by_one(&messages, &place, file).expect("room");
            assert!(std::fs::read(&kept).expect("there") == expected);
        }
    }
}
