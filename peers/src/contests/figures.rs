//! Medians and ranges of the figures of all rounds, and conditions on them. It is a separate file
//! because it deals only with numbers.

use std::fmt::{self, Display};

/// Figures in ascending order. Ratios are calculated within a round, so that a disturbance that
/// affects the whole round cancels out.
#[derive(Debug)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// Creates figures from numbers in any order.
    pub fn new(figures: impl IntoIterator<Item = f64>) -> Figures {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        Figures(figures)
    }

    /// Returns the median; NaN if there are no figures.
    pub fn median(&self) -> f64 {
        match self.0.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => self.0[n / 2],
            n => (self.0[n / 2 - 1] + self.0[n / 2]) / 2.0,
        }
    }

    /// Returns the smallest and the largest figure.
    pub fn range(&self) -> [f64; 2] {
        [self.0.first(), self.0.last()].map(|figure| figure.copied().unwrap_or(f64::NAN))
    }

    /// Returns whether there are no figures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Formats the median and the range: "**1.00** (0.90–1.20)".
impl Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, high] = self.range();
        write!(formatter, "**{:.2}** ({low:.2}–{high:.2})", self.median())
    }
}

/// Formats a figure with three significant digits, or with two decimals if it is below 1.
pub fn three_digits(figure: f64) -> String {
    match figure {
        figure if figure < 10.0 => format!("{figure:.2}"),
        figure if figure < 100.0 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

/// A condition on the figures of a contest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    AtLeast(f64),
    /// The median is at most this value.
    AtMost(f64),
}

impl Condition {
    /// Returns a text such as "≥ 1.00, met" or "≥ 1.00, not met". The median is rounded to two
    /// decimals, as in the table.
    pub fn verdict(self, figures: &Figures) -> String {
        let shown = |figure: f64| (figure * 100.0).round() / 100.0;
        let median = shown(figures.median());
        let (asked, is_met) = match self {
            Condition::AtLeast(least) => (format!("≥ {least:.2}"), median >= least),
            Condition::AtMost(most) => (format!("≤ {most:.2}"), median <= most),
        };
        format!("{asked}, {}", if is_met { "met" } else { "not met" })
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
    fn a_goal_is_met_or_not_by_the_shown_figure() {
        let verdict = |asked: Condition, ratio| asked.verdict(&Figures::new([ratio]));
        assert_eq!(verdict(Condition::AtLeast(1.0), 0.996), "≥ 1.00, met");
        assert_eq!(verdict(Condition::AtLeast(1.5), 1.49), "≥ 1.50, not met");
        assert_eq!(verdict(Condition::AtMost(0.7), 0.7), "≤ 0.70, met");
        assert_eq!(verdict(Condition::AtMost(0.5), 0.51), "≤ 0.50, not met");
    }

    #[test]
    fn a_goal_that_was_not_measured_is_not_met() {
        assert_eq!(Condition::AtLeast(1.0).verdict(&Figures::new([])), "≥ 1.00, not met");
    }
}
