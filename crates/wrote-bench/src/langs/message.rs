//! Makes lines of other programs' output safe and short for a terminal.

const CHARS_MAX: usize = 200;

/// Trims a line, replaces control characters, and truncates it to `chars_max`.
pub(super) fn shown(line: &str, chars_max: usize) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    let mut letters = line.trim_matches(is_blank).chars();
    let mut shown: String = letters.by_ref().take(chars_max).map(plain).collect();
    if letters.next().is_some() {
        shown.push_str("..");
    }
    shown
}

/// Returns the most informative line of an error message: the last that reports an error (many
/// languages print its origin first), else the last.
pub(super) fn complaint(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let names_error = |line: &&str| {
        let from_start = !line.starts_with(char::is_whitespace);
        from_start && ["rror", "xception", "panic"].iter().any(|word| line.contains(word))
    };
    let line = lines().rfind(names_error).or_else(|| lines().next_back())?;
    Some(shown(line, CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stderr: &str) -> String {
        complaint(stderr.as_bytes()).unwrap()
    }

    #[test]
    fn the_line_that_names_the_error_is_found_in_what_each_language_prints() {
        let java = "Exception in thread \"main\" java.io.IOException: No space left on device\n\
                    \tat java.base/java.io.FileOutputStream.writeBytes(Native Method)\n\
                    \tat Main.main(Main.java:9)\n";
        assert!(told(java).ends_with("No space left on device"));
        let node = "node:fs:441\n    return binding.open(\n\nError: ENOENT: no such file, open \
                    'x'\n    \
                    at Object.openSync (node:fs:561:18) {\n  errno: -2\n}\n\nNode.js v22.1.0\n";
        assert_eq!(told(node), "Error: ENOENT: no such file, open 'x'");
        let python = "Traceback (most recent call last):\n  File \"m.py\", line 3\nOSError: no\n";
        assert_eq!(told(python), "OSError: no");
        let go = "panic: open x: permission denied\n\ngoroutine 1 [running]:\nmain.main()\n";
        assert_eq!(told(go), "panic: open x: permission denied");
        assert_eq!(told("cannot open x\n\n"), "cannot open x");
        assert_eq!(complaint(b" \n"), None);
    }

    #[test]
    fn a_long_line_is_cut_and_no_control_character_is_left() {
        assert_eq!(shown("\u{1b}[2Jabc\u{7}d", 100), "[2Jabc d");
        assert_eq!(shown("äöü", 3), "äöü");
        assert_eq!(shown("äöüx", 3), "äöü..");
        assert!(complaint(&[b'x'; 100_000]).unwrap().len() < 210);
        assert_eq!(complaint(b"\xff\xfe bad\n").unwrap(), "\u{fffd}\u{fffd} bad");
    }
}
