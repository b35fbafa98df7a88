//! The arguments of `wrote serve`.

use clap::{Args, ValueHint};
use std::path::PathBuf;
use wrote_serve::Listen;

pub(super) const LONG_ABOUT: &str = "Serve a log: messages from many connections into one folder, in one order, \
        answered when they are safe.\n\nEach listener is a URL. tcp, tls and unix take messages one behind the \
        other (?frame=lines, octets, nul or u32); udp and unixgram take one a datagram. None of these has an \
        answer: their senders never know what arrived. relp, http and resp answer each message, by default \
        once it survives a power loss (?ack=durable; written: once it survives a crash of the server; \
        received: at once). relps, https and resps are the same over TLS.\n\nhttp takes POST /append: the body \
        is a record, or each of its lines with ?by=lines or Content-Type: application/x-ndjson. 503 means: \
        the same again later. GET /records?from=N reads from a sequence on, with &follow=1 also what comes; \
        of a log that is not of lines, each record stands behind its length in four bytes, or with \
        &as=lines on a line.\n\nSIGTERM and SIGINT end it: what \
        has arrived is written, made durable and answered before.";

pub(super) const EXAMPLES: &str = "Examples:\n  \
        wrote serve events --listen tcp://127.0.0.1:5140       lines, as from rsyslog or nc\n  \
        wrote serve events --listen relp://127.0.0.1:2514      rsyslog's omrelp: safe when answered\n  \
        wrote serve events --listen http://127.0.0.1:8080      curl -d hello http://127.0.0.1:8080/append\n  \
        wrote serve events --listen resp://127.0.0.1:6379      redis-cli XADD log '*' message hello\n  \
        wrote serve events --listen udp://127.0.0.1:5140 --metrics 127.0.0.1:9600\n  \
        wrote log tail -f events                               what comes";

/// The arguments of `wrote serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The folder of the log; made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,

    /// Where to listen and what to speak: tcp://127.0.0.1:5140, unix:///run/events.sock, relp://,
    /// http://, resp://; may be given several times
    #[arg(long, value_name = "URL", required = true)]
    pub listen: Vec<Listen>,

    /// Where operators ask: http://ADDRESS/metrics for Prometheus, /livez, /readyz; on this machine
    /// only, as 127.0.0.1:9600
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<String>,
}
