//! Results as text on a screen.

use unicode_width::UnicodeWidthStr;
use wrote_report::{Content, Format, Screen};
use wrote_result::document::Document;

pub const PLAIN: Screen = Screen { width: 80, colour: false, unicode: true };

pub fn exported(document: &Document, format: Format, screen: Screen) -> String {
    let mut text = Vec::new();
    let content = Content::Result(Box::new(document.clone()));
    content.write(format, screen, &mut text).expect("memory takes everything");
    String::from_utf8(text).expect("exports are UTF-8")
}

pub fn assert_lines_fit(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
    }
}
