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
    /// The tests did not come to an end.
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

/// Tries a mutant on one stage after the other until it is found.
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
            // Only what comes again, and again, is no accident of a machine under load.
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

/// Whether the tests are green as long as nothing is wrong, and red if all is.
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

/// What is red alone too, if anything.
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
