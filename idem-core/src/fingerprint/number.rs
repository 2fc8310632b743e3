//! Numbers in the canonical form: one decimal for each value.

use std::fmt::LowerExp;

use super::canonical::Canonical;
use super::error::FingerprintError;

/// The name of the struct, and of its only field, as which `serde_json` hands over a number it
/// holds as text. It does so once any crate in the build turns on `arbitrary_precision`; a
/// request must not become another one through that.
pub(super) const DISGUISE: &str = "$serde_json::private::Number";

/// An integer. `{:e}` writes each value in one way, whatever its width: `1.25e3`.
pub(super) fn integer<N: LowerExp>(
    canonical: &mut Canonical,
    number: N,
) -> Result<(), FingerprintError> {
    canonical.number(format_args!("{number:e}"))
}

/// A float: the shortest decimal that reads back as it, which is what `{:e}` writes too.
pub(super) fn float<F: LowerExp + Copy + Into<f64>>(
    canonical: &mut Canonical,
    number: F,
) -> Result<(), FingerprintError> {
    let wide = number.into();
    if !wide.is_finite() {
        return Err(FingerprintError::not_finite());
    }
    if wide == 0.0 {
        return integer(canonical, 0u8); // Not `-0e0`.
    }
    canonical.number(format_args!("{number:e}"))
}

/// A number that comes as text.
pub(super) fn decimal(canonical: &mut Canonical, text: &str) -> Result<(), FingerprintError> {
    let decimal = normal(text).ok_or_else(FingerprintError::unserializable)?;
    canonical.number(format_args!("{decimal}"))
}

/// The JSON number `text`, as `{:e}` would write it.
fn normal(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix('-');
    let sign = if unsigned.is_some() { "-" } else { "" };
    let unsigned = unsigned.unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()? - 1;
    let exponent = exponent.parse::<i64>().ok()?.checked_add(point)?;
    Some(match significant.trim_end_matches('0').split_at_checked(1) {
        None => "0e0".into(),
        Some((first, "")) => format!("{sign}{first}e{exponent}"),
        Some((first, rest)) => format!("{sign}{first}.{rest}e{exponent}"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::ser::{Serialize, SerializeStruct, Serializer};

    use super::*;
    use crate::fingerprint::Fingerprint;

    /// What `serde_json::Number` is under `arbitrary_precision`.
    struct Disguised(String);

    impl Serialize for Disguised {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut number = serializer.serialize_struct(DISGUISE, 1)?;
            number.serialize_field(DISGUISE, &self.0)?;
            number.end()
        }
    }

    fn of<T: Serialize>(value: T) -> Fingerprint {
        Fingerprint::of(&value).unwrap()
    }

    #[test]
    fn a_number_is_its_value_whatever_its_type() {
        let one = of(1u8);
        for same in [of(1i8), of(1i64), of(1u128), of(1i128), of(1.0f32), of(1.0f64)] {
            assert_eq!(same, one);
        }
        assert_eq!(of(-0.0), of(0));
        assert_eq!(of(-0.0f32), of(0));
        assert_eq!(of(0.1f32), of(0.1f64));
        assert_eq!(of(1e20), of(100_000_000_000_000_000_000u128));
    }

    #[test]
    fn numbers_that_differ_are_told_apart() {
        let differ = [
            of(0),
            of(-1),
            of(1),
            of(10),
            of(0.1),
            of(0.1 + 0.2),
            of(0.3),
            of(f64::MIN_POSITIVE),
            of(f64::MAX),
            of(u64::MAX),
            of(u128::MAX),
            of(i128::MIN),
            of(i128::MAX),
            of((1u64 << 53) + 1),
            of(9_007_199_254_740_992.0),
        ];
        for (at, a) in differ.iter().enumerate() {
            assert!(!differ[at + 1..].contains(a), "number {at} has a double");
        }
    }

    #[test]
    fn what_is_not_finite_has_no_fingerprint() {
        let here = FingerprintError::NotFinite { path: "$".into() };
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Fingerprint::of(&number), Err(here.clone()));
        }
        for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(Fingerprint::of(&number), Err(here.clone()));
        }
    }

    #[test]
    fn text_is_read_exactly() {
        let same = [
            ("0", of(0)),
            ("-0", of(0)),
            ("0.00e7", of(0)),
            ("1.50", of(1.5)),
            ("150e-2", of(1.5)),
            ("1E+2", of(100)),
            ("0.001", of(0.001)),
            ("9007199254740993", of((1u64 << 53) + 1)),
        ];
        for (text, number) in same {
            assert_eq!(of(Disguised(text.into())), number, "{text}");
        }
        // Only the number is in disguise.
        assert_eq!(of((Disguised("1".into()), "1")), of((1, "1")));
        // Both are the same `f64`.
        let (a, b) = ("12345678901234567.88", "12345678901234567.89");
        assert_ne!(of(Disguised(a.into())), of(Disguised(b.into())));
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in
            ["", "-", ".5", "1e", "e1", "1.2.3", "--1", "1,0", "NaN", "1e99999999999999999999"]
        {
            let refused = FingerprintError::Unserializable { path: "$".into() };
            assert_eq!(Fingerprint::of(&Disguised(text.into())), Err(refused), "{text:?}");
        }
    }

    proptest! {
        #[test]
        #[expect(clippy::cast_precision_loss, reason = "there is none up to 2⁵³")]
        fn a_float_that_is_an_integer_is_that_integer(n in -(1i64 << 53)..=1i64 << 53) {
            prop_assert_eq!(of(n as f64), of(n));
        }

        #[test]
        fn text_and_number_agree(int: i128, float in proptest::num::f64::NORMAL) {
            prop_assert_eq!(of(Disguised(int.to_string())), of(int));
            prop_assert_eq!(of(Disguised(float.to_string())), of(float));
            prop_assert_eq!(of(Disguised(format!("{float:E}"))), of(float));
        }

        #[test]
        fn two_floats_are_one_only_if_they_are_equal(a: f64, ulp in 1u64..3) {
            let b = f64::from_bits(a.to_bits().wrapping_add(ulp));
            if let (Ok(of_a), Ok(of_b)) = (Fingerprint::of(&a), Fingerprint::of(&b)) {
                prop_assert_ne!(of_a, of_b);
            }
        }
    }
}
