//! The self-normalised test for a change of the mean: it need not know how values depend on those
//! before.

/// The value that the statistic exceeds in one of a thousand series without a change (Shao and
/// Zhang 2010, table 1, of one parameter); a test holds the table's 5 % against white noise.
pub(super) const CRITICAL: f64 = 121.9;

/// The statistic of a change of the mean between `values[..at]` and `values[at..]`; infinite where
/// neither side varies and they differ.
///
/// The square of the centred sum of the first `at` values, over the same of all parts of either
/// side: both grow with the long-run variance, so that it cancels out (Shao and Zhang: Testing for
/// Change Points in Time Series, Journal of the American Statistical Association 105, 2010). A side
/// that wanders by itself makes the denominator large: only what wanders less within than it
/// changes between counts.
pub(super) fn statistic(values: &[f64], at: usize) -> f64 {
    let count = values.len() as f64;
    let (before, after) = values.split_at(at);
    let mean = values.iter().sum::<f64>() / count;
    let sum = before.iter().map(|value| value - mean).sum::<f64>();
    let within = wandering(before.iter()) + wandering(after.iter().rev());
    // Both are over powers of the count: sum^2 / n, and wandering / n^2.
    let statistic = sum * sum * count / within;
    if statistic.is_nan() { 0.0 } else { statistic }
}

/// The sum of the squares of all partial sums of the values less their mean.
fn wandering<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    let (count, total) =
        values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    let mean = total / f64::max(count, 1.0);
    let partial = values.scan(0.0, |sum, value| {
        *sum += value - mean;
        Some(*sum * *sum)
    });
    partial.sum()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::Noise;
    use super::*;

    /// The greatest of the statistic over all places: what the table is of.
    fn greatest(values: &[f64]) -> f64 {
        (1..values.len()).map(|at| statistic(values, at)).fold(0.0, f64::max)
    }

    #[test]
    #[ignore = "campaign"]
    fn five_per_cent_of_series_without_a_change_exceed_what_the_table_says() {
        let greatest = (0..600).map(|seed| greatest(&Noise::default().series(seed, 200)));
        let beyond = greatest.filter(|greatest| *greatest > 40.1).count();
        assert!((15..=48).contains(&beyond), "{beyond} of 600");
    }

    #[test]
    fn a_change_is_told_from_noise_that_depends_on_itself() {
        let noise = Noise { deviation: 0.1, correlation: 0.8, ..Noise::default() };
        let changed: Vec<f64> =
            noise.series(1, 400).iter().enumerate().map(|(at, n)| n - (at / 200) as f64).collect();
        assert!(statistic(&changed, 200) > CRITICAL);
        assert!(statistic(&noise.series(1, 400), 200) < CRITICAL);
    }

    #[test]
    fn levels_that_do_not_vary_differ_for_sure_or_not_at_all() {
        assert_eq!(statistic(&[1.0, 1.0, 2.0, 2.0], 2), f64::INFINITY);
        assert_eq!(statistic(&[1.0; 4], 2), 0.0);
    }
}
