//! The properties hold of the layer, and each catches a layer that is wrong.

use axum::Router;

use crate::doubles::{self, FAULTS, Fault};
use crate::properties::{ALL, Candidate, Mode, holds};
use crate::support::{behind, layer, rejecting};

/// The names of the properties that the candidate breaks.
async fn broken(candidate: Candidate<'_>) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    for property in ALL {
        if let Err(violated) = holds(property, candidate).await {
            broken.push((property.name, violated.to_string()));
        }
    }
    broken
}

#[tokio::test(start_paused = true)]
async fn every_property_holds_of_the_layer() {
    let right = |routes: Router, mode| match mode {
        Mode::Wait => behind(routes, layer()),
        Mode::Reject => behind(routes, rejecting()),
    };
    assert_eq!(broken(&right).await, []);
}

// What catches a fault must be the fault, not the double.
#[tokio::test(start_paused = true)]
async fn every_property_holds_of_the_double_without_a_fault() {
    assert_eq!(broken(&|routes, mode| doubles::app(routes, mode, None)).await, []);
}

#[tokio::test(start_paused = true)]
async fn every_wrong_layer_is_caught_by_its_property() {
    for (fault, property) in FAULTS {
        let wrong = |routes: Router, mode| doubles::app(routes, mode, Some(fault));
        let broken = broken(&wrong).await;
        let names: Vec<_> = broken.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&property), "{fault:?} is not caught, only {names:?}");
        // A fault that breaks everything would prove nothing about its property.
        let alone = !matches!(fault, Fault::ReplayNotMarked);
        assert!(!alone || names.len() <= 3, "{fault:?} breaks {broken:?}");
    }
}
