//! Two keys are the same only if scope and text are, byte for byte.

use idem_core::{Key, Scope};

use crate::failure::{Failure, Verdict};
use crate::lab::{Lab, attempt_at, rival};

/// Each of these keys is free when its turn comes, and then held under exactly its own name.
async fn are_distinct(lab: &Lab, keys: Vec<Key>) -> Verdict {
    let store = lab.store();
    let mut held = Vec::new();
    for key in keys {
        let attempt = attempt_at(key);
        let name = |why: Failure| match why {
            Failure::Violated(why) => {
                let (scope, text) = (attempt.key().scope(), attempt.key().text());
                Failure::violated(format!("key {text:?} in {scope:?}: {why}"))
            }
            skipped @ Failure::Skipped(_) => skipped,
        };
        let grant = store.acquires(&attempt).await.map_err(name)?;
        store.is_in_progress(&rival(&attempt)).await.map_err(name)?;
        held.push((attempt, grant));
    }
    for (number, (_, grant)) in held.iter().enumerate() {
        store.complete(&grant.lease, number.to_string().as_bytes()).await?;
    }
    for (number, (attempt, _)) in held.iter().enumerate() {
        store.replays(&rival(attempt), number.to_string().as_bytes()).await?;
    }
    Ok(())
}

async fn texts_are_distinct(lab: &Lab, texts: &[&str]) -> Verdict {
    let keys: Result<Vec<Key>, _> = texts.iter().map(|text| lab.key_named(text)).collect();
    are_distinct(lab, keys?).await
}

/// Case counts.
pub(crate) async fn case_counts(lab: Lab) -> Verdict {
    texts_are_distinct(&lab, &["order-a", "order-A", "ORDER-A", "\u{e9}", "\u{c9}"]).await
}

/// Spaces count, also at the ends.
pub(crate) async fn spaces_count(lab: Lab) -> Verdict {
    texts_are_distinct(&lab, &["a", " a", "a ", "a\t", "a\n", "a\u{a0}", "a b", "a  b"]).await
}

/// A NUL is a character like any other.
// C73
pub(crate) async fn nul_does_not_end_a_key(lab: Lab) -> Verdict {
    texts_are_distinct(&lab, &["a", "a\0", "a\0b", "a\0c", "\0", "\0\0"]).await
}

/// Unicode normal forms are not folded: precomposed and combining letters are two keys.
pub(crate) async fn normal_forms_differ(lab: Lab) -> Verdict {
    texts_are_distinct(&lab, &["\u{e9}", "e\u{301}", "\u{fb01}", "fi", "\u{2460}", "1"]).await
}

/// A falsy text is a key like any other.
// C58
pub(crate) async fn falsy_texts_are_keys(lab: Lab) -> Verdict {
    texts_are_distinct(&lab, &["0", "00", "0.0", "false", "null", "[]", "\"\"", "NaN"]).await
}

/// Text that means something to a backend is only text.
// C73, C100
pub(crate) async fn injections_are_only_text(lab: Lab) -> Verdict {
    let texts = [
        "'; DROP TABLE idem; --",
        "a\r\nDEL a\r\n",
        "a",
        "../../a",
        "..",
        "a/b",
        "a\\b",
        "*",
        "a?",
        "a%",
        "a_",
        "{a}",
        "{a}b",
        "}{",
        "$1",
        "a:b",
        "a.b",
        "user",
        "\u{202e}a",
        "con",
        "\u{1b}[2J",
    ];
    texts_are_distinct(&lab, &texts).await
}

/// Keys of 255 characters are whole, also where each has four bytes.
// C74
pub(crate) async fn long_keys_are_whole(lab: Lab) -> Verdict {
    let mut texts = Vec::new();
    for filler in ["a", "\u{10348}"] {
        texts.extend([filler.repeat(255), filler.repeat(254), filler.repeat(254) + "b"]);
        texts.push(format!("b{}", filler.repeat(254)));
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    texts_are_distinct(&lab, &texts).await
}

/// Operations and tenants of 255 characters are whole too.
// C74
pub(crate) async fn long_scopes_are_whole(lab: Lab) -> Verdict {
    let run: String = lab.operation().chars().take(100).collect();
    let mut keys = Vec::new();
    for filler in ["a", "\u{10348}"] {
        let operation = run.clone() + &filler.repeat(255 - run.len());
        let tenant = filler.repeat(255);
        for end in ["a", "b"] {
            let tenant: String = tenant.chars().take(254).chain(end.chars()).collect();
            keys.push(Key::new(Scope::new(&operation)?.tenant(&tenant)?, &filler.repeat(255))?);
        }
        keys.push(Key::new(Scope::new(&operation)?, &filler.repeat(255))?);
    }
    are_distinct(&lab, keys.into_iter().skip(1).collect()).await
}

/// One text under two operations is two keys.
// C68
pub(crate) async fn operations_are_apart(lab: Lab) -> Verdict {
    let run = lab.operation();
    let key = |operation: String| Key::new(Scope::new(&operation)?, "k");
    are_distinct(&lab, vec![key(format!("{run}.create"))?, key(format!("{run}.cancel"))?]).await
}

/// One text of two tenants is two keys, and no tenant is not any tenant.
// C61, C62, C63
pub(crate) async fn tenants_are_apart(lab: Lab) -> Verdict {
    let scope = || Scope::new(lab.operation());
    let keys = vec![
        Key::new(scope()?, "k")?,
        Key::new(scope()?.tenant("acme")?, "k")?,
        Key::new(scope()?.tenant("ACME")?, "k")?,
        Key::new(scope()?.tenant("-")?, "k")?,
        Key::new(scope()?.tenant("null")?, "k")?,
        Key::new(scope()?.tenant("\0")?, "k")?,
    ];
    are_distinct(&lab, keys).await
}

/// Operation, tenant and text do not run together.
pub(crate) async fn parts_do_not_run_together(lab: Lab) -> Verdict {
    let run = lab.operation();
    let mut keys = Vec::new();
    for between in ["", ":", "/", "\0", "|", "."] {
        let (ab, bc) = (format!("a{between}b"), format!("b{between}c"));
        keys.push(Key::new(Scope::new(run)?.tenant(&ab)?, "c")?);
        keys.push(Key::new(Scope::new(run)?.tenant("a")?, &bc)?);
        keys.push(Key::new(Scope::new(&format!("{run}{between}a"))?, &bc)?);
        keys.push(Key::new(Scope::new(&format!("{run}{between}{ab}"))?, "c")?);
    }
    are_distinct(&lab, keys).await
}

/// Many keys do not collide.
pub(crate) async fn many_keys_do_not_collide(lab: Lab) -> Verdict {
    let store = lab.store();
    for number in 0..2_000 {
        store.acquires(&attempt_at(lab.key_named(&format!("key-{number}"))?)).await?;
    }
    Ok(())
}
