//! Meetings of ranks: each reports to rank 0, which releases all of them at once.
//!
//! A rank that fails informs rank 0 and leaves, rank 0 informs all others, and each sees it at the
//! next meeting. So no rank waits for a failed one, and a rank that exceeds the time limit is
//! named.

#[cfg(test)]
mod tests;

use super::Look;
use super::{Answer, Peers, Places, Post};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

/// The interval between two checks of the post.
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// Rank 0 informs waiting ranks at this interval that it waits too.
const TELL_EVERY: Duration = Duration::from_secs(5);
/// A rank may be slower than another at the same work by this factor.
const SLOWER_MAX: u32 = 10;
/// Round trips to a clock. The shortest counts.
const ROUND_TRIPS: u32 = 40;
/// With more ranks than this, only one on each node is asked for its clock.
const CLOCKS_MAX: u32 = 64;
/// How long the ranks of a broken group wait for each other's farewell.
const PARTING: Duration = Duration::from_secs(5);
/// The same for an interrupted group. A starter such as Open MPI's kills all ranks a second after
/// it has asked them to end.
const LEAVING: Duration = Duration::from_millis(700);

#[derive(Debug, Serialize, Deserialize)]
enum Message {
    /// To rank 0: a rank has reached the meeting of this number. Its payload follows.
    Here {
        number: u32,
        step: String,
    },
    /// From rank 0, passed on by others: all ranks came. The answer follows.
    Go {
        number: u32,
    },
    /// From rank 0 to waiting ranks: it is alive, and waits for others.
    Waiting,
    /// To rank 0, and from it to all: the group is broken.
    Broken(Ending),
    Ask,
    Time(f64),
    /// To rank 0, and from it where the group was interrupted: a rank ends.
    Farewell,
}

/// A received message with its payload.
#[derive(Debug)]
struct Letter {
    from: u32,
    message: Message,
    payload: Vec<u8>,
}

impl Letter {
    /// Encodes a message: a line of JSON, then the payload.
    fn bytes(message: &Message, payload: &[u8]) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(message).expect("a message is JSON");
        bytes.push(b'\n');
        bytes.extend_from_slice(payload);
        bytes
    }

    fn is_go(&self, of: u32) -> bool {
        matches!(self.message, Message::Go { number } if number == of)
    }

    fn read(from: u32, mut bytes: Vec<u8>) -> Letter {
        let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
        let message = serde_json::from_slice(&bytes[..line]).expect("ranks are of one program");
        Letter { from, message, payload: bytes.split_off(bytes.len().min(line + 1)) }
    }
}

/// An error as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Ending {
    Usage(String),
    Failed(String),
    Interrupted,
}

impl Ending {
    fn of(error: &Error) -> Ending {
        match error {
            Error::Usage(text) => Ending::Usage(text.clone()),
            Error::Interrupted => Ending::Interrupted,
            other => Ending::Failed(other.to_string()),
        }
    }

    fn error(&self) -> Error {
        match self {
            Ending::Usage(text) => Error::Usage(text.clone()),
            Ending::Failed(text) => Error::Failed(text.clone()),
            Ending::Interrupted => Error::Interrupted,
        }
    }
}

/// Ranks that meet through messages.
#[derive(Debug)]
pub struct Ranks<P> {
    post: P,
    stop: Stop,
    /// The least time after which a rank that does not come counts as hung.
    hung_after: Duration,
    places: Places,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// The number of the next meeting.
    number: u32,
    /// When the last meeting ended.
    met: Instant,
    /// When rank 0 last informed others that it waits.
    told: Instant,
    broken: Option<Ending>,
    /// Rank 0 did not answer.
    first_is_gone: bool,
    /// Messages that arrived early.
    early: VecDeque<Letter>,
    /// On rank 0: the ranks that have sent their farewell.
    parted: Vec<bool>,
}

impl<P: Post> Ranks<P> {
    /// Returns the ranks of a post. They know nothing about each other yet.
    ///
    /// A rank counts as hung if it comes `hung_after` later than another, and later than ten times
    /// the time that the other needed.
    pub fn new(post: P, stop: Stop, hung_after: Duration) -> Ranks<P> {
        let state = State {
            number: 0,
            met: Instant::now(),
            told: Instant::now(),
            broken: None,
            first_is_gone: false,
            early: VecDeque::new(),
            parted: vec![false; post.ranks() as usize],
        };
        Ranks { post, stop, hung_after, places: Places::default(), state: RefCell::new(state) }
    }

