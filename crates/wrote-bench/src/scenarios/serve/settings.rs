//! The settings of the scenario `serve`, with their limits.

use super::clients::{Frame, Protocol};
use super::message::{BYTES_MAX, BYTES_MIN};
use std::path::PathBuf;
use std::str::FromStr;
use wrote_result::Error;
#[cfg(feature = "cli")]
use wrote_result::units;

/// Below the ports of one address pair, and the usual limit of open files.
pub(super) const CONNECTIONS_MAX: u32 = 15_000;
pub(super) const WINDOW_MAX: u32 = 65_536;
const BYTES_DEFAULT: u32 = 500;

/// The settings of the scenario `serve`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Serve {
    /// Connections to a server, each number in its own rows, from 1 to 15000 [default: 1,64,1000
    /// for lines; 1,64 for relp and resp; 64 for http]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N,..",
        value_delimiter = ',', value_parser = units::parse_count::<CONNECTIONS_MAX>,
        allow_hyphen_values = true))]
    pub connections: Vec<u32>,

    /// Messages of a connection without an answer, each number in its own rows, from 1 to 65536;
    /// of http, messages of a request [default: 1,128; of http 100]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N,..",
        value_delimiter = ',', value_parser = units::parse_count::<WINDOW_MAX>,
        allow_hyphen_values = true))]
    pub window: Vec<u32>,

    /// Bytes of a message to a server, from 32 to 65536 [default: 500]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N",
        value_parser = units::parse_count::<BYTES_MAX>, allow_hyphen_values = true))]
    pub server_message_size: Option<u32>,

    /// Drive another's server in place of our own: tcp://HOST:PORT (?frame=octets, nul or u32),
    /// relp://, resp://, http://; may be given several times
    #[cfg_attr(feature = "cli", arg(long, value_name = "URL"))]
    pub server_url: Vec<ServerUrl>,

    /// The folder of that server's log, where it is one of wrote's; messages are looked for there
    #[cfg_attr(feature = "cli", arg(long, value_name = "DIR", requires = "server_url"))]
    pub server_log: Option<PathBuf>,

    /// The process of that server, for its CPU time and memory
    #[cfg_attr(feature = "cli", arg(long, value_name = "PID", requires = "server_url",
        value_parser = units::parse_count::<{ i32::MAX as u32 }>, allow_hyphen_values = true))]
    pub server_pid: Option<u32>,

    /// The program whose `serve` command is run; by default this one.
    #[cfg_attr(feature = "cli", arg(skip))]
    pub program: Option<PathBuf>,
}

/// The address of an external server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    pub(super) protocol: Protocol,
    /// `HOST:PORT`.
    pub(super) host: String,
}

impl FromStr for ServerUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<ServerUrl, String> {
        let wrong = |what: &str| format!("{url:?} {what}, as in tcp://127.0.0.1:5140");
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("is not a URL"))?;
        let (host, query) = rest.split_once('?').unwrap_or((rest, ""));
        let protocol = match (scheme, query) {
            ("tcp", "" | "frame=lines") => Protocol::Frames(Frame::Lines),
            ("tcp", "frame=octets") => Protocol::Frames(Frame::Octets),
            ("tcp", "frame=nul") => Protocol::Frames(Frame::Nul),
            ("tcp", "frame=u32") => Protocol::Frames(Frame::U32),
            ("relp", "") => Protocol::Relp,
            ("resp" | "redis", "") => Protocol::Resp,
            ("http", "") => Protocol::Http,
            _ => return Err(wrong("is none of tcp, relp, resp, http")),
        };
        let host = host.trim_end_matches('/');
        match host.rsplit_once(':') {
            Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok() => {}
            _ => return Err(wrong("has no host and port")),
        }
        Ok(ServerUrl { protocol, host: host.into() })
    }
}

impl Serve {
    /// Returns the validated message length.
    pub(super) fn checked_bytes(&self) -> Result<u32, Error> {
        match self.server_message_size.unwrap_or(BYTES_DEFAULT) {
            bytes if (BYTES_MIN..=BYTES_MAX).contains(&bytes) => Ok(bytes),
            bad => Err(Error::Usage(format!(
                "--server-message-size: {bad} is not from {BYTES_MIN} to {BYTES_MAX}"
            ))),
        }
    }

    /// Refuses numbers beyond their limits.
    pub(super) fn check_numbers(&self) -> Result<(), Error> {
        for (name, numbers, most) in [
            ("connections", &self.connections, CONNECTIONS_MAX),
            ("window", &self.window, WINDOW_MAX),
        ] {
            if let Some(bad) = numbers.iter().find(|number| !(1..=most).contains(*number)) {
                return Err(Error::Usage(format!("--{name}: {bad} is not from 1 to {most}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_what_is_spoken() {
        for (url, protocol) in [
            ("tcp://127.0.0.1:5140", Protocol::Frames(Frame::Lines)),
            ("tcp://[::1]:5140?frame=u32", Protocol::Frames(Frame::U32)),
            ("redis://localhost:6379/", Protocol::Resp),
            ("http://localhost:80", Protocol::Http),
        ] {
            assert_eq!(url.parse::<ServerUrl>().unwrap().protocol, protocol, "{url}");
        }
        for bad in
            ["127.0.0.1:1", "udp://a:1", "tcp://a", "tcp://:1", "tcp://a:70000", "relp://a:1?ack=x"]
        {
            let problem = bad.parse::<ServerUrl>().unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }
}
