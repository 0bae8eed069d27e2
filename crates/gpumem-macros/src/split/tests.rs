//! Tests which bodies are split, into which phases, and which are not.

use super::*;
use quote::{ToTokens, quote};
use syn::parse_quote;

fn split_of(body: Block) -> Result<Split, Why> {
    let parameters = ["x", "n"].map(|name| (Ident::new(name, Span::call_site()), false));
    split(&body, &parameters)
}

fn names(list: &[(Ident, usize)]) -> Vec<String> {
    list.iter().map(|(name, _)| name.to_string()).collect()
}

#[test]
fn a_phase_goes_from_one_barrier_to_the_next() {
    let split = split_of(parse_quote!({
        let tile = shared::<f32>([64]);
        let local = local_id(0);
        let mut sum = x[local];
        let half = n / 2;
        tile[local] = sum;
        barrier(Local);
        for step in 0..half {
            sum += tile[local + step];
            barrier(Local);
        }
        x[local] = sum;
    }));
    let split = split.unwrap();
    assert_eq!(split.phases.len(), 3);
    // The mutable variable is kept, the id is computed again, a value common to the group is neither.
    let [first, second, third] = [0, 1, 2].map(|number: usize| &split.phases[number]);
    assert_eq!((names(&first.loads), names(&first.stores)), (vec![], vec!["sum".to_owned()]));
    assert_eq!((names(&second.loads), names(&second.stores)), (vec!["sum".into()], vec!["sum".into()]));
    assert_eq!((names(&third.loads), names(&third.stores)), (vec!["sum".to_owned()], vec![]));
    let again =
        |phase: &Phase| phase.again.iter().map(|again| quote!(#again).to_string()).collect::<String>();
    let id = quote!(let local = local_id(0);).to_string();
    assert_eq!([first, second, third].map(again), [String::new(), id.clone(), id]);
    assert_eq!(split.kept.len(), 1);
    let outside = split.block.to_token_stream().to_string();
    let half = quote!(let half = n / 2;).to_string();
    assert!(outside.contains(&half), "{outside}");
}

#[test]
fn a_shadowed_variable_is_written_before_its_name_changes_meaning() {
    let split = split_of(parse_quote!({
        let mut a = x[0];
        barrier(Local);
        {
            a += 1.0;
            let a = a * 2.0;
            barrier(Local);
            x[1] = a;
        }
        x[0] = a;
    }));
    let split = split.unwrap();
    // Between them: the first half of the block ends where the second `a` begins.
    assert_eq!(split.phases.iter().map(|phase| phase.stores.len()).collect::<Vec<_>>(), [1, 1, 1, 0, 0]);
    assert_eq!(split.kept.len(), 2);
}

/// Statements that are not split for this reason, and statements that are.
fn expect(why: Why, refused: &[&str], split: &[&str]) {
    let split_of = |body: &str| split_of(syn::parse_str(&format!("{{ {body} }}")).unwrap());
    for body in refused {
        assert_eq!(split_of(body).err(), Some(why), "{body}");
    }
    for body in split {
        assert_eq!(split_of(body).err(), None, "{body}");
    }
}

#[test]
fn a_barrier_that_work_items_may_miss_is_awaited() {
    expect(
        "work-items may part around a barrier",
        &[
            "if local_id(0) < 3 { barrier(Local); }",
            "while x[0] > 0.0 { barrier(Local); }",
            "for i in 0..global_id(0) { wavebarrier(); }",
            "let mut i = 0; while i < n { i += lane(); barrier(Local); }",
            // It varies only after the first turn.
            "let mut a = 0; let mut b = 0; while a < n { barrier(Local); a = b; b = lane(); }",
            "let mut i = 0; while i < n { if x[0] > 1.0 { i += 1; } i += 1; barrier(Local); }",
            // The inner `a` is another variable than the outer one.
            "let a = n; let a = a + lane(); if a > 1 { barrier(Local); }",
        ],
        &["let a = lane(); { let a = n; if a > 1 { barrier(Local); } }"],
    );
}

#[test]
fn a_barrier_that_work_items_may_return_before_is_awaited() {
    expect(
        "a work-item may leave before a barrier",
        &[
            "if x[0] > 1.0 { return; } barrier(Local);",
            "loop { barrier(Local); if lane() > 1 { break; } }",
            "'a: loop { barrier(Local); for i in 0..3 { if x[i] > 1.0 { continue 'a; } } }",
            // A work-item that has left would run the next phase.
            "barrier(Local); if n > 1 { if lane() > 3 { return; } barrier(Local); } x[0] = 1.0;",
        ],
        // All of the group leave, or none; or nothing waits any more.
        &["if n > 1 { return; } barrier(Local);", "barrier(Local); if x[0] > 1.0 { return; } x[1] = 1.0;"],
    );
}

#[test]
fn a_wait_within_an_expression_is_awaited() {
    expect(
        "work-items wait within an expression",
        &[
            "x[0] = wave_sum(1.0) + 1.0;",
            "assert!(wave_any(n > 1));",
            "let a = if n > 1 { barrier(Local); 1 } else { 2 };",
        ],
        &["let a = wave_sum(x[0]); x[0] = a;"],
    );
    let unset = "let a; barrier(Local); a = x[0]; barrier(Local); x[1] = a;";
    expect("a variable without a value is kept across a barrier", &[unset], &[]);
}

#[test]
fn names_of_the_split_are_its_own() {
    let split = split_of(parse_quote!({
        let __gpumem_value3 = local_id(0);
        let sum = wave_sum(n);
        x[__gpumem_value3] = sum;
    }));
    let why = split.err().unwrap();
    assert!(why.contains("__gpumem_"), "{why}");
}
