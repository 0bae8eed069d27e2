//! Known deviations of a backend, as data.

/// Known failures and cases that are left out, each with its reason.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    failures: Vec<(String, String)>,
    skips: Vec<(String, String)>,
}

impl Expectations {
    /// Nothing is known to fail.
    pub fn none() -> Self {
        Self::default()
    }

    /// The case of that full name is known to fail. It still runs, and is a failure when it passes.
    #[must_use]
    pub fn expect_failure(mut self, name: &str, reason: &str) -> Self {
        self.failures.push((name.to_owned(), reason.to_owned()));
        self
    }

    /// The case of that full name is not run.
    #[must_use]
    pub fn skip(mut self, name: &str, reason: &str) -> Self {
        self.skips.push((name.to_owned(), reason.to_owned()));
        self
    }

    pub(crate) fn known_failure(&self, name: &str) -> Option<&str> {
        reason(&self.failures, name)
    }

    pub(crate) fn skipped(&self, name: &str) -> Option<&str> {
        reason(&self.skips, name)
    }

    /// Names that no case has: the list has gone stale.
    pub(crate) fn unknown<'a>(
        &'a self,
        is_case: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a str> {
        let names = self.failures.iter().chain(&self.skips).map(|(name, _)| name.as_str());
        names.filter(move |name| !is_case(name))
    }
}

fn reason<'a>(list: &'a [(String, String)], name: &str) -> Option<&'a str> {
    list.iter().find(|(listed, _)| listed == name).map(|(_, reason)| reason.as_str())
}
