//! Handshake: protocol version and token.

use super::{NAME_BYTES_MAX, REDIS_VERSION, Resp, error};
use crate::config::access::WRONG_TOKEN_PAUSE;
use crate::doors::Intake;
use crate::refusals::Reason;
use tokio::sync::oneshot;
use tokio::time::sleep;

impl Resp {
    /// Returns whether an unauthenticated client may send this command.
    pub(super) fn may_come(&self, name: &[u8]) -> bool {
        // The last two are HTTP, which is refused as such.
        let is_greeting =
            matches!(name, b"AUTH" | b"HELLO" | b"QUIT" | b"RESET" | b"POST" | b"HOST:");
        is_greeting || self.has_token() || !self.access.asks_for_token()
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
        let Some((token_at, name_at)) = self.greeting_options(input) else {
            return error(intake, "ERR syntax error: HELLO 3 [AUTH user token] [SETNAME name]");
        };
        if self.access.asks_for_token() {
            if token_at.is_some_and(|at| !self.authorize(input, at, intake)) {
                return;
            }
            if !self.has_token() {
                return error(intake, "NOAUTH give the token: HELLO 3 AUTH default TOKEN");
            }
        }
        if let Some(at) = name_at {
            let name = self.request.word(input, at).map(Box::from);
            self.said.get_or_insert_default().name = name;
        }
        self.is_three = is_three;
        let fields: [(&str, &str); 7] = [
            ("server", "$5\r\nredis\r\n"),
            ("version", &format!("${}\r\n{REDIS_VERSION}\r\n", REDIS_VERSION.len())),
            ("proto", if self.is_three { ":3\r\n" } else { ":2\r\n" }),
            ("id", &format!(":{}\r\n", self.id)),
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
        let token = token.filter(|token| self.access.accepts(token)).map(Box::from);
        self.said.get_or_insert_default().token = token;
        if !self.has_token() {
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
        self.has_token()
    }

    fn has_token(&self) -> bool {
        self.said.as_ref().is_some_and(|said| said.token.is_some())
    }

    /// Returns the positions of token and name in a HELLO; `None` if it has other options.
    fn greeting_options(&self, input: &[u8]) -> Option<(Option<usize>, Option<usize>)> {
        let (mut at, mut token, mut name) = (2, None, None);
        while at < self.request.len() {
            (token, name, at) = if self.is(input, at, b"AUTH") {
                (Some(at + 2), name, at + 3)
            } else if self.is(input, at, b"SETNAME") {
                (token, Some(at + 1), at + 2)
            } else {
                return None;
            };
        }
        let is_short = name.and_then(|at| self.request.word(input, at));
        let is_short = is_short.is_none_or(|name| name.len() <= NAME_BYTES_MAX);
        (at <= self.request.len().max(2) && is_short).then_some((token, name))
    }
}
