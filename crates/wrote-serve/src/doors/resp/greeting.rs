//! Handshake: protocol version and token.

use super::{REDIS_VERSION, Resp, error};
use crate::config::access::WRONG_TOKEN_PAUSE;
use crate::doors::Intake;
use crate::refusals::Reason;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio::time::sleep;

static CLIENTS: AtomicU64 = AtomicU64::new(1);

impl Resp {
    /// Returns whether an unauthenticated client may send this command.
    pub(super) fn may_come(&self, name: &[u8]) -> bool {
        // The last two are HTTP, which is refused as such.
        let is_greeting =
            matches!(name, b"AUTH" | b"HELLO" | b"QUIT" | b"RESET" | b"POST" | b"HOST:");
        is_greeting || self.token.is_some() || !self.access.asks_for_token()
    }

    /// `AUTH token`, or `AUTH user token` with any user.
    pub(super) fn auth(&mut self, input: &[u8], intake: &mut Intake<'_>) {
        if !self.access.asks_for_token() {
            error(intake, "ERR this server asks for no password");
        } else if self.authorize(input, self.request.len() - 1, intake) {
            intake.answer(b"+OK\r\n");
        }
    }

    /// `HELLO 3 AUTH user token`: protocol version and token.
    pub(super) fn hello(&mut self, input: &[u8], intake: &mut Intake<'_>) {
        let is_three = match self.request.word(input, 1) {
            None => self.is_three,
            Some(b"2") => false,
            Some(b"3") => true,
            Some(_) => return error(intake, "NOPROTO unsupported protocol version"),
        };
        let Some(token_at) = self.token_in_greeting(input) else {
            return error(intake, "ERR syntax error: HELLO 3 [AUTH user token] [SETNAME name]");
        };
        if self.access.asks_for_token() {
            if token_at.is_some_and(|at| !self.authorize(input, at, intake)) {
                return;
            }
            if self.token.is_none() {
                return error(intake, "NOAUTH give the token: HELLO 3 AUTH default TOKEN");
            }
        }
        self.is_three = is_three;
        let fields: [(&str, &str); 7] = [
            ("server", "$5\r\nredis\r\n"),
            ("version", &format!("${}\r\n{REDIS_VERSION}\r\n", REDIS_VERSION.len())),
            ("proto", if self.is_three { ":3\r\n" } else { ":2\r\n" }),
            ("id", &format!(":{}\r\n", CLIENTS.fetch_add(1, Ordering::Relaxed))),
            ("mode", "$10\r\nstandalone\r\n"),
            ("role", "$6\r\nmaster\r\n"),
            ("modules", "*0\r\n"),
        ];
        let (kind, count) =
            if self.is_three { ('%', fields.len()) } else { ('*', 2 * fields.len()) };
        let mut answer = format!("{kind}{count}\r\n");
        for (name, value) in fields {
            answer += &format!("${}\r\n{name}\r\n{value}", name.len());
        }
        intake.answer(answer.as_bytes());
    }

    /// Checks the word at `at` as a token. A wrong one is answered and counted, and revokes an
    /// earlier right one.
    fn authorize(&mut self, input: &[u8], at: usize, intake: &mut Intake<'_>) -> bool {
        let token = self.request.word(input, at);
        self.token = token.filter(|token| self.access.accepts(token)).map(Box::from);
        if self.token.is_none() {
            intake.reject(Reason::Unauthorized);
            error(intake, "WRONGPASS invalid username-password pair or user is disabled.");
            // Delays further commands.
            let (sender, later) = oneshot::channel();
            tokio::spawn(async move {
                sleep(WRONG_TOKEN_PAUSE).await;
                drop(sender);
            });
            intake.answer_later(later);
        }
        self.token.is_some()
    }

    /// Returns the position of the token in a HELLO, if it has one; `None` if it has unknown
    /// options.
    fn token_in_greeting(&self, input: &[u8]) -> Option<Option<usize>> {
        let (mut at, mut token) = (2, None);
        while at < self.request.len() {
            (token, at) = if self.is(input, at, b"AUTH") {
                (Some(at + 2), at + 3)
            } else if self.is(input, at, b"SETNAME") {
                (token, at + 2)
            } else {
                return None;
            };
        }
        (at <= self.request.len().max(2)).then_some(token)
    }
}
