//! Who may ask: who knows the token, and is not led here by a page of somebody else.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Server;
use super::strangers::Shown;

/// Bytes of a token.
const TOKEN: usize = 16;
/// Names of this machine that a browser may have asked for.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// What is sent with every answer.
const HEADERS: [(HeaderName, &str); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' \
         data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // The address has the token.
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

/// A new token, in hexadecimal digits.
///
/// # Errors
/// The system has no random numbers.
pub fn token() -> Result<String> {
    let mut bytes = [0u8; TOKEN];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Lets a request pass, or refuses it. Whoever does not know the token learns nothing.
pub async fn check(
    State(server): State<Arc<Server>>,
    ConnectInfo(connection): ConnectInfo<Shown>,
    request: Request,
    next: Next,
) -> Response {
    let given = request.uri().path().split('/').nth(1).unwrap_or_default();
    let mut response = if !same(given, &server.token) {
        StatusCode::NOT_FOUND.into_response()
    } else if !is_from_here(request.headers(), server.has_port, &server.hosts) {
        StatusCode::FORBIDDEN.into_response()
    } else {
        connection.show();
        server.touch();
        next.run(request).await
    };
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

/// Whether a page of this server sends JSON, and no other program on its behalf: forms of other pages can
/// send neither this type nor this origin.
pub fn is_json_of_a_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes() == b"application/json");
    // Who has passed `check` has no foreign one.
    is_json && headers.contains_key(header::ORIGIN)
}

/// Whether two texts are the same. Takes as long for each text of the same length.
fn same(given: &str, token: &str) -> bool {
    let pairs = given.bytes().zip(token.bytes());
    given.len() == token.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// Whether the browser asked for this machine by its own name, or one of `hosts`, and a page of the same
/// origin asks.
fn is_from_here(headers: &HeaderMap, has_port: bool, hosts: &[String]) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let Some(host) = text(header::HOST) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    // A proxy before a socket has its own names.
    let mut known = NAMES.into_iter().chain(hosts.iter().map(String::as_str));
    let is_known = !has_port || known.any(|known| name.eq_ignore_ascii_case(known));
    let is_own = |origin: &str| {
        let origin = origin
            .strip_prefix("http://")
            .or(origin.strip_prefix("https://"));
        origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    };
    is_known && text(header::ORIGIN).is_none_or(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_other_pages_are_refused() {
        let passes = |host: &'static str, origin: Option<&'static str>, has_port| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            is_from_here(&headers, has_port, &["Proxy.example.org".to_owned()])
        };
        assert!(passes(
            "proxy.example.org",
            Some("https://proxy.example.org"),
            true
        ));
        assert!(!passes(
            "proxy.example.org",
            Some("https://127.0.0.1"),
            true
        ));
        assert!(!passes("example.org", None, true));
        assert!(passes("127.0.0.1:8000", None, true));
        assert!(passes(
            "localhost:1234",
            Some("http://localhost:1234"),
            true
        ));
        assert!(passes("[::1]:1234", Some("http://[::1]:1234"), true));
        assert!(passes(
            "hub.example.org",
            Some("https://hub.example.org"),
            false
        ));
        assert!(!passes("hub.example.org", None, true));
        assert!(!passes("127.0.0.1.example.org:80", None, true));
        assert!(!passes("localhost:1234", Some("http://localhost:99"), true));
        assert!(!passes("localhost:1234", Some("https://example.org"), true));
        assert!(!passes("localhost:1234", Some("null"), true));
        assert!(!passes(
            "hub.example.org",
            Some("https://example.org"),
            false
        ));
        assert!(!is_from_here(&HeaderMap::new(), true, &[]));
    }

    #[test]
    fn tokens_differ_and_are_compared_as_a_whole() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert!(one.len() == 2 * TOKEN && one != other);
        assert!(same(&one, &one) && !same(&one[1..], &one) && !same("", &one));
    }
}
