//! The scripts, one per verb, and how the server knows them.

use std::fmt;
use std::sync::LazyLock;

/// A script and the SHA-1 that the server files it under.
pub(crate) struct Script {
    pub(crate) code: &'static str,
    pub(crate) sha: String,
}

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, sha: sha1_smol::Sha1::from(code).digest().to_string() }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Script").field(&self.sha).finish()
    }
}

macro_rules! script {
    ($name:ident = $($part:literal),+) => {
        pub(crate) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $part)),)+)));
    };
}

script!(RESERVE = "record.lua", "reserve.lua");
script!(RESERVE_WHEN_FULL = "full.lua", "record.lua", "known.lua", "reserve.lua");
script!(RENEW = "full.lua", "record.lua", "renew.lua");
script!(COMPLETE = "record.lua", "complete.lua");
script!(COMPLETE_WHEN_FULL = "full.lua", "record.lua", "complete.lua");
script!(RELEASE = "full.lua", "record.lua", "release.lua");
script!(WATCH = "full.lua", "record.lua", "watch.lua");
