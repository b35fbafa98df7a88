//! Stamps: the time, sender and listener of a message, as a part of its record. They have a module
//! of their own because both streams and HTTP use them.

use crate::config::{Listen, Stamp};
use crate::refusals::Client;
use jiff::Timestamp;
use std::borrow::Cow;

/// Stamps the messages of one connection.
#[derive(Debug)]
pub(crate) struct Stamper {
    /// The client's address, the listener, and the name in the client's certificate or `-`.
    words: String,
}

impl Stamper {
    /// Returns a connection's stamper; `None` if its listener adds no stamps.
    pub(crate) fn of(
        listen: &Listen,
        client: Client,
        certificate: Option<String>,
    ) -> Option<Box<Stamper>> {
        if listen.stamp == Stamp::None {
            return None;
        }
        let peer = client.0.map_or("local".to_owned(), |address| Client(Some(address)).to_string());
        let certificate = certificate.unwrap_or_else(|| "-".to_owned());
        Some(Box::new(Stamper { words: format!("{peer} {listen} {certificate}") }))
    }

    fn stamp(&self, received: Timestamp, message: &[u8]) -> Vec<u8> {
        let head = format!("{received:.6} {} ", self.words);
        [head.as_bytes(), message].concat()
    }
}

/// Returns the record of a message, stamped if there is a stamper.
pub(crate) fn record<'a>(stamper: Option<&Stamper>, message: &'a [u8]) -> Cow<'a, [u8]> {
    match stamper {
        Some(stamper) => Cow::Owned(stamper.stamp(Timestamp::now(), message)),
        None => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_the_time_the_client_the_listener_and_the_certificate() {
        let stamped = |url: &str, certificate: Option<&str>| {
            let listen: Listen = url.parse().unwrap();
            let client = Client(Some([192, 0, 2, 7].into()));
            let stamper = Stamper::of(&listen, client, certificate.map(str::to_owned));
            let record = stamper.unwrap().stamp(Timestamp::UNIX_EPOCH, b"<13>a message");
            String::from_utf8(record).unwrap()
        };
        assert_eq!(
            stamped("relp://[::1]:1?stamp=prefix", None),
            "1970-01-01T00:00:00.000000Z 192.0.2.7 relp://[::1]:1?stamp=prefix - <13>a message"
        );
        let named = stamped("tls://[::1]:1?stamp=prefix", Some("web.example"));
        assert!(named.ends_with("?stamp=prefix web.example <13>a message"), "{named}");
        assert!(Stamper::of(&"tcp://[::1]:1".parse().unwrap(), Client(None), None).is_none());
    }
}
