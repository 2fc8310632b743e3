//! A payload comes back byte for byte, and only to its own request.

use idem_core::State;

use crate::failure::{Failure, Verdict, ensure};
use crate::lab::{Lab, rival, stranger};

async fn comes_back(lab: &Lab, payload: &[u8]) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, payload).await?;
    store.replays(&rival(&a), payload).await
}

/// Every byte comes back, text or not, at every place.
// C81, C91
pub(crate) async fn every_byte_comes_back(lab: Lab) -> Verdict {
    let every: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    comes_back(&lab, &every).await?;
    for edge in [0, b' ', b'\n', b'"', 0x7f, 0xff] {
        comes_back(&lab, &[edge]).await?;
        comes_back(&lab, &[edge, b'x', edge]).await?;
    }
    Ok(())
}

/// An empty payload is a payload.
// C95
pub(crate) async fn empty_payload_comes_back(lab: Lab) -> Verdict {
    comes_back(&lab, b"").await
}

/// A payload that looks like something else is only bytes.
pub(crate) async fn payload_is_not_interpreted(lab: Lab) -> Verdict {
    for text in ["null", "0", "false", "{}", "\\x00", "1e400", "9007199254740993", "-0"] {
        comes_back(&lab, text.as_bytes()).await?;
    }
    Ok(())
}

/// A payload of one mebibyte comes back whole.
// C84
pub(crate) async fn mebibyte_comes_back(lab: Lab) -> Verdict {
    let mut payload = vec![0; 1 << 20];
    lab.rng().fill(&mut payload);
    // Nothing at an edge that a store might trim: this is about length, whatever the seed.
    if let [first, .., last] = payload.as_mut_slice() {
        (*first, *last) = (b'x', b'x');
    }
    comes_back(&lab, &payload).await
}

/// A record handed to another request carries no payload.
// C56, C61
pub(crate) async fn mismatch_carries_no_payload(lab: Lab) -> Verdict {
    let (store, a) = (lab.store(), lab.attempt()?);
    store.completed(&a, b"secret").await?;
    match store.reserve(&stranger(&a)).await?.state {
        State::Completed { payload } => {
            ensure!(payload.is_none(), "another request was shown the payload");
            Ok(())
        }
        pending @ State::Pending { .. } => {
            Err(Failure::violated(format!("a completed record was shown as {pending:?}")))
        }
    }
}
