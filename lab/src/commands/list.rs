//! `oribi lab list`.

use crate::commands::select::{self, planned_seconds};
use crate::library::Library;
use crate::rounds::progress::{OVERHEAD_SECONDS, human};
use crate::scenario::{Case, Contender, Stack};
use crate::stack::Blueprint;

/// Every scenario: its name, its title, how long it takes.
pub fn scenarios(library: &mut Library) -> Result<(), String> {
    for name in library.names()? {
        let cases = select::read(library, &name, None)?;
        let seconds =
            |case: &Case| case.rounds as f64 * present(library, case) * cell_seconds(case);
        let length = human(cases.iter().map(seconds).sum());
        match &cases[..] {
            [only] => println!("{name:<10} {length:>9}  {}", only.title),
            many => {
                println!("{name:<10} {length:>9}  {} cases:", many.len());
                many.iter().for_each(|case| println!("{:24}{}: {}", "", case.case, case.title));
            }
        }
    }
    Ok(())
}

/// Every server: its version, or what is missing.
pub fn servers(library: &Library) -> Result<(), String> {
    let case = Case::named("list");
    for recipe in library.recipes() {
        let contender = Contender {
            name: recipe.name.clone(),
            server: recipe.name.clone(),
            app: None,
            stack: Stack::default(),
        };
        let facts = Blueprint::new(library, &case, &contender)?.facts();
        let state = facts.absent.unwrap_or_else(|| facts.versions.join(", "));
        println!("{:<18} {}: {state}", recipe.name, recipe.title);
    }
    Ok(())
}

fn cell_seconds(case: &Case) -> f64 {
    planned_seconds(case) + OVERHEAD_SECONDS
}

fn present(library: &Library, case: &Case) -> f64 {
    let here = |one: &&Contender| {
        Blueprint::new(library, case, one).is_ok_and(|blueprint| blueprint.absent().is_none())
    };
    case.contender.iter().filter(here).count() as f64
}
