//! Any bytes are a row or an error, and a row is written as it was read.

#![no_main]

use bytes::Bytes;
use idem_core::model::Row;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(row) = Row::decode(&bytes) {
        assert_eq!(row.encode(), bytes);
    }
});
