//! One mutant, and whether the tests find it.

use std::fmt;
use std::time::Instant;

use super::suite::{Outcome, Stage};
use super::{Mutant, Scene, Subject};

/// Whether a mutant was found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// By the test of this name, each time.
    Caught(String),
    /// The tests of this stage did not end.
    Hung(String),
    /// No test was red, though some ran the code.
    Survived,
    /// No test runs the code.
    Unmet,
}

impl Verdict {
    pub(super) fn is_found(&self) -> bool {
        matches!(self, Self::Caught(_) | Self::Hung(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(test) => write!(f, "caught by {test}"),
            Self::Hung(stage) => write!(f, "caught: {stage} does not end"),
            Self::Survived => write!(f, "SURVIVED"),
            Self::Unmet => write!(f, "SURVIVED: no test runs it"),
        }
    }
}

/// Tries one stage after the other on a mutant until one finds it.
pub(super) async fn of(
    subject: &impl Subject,
    mutant: &Mutant,
    quick: bool,
) -> Result<Verdict, String> {
    let environment = subject.environment(Scene::One(mutant))?;
    let suite = subject.suite();
    let stages = subject.stages(mutant, quick);
    if stages.is_empty() {
        return Ok(Verdict::Unmet);
    }
    for mut stage in stages {
        let mut hung = false;
        loop {
            let test = match suite.run(&stage, &environment).await? {
                Outcome::Green => break,
                // Others may have kept the processors busy.
                Outcome::Hung if !hung => {
                    hung = true;
                    continue;
                }
                Outcome::Hung => return Ok(Verdict::Hung(stage.to_string())),
                Outcome::Red(test) => test,
            };
            // The program itself has ended, and again.
            if stage.without.contains(&test) {
                return Ok(Verdict::Caught(test));
            }
            // Only a failure that repeats itself is no accident of a machine under load.
            let alone = stage.only(&test);
            let mut comes_again = true;
            for _ in 0..2 {
                let outcome = suite.run(&alone, &environment).await?;
                comes_again &= outcome != Outcome::Green;
                if !comes_again {
                    break;
                }
            }
            if comes_again {
                suite.found(&mutant.file, &stage, &test);
                return Ok(Verdict::Caught(test));
            }
            stage.without.push(test);
        }
    }
    Ok(Verdict::Survived)
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
    whole: &super::Environment,
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
