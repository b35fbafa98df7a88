//! Error answers of group commands.

use crate::cursors::Fault;

pub(super) fn refused(fault: &Fault, name: &[u8]) -> Vec<u8> {
    let name = name[..name.len().min(128)].escape_ascii();
    let text = match fault {
        Fault::Exists => "BUSYGROUP Consumer Group name already exists".to_owned(),
        Fault::Unknown => format!("NOGROUP No such consumer group '{name}'"),
        Fault::Taken(reader) => format!(
            "ERR group '{name}' is read by '{reader}', which is connected: a group has one reader"
        ),
        Fault::Refused(because) => format!("ERR {because}"),
    };
    format!("-{text}\r\n").into_bytes()
}
