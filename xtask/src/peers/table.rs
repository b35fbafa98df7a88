//! The figures of each comparison: medians and ranges.

use super::measured::Measured;

/// The head of the table, in Markdown.
pub const HEAD: &str = "\
| what is written | blocks | peer | wrote / peer (range) | wrote, MB/s | peer, MB/s | wrote, CPU s/GB | peer, CPU s/GB |
|---|---|---|---:|---:|---:|---:|---:|";

/// Pairs of runs of one comparison.
#[derive(Debug)]
pub struct Line {
    what: &'static str,
    blocks: &'static str,
    peer: &'static str,
    pairs: Vec<(Measured, Measured)>,
}

impl Line {
    /// A comparison without runs.
    pub fn new(what: &'static str, blocks: &'static str, peer: &'static str) -> Line {
        Line { what, blocks, peer, pairs: Vec::new() }
    }

    /// Adds a pair of runs: wrote's and the peer's.
    pub fn add(&mut self, wrote: Measured, peer: Measured) {
        self.pairs.push((wrote, peer));
    }

    /// The line of the table. Each ratio is of the two runs of one pair, so that what disturbs both
    /// cancels out.
    pub fn row(&self) -> String {
        let each = |figure: fn(&(Measured, Measured)) -> f64| {
            let mut figures: Vec<f64> = self.pairs.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let ratios =
            each(|(wrote, peer)| wrote.throughput_bytes_per_s() / peer.throughput_bytes_per_s());
        let wrote = each(|(wrote, _)| wrote.throughput_bytes_per_s() / 1e6);
        let peer = each(|(_, peer)| peer.throughput_bytes_per_s() / 1e6);
        let wrote_cpu = each(|(wrote, _)| wrote.cpu_s_per_gb());
        let peer_cpu = each(|(_, peer)| peer.cpu_s_per_gb());
        format!(
            "| {} | {} | {} | **{:.2}** ({:.2}–{:.2}) | {} | {} | {:.2} | {:.2} |",
            self.what,
            self.blocks,
            self.peer,
            median(&ratios),
            ratios.first().copied().unwrap_or(f64::NAN),
            ratios.last().copied().unwrap_or(f64::NAN),
            megabytes(median(&wrote)),
            megabytes(median(&peer)),
            median(&wrote_cpu),
            median(&peer_cpu),
        )
    }
}

/// Three digits that count.
fn megabytes(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1}") } else { format!("{figure:.0}") }
}

/// The median of figures in order; not a number of none.
fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(megabytes_per_s: f64, cpu_s: f64) -> Measured {
        Measured { bytes: 1_000_000_000, elapsed_s: 1000.0 / megabytes_per_s, cpu_s }
    }

    #[test]
    fn a_line_holds_the_median_and_range_of_the_pairs_ratios_and_both_medians() {
        let mut line = Line::new("stream", "new", "fio");
        line.add(run(2000.0, 0.1), run(2000.0, 0.3));
        line.add(run(1200.0, 0.2), run(1000.0, 0.3));
        line.add(run(900.0, 0.4), run(1000.0, 0.5));
        assert_eq!(
            line.row(),
            "| stream | new | fio | **1.00** (0.90–1.20) | 1200 | 1000 | 0.20 | 0.30 |"
        );
    }

    #[test]
    fn slow_writes_keep_a_digit_more() {
        let mut line = Line::new("4 KiB", "written", "fio");
        line.add(run(5.0, 2.0), run(4.0, 3.0));
        line.add(run(5.5, 2.0), run(4.0, 3.0));
        assert_eq!(
            line.row(),
            "| 4 KiB | written | fio | **1.31** (1.25–1.38) | 5.2 | 4.0 | 2.00 | 3.00 |"
        );
    }
}
