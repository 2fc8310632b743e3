//! The bytes of a row, for stores that keep bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::attempt::{AttemptId, Fence};
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::model::{Phase, Row, Timestamp};

/// The first byte of every encoded row. Another layout gets another number.
const VERSION: u8 = 1;

const PENDING: u8 = 1;
const COMPLETED: u8 = 2;
const RELEASED: u8 = 3;

impl Row {
    /// The row as bytes: format version, phase, holder (16), fence, attempts, retain-until, then
    /// what the phase has: fingerprint (32) and lease end, or fingerprint, length of the payload
    /// and payload. Numbers are big-endian. The length is there so that a payload cut short is
    /// told from a short payload (law L8).
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(128);
        out.put_u8(VERSION);
        out.put_u8(match self.phase {
            Phase::Pending { .. } => PENDING,
            Phase::Completed { .. } => COMPLETED,
            Phase::Released => RELEASED,
        });
        out.put_slice(self.holder.as_bytes());
        out.put_u64(self.fence.0);
        out.put_u32(self.attempts);
        out.put_u64(self.retain_until.0);
        match &self.phase {
            Phase::Pending { fingerprint, lease_until } => {
                out.put_slice(fingerprint.as_bytes());
                out.put_u64(lease_until.0);
            }
            Phase::Completed { fingerprint, payload } => {
                out.put_slice(fingerprint.as_bytes());
                out.put_u64(payload.len() as u64);
                out.put_slice(payload);
            }
            Phase::Released => {}
        }
        out.freeze()
    }

    /// The row that [`encode`](Self::encode) wrote. Total: any bytes give a row or an error.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the bytes are damaged or of another format version (law L8).
    pub fn decode(bytes: &Bytes) -> Result<Self, StoreError> {
        let mut rest = bytes.clone();
        let version = rest.try_get_u8().map_err(StoreError::corrupt)?;
        if version != VERSION {
            return Err(StoreError::corrupt(format!("unknown row format {version}")));
        }
        let phase = rest.try_get_u8().map_err(StoreError::corrupt)?;
        let holder = AttemptId::from_bytes(array(&mut rest)?);
        let fence = Fence(rest.try_get_u64().map_err(StoreError::corrupt)?);
        let attempts = rest.try_get_u32().map_err(StoreError::corrupt)?;
        let retain_until = Timestamp(rest.try_get_u64().map_err(StoreError::corrupt)?);
        let phase = match phase {
            PENDING => {
                let fingerprint = Fingerprint::from_bytes(array(&mut rest)?);
                let lease_until = Timestamp(rest.try_get_u64().map_err(StoreError::corrupt)?);
                Phase::Pending { fingerprint, lease_until }
            }
            COMPLETED => {
                let fingerprint = Fingerprint::from_bytes(array(&mut rest)?);
                let length = rest.try_get_u64().map_err(StoreError::corrupt)?;
                if length != rest.len() as u64 {
                    return Err(StoreError::corrupt("the payload is cut short or too long"));
                }
                Phase::Completed { fingerprint, payload: std::mem::take(&mut rest) }
            }
            RELEASED => Phase::Released,
            other => return Err(StoreError::corrupt(format!("unknown row phase {other}"))),
        };
        if rest.is_empty() {
            Ok(Self { holder, fence, attempts, retain_until, phase })
        } else {
            Err(StoreError::corrupt("bytes left over after the row"))
        }
    }
}

fn array<const N: usize>(rest: &mut Bytes) -> Result<[u8; N], StoreError> {
    let mut out = [0; N];
    rest.try_copy_to_slice(&mut out).map_err(StoreError::corrupt)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fingerprint() -> impl Strategy<Value = Fingerprint> {
        any::<[u8; 32]>().prop_map(Fingerprint::from_bytes)
    }

    fn phase() -> impl Strategy<Value = Phase> {
        let payload = prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
        prop_oneof![
            (fingerprint(), any::<u64>().prop_map(Timestamp))
                .prop_map(|(fingerprint, lease_until)| Phase::Pending { fingerprint, lease_until }),
            (fingerprint(), payload)
                .prop_map(|(fingerprint, payload)| Phase::Completed { fingerprint, payload }),
            Just(Phase::Released),
        ]
    }

    prop_compose! {
        fn row()(
            holder: [u8; 16],
            fence: u64,
            attempts: u32,
            retain_until: u64,
            phase in phase(),
        ) -> Row {
            let holder = AttemptId::from_bytes(holder);
            let (fence, retain_until) = (Fence(fence), Timestamp(retain_until));
            Row { holder, fence, attempts, retain_until, phase }
        }
    }

    fn is_corrupt(read: &Result<Row, StoreError>) -> bool {
        matches!(read, Err(StoreError::Corrupt { .. }))
    }

    // L8, C109
    #[test]
    fn what_another_wrote_is_corrupt() {
        let row = Row {
            holder: AttemptId::from_bytes([7; 16]),
            fence: Fence(1),
            attempts: 1,
            retain_until: Timestamp(2),
            phase: Phase::Released,
        };
        let good = row.encode();
        assert_eq!(Row::decode(&good).unwrap(), row);
        for (at, byte) in [(0, 0), (0, VERSION + 1), (0, b'{'), (1, 0), (1, 4)] {
            let mut bad = good.to_vec();
            bad[at] = byte;
            assert!(is_corrupt(&Row::decode(&bad.into())), "byte {at} is {byte}");
        }
        for foreign in [&b""[..], b"null", b"{}", b"[]"] {
            assert!(is_corrupt(&Row::decode(&Bytes::from_static(foreign))));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(row in row()) {
            prop_assert_eq!(Row::decode(&row.encode()).unwrap(), row);
        }

        #[test]
        fn what_is_read_is_what_was_written(
            head in (0..3u8, 0..5u8),
            tail in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let bytes = Bytes::from([vec![head.0, head.1], tail].concat());
            match Row::decode(&bytes) {
                Ok(row) => prop_assert_eq!(row.encode(), bytes),
                read => prop_assert!(is_corrupt(&read)),
            }
        }

        // C81
        #[test]
        fn a_row_cut_short_or_with_bytes_left_over_is_corrupt(row in row()) {
            let bytes = row.encode();
            // What is left of a payload is a payload: how long it is, the store knows.
            let fixed = match &row.phase {
                Phase::Completed { payload, .. } => bytes.len() - payload.len(),
                _ => bytes.len(),
            };
            for end in 0..fixed {
                prop_assert!(is_corrupt(&Row::decode(&bytes.slice(..end))));
            }
            if !matches!(row.phase, Phase::Completed { .. }) {
                let longer = Bytes::from([&bytes[..], &[0]].concat());
                prop_assert!(is_corrupt(&Row::decode(&longer)));
            }
        }
    }
}
