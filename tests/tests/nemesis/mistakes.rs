//! Deliberate mistakes, and the check that finds each.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_testkit::history::Check;
use lock_testkit::nemesis::{Fault, Mistake, run};

use crate::{ONE, settings};

/// Runs for a few seconds at a time, until the check finds the mistake: chance decides how soon a
/// fault meets it. Right behaviour never gets a second try here.
async fn found_by(mistake: Mistake, faults: &[Fault], check: Check) {
    // On a busy machine little happens in a run.
    const RUNS: u64 = 20;
    let _one = ONE.lock().await;
    let mut others = BTreeSet::new();
    for seed in 0..RUNS {
        let mut settings = settings(seed, Duration::from_secs(5));
        // Long enough for leases to end, where it matters.
        let patient = matches!(check, Check::Leftovers | Check::Progress);
        settings.patience = Duration::from_millis(if patient { 2000 } else { 300 });
        settings.mistake = Some(mistake);
        settings.faults = faults.to_vec();
        settings.processes = 3;
        let report = run(&settings).await;
        if let Some(found) = report.violations.iter().find(|found| found.check == check) {
            println!("{mistake:?}: {found}");
            return;
        }
        others.extend(report.violations.iter().map(|found| found.check));
    }
    panic!("{mistake:?} was not found by {check:?} in {RUNS} runs, only by {others:?}");
}

#[tokio::test]
async fn a_release_that_looks_at_no_owner_is_found_by_the_overlap() {
    found_by(Mistake::ReleaseByDel, &[], Check::Exclusion).await;
}

#[tokio::test]
async fn a_renewal_that_sets_the_key_is_found_by_the_overlap() {
    found_by(Mistake::RenewBySet, &[Fault::ClientStop], Check::Exclusion).await;
}

#[tokio::test]
async fn a_hold_trusted_past_its_deadline_is_found_by_the_overlap() {
    found_by(Mistake::TrustPastDeadline, &[], Check::Exclusion).await;
}

#[tokio::test]
async fn a_loss_that_is_ignored_is_found_by_the_overlap() {
    found_by(Mistake::IgnoreLoss, &[Fault::ClientStop], Check::Exclusion).await;
}

#[tokio::test]
async fn a_resource_that_checks_no_token_is_found_by_its_stale_accesses() {
    found_by(
        Mistake::NoTokenCheck,
        &[Fault::ClientStop],
        Check::StaleAccess,
    )
    .await;
}

#[tokio::test]
async fn a_token_that_is_only_counted_is_found_when_the_data_is_lost() {
    found_by(Mistake::TokenByIncr, &[Fault::LoseData], Check::TokenOrder).await;
}

#[tokio::test]
async fn a_lock_without_a_lease_is_found_when_its_holder_dies() {
    found_by(Mistake::NoLease, &[Fault::ClientKill], Check::Leftovers).await;
}

#[tokio::test]
async fn a_forgotten_guard_is_found_when_no_other_gets_the_lock() {
    found_by(Mistake::ForgetGuard, &[], Check::Leftovers).await;
}

#[tokio::test]
async fn a_wait_without_end_is_found_when_the_server_stands_still() {
    found_by(
        Mistake::WaitForever,
        &[Fault::Freeze, Fault::ServerStop],
        Check::Waiting,
    )
    .await;
}
