//! Errors as JavaScript sees them. `lib/native.js` gives them the properties of Node's own.

use napi::bindgen_prelude::{JsObjectValue, Object, Unknown};
use napi::{Env, JsError, Status};
use wrote::Error;
use wrote_bindings::{offset, text};

/// Returns the exception of an error, with its parts as properties.
pub fn raise(env: &Env, error: &Error) -> napi::Error {
    match with_parts(env, error) {
        Ok(value) => napi::Error::from(value),
        Err(other) => other,
    }
}

fn with_parts<'env>(env: &'env Env, error: &Error) -> napi::Result<Unknown<'env>> {
    let raised = napi::Error::new(Status::GenericFailure, text(error));
    let unknown = JsError::from(raised).into_unknown(*env);
    // SAFETY: an error is an object.
    let mut object: Object<'_> = unsafe { unknown.cast()? };
    object.set_named_property("kind", kind(error))?;
    object.set_named_property("errno", error.errno())?;
    let path = error.path().map(|path| path.to_string_lossy().into_owned());
    object.set_named_property("path", path)?;
    object.set_named_property("offset", offset(error).map(|offset| offset as f64))?;
    Ok(unknown)
}

/// Returns the exception of an argument.
pub fn invalid(text: String) -> napi::Error {
    napi::Error::new(Status::InvalidArg, text)
}

fn kind(error: &Error) -> &'static str {
    match error {
        Error::File { .. } => "File",
        Error::NotYet { .. } => "NotYet",
        Error::Poisoned { .. } => "Poisoned",
        Error::Alignment { .. } => "Alignment",
        Error::TooLong { .. } => "TooLong",
        Error::Refused { .. } => "Refused",
        Error::Interfered { .. } => "Interfered",
        Error::Truncated { .. } => "Truncated",
        Error::Differs { .. } => "Differs",
        Error::Damaged { .. } => "Damaged",
        Error::Foreign { .. } => "Foreign",
        Error::Interrupted => "Interrupted",
        Error::Forked => "Forked",
        Error::Engine { .. } => "Engine",
        _ => "Other",
    }
}
