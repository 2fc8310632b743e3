//! The address inside a URL.

use std::net::SocketAddr;
use std::ops::Range;

use tokio::net::lookup_host;

/// Where in the URL `host` or `host:port` stands.
fn place(url: &str) -> Option<Range<usize>> {
    let start = url.find("://")? + 3;
    let end = url.get(start..)?.find(['/', '?', '#']).map_or(url.len(), |length| start + length);
    let start = url.get(start..end)?.rfind('@').map_or(start, |user| start + user + 1);
    (start < end).then_some(start..end)
}

/// The address that the URL names.
pub(super) async fn resolve(url: &str, default_port: u16) -> Result<SocketAddr, String> {
    let authority = place(url).and_then(|place| url.get(place)).ok_or("no host in the URL")?;
    // A colon inside brackets belongs to an IPv6 address.
    let has_port = authority.rfind(':') > authority.rfind(']');
    let host = if has_port { authority.to_owned() } else { format!("{authority}:{default_port}") };
    let mut addresses = lookup_host(&host).await.map_err(|error| format!("{host}: {error}"))?;
    addresses.next().ok_or_else(|| format!("{host}: no address"))
}

/// The same URL with another address.
pub(super) fn replace(url: &str, address: SocketAddr) -> String {
    let mut url = url.to_owned();
    if let Some(place) = place(&url) {
        url.replace_range(place, &address.to_string());
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_is_replaced() {
        let address = "127.0.0.1:9".parse().unwrap();
        for (before, after) in [
            ("redis://h:6379/0", "redis://127.0.0.1:9/0"),
            ("redis://h", "redis://127.0.0.1:9"),
            ("postgres://u:p@[::1]:5432/d?a=b@c", "postgres://u:p@127.0.0.1:9/d?a=b@c"),
            ("postgres://u@h?x=/y", "postgres://u@127.0.0.1:9?x=/y"),
        ] {
            assert_eq!(replace(before, address), after);
        }
    }

    #[tokio::test]
    async fn a_url_without_a_port_has_the_default_one() {
        for (url, address) in [
            ("redis://127.0.0.1/0", "127.0.0.1:6379"),
            ("redis://u:p@127.0.0.1:1/0", "127.0.0.1:1"),
            ("redis://[::1]", "[::1]:6379"),
            ("redis://[::1]:2", "[::1]:2"),
        ] {
            assert_eq!(resolve(url, 6379).await, Ok(address.parse().unwrap()), "{url}");
        }
    }

    #[tokio::test]
    async fn a_url_without_a_host_is_an_error() {
        for url in ["", "redis", "redis://", "redis:///0", "postgres:///d?host=/run"] {
            assert!(resolve(url, 1).await.is_err(), "{url}");
        }
    }
}
