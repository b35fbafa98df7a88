//! Quotes commands that users paste into a shell.

/// Returns a command line quoted for a shell.
pub fn quoted(command: &[impl AsRef<str>]) -> String {
    let words = || command.iter().map(AsRef::as_ref);
    shlex::try_join(words()).unwrap_or_else(|_| words().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let command = ["wrote", "bench", "/mnt/my disk", "--size", "$1"];
        assert_eq!(quoted(&command), "wrote bench '/mnt/my disk' --size '$1'");
    }
}
