//! Ranks that are threads of one process: the loop is tested with many of them.

use super::Post;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

type Letters = VecDeque<(u32, Vec<u8>)>;

/// The post box of each rank.
#[derive(Debug)]
struct Box {
    letters: Mutex<Letters>,
    came: Condvar,
}

/// The post of a rank that is a thread, on a made-up node with a clock that is ahead of others.
#[derive(Clone, Debug)]
pub struct ThreadPost {
    rank: u32,
    node: String,
    ahead_s: f64,
    boxes: Arc<Vec<Box>>,
}

impl ThreadPost {
    /// The posts of `ranks` ranks. `place` returns the node of each, and how far its clock is
    /// ahead.
    pub fn many(ranks: u32, place: impl Fn(u32) -> (String, f64)) -> Vec<ThreadPost> {
        let one = |_| Box { letters: Mutex::default(), came: Condvar::new() };
        let boxes = Arc::new((0..ranks).map(one).collect::<Vec<Box>>());
        let post = |rank| {
            let (node, ahead_s) = place(rank);
            ThreadPost { rank, node, ahead_s, boxes: boxes.clone() }
        };
        (0..ranks).map(post).collect()
    }

    fn letters(&self) -> std::sync::MutexGuard<'_, Letters> {
        self.boxes[self.rank as usize].letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post for ThreadPost {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.boxes.len() as u32
    }

    fn node(&self) -> String {
        self.node.clone()
    }

    fn clock_s(&self) -> f64 {
        jiff::Timestamp::now().as_nanosecond() as f64 / 1e9 + self.ahead_s
    }

    fn send(&self, to: u32, message: Vec<u8>) {
        let to = &self.boxes[to as usize];
        to.letters.lock().unwrap_or_else(PoisonError::into_inner).push_back((self.rank, message));
        to.came.notify_all();
    }

    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        self.letters().pop_front()
    }

    /// Sleeps until a message arrives: a thousand polling threads would take each other's CPU time.
    fn rest(&self, _: Duration) {
        let letters = self.letters();
        let is_empty = |letters: &mut Letters| letters.is_empty();
        let most = Duration::from_millis(100);
        let came = &self.boxes[self.rank as usize].came;
        drop(came.wait_timeout_while(letters, most, is_empty));
    }
}
