//! Short names for paths, so that each can stand over a column.

use unicode_width::UnicodeWidthStr;

/// Wider titles make the columns too wide.
const TITLE_WIDTH_MAX: usize = 14;

/// A name for each path that none of the others has: the last of its components, as many as it
/// takes; `path 2` where that is too long.
pub fn titles(paths: &[&str]) -> Vec<String> {
    let title = |(number, path): (usize, &&str)| match unique_end(path, paths) {
        Some(end) if end.width() <= TITLE_WIDTH_MAX => end,
        _ => format!("path {}", number + 1),
    };
    paths.iter().enumerate().map(title).collect()
}

/// The shortest end of a path, in whole components, by which it is told apart from the others;
/// `None` where even all of it is the end of another one as well.
fn unique_end(path: &str, paths: &[&str]) -> Option<String> {
    let components = path.split('/').filter(|component| !component.is_empty()).count();
    (1..=components.max(1)).map(|count| end(path, count)).find(|title| {
        let count = title.split('/').count();
        paths.iter().filter(|other| end(other, count) == *title).count() == 1
    })
}

/// The last `count` components; of the root, which has none, itself.
fn end(path: &str, count: usize) -> String {
    let components: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    match components.len() {
        0 => path.to_owned(),
        all => components[all.saturating_sub(count)..].join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_called_by_its_last_component() {
        assert_eq!(titles(&["/mnt/ssd", "/mnt/usb/", "/dev/shm"]), ["ssd", "usb", "shm"]);
        assert_eq!(titles(&["/", "."]), ["/", "."]);
    }

    #[test]
    fn as_many_components_are_told_as_tell_two_paths_apart() {
        assert_eq!(titles(&["/a/x/t", "/a/y/t", "/z"]), ["x/t", "y/t", "z"]);
        assert_eq!(titles(&["/t", "/a/t"]), ["path 1", "a/t"]);
        assert_eq!(titles(&["/t", "t"]), ["path 1", "path 2"]);
    }

    #[test]
    fn a_long_name_gives_way_to_a_number() {
        assert_eq!(titles(&["/a", "/a-name-that-is-very-long"]), ["a", "path 2"]);
    }
}
