//! Colour, where the screen has it.

use anstyle::{AnsiColor, Style};
use wrote_result::document::Survives;

/// What a colour is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// No colour.
    Plain,
    /// A heading.
    Strong,
    /// Beside the point.
    Faint,
    /// Danger: survives nothing.
    Red,
    /// Care: a warning, survives a process crash.
    Yellow,
    /// Good to know: survives an OS crash.
    Cyan,
    /// Safe: survives a power loss.
    Green,
}

impl Tone {
    /// The tone of what a write survives.
    pub fn of_survives(survives: Option<Survives>) -> Tone {
        match survives {
            Some(Survives::Nothing) => Tone::Red,
            Some(Survives::ProcessCrash) => Tone::Yellow,
            Some(Survives::OsCrash) => Tone::Cyan,
            Some(Survives::PowerLoss) => Tone::Green,
            None => Tone::Plain,
        }
    }

    fn style(self) -> Style {
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
        match self {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Red => colour(AnsiColor::Red),
            Tone::Yellow => colour(AnsiColor::Yellow),
            Tone::Cyan => colour(AnsiColor::Cyan),
            Tone::Green => colour(AnsiColor::Green),
        }
    }
}

/// Colours text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    colour: bool,
}

impl Paint {
    pub fn new(colour: bool) -> Paint {
        Paint { colour }
    }

    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || tone == Tone::Plain {
            return text.to_owned();
        }
        let style = tone.style();
        format!("{style}{text}{style:#}")
    }
}
