//! TLS sessions with rustls: loading certificates and keys, and handshakes.

use super::{Loaded, Stream, TlsFiles};
use crate::files;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{InconsistentKeys, RootCertStore, ServerConfig};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::{EndEntityCert, KeyUsage};

/// A time in the year 9999, after every certificate has expired.
const LATER: Duration = Duration::from_secs(253_370_764_800);

/// The maximum number of unsent bytes that a session buffers.
const BUFFER_BYTES: usize = 16 << 10;

pub(crate) type Sessions = Arc<ServerConfig>;

/// Reads the files. The error is a single line.
pub(super) fn load(own: &TlsFiles) -> Result<Loaded, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let chain = certificates(&own.cert_file)?;
    let expires_s = chain.first().and_then(|own| expiry(own));
    let warning = chain.first().and_then(|own| invalidity(own));
    let warning = warning.map(|text| format!("{}: {text}", own.cert_file.display()));
    let key = key(&own.key_file)?;
    let builder = match &own.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| wrong(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(|error| wrong(path, &error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let (key, cert) = (own.key_file.display(), own.cert_file.display());
            format!("{key}: is not the key of the certificate in {cert}")
        }
        rustls::Error::General(_) => wrong(&own.key_file, &error),
        _ => wrong(&own.cert_file, &error),
    })?;
    // Clients stay connected, so resumption is of little use. A stored session would use memory,
    // and could outlive the certificates.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Loaded { sessions: Arc::new(config), expires_s, warning })
}

/// Performs the handshake. The session is boxed, because otherwise each function that returns it
/// would reserve memory for it again.
pub(crate) async fn handshake<S: Stream>(
    stream: S,
    sessions: Sessions,
) -> io::Result<Box<TlsStream<S>>> {
    let bound = |session: &mut rustls::ServerConnection| {
        session.set_buffer_limit(Some(BUFFER_BYTES));
    };
    TlsAcceptor::from(sessions).accept_with(stream, bound).await.map(Box::new)
}

impl<S: Stream> Stream for Box<TlsStream<S>> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.get_ref().0.socket()
    }

    fn has_unread(&mut self) -> bool {
        let (stream, session) = self.get_mut();
        // A failed session yields no more data; the next read from it reports the error.
        let state = session.process_new_packets();
        state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0 || stream.has_unread())
    }

    fn certificate_name(&self) -> Option<String> {
        let (_, session) = self.get_ref();
        let own = EndEntityCert::try_from(session.peer_certificates()?.first()?).ok()?;
        own.valid_dns_names().next().map(str::to_owned)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = files::read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => {
            Err(wrong(path, &"has no certificate in PEM (BEGIN CERTIFICATE)"))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(no_pem(path, &error)),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(&files::read(path)?).map_err(|error| match error {
        PemError::NoItemsFound => {
            wrong(path, &"has no private key in PEM without a passphrase (BEGIN PRIVATE KEY)")
        }
        error => no_pem(path, &error),
    })
}

fn no_pem(path: &Path, error: &PemError) -> String {
    wrong(path, &format!("is not PEM: {error}").replace(['\n', '\r'], " "))
}

fn wrong(path: &Path, what: &dyn std::fmt::Display) -> String {
    format!("{}: {what}", path.display())
}

fn expiry(certificate: &CertificateDer<'_>) -> Option<u64> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let (later, usage) = (UnixTime::since_unix_epoch(LATER), KeyUsage::server_auth());
    match certificate.verify_for_usage(&[], &[], &[], later, usage, None, None).err()? {
        webpki::Error::CertExpired { not_after, .. } => Some(not_after.as_secs()),
        _ => None,
    }
}

/// Returns why a certificate is currently not valid; `None` if it is. Dates are checked before
/// signatures, so no authority's certificate is needed.
fn invalidity(certificate: &CertificateDer<'_>) -> Option<&'static str> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let (now, usage) = (UnixTime::now(), KeyUsage::server_auth());
    match certificate.verify_for_usage(&[], &[], &[], now, usage, None, None).err()? {
        webpki::Error::CertExpired { .. } => Some("the certificate has expired"),
        webpki::Error::CertNotValidYet { .. } => Some("the certificate is not valid yet"),
        _ => None,
    }
}
