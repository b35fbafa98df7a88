//! Access: tokens, and the rule for listeners that other hosts can reach.

use super::{Door, Listen, Socket};
use crate::files;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;
use subtle::{Choice, ConstantTimeEq};

/// The delay before a wrong token is answered, so that tokens can't be guessed at network speed.
pub(crate) const WRONG_TOKEN_PAUSE: Duration = Duration::from_millis(300);

/// The access rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// A file of tokens, one per line. If set, RESP and HTTP clients must give one of them.
    pub token_file: Option<PathBuf>,
    /// Whether other hosts may reach listeners that require neither a certificate nor a token.
    pub is_insecure: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Access {
    tokens: Vec<Vec<u8>>,
}

impl Access {
    /// Reads the tokens, skipping empty lines and lines that begin with `#`.
    pub(crate) fn load(config: &AccessConfig) -> Result<Access, String> {
        let Some(path) = &config.token_file else { return Ok(Access::default()) };
        let text = files::read(path)?;
        let tokens = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
        let tokens = tokens.filter(|token| !token.is_empty() && token[0] != b'#');
        let tokens: Vec<_> = tokens.map(<[u8]>::to_vec).collect();
        if tokens.is_empty() {
            return Err(format!("{}: has no token in it", path.display()));
        }
        Ok(Access { tokens })
    }

    pub(crate) fn asks_for_token(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Returns whether `token` is accepted. The duration depends only on its length.
    pub(crate) fn accepts(&self, token: &[u8]) -> bool {
        let is_one = |known: &Vec<u8>| known.as_slice().ct_eq(token);
        self.tokens.iter().map(is_one).fold(Choice::from(0), |any, one| any | one).into()
    }
}

/// Returns the bearer token of a request (RFC 6750, section 2.1); empty if there is none.
pub(crate) fn bearer(headers: &HeaderMap) -> &[u8] {
    let value = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    match value.split_at_checked("Bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"Bearer ") => token.trim_ascii(),
        _ => b"",
    }
}

/// Returns why a request seems to come from a web page; `None` if it does not. Such a request has
/// an Origin header. If `own` (the listener's name) is given, a Host header also betrays it, unless
/// that is an address, `localhost` or `own`: by DNS rebinding, a page's host name may lead to a
/// local listener.
pub(crate) fn mark_of_page(headers: &HeaderMap, own: Option<&str>) -> Option<&'static str> {
    if headers.contains_key(ORIGIN) {
        return Some("refused: the request has an Origin header (web pages are not allowed)");
    }
    let (own, named) = (own?, headers.get(HOST)?);
    let name = host(named.to_str().unwrap_or_default());
    let is_address = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let is_known = ["localhost", own].iter().any(|known| known.eq_ignore_ascii_case(name));
    let because = "refused: the Host header must name an address, localhost or the listener";
    (!is_address && !is_known).then_some(because)
}

pub(crate) fn host(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => address,
    }
}

/// Refuses a listener that other hosts can reach without client certificates or a token. Returns a
/// warning if `is_insecure` allows such a listener anyway.
pub(crate) fn check(
    listen: &Listen,
    addresses: &[IpAddr],
    has_client_ca: bool,
    config: &AccessConfig,
) -> Result<Option<String>, String> {
    let is_local = addresses.iter().all(|address| address.to_canonical().is_loopback());
    if is_local || config.is_insecure || listen.is_tls && has_client_ca {
        return Ok(None);
    }
    let takes_token = matches!(listen.door, Door::Resp | Door::Http);
    if takes_token && config.token_file.is_some() {
        let clear = format!("{listen}: tokens and messages cross the network unencrypted");
        return Ok((!listen.is_tls).then_some(clear));
    }
    let needs = match listen.door {
        Door::Datagrams => "",
        Door::Resp | Door::Http => "use --token-file or --client-ca-file, or ",
        _ if listen.is_tls => "use --client-ca-file, or ",
        Door::Relp => "use --client-ca-file with relps://, or ",
        Door::Frames(_) => "use --client-ca-file with tls://, or ",
    };
    Err(format!("{listen}: other hosts can reach it; {needs}pass --insecure"))
}

