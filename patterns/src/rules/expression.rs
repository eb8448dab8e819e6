//! Conditions and formulas over facts:
//!
//! ```text
//! bytes > eager_limit and bytes <= 16 * eager_limit and operation in ("MPI_Send", "MPI_Rsend")
//! min(rank_loss, 0.5 * severity)
//! ```
//!
//! Names and types are checked when an expression is read. So a mistake in a rule shows at once,
//! not only when a finding needs it.

use super::facts::{Fact, Facts, Value};
use super::parse::parse;

/// Type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number.
    Number,
    /// Text.
    Text,
    /// Yes or no.
    Truth,
}

impl Type {
    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Number => "a number",
            Type::Text => "a text",
            Type::Truth => "a condition",
        }
    }
}

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Position in bytes.
    pub at: usize,
    /// The error.
    pub why: String,
}

/// A condition or a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression(Node);

/// A node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    Text(String),
    Truth(bool),
    Fact(Fact),
    Not(Box<Node>),
    Negative(Box<Node>),
    Calculate(char, Box<Node>, Box<Node>),
    Compare(&'static str, Box<Node>, Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    In(Box<Node>, Vec<Node>),
    Least(Vec<Node>),
    Most(Vec<Node>),
}

/// A value during evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Given<'a> {
    Number(f64),
    Text(&'a str),
    Truth(bool),
}

impl Expression {
    /// Reads an expression of type `wanted`.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, wanted: Type) -> Result<Expression, Wrong> {
        parse(text, wanted).map(Expression)
    }

    /// A condition that always holds, and its text.
    pub fn always() -> (Expression, String) {
        (Expression(Node::Truth(true)), "true".to_owned())
    }

    /// The number that a formula gives; `None` if it needs an unknown fact.
    pub fn number(&self, facts: &Facts) -> Option<f64> {
        match self.0.value(facts)? {
            Given::Number(number) => Some(number).filter(|n| n.is_finite()),
            _ => None,
        }
    }

    /// Whether a condition holds; `None` if that depends on unknown facts.
    pub fn holds(&self, facts: &Facts) -> Option<bool> {
        match self.0.value(facts)? {
            Given::Truth(truth) => Some(truth),
            _ => None,
        }
    }
}

