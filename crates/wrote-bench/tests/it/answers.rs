//! The answers that an observer receives while the benchmark runs.

use fixtures::folder;
use wrote_bench::{Bench, Common, Observer, Request};
use wrote_result::Stop;
use wrote_result::document::{Answer, Row};

/// For each round, the question of the first answer and the number of runs of its row.
#[derive(Default)]
struct Told(Vec<(String, usize)>);

impl Observer for Told {
    fn answers(&mut self, answers: &[Answer], rows: &[Row]) {
        let row = rows.iter().find(|row| row.name == answers[0].row).expect("a row that answers");
        self.0.push((answers[0].question.clone(), row.runs.len()));
    }
}

#[test]
fn answers_come_after_each_round_and_the_first_is_there_after_one_run() {
    let folder = folder();
    let common =
        Common { size_bytes: Some(1 << 20), iodepth: Some(1), runs: Some(3), ..Common::default() };
    let only = vec!["stream/cached-fdatasync-at-end".into(), "small/cached".into()];
    let request = Request { only, common, ..Request::new(folder.path().to_owned()) };
    let mut told = Told::default();
    let document = Bench::new(&request).run(&Stop::new(), &mut told).unwrap();
    let question = || "Stream, durable".to_owned();
    assert_eq!(told.0, [(question(), 1), (question(), 2), (question(), 3)]);
    assert_eq!(document.answers.unwrap()[0].question, question());
}
