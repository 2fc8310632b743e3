//! One line of a trace.

use std::fs;
use std::path::Path;

use idem_kit::{Key, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request as it arrives; see the README beside the example for what each field means.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) at_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<String>,
    pub(super) operation: String,
    pub(super) key: String,
    pub(super) payload: Value,
    #[serde(default = "default_takes_ms")]
    pub(super) takes_ms: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fails: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) crash: bool,
}

fn default_takes_ms() -> u32 {
    300
}

impl Request {
    /// What is asked for, by whom: a second charge for it is a duplicate.
    pub(super) fn what(&self) -> String {
        let Self { tenant, operation, key, payload, .. } = self;
        format!("{tenant:?} {operation:?} {key:?} {payload}")
    }

    fn check(&self, last_ms: u32) -> Result<(), String> {
        let Self { at_ms, tenant, operation, key, crash, fails, client_timeout_ms, .. } = self;
        let scope = Scope::new(operation).and_then(|scope| match tenant {
            Some(tenant) => scope.tenant(tenant),
            None => Ok(scope),
        });
        scope.and_then(|scope| Key::new(scope, key)).map_err(|error| error.to_string())?;
        if *at_ms < last_ms {
            return Err(format!("`at_ms` {at_ms} is before that of the line above, {last_ms}"));
        }
        if *crash && (fails.is_some() || client_timeout_ms.is_some()) {
            return Err("`crash` goes neither with `fails` nor with `client_timeout_ms`".to_owned());
        }
        Ok(())
    }
}

/// Reads a trace, or says what is wrong with it and where.
pub(super) fn read(file: &Path) -> Result<Vec<Request>, String> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let mut requests = Vec::new();
    let mut last_ms = 0;
    for (line, text) in (1..).zip(text.lines()) {
        let request = parse(text, last_ms).map_err(|why| format!("{name}, line {line}: {why}"))?;
        last_ms = request.at_ms;
        requests.push(request);
    }
    if requests.is_empty() {
        return Err(format!("{name}: there is no request in it"));
    }
    Ok(requests)
}

fn parse(line: &str, last_ms: u32) -> Result<Request, String> {
    let request: Request = serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        // The parser counts the lines of this line.
        let at = format!(" at line {} column {}", error.line(), error.column());
        format!("column {}: {}", error.column(), text.strip_suffix(&at).unwrap_or(&text))
    })?;
    request.check(last_ms)?;
    Ok(request)
}