impl Node {
    fn value<'a>(&'a self, facts: &'a Facts) -> Option<Given<'a>> {
        let number = |node: &'a Node| match node.value(facts)? {
            Given::Number(number) => Some(number),
            _ => None,
        };
        let truth = |node: &'a Node| match node.value(facts)? {
            Given::Truth(truth) => Some(truth),
            _ => None,
        };
        let of_all = |nodes: &'a [Node], pick: fn(f64, f64) -> f64| {
            let numbers: Option<Vec<f64>> = nodes.iter().map(number).collect();
            Some(Given::Number(numbers?.into_iter().reduce(pick)?))
        };
        Some(match self {
            Node::Number(number) => Given::Number(*number),
            Node::Text(text) => Given::Text(text),
            Node::Truth(truth) => Given::Truth(*truth),
            Node::Fact(fact) => match facts.get(*fact)? {
                Value::Number(number) => Given::Number(*number),
                Value::Text(text) => Given::Text(text),
            },
            Node::Not(node) => Given::Truth(!truth(node)?),
            Node::Negative(node) => Given::Number(-number(node)?),
            Node::Calculate(operator, one, other) => {
                let (one, other) = (number(one)?, number(other)?);
                Given::Number(match operator {
                    '+' => one + other,
                    '-' => one - other,
                    '*' => one * other,
                    _ => one / other,
                })
            }
            Node::Compare(operator, one, other) => {
                let (one, other) = (one.value(facts)?, other.value(facts)?);
                let order = match (one, other) {
                    (Given::Number(one), Given::Number(other)) => one.partial_cmp(&other)?,
                    (Given::Text(one), Given::Text(other)) => one.cmp(other),
                    _ => return None,
                };
                Given::Truth(match *operator {
                    "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            // An unknown side does not matter if the other one decides.
            Node::And(one, other) => match (truth(one), truth(other)) {
                (Some(false), _) | (_, Some(false)) => Given::Truth(false),
                (one, other) => Given::Truth(one? && other?),
            },
            Node::Or(one, other) => match (truth(one), truth(other)) {
                (Some(true), _) | (_, Some(true)) => Given::Truth(true),
                (one, other) => Given::Truth(one? || other?),
            },
            Node::In(one, list) => {
                let one = one.value(facts)?;
                let mut found = false;
                for entry in list {
                    found |= entry.value(facts)? == one;
                }
                Given::Truth(found)
            }
            Node::Least(nodes) => of_all(nodes, f64::min)?,
            Node::Most(nodes) => of_all(nodes, f64::max)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let mut facts = Facts::default();
        facts.number(Fact::Severity, 0.4);
        facts.number(Fact::RankLoss, 0.1);
        facts.number(Fact::Bytes, 6000.0);
        facts.text(Fact::Operation, "MPI_Send");
        facts
    }

    fn holds(text: &str) -> Option<bool> {
        let condition = Expression::parse(text, Type::Truth);
        condition
            .unwrap_or_else(|e| panic!("{text}: {e:?}"))
            .holds(&facts())
    }

    fn number(text: &str) -> Option<f64> {
        let formula = Expression::parse(text, Type::Number);
        formula
            .unwrap_or_else(|e| panic!("{text}: {e:?}"))
            .number(&facts())
    }

    #[test]
    fn formulas_are_calculated_in_the_usual_order() {
        assert_eq!(number("1 + 2 * 3 - 4 / 2"), Some(5.0));
        assert_eq!(number("(1 + 2) * -3"), Some(-9.0));
        assert_eq!(number("8 - 4 - 2"), Some(2.0));
        assert_eq!(number("min(severity, rank_loss, 3)"), Some(0.1));
        assert_eq!(number("max(severity, rank_loss)"), Some(0.4));
        assert_eq!(number("1 / 0"), None);
        assert_eq!(number("severity - mean"), None);
    }

    #[test]
    fn numbers_have_units() {
        for (text, value) in [
            ("50 ms", 0.05),
            ("4 KiB", 4096.0),
            ("4kB", 4000.0),
            ("5 %", 0.05),
            ("3 s", 3.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert_eq!(holds("bytes > 4 kB and severity <= 400 ms"), Some(true));
    }

    #[test]
    fn conditions_compare_numbers_and_texts() {
        assert_eq!(holds("operation == 'MPI_Send'"), Some(true));
        assert_eq!(holds("operation in (\"MPI_Recv\", 'MPI_Send')"), Some(true));
        assert_eq!(holds("operation in ('MPI_Recv')"), Some(false));
        assert_eq!(holds("not bytes > 1 or severity != 0.4"), Some(false));
        assert_eq!(holds("true and (false or severity >= 0.4)"), Some(true));
    }

    #[test]
    fn what_is_not_known_is_neither_true_nor_false() {
        assert_eq!(holds("mean > 1"), None);
        assert_eq!(holds("not mean > 1"), None);
        assert_eq!(holds("mean > 1 and bytes > 1"), None);
        assert_eq!(holds("mean > 1 and bytes < 1"), Some(false));
        assert_eq!(holds("bytes > 1 or mean > 1"), Some(true));
        assert_eq!(holds("next_operation in ('MPI_Recv')"), None);
    }

    #[test]
    fn mistakes_are_found_when_read() {
        let (deep, long) = ("(".repeat(900), "1 + ".repeat(900));
        for (text, at, why) in [
            ("byts > 1", 0, "unknown fact byts; is it bytes?"),
            ("bytes > 'a'", 8, "this is a text, expected a number"),
            ("bytes", 0, "this is a number, expected a condition"),
            (
                "bytes > ",
                8,
                "expected a fact, a number or a text at the end",
            ),
            ("bytes > 1 bytes", 10, "expected an operator"),
            (
                "bytes and true",
                0,
                "this is a number, expected a condition",
            ),
            ("(bytes > 1", 10, "expected ) at the end"),
            ("bytes ~ 1", 6, "~ means nothing here"),
            ("operation == 'a", 13, "this text does not end"),
            ("1.2.3 > 1", 0, "1.2.3 is not a number"),
            ("operation + 1 > 2", 0, "this is a text, expected a number"),
            (
                "(bytes > 1) == true",
                15,
                "conditions are joined with and, or",
            ),
            ("bytes in ('a')", 10, "this is a text, expected a number"),
            (&deep, 65, "too deep"),
            (&long, 0, "this is too long"),
        ] {
            let wrong = Expression::parse(text, Type::Truth).unwrap_err();
            assert_eq!(wrong.at, at, "{text}: {wrong:?}");
            assert!(wrong.why.starts_with(why), "{text}: {wrong:?}");
        }
        let wrong = Expression::parse("bytes > 1", Type::Number).unwrap_err();
        assert_eq!(wrong.why, "this is a condition, expected a number");
    }
}
