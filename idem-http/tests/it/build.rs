//! What is wrong with a layer is said when it is built.

use std::time::Duration;

use http::Method;
use http::header::{CONTENT_LENGTH, DATE, SET_COOKIE, TRANSFER_ENCODING};
use idem_core::{Coordinator, Invalid, KeyError, KeyPart};
use idem_http::ConfigError;

use crate::stores::Shared;
use crate::support::{builder, operation};

fn refused(change: impl FnOnce(idem_http::Builder) -> idem_http::Builder) -> ConfigError {
    change(builder(operation(Shared::default()))).build().unwrap_err()
}

#[test]
fn an_operation_that_cannot_work_is_refused() {
    let short = Duration::from_secs(1);
    let error = builder(operation(Shared::default()).retention(short)).build().unwrap_err();
    assert_eq!(error, ConfigError::Operation(Invalid::Retention(short)));
    let idem = Coordinator::builder(Shared::default()).build().unwrap();
    let error = builder(idem.operation("")).build().unwrap_err();
    let nameless = Invalid::Key(KeyError::Empty(KeyPart::Operation));
    assert_eq!(error, ConfigError::Operation(nameless));
}

#[test]
fn a_layer_is_for_methods_that_have_effects() {
    assert_eq!(refused(|layer| layer.methods([])), ConfigError::NoMethod);
    for safe in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        let error = refused(|layer| layer.methods([Method::POST, safe.clone()]));
        assert_eq!(error, ConfigError::SafeMethod(safe));
    }
    let layer = builder(operation(Shared::default()));
    assert!(layer.methods([Method::PUT, Method::DELETE]).build().is_ok());
}

// C85
#[test]
fn a_header_about_one_message_cannot_be_kept() {
    for name in [CONTENT_LENGTH, TRANSFER_ENCODING] {
        assert_eq!(refused(|layer| layer.keep_header(name.clone())), ConfigError::Header(name));
    }
    let layer = builder(operation(Shared::default()));
    assert!(layer.keep_header(SET_COOKIE).keep_header(DATE).build().is_ok());
}

#[test]
fn a_layer_that_could_keep_nothing_is_refused() {
    assert_eq!(refused(|layer| layer.max_response(0)), ConfigError::NoResponse);
}