    /// Joins the ranks: each learns the nodes and clocks of all. Before that there are no
    /// [`Peers::places`]. After an error the group is broken, and can only part.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn join(&mut self) -> Result<(), Error> {
        let peers = &*self as &dyn Peers;
        let names = peers.agree("start", self.post.node(), Ok)?;
        let mut looks = vec![None; names.len()];
        for rank in self.asked_for_clocks(&names) {
            looks[rank as usize] = self.look_at_clock(rank)?;
        }
        self.places = Places::of(names, &peers.of_first("clocks", looks)?);
        Ok(())
    }

    /// Ends an interrupted group, when this rank has cleaned up: returns when every rank has, or
    /// shortly after. As soon as the first rank ends, Open MPI kills the others.
    pub fn leave(&self) {
        if self.post.rank() == 0 {
            self.await_farewells(LEAVING);
            (1..self.post.ranks()).for_each(|to| self.say(to, &Message::Farewell));
            return;
        }
        self.say(0, &Message::Farewell);
        let began = Instant::now();
        while began.elapsed() < LEAVING {
            while let Some((from, bytes)) = self.post.receive() {
                if let Message::Farewell = Letter::read(from, bytes).message {
                    return;
                }
            }
            self.post.rest(LOOK_EVERY);
        }
    }

    /// Rank 0 waits until all others have sent theirs. Returns `false` where one has not.
    fn await_farewells(&self, most: Duration) -> bool {
        let began = Instant::now();
        self.state.borrow_mut().parted[0] = true;
        loop {
            // Other messages no longer matter.
            while let Some((from, bytes)) = self.post.receive() {
                if let Message::Farewell = Letter::read(from, bytes).message {
                    self.state.borrow_mut().parted[from as usize] = true;
                }
            }
            if self.state.borrow().parted.iter().all(|parted| *parted) {
                return true;
            }
            if began.elapsed() > most {
                return false;
            }
            self.post.rest(LOOK_EVERY);
        }
    }

    /// The post, for use after the group has ended.
    pub fn into_post(self) -> P {
        self.post
    }

    fn asked_for_clocks(&self, names: &[String]) -> Vec<u32> {
        let mut nodes = HashSet::new();
        let mut is_asked = |rank: u32| {
            let is_new = nodes.insert(&names[rank as usize]);
            rank > 0 && (self.post.ranks() <= CLOCKS_MAX || is_new)
        };
        (0..self.post.ranks()).filter(|rank| is_asked(*rank)).collect()
    }

    /// Rank 0 asks a rank for its time, and assumes that each way took half of the round trip.
    fn look_at_clock(&self, rank: u32) -> Result<Option<Look>, Error> {
        let mut best: Option<Look> = None;
        for trip in 0..ROUND_TRIPS {
            if self.post.rank() == rank {
                // Before the first trip rank 0 may still be asking other ranks.
                let is_busy = trip > 0;
                let is_ask = |message: &Message| matches!(message, Message::Ask);
                self.await_from(0, "clocks", is_busy, is_ask)?;
                self.say(0, &Message::Time(self.post.clock_s()));
            } else if self.post.rank() == 0 {
                let asked_s = self.post.clock_s();
                self.say(rank, &Message::Ask);
                let is_time = |message: &Message| matches!(message, Message::Time(_));
                let told = self.await_from(rank, "clocks", true, is_time)?;
                let round_trip_s = self.post.clock_s() - asked_s;
                if let Message::Time(theirs_s) = told
                    && best.is_none_or(|best| round_trip_s < best.round_trip_s)
                {
                    let offset_s = theirs_s - asked_s - round_trip_s / 2.0;
                    best = Some(Look { offset_s, round_trip_s });
                }
            }
        }
        Ok(best)
    }

    fn say(&self, to: u32, message: &Message) {
        self.post.send(to, Letter::bytes(message, &[]));
    }

    /// Returns a wanted message of `from`. Polls without a rest if it `is_busy`, since the time of
    /// arrival matters.
    fn await_from(
        &self,
        from: u32,
        step: &'static str,
        is_busy: bool,
        is_wanted: impl Fn(&Message) -> bool,
    ) -> Result<Message, Error> {
        let is_first = self.post.rank() == 0;
        let limit = if is_first { self.hung_after } else { self.hung_after + 2 * TELL_EVERY };
        let mut heard = Instant::now();
        loop {
            self.read_post()?;
            let is_of = |letter: &Letter| letter.from == from;
            if let Some(letter) = self.take(|letter| is_of(letter) && is_wanted(&letter.message)) {
                return Ok(letter.message);
            }
            if self
                .take(|letter| is_of(letter) && matches!(letter.message, Message::Waiting))
                .is_some()
            {
                heard = Instant::now();
            }
            if heard.elapsed() > limit {
                self.state.borrow_mut().first_is_gone = !is_first;
                return Err(self.breaks(self.missing(&[from], step, heard.elapsed())));
            }
            if is_first {
                self.tell_that_it_waits(1..self.post.ranks());
            }
            match is_busy {
                true => std::thread::yield_now(),
                false => self.post.rest(LOOK_EVERY),
            }
        }
    }

    /// On rank 0: informs waiting ranks now and then that it waits too.
    fn tell_that_it_waits(&self, for_it: impl Iterator<Item = u32>) {
        let mut state = self.state.borrow_mut();
        if state.told.elapsed() > TELL_EVERY {
            state.told = Instant::now();
            for_it.for_each(|rank| self.say(rank, &Message::Waiting));
        }
    }

    /// Reads the received messages. Fails if the group is broken, or this rank is to stop.
    fn read_post(&self) -> Result<(), Error> {
        while let Some((from, bytes)) = self.post.receive() {
            let letter = Letter::read(from, bytes);
            match letter.message {
                Message::Broken(ending) => {
                    return Err(self.breaks(self.named(from, ending.error())));
                }
                Message::Farewell => self.state.borrow_mut().parted[from as usize] = true,
                _ => self.state.borrow_mut().early.push_back(letter),
            }
        }
        if self.stop.is_requested() {
            return Err(self.breaks(Error::Interrupted));
        }
        Ok(())
    }

    /// Takes the first wanted letter. Letters of several ranks come in any order, so the others are
    /// kept.
    fn take(&self, is_wanted: impl Fn(&Letter) -> bool) -> Option<Letter> {
        let early = &mut self.state.borrow_mut().early;
        let place = early.iter().position(is_wanted)?;
        early.remove(place)
    }

    fn next_letter(&self) -> Option<Letter> {
        self.state.borrow_mut().early.pop_front()
    }

    /// Names the rank whose error rank 0 passes on.
    fn named(&self, from: u32, error: Error) -> Error {
        match error {
            _ if self.post.rank() != 0 => error,
            Error::Usage(text) => Error::Usage(text),
            Error::Interrupted => Error::Interrupted,
            other => Error::Failed(format!("{}: {other}", self.name(from))),
        }
    }

    fn name(&self, rank: u32) -> String {
        match self.places.of_rank.len() {
            0 => format!("rank {rank}"),
            _ => format!("rank {rank} on {}", self.places.node(rank)),
        }
    }

    fn missing(&self, ranks: &[u32], step: &str, time: Duration) -> Error {
        let names: Vec<String> = ranks.iter().map(|rank| self.name(*rank)).collect();
        Error::Failed(format!(
            "{} did not come to the others within {:.0} s ({step}): it hangs, or is far slower",
            wrote_result::units::some_of(&names, wrote_result::finding::NAMES_MAX),
            time.as_secs_f64(),
        ))
    }

    /// Breaks the group with its first error, and informs the ranks that have to know.
    fn breaks(&self, error: Error) -> Error {
        if let Some(known) = &self.state.borrow().broken {
            return known.error();
        }
        let ending = Ending::of(&error);
        self.state.borrow_mut().broken = Some(ending.clone());
        let others = match self.post.rank() {
            0 => 1..self.post.ranks(),
            _ => 0..1,
        };
        others.for_each(|to| self.say(to, &Message::Broken(ending.clone())));
        error
    }

    /// On rank 0: waits for all others, makes the answer, and releases them.
    fn lead(
        &self,
        number: u32,
        step: &'static str,
        limit: Duration,
        mine: Vec<u8>,
        answer: Answer,
    ) -> Result<Vec<u8>, Error> {
        let count = self.post.ranks() as usize;
        let mut said: Vec<Option<Vec<u8>>> = vec![None; count];
        said[0] = Some(mine);
        let mut left = count - 1;
        let began = Instant::now();
        while left > 0 {
            self.read_post()?;
            while let Some(Letter { from, message, payload }) = self.next_letter() {
                match message {
                    Message::Here { number: theirs, step: of } => {
                        if theirs != number || of != step {
                            let text =
                                format!("is at {of} ({theirs}), and rank 0 at {step} ({number})");
                            return Err(self.breaks(self.named(from, Error::Failed(text))));
                        }
                        left -= usize::from(said[from as usize].replace(payload).is_none());
                    }
                    other => debug_assert!(false, "{other:?}"),
                }
            }
            if left == 0 {
                break;
            }
            let missing =
                || (0..).zip(&said).filter(|(_, said)| said.is_none()).map(|(rank, _)| rank);
            if began.elapsed() > limit {
                let missing: Vec<u32> = missing().collect();
                return Err(self.breaks(self.missing(&missing, step, began.elapsed())));
            }
            let here = (1..).zip(&said[1..]).filter(|(_, said)| said.is_some());
            self.tell_that_it_waits(here.map(|(rank, _)| rank));
            self.post.rest(LOOK_EVERY);
        }
        let said = said.into_iter().map(|said| said.expect("all were there")).collect();
        let answer = answer(said).map_err(|error| self.breaks(error))?;
        self.pass_on(number, &answer);
        Ok(answer)
    }

    /// On another rank: reports to rank 0, and waits for the answer.
    fn follow(
        &self,
        number: u32,
        step: &'static str,
        limit: Duration,
        mine: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        self.post.send(0, Letter::bytes(&Message::Here { number, step: step.into() }, &mine));
        let limit = limit + 2 * TELL_EVERY;
        let mut heard = Instant::now();
        loop {
            self.read_post()?;
            if let Some(Letter { payload, .. }) = self.take(|letter| letter.is_go(number)) {
                self.pass_on(number, &payload);
                return Ok(payload);
            }
            if self.take(|letter| matches!(letter.message, Message::Waiting)).is_some() {
                heard = Instant::now();
            }
            if heard.elapsed() > limit {
                self.state.borrow_mut().first_is_gone = true;
                return Err(self.breaks(self.missing(&[0], step, heard.elapsed())));
            }
            self.post.rest(LOOK_EVERY);
        }
    }

    /// Passes the answer down a binomial tree: all have it after as many steps as the number of
    /// ranks has bits.
    fn pass_on(&self, number: u32, answer: &[u8]) {
        let bytes = Letter::bytes(&Message::Go { number }, answer);
        let (rank, ranks) = (u64::from(self.post.rank()), u64::from(self.post.ranks()));
        let lowest = if rank == 0 { ranks.next_power_of_two() } else { rank & rank.wrapping_neg() };
        let mut step = lowest >> 1;
        while step > 0 {
            if rank + step < ranks {
                self.post.send((rank + step) as u32, bytes.clone());
            }
            step >>= 1;
        }
    }

    /// Returns how long to wait for others, by the time that this rank needed for the same work.
    fn limit(&self) -> Duration {
        self.hung_after.max(self.state.borrow().met.elapsed() * SLOWER_MAX)
    }
}

