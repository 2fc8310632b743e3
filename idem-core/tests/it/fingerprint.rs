//! Two requests have one fingerprint exactly if they are the same request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::Command;

use idem_core::Fingerprint;
use idem_core::fingerprint::{Unordered, unordered};
use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

fn of<T: Serialize + ?Sized>(value: &T) -> Fingerprint {
    Fingerprint::of(value).unwrap()
}

/// A map that is written in this order.
struct Pairs(Vec<(String, Value)>);

impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

#[derive(Serialize)]
struct Payment {
    amount: u64,
    currency: String,
    meta: HashMap<String, i64>,
    #[serde(serialize_with = "unordered")]
    tags: HashSet<String>,
}

fn payment() -> Payment {
    Payment {
        amount: 1_999,
        currency: "EUR".into(),
        meta: (0..40).map(|n| (format!("key {n}"), n)).collect(),
        tags: (0..40).map(|n| format!("tag {n}")).collect(),
    }
}

// C51
#[test]
fn processes_agree_although_their_maps_and_sets_do_not() {
    const CHILD: &str = "IDEM_TEST_FINGERPRINT_CHILD";
    const NAME: &str = "fingerprint::processes_agree_although_their_maps_and_sets_do_not";
    let print = of(&payment());
    if std::env::var_os(CHILD).is_some() {
        println!("fingerprint is {print}.");
        return;
    }
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("fingerprint is {print}.")), "{print} here, there {said}");
    }
}

#[test]
fn fields_are_a_struct_with_these_fields() {
    let Payment { amount, currency, meta, tags } = payment();
    let mut tags: Vec<_> = tags.into_iter().collect();
    tags.sort();
    let fields = Fingerprint::fields()
        .unordered("tags", tags.iter().rev())
        .field("meta", &meta)
        .field("currency", &currency)
        .field("amount", &amount);
    assert_eq!(fields.finish().unwrap(), of(&payment()));
}

// C45, C58
#[test]
fn near_misses_are_told_apart() {
    let requests = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!("1"),
        json!("true"),
        json!("null"),
        json!(""),
        json!([]),
        json!({}),
        json!([[]]),
        json!([[], []]),
        json!([[[]]]),
        json!([null]),
        json!([{}]),
        json!(["ab", "c"]),
        json!(["a", "bc"]),
        json!(["abc"]),
        json!(["a", "b", "c"]),
        json!(["b", "a", "c"]),
        json!({"a": 1}),
        json!({"a": "1"}),
        json!({"a": true}),
        json!({"a": null}),
        json!({"a": [1]}),
        json!({"a": {"a": 1}}),
        json!({"b": 1}),
        json!({"a": 1, "b": 2}),
        json!({"a": 2, "b": 1}),
        json!({"a": {"b": 2}, "c": 1}),
        json!({"a": {"b": 2, "c": 1}}),
        json!({"ab": "c"}),
        json!({"a": "bc"}),
        json!(["a", 1]),
        json!([["a", 1]]),
    ];
    let all: HashMap<_, _> = requests.iter().map(|request| (of(request), request)).collect();
    assert_eq!(all.len(), requests.len());
}

#[test]
fn a_set_is_neither_a_list_nor_a_set_with_another_element_more() {
    let list = ["a", "b"];
    let sets = [of(&Unordered(&list)), of(&list), of(&Unordered(&["a"])), of("a")];
    assert_eq!(sets.iter().collect::<HashSet<_>>().len(), sets.len());
    assert_eq!(of(&Unordered(&["b", "a"])), of(&Unordered(&list)));
    // What is within or beside it keeps its order.
    assert_ne!(of(&Unordered(&[vec![1, 2]])), of(&Unordered(&[vec![2, 1]])));
    assert_ne!(of(&(Unordered(&[0]), vec![1, 2])), of(&(Unordered(&[0]), vec![2, 1])));
}

#[test]
fn unordered_changes_nothing_for_json() {
    let json = serde_json::to_string(&(Unordered(&[2, 1]), 3)).unwrap();
    assert_eq!(json, "[[2,1],3]");
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ab01]{0,3}".prop_map(Value::from),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab]{0,2}", inner, 0..4)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Changes the leaf that is `nth` of those in `value`, and says whether there was one.
fn change(value: &mut Value, nth: &mut usize) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change(item, nth)),
        Value::Object(map) => map.values_mut().any(|item| change(item, nth)),
        leaf if *nth == 0 => {
            *leaf = match leaf.take() {
                Value::Bool(flag) => json!(!flag),
                Value::Number(number) => json!(number.to_string()),
                Value::String(text) => json!(text + "a"),
                _ => json!(false),
            };
            true
        }
        _ => {
            *nth -= 1;
            false
        }
    }
}

proptest! {
    // C49
    #[test]
    fn the_order_of_a_map_means_nothing(
        (pairs, shuffled) in prop::collection::btree_map("[a-d]{0,3}", tree(), 0..8)
            .prop_map(|map| map.into_iter().collect::<Vec<_>>())
            .prop_flat_map(|pairs| (Just(pairs.clone()), Just(pairs).prop_shuffle())),
    ) {
        prop_assert_eq!(of(&Pairs(pairs.clone())), of(&Pairs(shuffled.clone())));
        let fields = |pairs: &[(String, Value)]| {
            pairs.iter().fold(Fingerprint::fields(), |fields, (k, v)| fields.field(k, v)).finish()
        };
        prop_assert_eq!(fields(&shuffled).unwrap(), of(&Pairs(pairs)));
    }

    #[test]
    fn the_order_of_a_set_means_nothing(
        (items, shuffled) in prop::collection::vec(tree(), 0..8)
            .prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        prop_assert_eq!(of(&Unordered(&items)), of(&Unordered(&shuffled)));
        prop_assert_eq!(of(&items) == of(&shuffled), items == shuffled);
    }

    #[test]
    fn two_values_have_one_fingerprint_only_if_they_are_equal(a in tree(), b in tree()) {
        prop_assert_eq!(of(&a) == of(&b), a == b);
    }

    #[test]
    fn one_leaf_makes_the_difference(value in tree(), nth in 0usize..8) {
        let mut changed = value.clone();
        let found = change(&mut changed, &mut { nth });
        prop_assert_eq!(of(&changed) != of(&value), found);
    }

    #[test]
    fn a_map_is_a_struct_is_an_object(map: BTreeMap<String, i64>) {
        prop_assert_eq!(of(&map), of(&serde_json::to_value(&map).unwrap()));
        prop_assert_eq!(of(&map), of(&map.iter().collect::<HashMap<_, _>>()));
    }
}
