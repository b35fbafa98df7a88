//! Reader groups over RESP: named cursors that survive restarts, with one reader each.

use super::bulks::{id_text, text};
use super::faults::refused;
use super::read::{INVALID_ID, Source, after, id};
use super::{Resp, error};
use crate::channel::Channel;
use crate::cursors::{Fault, Seen};
use crate::intake::Intake;

impl Resp {
    /// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD n]`, `SETID` likewise, and
    /// `DESTROY key group`.
    pub(super) fn group(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let is = |at, text: &[u8]| self.is(input, at, text);
        let name = word(3).to_vec();
        if is(1, b"DESTROY") && self.request.len() == 4 {
            return self.answer_later(intake, move |_, channel, _| async move {
                let was_there = channel.cursors.destroy(&name);
                saved(&channel, format!(":{}\r\n", u8::from(was_there))).await
            });
        }
        let is_new = is(1, b"CREATE");
        let mut at = 5;
        at += usize::from(is_new && is(at, b"MKSTREAM"));
        // Redis uses it to compute the lag; the log knows it.
        at += 2 * usize::from(is(at, b"ENTRIESREAD"));
        if !(is_new || is(1, b"SETID")) || self.request.len() < 5 || at != self.request.len() {
            return self.unknown_subcommand(input, intake);
        }
        let from = match word(4) {
            b"$" => None,
            id => match after(id) {
                Some(from) => Some(from),
                None => return error(intake, INVALID_ID),
            },
        };
        self.answer_later(intake, move |log, channel, _| async move {
            let from = from.unwrap_or(log.stats().next_sequence);
            let done = match is_new {
                true => channel.cursors.create(&name, from),
                false => channel.cursors.set(&name, from),
            };
            match done {
                Ok(()) => saved(&channel, "+OK\r\n".into()).await,
                Err(fault) => refused(&fault, &name),
            }
        });
    }

    /// `XREADGROUP GROUP group reader [COUNT n] [BLOCK ms] [NOACK] STREAMS key >|id`.
    pub(super) fn read_group(&self, input: &[u8], intake: &mut Intake<'_>) {
        if !self.is(input, 1, b"GROUP") {
            return error(intake, "ERR syntax error");
        }
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let (name, reader) = (word(2).to_vec(), word(3).to_vec());
        let connection = self.connection.clone();
        self.read_stream(input, 4, intake, |id, _, acks| match id {
            b">" => Ok(Source::New { name, reader, connection, acks }),
            id => {
                let from = after(id).ok_or(INVALID_ID)?;
                Ok(Source::Pending { name, reader, connection, from })
            }
        });
    }

    /// `XACK key group id..`: returns how many were pending, once that is durable.
    pub(super) fn acknowledge(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let name = word(2).to_vec();
        // Records have the second part 1; other IDs match none.
        let sequence = |word: &[u8]| {
            let (sequence, part) = id(word)?;
            Some(if part.unwrap_or(1) == 1 { sequence } else { u64::MAX })
        };
        let ids: Option<Vec<u64>> = (3..self.request.len()).map(|at| sequence(word(at))).collect();
        let Some(ids) = ids else { return error(intake, INVALID_ID) };
        self.answer_later(intake, move |_, channel, _| async move {
            match channel.cursors.acknowledge(&name, &ids) {
                Ok(count) => saved(&channel, format!(":{count}\r\n")).await,
                // Like Redis.
                Err(Fault::Unknown) => b":0\r\n".to_vec(),
                Err(fault) => refused(&fault, &name),
            }
        });
    }

    /// `XPENDING key group`: the number of delivered, unacknowledged records, the first and the
    /// last, and the reader.
    pub(super) fn pending(&self, input: &[u8], intake: &mut Intake<'_>) {
        let name = self.request.word(input, 2).unwrap_or_default().to_vec();
        let nil = self.nil();
        self.answer_later(intake, move |_, channel, _| async move {
            let group = match channel.cursors.seen(&name) {
                Ok(group) => group,
                Err(fault) => return refused(&fault, &name),
            };
            let nil = String::from_utf8_lossy(nil);
            let Some((first, last, count)) = group.pending else {
                return format!("*4\r\n:0\r\n{nil}{nil}{nil}").into_bytes();
            };
            let [first, last] = [first, last].map(|sequence| id_text(Some(sequence)));
            let mut answer = format!("*4\r\n:{count}\r\n{first}{last}*1\r\n*2\r\n");
            answer += &text(&group.reader.unwrap_or_default());
            answer += &text(count.to_string().as_bytes());
            answer.into_bytes()
        });
    }

    /// `XINFO GROUPS key`.
    pub(super) fn groups(&self, intake: &mut Intake<'_>) {
        let is_three = self.is_three;
        self.answer_later(intake, move |log, channel, _| async move {
            let next = log.stats().next_sequence;
            let groups = channel.cursors.all();
            let head = format!("*{}\r\n", groups.len());
            let group = |group: &Seen| {
                let pending = group.pending.map_or(0, |(_, _, count)| count);
                let fields = [
                    ("name", text(group.name.as_bytes())),
                    ("consumers", format!(":{}\r\n", u8::from(group.reader.is_some()))),
                    ("pending", format!(":{pending}\r\n")),
                    ("last-delivered-id", id_text(group.delivered.checked_sub(1))),
                    ("entries-read", format!(":{}\r\n", group.delivered)),
                    ("lag", format!(":{}\r\n", next.saturating_sub(group.delivered))),
                ];
                let head = if is_three { "%6\r\n" } else { "*12\r\n" };
                let fields = fields.map(|(name, value)| text(name.as_bytes()) + &value);
                head.to_owned() + &fields.concat()
            };
            (head + &groups.iter().map(group).collect::<String>()).into_bytes()
        });
    }
}

/// Answers once the cursors are on stable storage.
async fn saved(channel: &Channel, answer: String) -> Vec<u8> {
    match channel.cursors.save().await {
        Ok(()) => answer.into_bytes(),
        Err(error) => format!("-MISCONF the cursors can't be kept: {error}\r\n").into_bytes(),
    }
}
