//! Every wrong store is caught, and every property is worth its place.

use idem_conformance::wrong::Matrix;

#[test]
fn every_wrong_store_is_caught_and_no_property_is_idle() {
    let matrix = Matrix::fill(1, 4).unwrap();
    assert!(matrix.is_success(), "{matrix}");
    assert!(matrix.wrong.len() >= 60, "{matrix}");
}
