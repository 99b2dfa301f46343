//! The gems from an app's side: `gems/*.rb` are lines that are true in CRuby, too.

use mruby::{Interp, Limits, gems};

fn open() -> Interp {
    let interp = Interp::open(&Limits::default()).expect("there is memory");
    gems::install(&interp).expect("the gems can be installed");
    interp
}

/// Runs `expression # => expected` and `expression # raises Class`; what is not so.
fn wrong(interp: &Interp, lines: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in lines.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (expression, raises) = match line.rsplit_once(" # raises ") {
            Some((expression, class)) => (expression, Some(class)),
            None => (line, None),
        };
        let source = match raises {
            Some(class) => format!("begin; {expression}; rescue {class}; true; end"),
            None => {
                let (expression, expected) =
                    expression.rsplit_once(" # => ").expect("has an arrow");
                format!(
                    "got = begin; {expression}; end; want = begin; {expected}; end
                     got == want && got.class == want.class ? true : got.inspect"
                )
            }
        };
        interp.eval("/x/ =~ nil", "gems.rb").expect("it can be forgotten");
        interp.scope(|| match interp.eval(&source, "gems.rb") {
            Ok(value) if value.as_bool() == Some(true) => {}
            Ok(value) => {
                wrong.push(format!("{line}\n    is {}", value.inspect().unwrap_or_default()))
            }
            Err(error) => wrong.push(format!("{line}\n    raises {}", error.full())),
        });
    }
    wrong
}

fn holds(lines: &str) {
    let wrong = wrong(&open(), lines);
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn regexps_are_those_of_cruby() {
    holds(include_str!("gems/regexp.rb"));
}

#[test]
fn json_is_that_of_cruby() {
    holds(include_str!("gems/json.rb"));
}

#[test]
fn securerandom_is_that_of_cruby() {
    holds(include_str!("gems/random.rb"));
}

#[test]
fn times_are_those_of_cruby() {
    holds(include_str!("gems/time.rb"));
}

#[test]
fn templates_are_those_of_cruby() {
    holds(include_str!("gems/erb.rb"));
}

#[test]
fn metrics_are_counted() {
    holds(
        r#"
Oribi.counter(:gems_counter).increment; Oribi.counter("gems_counter").increment(2); Oribi.counter(:gems_counter).get # => 3
Oribi.counter(:gems_counter).increment(-1) # raises ArgumentError
Oribi.counter("Bad Name") # raises ArgumentError
g = Oribi.gauge(:gems_gauge); g.set(5); g.increment; g.decrement(2); g.get # => 4
h = Oribi.histogram(:gems_histogram, buckets: [1, 2]); h.observe(0.5); h.observe(3); [h.count, h.sum] # => [2, 3.5]
Oribi.histogram(:gems_wrong, buckets: [2, 1]) # raises ArgumentError
Oribi::Counter.new.get # raises TypeError
"#,
    );
}

#[test]
fn the_documentation_is_right() {
    let docs = include_str!("../../../docs/mruby.md");
    let blocks: Vec<&str> = docs.split("```ruby\n").skip(1).collect();
    assert!(blocks.len() > 5, "{} blocks", blocks.len());
    for block in blocks {
        holds(block.split("```").next().unwrap_or_default());
    }
}
