//! One mutant, and whether the tests find it.

use std::fmt;

use super::mutant::Mutant;
use super::scripts::Scripts;
use super::suite::{Outcome, Stage, Suite};

/// Whether a mutant was found.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// By the test of this name, each time.
    Caught(String),
    /// The tests did not end.
    Hung,
    Survived,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(test) => write!(f, "caught by {test}"),
            Self::Hung => write!(f, "caught: the tests did not end"),
            Self::Survived => write!(f, "SURVIVED"),
        }
    }
}

/// Tries one stage after the other on a mutant until one finds it.
pub(super) async fn of(
    suite: &Suite,
    scripts: &Scripts,
    mutant: &Mutant,
    quick: bool,
) -> Result<Verdict, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    scripts.write(folder.path(), Some((&mutant.file, &mutant.text)))?;
    for mut stage in suite.stages(&mutant.file, quick) {
        loop {
            let test = match suite.run(&stage, folder.path()).await? {
                Outcome::Green => break,
                Outcome::Hung => return Ok(Verdict::Hung),
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
                let outcome = suite.run(&alone, folder.path()).await?;
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
pub(super) async fn can_tell(suite: &Suite, scripts: &Scripts, quick: bool) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    scripts.write(folder.path(), None)?;
    for stage in suite.all(quick) {
        let outcome = green(suite, stage, folder.path()).await?;
        if let Some(what) = outcome {
            return Err(format!("without a mutant {what}"));
        }
    }
    for file in scripts.files.keys() {
        let text = "return redis.error_reply('ERR a script that does nothing')\n";
        std::fs::write(folder.path().join(file), text).map_err(|error| error.to_string())?;
    }
    for stage in suite.all(quick) {
        if suite.run(&stage, folder.path()).await? == Outcome::Green {
            return Err(
                "scripts that do nothing are not found: the tests don't take them".to_owned(),
            );
        }
    }
    Ok(())
}

/// The tests that are red when run alone, too.
async fn green(
    suite: &Suite,
    mut stage: Stage,
    scripts: &std::path::Path,
) -> Result<Option<String>, String> {
    loop {
        let test = match suite.run(&stage, scripts).await? {
            Outcome::Green => return Ok(None),
            Outcome::Hung => return Ok(Some("the tests don't end".to_owned())),
            Outcome::Red(test) => test,
        };
        let again = stage.without.contains(&test);
        if again || suite.run(&stage.only(&test), scripts).await? != Outcome::Green {
            return Ok(Some(format!("the test {test} is red")));
        }
        stage.without.push(test);
    }
}
