//! What a comparison comes to: the median and range of the pairs' ratios, and what is asked of it.

use std::fmt::{self, Display};

/// Figures in order; of each pair its own, so that what disturbs both of a pair cancels out.
#[derive(Debug)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// Puts them in order.
    pub fn new(figures: impl IntoIterator<Item = f64>) -> Figures {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Figures(figures)
    }

    /// The median; not a number where there are none.
    pub fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => self.0[n / 2],
            n => (self.0[n / 2 - 1] + self.0[n / 2]) / 2.0,
        }
    }
}

/// Median and range: "**1.00** (0.90–1.20)".
impl Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let low = self.0.first().copied().unwrap_or(f64::NAN);
        let high = self.0.last().copied().unwrap_or(f64::NAN);
        write!(formatter, "**{:.2}** ({low:.2}–{high:.2})", self.median())
    }
}

/// What is asked of a median of ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asked {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// No less than 0.95, and the range reaches 1.00: of seven pairs the range holds the true median
    /// with 98 % (each pair falls on either side of it like a coin, `1 - 2 / 2^7`).
    Level,
}

impl Asked {
    /// "≥ 1.00, met" or "≥ 1.00, not met", by the two decimals that the table shows.
    pub fn verdict(self, ratios: &Figures) -> String {
        let shown = |ratio: f64| (ratio * 100.0).round() / 100.0;
        let ratio = shown(ratios.median());
        let is_met = match self {
            Asked::AtLeast(least) => ratio >= least,
            Asked::AtMost(most) => ratio <= most,
            Asked::Level => {
                ratio >= 0.95 && ratios.0.last().is_some_and(|&high| shown(high) >= 1.0)
            }
        };
        format!("{self}, {}", if is_met { "met" } else { "not met" })
    }
}

impl Display for Asked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::AtLeast(least) => write!(formatter, "≥ {least:.2}"),
            Asked::AtMost(most) => write!(formatter, "≤ {most:.2}"),
            Asked::Level => formatter.write_str("≥ 0.95 and some ≥ 1.00"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_one_in_the_middle_or_between_the_two() {
        assert_eq!(Figures::new([3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Figures::new([4.0, 1.0, 2.0, 3.0]).median(), 2.5);
        assert!(Figures::new([]).median().is_nan());
    }

    #[test]
    fn median_and_range_are_shown() {
        assert_eq!(Figures::new([1.2, 0.9, 1.0]).to_string(), "**1.00** (0.90–1.20)");
    }

    #[test]
    fn what_is_asked_is_met_or_not_by_what_is_shown() {
        let verdict = |asked: Asked, ratio| asked.verdict(&Figures::new([ratio]));
        assert_eq!(verdict(Asked::AtLeast(1.0), 0.996), "≥ 1.00, met");
        assert_eq!(verdict(Asked::AtLeast(1.5), 1.49), "≥ 1.50, not met");
        assert_eq!(verdict(Asked::AtMost(0.7), 0.7), "≤ 0.70, met");
        assert_eq!(verdict(Asked::AtMost(0.5), 0.51), "≤ 0.50, not met");
    }

    #[test]
    fn level_is_hardly_less_and_as_much_now_and_then() {
        let verdict = |ratios: [f64; 3]| Asked::Level.verdict(&Figures::new(ratios));
        assert_eq!(verdict([0.90, 0.96, 1.01]), "≥ 0.95 and some ≥ 1.00, met");
        assert_eq!(verdict([0.95, 0.96, 0.99]), "≥ 0.95 and some ≥ 1.00, not met");
        assert_eq!(verdict([0.90, 0.94, 1.10]), "≥ 0.95 and some ≥ 1.00, not met");
        assert_eq!(verdict([1.10, 1.20, 1.30]), "≥ 0.95 and some ≥ 1.00, met");
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert_eq!(Asked::AtLeast(1.0).verdict(&Figures::new([])), "≥ 1.00, not met");
    }
}
