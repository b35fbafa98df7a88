//! The handshake: protocol version and token.

use super::{REDIS_VERSION, Resp, error};
use crate::config::access::WRONG_TOKEN_PAUSE;
use crate::doors::Intake;
use crate::refusals::Reason;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio::time::sleep;

static CLIENTS: AtomicU64 = AtomicU64::new(1);

/// Returns whether the client may send this command, even if it has not authenticated.
pub(super) fn may_come(resp: &Resp, name: &[u8]) -> bool {
    // The last two come from HTTP clients, and are refused later with a better reason.
    let is_greeting = matches!(name, b"AUTH" | b"HELLO" | b"QUIT" | b"RESET" | b"POST" | b"HOST:");
    is_greeting || resp.token.is_some() || !resp.access.asks_for_token()
}

/// Handles `AUTH token`, or `AUTH user token` with any user.
pub(super) fn auth(resp: &mut Resp, input: &[u8], intake: &mut Intake<'_>) {
    if !resp.access.asks_for_token() {
        error(intake, "ERR this server asks for no password");
    } else if authorize(resp, input, resp.request.len() - 1, intake) {
        intake.answer(b"+OK\r\n");
    }
}

/// Handles `HELLO 3 AUTH user token`, which sets the protocol version and the token.
pub(super) fn hello(resp: &mut Resp, input: &[u8], intake: &mut Intake<'_>) {
    let is_three = match resp.request.word(input, 1) {
        None => resp.is_three,
        Some(b"2") => false,
        Some(b"3") => true,
        Some(_) => return error(intake, "NOPROTO unsupported protocol version"),
    };
    let Some(token_at) = token_in_greeting(resp, input) else {
        return error(intake, "ERR syntax error: HELLO 3 [AUTH user token] [SETNAME name]");
    };
    if resp.access.asks_for_token() {
        if token_at.is_some_and(|at| !authorize(resp, input, at, intake)) {
            return;
        }
        if resp.token.is_none() {
            return error(intake, "NOAUTH give the token: HELLO 3 AUTH default TOKEN");
        }
    }
    resp.is_three = is_three;
    let fields: [(&str, &str); 7] = [
        ("server", "$5\r\nredis\r\n"),
        ("version", &format!("${}\r\n{REDIS_VERSION}\r\n", REDIS_VERSION.len())),
        ("proto", if resp.is_three { ":3\r\n" } else { ":2\r\n" }),
        ("id", &format!(":{}\r\n", CLIENTS.fetch_add(1, Ordering::Relaxed))),
        ("mode", "$10\r\nstandalone\r\n"),
        ("role", "$6\r\nmaster\r\n"),
        ("modules", "*0\r\n"),
    ];
    let (kind, count) = if resp.is_three { ('%', fields.len()) } else { ('*', 2 * fields.len()) };
    let mut answer = format!("{kind}{count}\r\n");
    for (name, value) in fields {
        answer += &format!("${}\r\n{name}\r\n{value}", name.len());
    }
    intake.answer(answer.as_bytes());
}

/// Sets the client's token to the word at `at`, and returns whether the token is valid. A wrong
/// token is answered and counted, and revokes an earlier valid one.
fn authorize(resp: &mut Resp, input: &[u8], at: usize, intake: &mut Intake<'_>) -> bool {
    let token = resp.request.word(input, at);
    resp.token = token.filter(|token| resp.access.accepts(token)).map(Box::from);
    if resp.token.is_none() {
        intake.reject(Reason::Unauthorized);
        error(intake, "WRONGPASS invalid username-password pair or user is disabled.");
        // Further commands are delayed.
        let (sender, later) = oneshot::channel();
        tokio::spawn(async move {
            sleep(WRONG_TOKEN_PAUSE).await;
            drop(sender);
        });
        intake.later = Some(later);
    }
    resp.token.is_some()
}

/// Returns the position of the token in a HELLO, if it contains one. Returns `None` if the HELLO
/// has unknown options.
fn token_in_greeting(resp: &Resp, input: &[u8]) -> Option<Option<usize>> {
    let (mut at, mut token) = (2, None);
    while at < resp.request.len() {
        (token, at) = if resp.is(input, at, b"AUTH") {
            (Some(at + 2), at + 3)
        } else if resp.is(input, at, b"SETNAME") {
            (token, at + 2)
        } else {
            return None;
        };
    }
    (at <= resp.request.len().max(2)).then_some(token)
}