/// Returns the addresses on which a listener will listen; none for a Unix socket or for a socket
/// passed by name.
pub(crate) fn addresses(listen: &Listen) -> Result<Vec<IpAddr>, String> {
    let (Socket::Tcp(address) | Socket::Udp(address)) = &listen.socket else {
        return Ok(Vec::new());
    };
    if listen.socket.passed_name().is_some() {
        return Ok(Vec::new());
    }
    if host(address) == address {
        return Err(format!("{listen}: no port: use {}://{address}:5140", listen.scheme()));
    }
    let found = address.to_socket_addrs().map_err(|error| format!("{listen}: {error}"))?;
    Ok(found.map(|address| address.ip()).collect())
}

/// Returns the addresses on which the operators' listener will listen, and whether it requires a
/// token because other hosts can reach it.
pub(crate) fn operators_addresses(
    address: &str,
    rule: &AccessConfig,
) -> Result<(Vec<SocketAddr>, bool), String> {
    let found = address.to_socket_addrs();
    let found: Vec<_> = found.map_err(|error| format!("http://{address}: {error}"))?.collect();
    if rule.is_insecure || found.iter().all(|address| address.ip().is_loopback()) {
        return Ok((found, false));
    }
    if rule.token_file.is_some() {
        return Ok((found, true));
    }
    Err(format!(
        "metrics: other machines can reach {address}: set token_file, or listen on 127.0.0.1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderName;

    fn checked(url: &str, has_client_ca: bool, config: &AccessConfig) -> Result<bool, String> {
        let listen: Listen = url.parse().unwrap();
        check(&listen, &addresses(&listen).unwrap(), has_client_ca, config)
            .map(|told| told.is_some())
    }

    #[test]
    fn a_listener_off_loopback_needs_certificates_of_clients_or_a_token_or_insecure() {
        let none = AccessConfig::default();
        let token = AccessConfig { token_file: Some("tokens".into()), is_insecure: false };
        let insecure = AccessConfig { token_file: None, is_insecure: true };
        for url in
            ["tcp://127.0.0.2:1", "udp://[::1]:1", "unix:///s", "relp://[::ffff:127.0.0.1]:1"]
        {
            assert_eq!(checked(url, false, &none), Ok(false), "{url}");
        }
        for url in ["tcp://0.0.0.0:1", "tls://[::]:1", "udp://192.0.2.1:1", "resps://192.0.2.1:1"] {
            let error = checked(url, false, &none).unwrap_err();
            assert!(error.starts_with(url) && error.lines().count() == 1, "{error}");
            assert_eq!(checked(url, false, &insecure), Ok(false));
        }
        // Client certificates protect nothing without TLS.
        assert!(checked("tcp://0.0.0.0:1", true, &none).is_err());
        assert_eq!(checked("relps://0.0.0.0:1", true, &none), Ok(false));
        // Only RESP and HTTP can carry a token.
        assert!(checked("relps://0.0.0.0:1", false, &token).is_err());
        assert_eq!(checked("https://0.0.0.0:1", false, &token), Ok(false));
        assert_eq!(checked("resp://0.0.0.0:1", false, &token), Ok(true));
    }

    #[test]
    fn a_web_page_is_known_by_its_origin_or_its_name() {
        let is_of_page = |name: HeaderName, value: &str| {
            let headers = [(name, HeaderValue::from_str(value).unwrap())];
            super::mark_of_page(&headers.into_iter().collect(), Some("logs.example")).is_some()
        };
        for host in
            ["127.0.0.1:8080", "[::1]:80", "[::1]", "LocalHost", "192.0.2.1", "logs.example:1"]
        {
            assert!(!is_of_page(HOST, host), "{host}");
        }
        for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.example", "", "x"] {
            assert!(is_of_page(HOST, host), "{host}");
        }
        assert!(is_of_page(ORIGIN, "http://127.0.0.1:8080") && is_of_page(ORIGIN, "null"));
        assert!(super::mark_of_page(&HeaderMap::new(), Some("logs.example")).is_none());
    }

    #[test]
    fn tokens_are_read_a_line_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let config = AccessConfig { token_file: Some(path.clone()), is_insecure: false };
        std::fs::write(&path, "# old\n\n").unwrap();
        let error = Access::load(&config).unwrap_err();
        assert!(error.ends_with("tokens: has no token in it"), "{error}");
        std::fs::write(&path, "# old\none\r\n two\n").unwrap();
        let access = Access::load(&config).unwrap();
        assert!(access.asks_for_token() && access.accepts(b"one") && access.accepts(b"two"));
        for wrong in [&b""[..], b"on", b"onee", b"# old", b"One"] {
            assert!(!access.accepts(wrong));
        }
        assert!(!Access::default().accepts(b""));
    }
}
