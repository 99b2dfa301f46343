//! The binary `oribi`: everything is in the library beside it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    oribi::main()
}
