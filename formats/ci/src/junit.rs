//! Test cases in JUnit's XML.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::markdown::MOST;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Passed,
    /// It is not, in words.
    Failed(String),
    /// It cannot be told, with the reason.
    Unknown(String),
}

/// A test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is tested.
    pub name: String,
    /// Whether it passed.
    pub verdict: Verdict,
    /// More about it.
    pub output: String,
}

/// One suite of cases as XML. What XML cannot hold is left out of its texts.
pub fn render(suite: &str, cases: &[Case]) -> String {
    let mut suite = TestSuite::new(short(suite));
    for case in cases {
        let status = match &case.verdict {
            Verdict::Passed => TestCaseStatus::success(),
            Verdict::Failed(why) => not_passed(NonSuccessKind::Failure, why),
            Verdict::Unknown(why) => not_passed(NonSuccessKind::Error, why),
        };
        let mut test = TestCase::new(short(&case.name), status);
        test.set_classname(suite.name.clone());
        if !case.output.is_empty() {
            test.set_system_out(clean(&case.output, true));
        }
        suite.add_test_case(test);
    }
    let mut report = Report::new("laggard");
    report.add_test_suite(suite);
    // Memory takes all that is written.
    report.to_string().unwrap_or_default()
}

fn not_passed(kind: NonSuccessKind, why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(short(why));
    status
}

fn short(text: &str) -> String {
    let mut short: String = clean(text, false).chars().take(MOST).collect();
    if short.len() < text.len() && text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// A text whose letters are seen; it may have lines.
fn clean(text: &str, has_lines: bool) -> String {
    let is_odd = |letter| !(has_lines && letter == '\n') && laggard_files::is_steering(letter);
    text.replace(is_odd, "\u{fffd}")
}
