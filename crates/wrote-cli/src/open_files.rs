//! Paths that lead to files which this process has open, such as `/dev/stdout` and `/dev/fd/3`.

use std::path::Path;

/// Standard input's descriptor.
pub const STDIN: u32 = 0;
/// Standard output's descriptor.
pub const STDOUT: u32 = 1;

/// Returns the descriptor that the path leads to. `-` is not one of these.
pub fn descriptor(path: &Path) -> Option<u32> {
    let path = path.to_str()?;
    match path {
        "/dev/stdin" => return Some(STDIN),
        "/dev/stdout" => return Some(STDOUT),
        "/dev/stderr" => return Some(2),
        _ => {}
    }
    let own = format!("/proc/{}/fd/", std::process::id());
    ["/dev/fd/", "/proc/self/fd/", &own]
        .iter()
        .find_map(|folder| path.strip_prefix(folder)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_open_files_have_a_descriptor() {
        let own = format!("/proc/{}/fd/7", std::process::id());
        for (path, wanted) in [
            ("/dev/stdin", Some(STDIN)),
            ("/dev/stdout", Some(STDOUT)),
            ("/dev/stderr", Some(2)),
            ("/dev/fd/63", Some(63)),
            ("/proc/self/fd/1", Some(STDOUT)),
            (own.as_str(), Some(7)),
            ("/dev/fd/x", None),
            ("/dev/fd", None),
            ("/dev/null", None),
            ("-", None),
            ("1", None),
        ] {
            assert_eq!(descriptor(Path::new(path)), wanted, "{path}");
        }
    }
}