impl<P: Post> Peers for Ranks<P> {
    fn rank(&self) -> u32 {
        self.post.rank()
    }

    fn ranks(&self) -> u32 {
        self.post.ranks()
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn meet(
        &self,
        step: &'static str,
        patience: Duration,
        mine: Vec<u8>,
        answer: Answer,
    ) -> Result<Vec<u8>, Error> {
        if let Some(known) = &self.state.borrow().broken {
            return Err(known.error());
        }
        let (number, limit) = (self.state.borrow().number, self.limit().max(patience));
        let met = match self.post.rank() {
            0 => self.lead(number, step, limit, mine, answer),
            _ => self.follow(number, step, limit, mine),
        };
        let mut state = self.state.borrow_mut();
        (state.number, state.met) = (number + 1, Instant::now());
        met
    }

    fn fail(&self, error: Error) -> Error {
        let error = match self.post.rank() {
            0 => self.named(0, error),
            _ => error,
        };
        self.breaks(error)
    }

    fn tells(&self) -> bool {
        self.post.rank() == 0 || self.state.borrow().first_is_gone
    }

    fn part(&self) -> bool {
        if self.post.rank() != 0 {
            self.say(0, &Message::Farewell);
            return !self.state.borrow().first_is_gone;
        }
        self.await_farewells(PARTING)
    }
}
