//! Problems as responses.

use bytes::Bytes;
use http::Response;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use serde::Serialize;

use crate::config::Config;
use crate::problem::Problem;

/// How a client wants to be told of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `application/problem+json`.
    Json,
    /// `text/plain`.
    Text,
}

/// A problem document (RFC 9457, section 3).
#[derive(Serialize)]
struct Document<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    detail: String,
    /// The stable name, for those who would rather not compare URIs.
    code: &'a str,
}

pub(crate) fn render(problem: &Problem, form: Form, config: &Config) -> Response<Bytes> {
    let mut response = match &config.render {
        Some(render) => render(problem),
        None => document(problem, form, &config.problem_base),
    };
    if let Some(after) = problem.retry_after() {
        response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| after.as_secs().into());
    }
    response
}

fn document(problem: &Problem, form: Form, base: &str) -> Response<Bytes> {
    let type_uri = problem.type_uri(base);
    let (r#type, title, code) = (type_uri.as_str(), problem.title(), problem.code());
    let (status, detail) = (problem.status(), problem.to_string());
    let text = || format!("{title}\n{detail}\n{type}\n");
    let (body, media_type) = match form {
        Form::Text => (text(), "text/plain; charset=utf-8"),
        Form::Json => {
            let status = status.as_u16();
            let json = serde_json::to_string(&Document {
                r#type,
                title,
                status,
                detail: detail.clone(),
                code,
            });
            // Texts and a number always have a form in JSON.
            (json.unwrap_or_else(|_| text()), "application/problem+json")
        }
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

impl Form {
    /// By the request's `Accept`: text where it is preferred to JSON, else JSON.
    pub(crate) fn wanted(headers: &HeaderMap) -> Self {
        let mut ranges = Vec::new();
        for line in headers.get_all(ACCEPT) {
            ranges.extend(line.to_str().into_iter().flat_map(|line| line.split(',')).map(range));
        }
        let text = quality(&ranges, &["text/plain", "text/*", "*/*"]);
        let problem = quality(&ranges, &["application/problem+json", "application/*", "*/*"]);
        let json = quality(&ranges, &["application/json"]);
        if text > problem.max(json) { Self::Text } else { Self::Json }
    }
}

/// A media range and its weight in thousandths (RFC 9110, section 12.5.1).
fn range(range: &str) -> (&str, u16) {
    let mut parts = range.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let weight = parts.find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.eq_ignore_ascii_case("q").then(|| thousandths(value))
    });
    (media_type, weight.unwrap_or(1_000))
}

/// A weight that cannot be read is none.
fn thousandths(weight: &str) -> u16 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{whole}{part:0<3}");
    digits.parse::<u16>().ok().filter(|weight| *weight <= 1_000).unwrap_or(0)
}

/// The weight of the most specific range that there is.
fn quality(ranges: &[(&str, u16)], from_specific_to_general: &[&str]) -> u16 {
    let of = |wanted: &&str| {
        ranges.iter().find(|(range, _)| range.eq_ignore_ascii_case(wanted)).map(|(_, q)| *q)
    };
    from_specific_to_general.iter().find_map(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn text_is_for_those_who_prefer_it() {
        let wanted = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT, HeaderValue::from_static(line));
            }
            Form::wanted(&headers)
        };
        let json: &[&[&str]] = &[
            &[],
            &["*/*"],
            &["application/json"],
            &["application/problem+json, text/plain"],
            &["text/plain;q=0.5, application/json"],
            &["text/html, */*;q=0.8"],
            &["text/plain;q=0"],
            &["text/plain;q=high"],
            &["image/png"],
        ];
        for lines in json {
            assert_eq!(wanted(lines), Form::Json, "{lines:?}");
        }
        let text: &[&[&str]] = &[
            &["text/plain"],
            &["TEXT/PLAIN; charset=utf-8"],
            &["text/*"],
            &["application/json;q=0.5", "text/plain"],
            &["text/plain, */*;q=0.1"],
            &["text/plain;q=0.501, application/json;q=0.5"],
        ];
        for lines in text {
            assert_eq!(wanted(lines), Form::Text, "{lines:?}");
        }
    }

    #[test]
    fn a_document_has_its_members() {
        let problem = Problem::Mismatch { parts: "method and path".to_owned() };
        let response = document(&problem, Form::Json, "https://api.example.com/problems/");
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
        let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        let expected = serde_json::json!({
            "type": "https://api.example.com/problems/mismatch",
            "title": problem.title(),
            "status": 422,
            "detail": problem.to_string(),
            "code": "mismatch",
        });
        assert_eq!(document, expected);
    }
}
