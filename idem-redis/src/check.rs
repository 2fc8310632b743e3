//! What a server is set up to lose.

use std::collections::HashMap;
use std::fmt;

use crate::client::Client;
use crate::failure::Failure;

/// Something about a server that a user of the store should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The server is older than Redis 7.0: the scripts do not run.
    TooOld {
        /// What it says it is.
        version: String,
    },
    /// When its memory is full, the server removes records, live reservations included. Set
    /// `maxmemory-policy noeviction`.
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// The server is a replica: it refuses writes.
    Replica,
    /// The cluster, or this node's part of it, does not serve.
    ClusterDown,
    /// The server forgets everything when it restarts.
    NotPersistent,
    /// A crash of the server's machine loses what was acknowledged since the last write to disk:
    /// with `appendfsync everysec` about a second, with snapshots minutes.
    PersistsLate {
        /// How it persists: its `appendfsync`, or `snapshots`.
        how: String,
    },
    /// There are replicas. A failover, planned or not, loses what was acknowledged and not copied.
    FailsOver {
        /// How many replicas are connected.
        replicas: u32,
    },
    /// The server is part of a cluster: see [`FailsOver`](Self::FailsOver) for each part that has
    /// a replica.
    Cluster,
    /// The user may not ask this, so that what it would have said is not known.
    Unseen {
        /// The command.
        command: &'static str,
    },
}

/// How bad a [`Finding`] is. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// While nothing fails, laws can be broken, or the store does not work at all.
    Breaks,
    /// A crash or a failover loses records that were acknowledged.
    Loses,
    /// Something could not be found out.
    Unclear,
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::TooOld { .. } | Self::Evicts { .. } | Self::Replica | Self::ClusterDown => {
                Severity::Breaks
            }
            Self::NotPersistent
            | Self::PersistsLate { .. }
            | Self::FailsOver { .. }
            | Self::Cluster => Severity::Loses,
            Self::Unseen { .. } => Severity::Unclear,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld { version } => write!(f, "version {version} is older than 7.0"),
            Self::Evicts { policy } => {
                write!(f, "maxmemory-policy {policy} can remove live reservations when it is full")
            }
            Self::Replica => f.write_str("it is a replica and refuses writes"),
            Self::ClusterDown => f.write_str("its cluster does not serve"),
            Self::NotPersistent => f.write_str("a restart loses every record"),
            Self::PersistsLate { how } => {
                write!(f, "a crash of its machine loses the latest records ({how})")
            }
            Self::FailsOver { replicas } => {
                write!(f, "a failover to one of its {replicas} replicas loses the latest records")
            }
            Self::Cluster => f.write_str("a failover in its cluster loses the latest records"),
            Self::Unseen { command } => write!(f, "the user may not ask for {command}"),
        }
    }
}

/// What the server says of itself, by name.
type Facts = HashMap<String, String>;

pub(crate) async fn findings(client: &dyn Client) -> Result<Vec<Finding>, Failure> {
    let mut unseen = Vec::new();
    let info = match client.ask("INFO", &[]).await {
        Ok(texts) => lines(&texts),
        Err(failure) => not_permitted(failure, "INFO", &mut unseen)?,
    };
    // `save` matters only without an append-only file, and neither is part of INFO.
    let config = match client.ask("CONFIG", &["GET", "appendfsync"]).await {
        Ok(texts) => pairs(&texts),
        Err(failure) => not_permitted(failure, "CONFIG GET", &mut unseen)?,
    };
    let save = match client.ask("CONFIG", &["GET", "save"]).await {
        Ok(texts) => pairs(&texts),
        Err(_) => Facts::new(),
    };
    let cluster = if is(&info, "cluster_enabled", "1") {
        match client.ask("CLUSTER", &["INFO"]).await {
            Ok(texts) => lines(&texts),
            Err(failure) => not_permitted(failure, "CLUSTER INFO", &mut unseen)?,
        }
    } else {
        Facts::new()
    };
    let facts = [info, config, save, cluster].into_iter().flatten().collect();
    let mut findings = judge(&facts);
    findings.extend(unseen);
    findings.sort_by_key(Finding::severity);
    Ok(findings)
}

