//! Any bytes are an envelope or an error, and an envelope is written as it was read.

#![no_main]

use bytes::Bytes;
use idem_core::envelope::Envelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let payload = Bytes::copy_from_slice(data);
    if let Ok(envelope) = Envelope::decode(&payload) {
        assert_eq!(envelope.encode(), payload);
    }
});
