//! Stamps: the sender, place and time of a message, as a part of its record.

use crate::config::{Listen, Stamp};
use crate::refusals::Client;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write;

/// Stamps the messages of one connection.
#[derive(Debug)]
pub(crate) struct Stamper {
    is_json: bool,
    peer: String,
    listener: String,
    certificate: Option<String>,
}

impl Stamper {
    /// Returns a connection's stamper, if its listener stamps.
    pub(crate) fn of(
        listen: &Listen,
        client: Client,
        certificate: Option<String>,
    ) -> Option<Box<Stamper>> {
        let is_json = match listen.stamp {
            Stamp::None => return None,
            Stamp::Prefix => false,
            Stamp::Json => true,
        };
        let peer = client.0.map_or("local".to_owned(), |address| Client(Some(address)).to_string());
        Some(Box::new(Stamper { is_json, peer, listener: listen.to_string(), certificate }))
    }

    /// Returns the record of a message that arrives now.
    pub(crate) fn stamp(&self, message: &[u8]) -> Vec<u8> {
        self.stamp_at(Timestamp::now(), message)
    }

    fn stamp_at(&self, received: Timestamp, message: &[u8]) -> Vec<u8> {
        let received = format!("{received:.6}");
        let Stamper { peer, listener, certificate, .. } = self;
        if !self.is_json {
            let certificate = certificate.as_deref().unwrap_or("-");
            let mut record = format!("{received} {peer} {listener} {certificate} ").into_bytes();
            record.extend_from_slice(message);
            return record;
        }
        let mut fields = Map::new();
        let mut put = |name: &str, value: &str| fields.insert(name.to_owned(), value.into());
        put("received", &received);
        put("peer", peer);
        put("listener", listener);
        if let Some(certificate) = certificate {
            put("certificate", certificate);
        }
        match str::from_utf8(message) {
            Ok(text) => put("message", text),
            Err(_) => put("message_hex", &hex(message)),
        };
        Value::Object(fields).to_string().into_bytes()
    }
}

/// Returns the record of a message, stamped if there is a stamper.
pub(crate) fn record<'a>(stamper: Option<&Stamper>, message: &'a [u8]) -> Cow<'a, [u8]> {
    match stamper {
        Some(stamper) => Cow::Owned(stamper.stamp(message)),
        None => Cow::Borrowed(message),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_the_time_the_client_the_listener_and_the_certificate() {
        let at = Timestamp::UNIX_EPOCH;
        let stamped = |url: &str, certificate: Option<&str>, message: &[u8]| {
            let listen: Listen = url.parse().unwrap();
            let client = Client(Some([192, 0, 2, 7].into()));
            let stamper = Stamper::of(&listen, client, certificate.map(str::to_owned));
            String::from_utf8(stamper.unwrap().stamp_at(at, message)).unwrap()
        };
        assert_eq!(
            stamped("relp://[::1]:1?stamp=prefix", None, b"<13>a message"),
            "1970-01-01T00:00:00.000000Z 192.0.2.7 relp://[::1]:1?stamp=prefix - <13>a message"
        );
        assert_eq!(
            stamped("tls://[::1]:1?stamp=json", Some("web.example"), b"a \"b\"\n"),
            r#"{"certificate":"web.example","listener":"tls://[::1]:1?stamp=json","message":"a \"b\"\n","peer":"192.0.2.7","received":"1970-01-01T00:00:00.000000Z"}"#
        );
        let bytes = stamped("http://[::1]:1?stamp=json", None, b"\xff\x00");
        assert!(bytes.contains(r#""message_hex":"ff00""#), "{bytes}");
        assert!(Stamper::of(&"tcp://[::1]:1".parse().unwrap(), Client(None), None).is_none());
    }
}
