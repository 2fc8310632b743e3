//! The registry of flights under every schedule that shuttle finds.
//!
//! Shuttle fails a schedule in which somebody waits for ever.

use bytes::Bytes;
use shuttle::future::block_on;
use shuttle::thread;

use super::flight::{Flights, Landed, Seat, Standing};
use crate::fingerprint::Fingerprint;
use crate::key::{Key, Scope};

const SCHEDULES: usize = 5_000;

fn key() -> Key {
    Key::new(Scope::new("op").unwrap(), "k").unwrap()
}

fn request(of: u8) -> Fingerprint {
    Fingerprint::from_bytes([of; 32])
}

/// Boards until there is an answer; whoever leads first gives none, and the next does.
fn until_answered(flights: &Flights, mut fails: bool) -> Bytes {
    loop {
        match flights.board(&key(), request(1)) {
            Seat::Lead(flight) if fails => {
                fails = false;
                thread::yield_now();
                drop(flight);
            }
            Seat::Lead(flight) => {
                thread::yield_now();
                let answer = Bytes::from_static(b"answer");
                flight.land(Landed::Answer { answer, recorded: true });
                return Bytes::from_static(b"answer");
            }
            Seat::Follow(mut follower) => match block_on(follower.landed()) {
                Landed::Answer { answer, .. } => return answer,
                Landed::Again => {}
                Landed::Refused(error) => panic!("nobody refuses: {error}"),
            },
        }
    }
}

#[test]
fn nobody_is_left_waiting_when_leaders_land_or_leave() {
    shuttle::check_random(
        || {
            let flights = Flights::default();
            let callers: Vec<_> = [true, false, true]
                .map(|fails| {
                    let flights = flights.clone();
                    thread::spawn(move || until_answered(&flights, fails))
                })
                .into();
            for caller in callers {
                assert_eq!(caller.join().unwrap(), "answer");
            }
            assert!(flights.is_empty(), "a flight is left behind");
        },
        SCHEDULES,
    );
}

#[test]
fn at_most_one_runs_in_a_process() {
    shuttle::check_random(
        || {
            let flights = Flights::default();
            let callers: Vec<_> = [1, 1, 2]
                .map(|of| {
                    let flights = flights.clone();
                    thread::spawn(move || {
                        let Seat::Lead(flight) = flights.board_alone(&key(), request(of)) else {
                            panic!("nobody has an answer");
                        };
                        let stands = flight.run(None);
                        let runs = match stands {
                            Ok(()) => true,
                            Err(Standing::SameRequest(_)) => {
                                assert_eq!(of, 1);
                                false
                            }
                            Err(Standing::OtherRequest(other)) => {
                                assert_ne!(other, request(of));
                                false
                            }
                        };
                        // Kept until all have asked.
                        (runs, flight)
                    })
                })
                .into();
            let all: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
            assert_eq!(all.iter().filter(|(runs, _)| *runs).count(), 1);
        },
        SCHEDULES,
    );
}

#[test]
fn an_answer_reaches_whoever_comes_before_it_is_recorded() {
    shuttle::check_random(
        || {
            let flights = Flights::default();
            let Seat::Lead(flight) = flights.board(&key(), request(1)) else {
                panic!("there is nobody to follow");
            };
            let late: Vec<_> = (0..2)
                .map(|_| {
                    let flights = flights.clone();
                    thread::spawn(move || match flights.board(&key(), request(1)) {
                        Seat::Follow(mut follower) => block_on(follower.landed()),
                        Seat::Lead(_) => panic!("the flight has not ended"),
                    })
                })
                .collect();
            flight.answered(Bytes::from_static(b"answer"));
            thread::yield_now();
            for late in late {
                let Landed::Answer { answer, .. } = late.join().unwrap() else {
                    panic!("the first landing stands");
                };
                assert_eq!(answer, "answer");
            }
            drop(flight);
        },
        SCHEDULES,
    );
}
