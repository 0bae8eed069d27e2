//! Commands, shown while they run.

use anyhow::{Context, Result};
use duct::Expression;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The exit status of a command, and its output to both streams.
pub(crate) struct Finished {
    /// Whether the exit status is zero.
    pub(crate) success: bool,
    /// The exit status in words, for messages.
    pub(crate) status: String,
    /// Everything printed, in the order of arrival.
    pub(crate) output: String,
}

/// A command line to be run in a directory.
pub(crate) struct Shell<'a> {
    directory: &'a Path,
    environment: Vec<(String, OsString)>,
}

impl<'a> Shell<'a> {
    pub(crate) fn new(directory: &'a Path) -> Self {
        Self { directory, environment: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Runs the command and shows its output.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        println!("$ {program} {}", arguments.join(" "));
        self.collect(program, arguments, true)
    }

    /// Runs the command and captures its output.
    pub(crate) fn quiet(&self, program: &str, arguments: &[&str]) -> Result<Finished> {
        self.collect(program, arguments, false)
    }

    fn collect(&self, program: &str, arguments: &[&str], show: bool) -> Result<Finished> {
        let reader = self
            .expression(program, arguments)
            .reader()
            .with_context(|| format!("{program} cannot be started"))?;
        let mut lines = BufReader::new(&reader);
        let mut output = String::new();
        let mut line = Vec::new();
        // Bytes, not `lines()`: a test may print bytes that are not UTF-8, and the rest must still be counted.
        while lines.read_until(b'\n', &mut line)? > 0 {
            if show {
                std::io::stdout().write_all(&line)?;
            }
            output.push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
        let status = reader.try_wait()?.map(|done| done.status);
        Ok(Finished {
            success: status.is_some_and(|status| status.success()),
            status: status.map_or_else(|| "still running".to_owned(), |status| status.to_string()),
            output,
        })
    }

    fn expression(&self, program: &str, arguments: &[&str]) -> Expression {
        let command =
            duct::cmd(program, arguments).dir(self.directory).stdin_null().stderr_to_stdout().unchecked();
        self.environment.iter().fold(command, |command, (name, value)| command.env(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_and_the_status_are_kept() {
        let done = Shell::new(Path::new("."))
            .env("WORD", "two")
            .quiet("sh", &["-c", "echo one; echo $WORD >&2; printf '\\377'; exit 3"])
            .unwrap();
        assert!(!done.success);
        assert!(done.status.contains('3'), "{}", done.status);
        assert!(done.output.starts_with("one\ntwo\n"), "{}", done.output);
    }

    #[test]
    fn a_missing_program_is_an_error_with_its_name() {
        let error = Shell::new(Path::new(".")).quiet("no-such-program-of-ours", &[]).err().unwrap();
        assert!(error.to_string().contains("no-such-program-of-ours"));
    }
}
