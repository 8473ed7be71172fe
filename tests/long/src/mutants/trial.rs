//! One mutant, and whether the tests find it.

use std::time::Instant;

use super::found::Found;
use super::suite::{Outcome, Stage};
use super::{Environment, Mutant, Scene, Subject};

/// Whether a mutant was found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// By the test of this name, each time, or by a stage that did not end.
    Found(String),
    /// No test was red, though some ran the code.
    Survived,
    /// No test runs the code.
    Unmet,
}

/// Tries a stage on a mutant, unless that was done before, and tells what found it. First come the
/// tests that found the latest ones in its file.
pub(super) async fn of(
    subject: &impl Subject,
    mutant: &Mutant,
    stage: Stage,
    found: &Found,
) -> Result<Option<String>, String> {
    let environment = subject.environment(Scene::One(mutant))?;
    let finders = subject.suite().finders(&mutant.file);
    for some in finders {
        if !found.was_green(mutant, &some.whole())
            && let Some(by) = red_again(subject, mutant, some, &environment).await?
        {
            return Ok(Some(by));
        }
    }
    let whole = stage.whole();
    if found.was_green(mutant, &whole) {
        return Ok(None);
    }
    let by = red_again(subject, mutant, stage, &environment).await?;
    if by.is_none() {
        found.note_green(mutant, &whole)?;
    }
    Ok(by)
}

/// The first test of a stage that a mutant makes red each time.
async fn red_again(
    subject: &impl Subject,
    mutant: &Mutant,
    mut stage: Stage,
    environment: &Environment,
) -> Result<Option<String>, String> {
    let suite = subject.suite();
    let mut hung = false;
    loop {
        let test = match suite.run(&stage, environment).await? {
            Outcome::Green => return Ok(None),
            // Others may have kept the processors busy.
            Outcome::Hung if !hung => {
                hung = true;
                continue;
            }
            // If it does not end without the mutant either, nothing was shown.
            Outcome::Hung => {
                let ends = is_green_whole(subject, &stage).await?;
                return Ok(ends.then(|| format!("{stage}, which does not end")));
            }
            Outcome::Red(test) => test,
        };
        // The program itself has ended, and again.
        if stage.without.contains(&test) {
            return Ok(is_green_whole(subject, &stage).await?.then_some(test));
        }
        // Only a failure that repeats itself is no accident of a machine under load.
        let alone = stage.only(&test);
        let mut comes_again = true;
        for _ in 0..2 {
            let outcome = suite.run(&alone, environment).await?;
            comes_again &= outcome != Outcome::Green;
            if !comes_again {
                break;
            }
        }
        if comes_again && is_green_whole(subject, &alone).await? {
            suite.found(&mutant.file, &stage, &test);
            return Ok(Some(test));
        }
        stage.without.push(test);
    }
}

/// Whether these tests are green now with nothing broken.
async fn is_green_whole(subject: &impl Subject, stage: &Stage) -> Result<bool, String> {
    let whole = subject.environment(Scene::Whole)?;
    Ok(subject.suite().run(stage, &whole).await? == Outcome::Green)
}

/// Whether the tests are green while nothing is wrong, and red if everything is.
pub(super) async fn can_tell(subject: &impl Subject, quick: bool) -> Result<(), String> {
    for stage in subject.all_stages(quick) {
        let environment = subject.environment(Scene::Whole)?;
        let began = Instant::now();
        if let Some(what) = red(subject, &stage, &environment).await? {
            return Err(format!("without a mutant {what}"));
        }
        subject.suite().took(&stage, began.elapsed());
        eprintln!("[{:.1?}] {stage} is green", began.elapsed());
        subject.saw(&stage, &environment)?;
    }
    let ruin = subject.environment(Scene::Ruin)?;
    for stage in subject.all_stages(quick) {
        if subject.suite().run(&stage, &ruin).await? == Outcome::Green {
            return Err(format!(
                "{stage} is green though all is broken: the tests don't meet it"
            ));
        }
    }
    Ok(())
}

/// The tests that are red when run alone, too.
async fn red(
    subject: &impl Subject,
    stage: &Stage,
    whole: &Environment,
) -> Result<Option<String>, String> {
    let (suite, mut stage) = (subject.suite(), stage.clone());
    loop {
        let test = match suite.run(&stage, whole).await? {
            Outcome::Green => return Ok(None),
            Outcome::Hung => return Ok(Some(format!("{stage} does not end"))),
            Outcome::Red(test) => test,
        };
        let again = stage.without.contains(&test);
        if again || suite.run(&stage.only(&test), whole).await? != Outcome::Green {
            return Ok(Some(format!("the test {test} is red")));
        }
        stage.without.push(test);
    }
}