/// An answer that says no is a finding; no answer is a failure.
fn not_permitted(
    failure: Failure,
    command: &'static str,
    unseen: &mut Vec<Finding>,
) -> Result<Facts, Failure> {
    if !failure.is_answer() {
        return Err(failure);
    }
    unseen.push(Finding::Unseen { command });
    Ok(Facts::new())
}

fn judge(facts: &Facts) -> Vec<Finding> {
    let get = |name: &str| facts.get(name).map(String::as_str);
    let mut findings = Vec::new();
    if let Some(version) = get("redis_version")
        && version.split('.').next().and_then(|major| major.parse().ok()) < Some(7_u32)
    {
        findings.push(Finding::TooOld { version: version.to_owned() });
    }
    if let Some(policy) = get("maxmemory_policy")
        && policy != "noeviction"
        && !is(facts, "maxmemory", "0")
    {
        findings.push(Finding::Evicts { policy: policy.to_owned() });
    }
    if is(facts, "role", "slave") {
        findings.push(Finding::Replica);
    }
    if is(facts, "cluster_enabled", "1") {
        findings.push(Finding::Cluster);
    }
    if is(facts, "cluster_state", "fail") {
        findings.push(Finding::ClusterDown);
    }
    findings.extend(persistence(facts));
    if let Some(replicas @ 1..) = get("connected_slaves").and_then(|count| count.parse().ok()) {
        findings.push(Finding::FailsOver { replicas });
    }
    findings
}

fn persistence(facts: &Facts) -> Option<Finding> {
    let late = |how: &str| Some(Finding::PersistsLate { how: how.to_owned() });
    if is(facts, "aof_enabled", "1") {
        return match facts.get("appendfsync").map(String::as_str) {
            Some("always") | None => None,
            Some(how) => late(how),
        };
    }
    if is(facts, "aof_enabled", "0") && is(facts, "save", "") {
        return Some(Finding::NotPersistent);
    }
    if is(facts, "aof_enabled", "0") { late("snapshots") } else { None }
}

fn is(facts: &Facts, name: &str, value: &str) -> bool {
    facts.get(name).is_some_and(|fact| fact == value)
}

/// `name:value` lines, of one text or several.
fn lines(texts: &[String]) -> Facts {
    let lines = texts.iter().flat_map(|text| text.lines());
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// Names and values by turns.
fn pairs(texts: &[String]) -> Facts {
    let pairs = texts.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((name.clone(), value.clone())),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(facts: &[(&str, &str)]) -> Vec<Finding> {
        let facts = facts.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        judge(&facts.collect())
    }

    #[test]
    fn a_server_that_keeps_everything_is_not_found_fault_with() {
        let good = [
            ("redis_version", "7.0.15"),
            ("maxmemory", "0"),
            ("maxmemory_policy", "allkeys-lru"),
            ("role", "master"),
            ("connected_slaves", "0"),
            ("aof_enabled", "1"),
            ("appendfsync", "always"),
            ("cluster_enabled", "0"),
        ];
        assert_eq!(judged(&good), []);
        assert_eq!(judged(&[]), []);
    }

    // C104
    #[test]
    fn each_fault_is_found() {
        let version = || "6.2.14".to_owned();
        assert_eq!(
            judged(&[("redis_version", "6.2.14")]),
            [Finding::TooOld { version: version() }]
        );
        assert_eq!(judged(&[("redis_version", "10.0.1")]), []);
        for policy in ["allkeys-lru", "volatile-ttl"] {
            let facts = [("maxmemory", "2097152"), ("maxmemory_policy", policy)];
            assert_eq!(judged(&facts), [Finding::Evicts { policy: policy.into() }]);
        }
        assert_eq!(judged(&[("role", "slave")]), [Finding::Replica]);
        assert_eq!(judged(&[("connected_slaves", "2")]), [Finding::FailsOver { replicas: 2 }]);
        assert_eq!(judged(&[("aof_enabled", "0"), ("save", "")]), [Finding::NotPersistent]);
        for (facts, how) in [
            ([("aof_enabled", "0"), ("save", "3600 1")], "snapshots"),
            ([("aof_enabled", "1"), ("appendfsync", "everysec")], "everysec"),
        ] {
            assert_eq!(judged(&facts), [Finding::PersistsLate { how: how.into() }]);
        }
        let down = [("cluster_enabled", "1"), ("cluster_state", "fail")];
        assert_eq!(judged(&down), [Finding::Cluster, Finding::ClusterDown]);
    }
}
