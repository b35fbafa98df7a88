//! The names of objects: segments, their checksums, and segments that are put there in parts.

use crate::content::Checksum;
use wrote::log::Segment;

/// Stands between a segment's name and its checksum.
const CHECKSUM: &str = ".xxh3-";

/// Separates a segment's name from the mark of a multipart upload.
const STAGED: &str = ".staged-";

/// The meaning of an object's name, without the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// A segment: its bytes are the file's.
    Segment(u64),
    /// An empty object whose name states the checksum of a segment.
    Checksum(u64, Checksum),
    /// A long segment that does not have its own name yet.
    Staged(u64),
}

impl Name {
    /// Parses a name; `None` if it is not one of this program's.
    pub(crate) fn read(name: &str) -> Option<Name> {
        if let Some(number) = Segment::number_in(name) {
            return Some(Name::Segment(number));
        }
        if let Some((segment, checksum)) = name.split_once(CHECKSUM) {
            return Some(Name::Checksum(Segment::number_in(segment)?, Checksum::read(checksum)?));
        }
        let (segment, _) = name.split_once(STAGED)?;
        Segment::number_in(segment).map(Name::Staged)
    }
}

pub(crate) fn checksum_name(number: u64, checksum: Checksum) -> String {
    format!("{}{CHECKSUM}{checksum}", Segment::name(number))
}

pub(crate) fn staged_name(number: u64, mark: u64) -> String {
    format!("{}{STAGED}{mark:016x}", Segment::name(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_others_are_none() {
        let checksum = Checksum::of(b"a segment");
        for (name, read) in [
            (Segment::name(7), Name::Segment(7)),
            (checksum_name(7, checksum), Name::Checksum(7, checksum)),
            (staged_name(7, 1), Name::Staged(7)),
        ] {
            assert_eq!(Name::read(&name), Some(read), "{name}");
            assert!(
                name >= Segment::name(7) && name < Segment::name(8),
                "sorts beside its segment"
            );
        }
        for other in ["lock", "7.segment", "00000000000000000007.segment.xxh3-zz", "manifest"] {
            assert_eq!(Name::read(other), None, "{other}");
        }
    }
}
