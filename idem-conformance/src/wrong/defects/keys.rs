//! Stores in which two keys are one.

use idem_core::Key;

use crate::wrong::laws::Laws;

pub(super) const ALL: &[&dyn Laws] = &[
    &FoldsCase,
    &TrimsSpaces,
    &EndsAtNul,
    &FoldsNormalForms,
    &FalsyIsEmpty,
    &BracesAreAHashTag,
    &EndsAtALine,
    &CutsAt255Bytes,
    &CutsAt254Characters,
    &CutsScopesAt255Bytes,
    &HashesTo16Bits,
    &ScopeRunsIntoKey,
    &IgnoresTheOperation,
    &IgnoresTheTenant,
    &NoTenantIsADash,
];

/// The name of a key whose text is `text`.
fn named(key: &Key, text: &str) -> Vec<u8> {
    let (scope, separator) = (key.scope(), "\u{10ffff}\u{10fffe}");
    let tenant = scope.tenant_id().map_or(String::new(), |tenant| format!("1{tenant}"));
    [scope.operation(), &tenant, text].join(separator).into_bytes()
}

macro_rules! names {
    ($(#[$why:meta] $name:ident: |$key:ident| $as:expr;)+) => {$(
        #[$why]
        #[derive(Debug)]
        struct $name;

        impl Laws for $name {
            fn name(&self, $key: &Key) -> Vec<u8> {
                $as
            }
        }
    )+};
}

names! {
    /// A column with a collation that ignores case.
    FoldsCase: |key| named(key, &key.text().to_lowercase());

    /// A header value that was trimmed on the way.
    TrimsSpaces: |key| named(key, key.text().trim());

    /// C73: a text for a language in which NUL ends it.
    EndsAtNul: |key| named(key, key.text().split_inclusive('\0').next().unwrap_or_default().trim_end_matches('\0'));

    /// A text that was normalised on the way.
    FoldsNormalForms: |key| named(key, &key.text().replace("e\u{301}", "\u{e9}"));

    /// C58: a key that is false in some language is taken for no key.
    FalsyIsEmpty: |key| named(key, match key.text() {
        "0" | "0.0" | "false" | "null" | "[]" | "NaN" => "",
        text => text,
    });

    /// C100: what stands between braces is taken for the whole.
    BracesAreAHashTag: |key| {
        let tag = key.text().split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        named(key, tag.map_or(key.text(), |(tag, _)| tag))
    };

    /// C73: a text protocol in which a line ends a key.
    EndsAtALine: |key| named(key, key.text().split("\r\n").next().unwrap_or_default());

    /// C74: a column of 255 bytes that cuts what is longer.
    CutsAt255Bytes: |key| {
        let mut text = key.text().as_bytes().to_vec();
        text.truncate(255);
        [named(key, ""), text].concat()
    };

    /// A buffer with room for one character less.
    CutsAt254Characters: |key| named(key, &key.text().chars().take(254).collect::<String>());

    /// C74: a column of 255 bytes for the tenant.
    CutsScopesAt255Bytes: |key| {
        let mut tenant = key.scope().tenant_id().unwrap_or_default().as_bytes().to_vec();
        tenant.truncate(255);
        let operation = key.scope().operation().as_bytes();
        let has_tenant = [u8::from(key.scope().tenant_id().is_some())];
        [operation, &[0xff], &has_tenant, &tenant, &[0xff], key.text().as_bytes()].concat()
    };

    /// An advisory number made of too few bits of a hash.
    HashesTo16Bits: |key| key.digest().iter().take(2).copied().collect();

    /// The parts of a key are joined without saying where one ends.
    ScopeRunsIntoKey: |key| {
        let scope = key.scope();
        [scope.operation(), scope.tenant_id().unwrap_or_default(), key.text()].join(":").into_bytes()
    };

    /// C68: the second operation is given the first one's answer.
    IgnoresTheOperation: |key| {
        // The run's own part stays, lest runs meet.
        let operation: String = key.scope().operation().chars().take(44).collect();
        let tenant = key.scope().tenant_id();
        format!("{operation}\u{10ffff}{tenant:?}\u{10ffff}{:?}", key.text()).into_bytes()
    };

    /// C61, C63: every user is one.
    IgnoresTheTenant: |key| {
        let scope = key.scope();
        format!("{:?}\u{10ffff}{:?}", scope.operation(), key.text()).into_bytes()
    };

    /// C62: no tenant is a tenant with a name that somebody has.
    NoTenantIsADash: |key| {
        let scope = key.scope();
        let tenant = scope.tenant_id().unwrap_or("-");
        format!("{:?}{tenant:?}{:?}", scope.operation(), key.text()).into_bytes()
    };
}
