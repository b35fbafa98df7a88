//! Commands and settings, ready to be pasted.

pub(super) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

pub(super) fn set_queue(disk: &str, file: &str, value: &str) -> String {
    let value = if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
    format!("echo {value} > {}", quoted(&format!("/sys/block/{disk}/queue/{file}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_spaces_or_quotes_stays_one_word_in_a_shell() {
        assert_eq!(quoted("/mnt/data-1"), "/mnt/data-1");
        assert_eq!(quoted("/mnt/my disk"), "'/mnt/my disk'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(rm)"), "'$(rm)'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_value_of_two_words_is_written_as_one() {
        assert_eq!(
            set_queue("sda", "write_cache", "write back"),
            "echo \"write back\" > /sys/block/sda/queue/write_cache"
        );
        assert_eq!(set_queue("c!d", "nomerges", "0"), "echo 0 > '/sys/block/c!d/queue/nomerges'");
    }
}
