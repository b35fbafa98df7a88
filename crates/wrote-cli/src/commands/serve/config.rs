//! The configuration of a server from its arguments, or from the file that they name.

use crate::args::ServeArgs;
use wrote_serve::{AccessConfig, Config, Error, TlsFiles};

pub(super) fn of(arguments: &ServeArgs) -> Result<Config, Error> {
    if let Some(path) = &arguments.config {
        return Config::from_file(path);
    }
    let folder = arguments.folder.clone().unwrap_or_default();
    let mut config = Config::of_log(&folder, arguments.listen.clone());
    let tls = (arguments.cert_file.clone(), arguments.key_file.clone());
    if let (Some(cert_file), Some(key_file)) = tls {
        let client_ca_file = arguments.client_ca_file.clone();
        config.tls = Some(TlsFiles { cert_file, key_file, client_ca_file });
    }
    config.log_level = arguments.log_level;
    config.metrics = arguments.metrics.clone();
    let token_file = arguments.token_file.clone();
    config.access = AccessConfig { token_file, is_insecure: arguments.insecure };
    if let Some(connections) = arguments.max_connections {
        config.limits.connections = connections as usize;
    }
    if let Some(bytes) = arguments.max_message_bytes {
        config.limits.message_bytes = bytes;
    }
    for log in &mut config.logs {
        log.store.clone_from(&arguments.store);
        if let Some(bytes) = arguments.retain_bytes {
            log.options = log.options.clone().retain_bytes(bytes);
        }
        if let Some(age) = arguments.retain_age {
            log.options = log.options.clone().retain_age(age);
        }
    }
    Ok(config)
}
