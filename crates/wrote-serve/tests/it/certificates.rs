//! Certificates for tests, and TLS clients that use them.

#![allow(dead_code, reason = "each program of tests uses a part of this")]

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wrote_serve::TlsFiles;

pub type Session = StreamOwned<ClientConnection, TcpStream>;

/// An authority that signs certificates for `localhost`.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// A certificate and its key, both in PEM format.
pub struct Certificate {
    pub pem: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    pub fn sign(&self) -> Certificate {
        self.sign_until(4000)
    }

    /// Signs a certificate that expires at the start of `year`.
    pub fn sign_until(&self, year: i32) -> Certificate {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(year, 1, 1));
        // OpenSSL treats a certificate whose name equals its signer's as self-signed.
        params.distinguished_name.push(DnType::CommonName, "localhost");
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certificate { pem, key: key.serialize_pem() }
    }

    /// Returns the settings of a client that trusts this authority, and may have its own
    /// certificate.
    pub fn client(&self, own: Option<&Certificate>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = CertificateDer::from_pem_slice(own.pem.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        })
    }
}

/// Writes a certificate and its key into a folder.
pub fn write(folder: &Path, certificate: &Certificate, client_ca: Option<&Authority>) -> TlsFiles {
    let put = |name: &str, text: &str| -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsFiles {
        cert_file: put("cert.pem", &certificate.pem),
        key_file: put("key.pem", &certificate.key),
        client_ca_file: client_ca.map(|authority| put("ca.pem", &authority.pem)),
    }
}

/// Starts a session on a connection. The handshake happens when the first bytes are sent.
pub fn session(config: &Arc<ClientConfig>, stream: TcpStream) -> Session {
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), stream)
}
