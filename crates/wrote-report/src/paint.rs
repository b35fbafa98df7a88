//! Colours and marks.

use crate::Screen;
use anstyle::{AnsiColor, Style};
use wrote_result::document::Survives;

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No colour.
    #[default]
    Plain,
    /// A heading.
    Strong,
    /// Something of little importance.
    Faint,
    /// Danger, such as a write that survives nothing.
    Red,
    /// Caution, such as a warning or a write that survives a process crash.
    Yellow,
    /// Good to know, such as a write that survives an OS crash.
    Cyan,
    /// Safe, such as a write that survives a power loss.
    Green,
}

impl Tone {
    /// Returns the tone for the worst event that a write survives.
    pub fn of_survives(survives: Option<Survives>) -> Tone {
        match survives {
            Some(Survives::Nothing) => Tone::Red,
            Some(Survives::ProcessCrash) => Tone::Yellow,
            Some(Survives::OsCrash) => Tone::Cyan,
            Some(Survives::PowerLoss) => Tone::Green,
            None => Tone::Plain,
        }
    }

    /// Returns the text in this tone, if the screen has colours.
    pub fn paint(self, text: &str, screen: Screen) -> String {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        let style = match self {
            _ if !screen.colour => Style::new(),
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Red => colour(AnsiColor::Red),
            Tone::Yellow => colour(AnsiColor::Yellow),
            Tone::Cyan => colour(AnsiColor::Cyan),
            Tone::Green => colour(AnsiColor::Green),
        };
        format!("{style}{text}{style:#}")
    }
}

/// A mark after a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// No mark: a space.
    None,
    /// The best row, or the knee of a curve.
    Best,
    /// A row without a measurable difference from the best row.
    Level,
    /// A rate that was missed.
    Missed,
    /// A row that was not measured as requested.
    FellBack,
    /// A warning or a failure.
    Warning,
}

impl Mark {
    /// Returns the mark as the screen can show it.
    pub fn on(self, screen: Screen) -> &'static str {
        match (self, screen.unicode) {
            (Mark::None, _) => " ",
            (Mark::Best, true) => "◀",
            (Mark::Best, false) => "<",
            (Mark::Level, true) => "≈",
            (Mark::Level, false) => "=",
            (Mark::Missed, _) => "~",
            (Mark::FellBack, _) => "*",
            (Mark::Warning, _) => "!",
        }
    }
}

/// Replaces the only character that ASCII lacks, if the screen can't show it.
pub fn ascii(text: &str, screen: Screen) -> String {
    if screen.unicode { text.to_owned() } else { text.replace('±', "+-") }
}
