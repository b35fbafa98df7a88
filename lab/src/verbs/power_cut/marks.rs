//! Marks in the log of a `log-writes` device, one for each line that a subject reports.
//!
//! The device's log contains its writes in the order in which they became stable. A mark follows
//! every flush that completed before the mark was sent. The marked promise can therefore depend
//! only on the writes before the mark (the kernel's
//! `Documentation/admin-guide/device-mapper/log-writes.rst`).
//!
//! `dmsetup message` could do the same, but it starts a process for each line, which would make the
//! position of the promise less exact.

use crate::verbs::Trouble;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

/// The device's log, opened for writing marks.
pub struct Marks {
    control: File,
    /// The device's name in `/dev/mapper`, or the path of a file in `lab strange-fs`.
    device: String,
    /// The name of the subject. Each mark begins with it.
    subject: String,
}

/// `struct dm_ioctl` of `linux/dm-ioctl.h`, followed by the target's message.
#[repr(C)]
struct Message {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
    /// The target's sector, which addresses a message to the target.
    sector: u64,
    text: [u8; TEXT_BYTES],
}

/// The maximum length of a mark's text, including a NUL.
const TEXT_BYTES: usize = 256;
/// The size of `struct dm_ioctl`.
const HEADER_BYTES: u32 = 312;
/// `DM_TARGET_MSG`.
const TARGET_MESSAGE: Opcode =
    opcode::from_components(rustix::ioctl::Direction::ReadWrite, 0xfd, 14, HEADER_BYTES as usize);

impl Marks {
    /// Opens the log of `/dev/mapper/DEVICE`, or the file of this path, for a subject.
    pub fn open(device: &str, subject: &str) -> Result<Marks, Trouble> {
        let control = if is_file(device) { device } else { "/dev/mapper/control" };
        let control = OpenOptions::new().read(true).write(true).open(control)?;
        Ok(Marks { control, device: device.to_owned(), subject: subject.to_owned() })
    }

    /// Adds a mark for a line of the subject. When the call returns, the mark is in the log.
    pub fn mark(&self, line: &str) -> Result<(), Trouble> {
        if is_file(&self.device) {
            return Ok(self.control.write_all_at(text(&self.subject, line).as_bytes(), 0)?);
        }
        let mut message = Message {
            version: [4, 0, 0],
            data_size: size_of::<Message>() as u32,
            data_start: HEADER_BYTES,
            target_count: 0,
            open_count: 0,
            flags: 0,
            event_nr: 0,
            padding: 0,
            dev: 0,
            name: padded(&self.device)?,
            uuid: [0; 129],
            data: [0; 7],
            sector: 0,
            text: padded(&format!("mark {}", text(&self.subject, line)))?,
        };
        // SAFETY: DM_TARGET_MSG reads and writes `data_size` bytes from the address it is given,
        // which `Updater` makes the address and length of `message`. Every string in it ends in
        // NUL.
        unsafe { ioctl(&self.control, Updater::<TARGET_MESSAGE, Message>::new(&mut message)) }?;
        Ok(())
    }
}

/// Returns whether `device` is the path of a file in `lab strange-fs` that marks are written to.
fn is_file(device: &str) -> bool {
    device.contains('/')
}

/// Returns the text of a mark, such as `save,{"Saved":17}`. It contains no spaces, because the
/// kernel splits messages at them.
fn text(subject: &str, line: &str) -> String {
    format!("{subject},{line}")
}

/// Returns the bytes of `text`, followed by at least one NUL.
fn padded<const BYTES: usize>(text: &str) -> Result<[u8; BYTES], Trouble> {
    let mut bytes = [0; BYTES];
    match bytes.get_mut(..text.len()) {
        Some(begin) if text.len() < BYTES => begin.copy_from_slice(text.as_bytes()),
        _ => return Err(format!("{text:?} is longer than {} bytes", BYTES - 1).into()),
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::power_cut::said::Line;
    use std::mem::offset_of;

    #[test]
    fn a_message_lies_as_the_kernel_wants_it() {
        assert_eq!(offset_of!(Message, sector), HEADER_BYTES as usize);
        assert_eq!(TARGET_MESSAGE, 0xc138_fd0e);
    }

    #[test]
    fn a_mark_is_one_word_with_the_subject_before_it() {
        let line = Line::Sending { producer: 1, end: 9 };
        let mark = text("log", &serde_json::to_string(&line).expect("a text"));
        assert_eq!(mark, r#"log,{"Sending":{"producer":1,"end":9}}"#);
        assert!(!mark.contains(' '));
    }

    #[test]
    fn a_text_that_leaves_no_room_for_its_end_is_refused() {
        assert_eq!(padded::<4>("abc").expect("short"), *b"abc\0");
        assert!(padded::<4>("abcd").is_err());
    }
}
