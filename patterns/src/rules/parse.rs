//! Reads expressions: precedence and types.

use super::expression::{Node, Type, Wrong};
use super::facts::{Fact, Kind};
use super::tokens::{SIGNS, Token, tokens};

pub(super) fn parse(text: &str, wanted: Type) -> Result<Node, Wrong> {
    let tokens = tokens(text)?;
    if tokens.len() > LONGEST {
        let why = "this is too long".to_owned();
        return Err(Wrong { at: 0, why });
    }
    let mut reader = Reader {
        text,
        tokens,
        next: 0,
        depth: 0,
    };
    let (node, given) = reader.either()?;
    if reader.peek() != &Token::End {
        return Err(reader.wrong("expected an operator, such as and, or, <, +"));
    }
    if given != wanted {
        let why = format!("this is {}, expected {}", given.name(), wanted.name());
        return Err(Wrong { at: 0, why });
    }
    Ok(node)
}

/// Most tokens of an expression: a guard, since nobody writes more.
const LONGEST: usize = 1000;
/// Deepest nesting of parentheses and signs: a guard, since nobody writes more.
const DEEPEST: usize = 64;

struct Reader<'t> {
    text: &'t str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

type Found = Result<(Node, Type), Wrong>;

impl Reader<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn wrong(&self, why: &str) -> Wrong {
        let at = self.at();
        let rest = self.text[at..].trim();
        let rest: String = rest.chars().take(20).collect();
        let why = match rest.is_empty() {
            true => format!("{why} at the end"),
            false => format!("{why} before {rest}"),
        };
        Wrong { at, why }
    }

    /// Takes the next token if it is this sign or word.
    fn take(&mut self, wanted: &str) -> bool {
        let is_it = match self.peek() {
            Token::Sign(sign) => *sign == wanted,
            Token::Word(word) => word == wanted,
            _ => false,
        };
        self.next += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, wanted: &str) -> Result<(), Wrong> {
        match self.take(wanted) {
            true => Ok(()),
            false => Err(self.wrong(&format!("expected {wanted}"))),
        }
    }

    /// Checks that the expression at `at` has this type.
    fn must(at: usize, given: Type, wanted: Type) -> Result<(), Wrong> {
        if given == wanted {
            return Ok(());
        }
        let why = format!("this is {}, expected {}", given.name(), wanted.name());
        Err(Wrong { at, why })
    }

    fn either(&mut self) -> Found {
        self.joined("or", Self::both, Node::Or)
    }

    fn both(&mut self) -> Found {
        self.joined("and", Self::negated, Node::And)
    }

    fn joined(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Found,
        join: fn(Box<Node>, Box<Node>) -> Node,
    ) -> Found {
        let first = self.at();
        let (mut node, given) = part(self)?;
        loop {
            if !self.take(word) {
                return Ok((node, given));
            }
            Self::must(first, given, Type::Truth)?;
            let at = self.at();
            let (other, given) = part(self)?;
            Self::must(at, given, Type::Truth)?;
            node = join(Box::new(node), Box::new(other));
        }
    }

    fn negated(&mut self) -> Found {
        if !self.take("not") {
            return self.compared();
        }
        let at = self.at();
        let (node, given) = self.deeper(Self::negated)?;
        Self::must(at, given, Type::Truth)?;
        Ok((Node::Not(Box::new(node)), Type::Truth))
    }

    fn compared(&mut self) -> Found {
        let (node, given) = self.sum()?;
        if self.take("in") {
            let list = self.list(given)?;
            return Ok((Node::In(Box::new(node), list), Type::Truth));
        }
        let Some(&sign) = SIGNS[..6].iter().find(|sign| self.take(sign)) else {
            return Ok((node, given));
        };
        let at = self.at();
        let (other, other_type) = self.sum()?;
        if given == Type::Truth {
            let why = "conditions are joined with and, or".to_owned();
            return Err(Wrong { at, why });
        }
        Self::must(at, other_type, given)?;
        let node = Node::Compare(sign, Box::new(node), Box::new(other));
        Ok((node, Type::Truth))
    }

    fn sum(&mut self) -> Found {
        self.calculated(&["+", "-"], Self::product)
    }

    fn product(&mut self) -> Found {
        self.calculated(&["*", "/"], Self::single)
    }

    fn calculated(&mut self, signs: &[&'static str], part: fn(&mut Self) -> Found) -> Found {
        let first = self.at();
        let (mut node, given) = part(self)?;
        loop {
            let Some(sign) = signs.iter().find(|sign| self.take(sign)) else {
                return Ok((node, given));
            };
            Self::must(first, given, Type::Number)?;
            let at = self.at();
            let (other, given) = part(self)?;
            Self::must(at, given, Type::Number)?;
            let operator = sign.chars().next().unwrap_or('+');
            node = Node::Calculate(operator, Box::new(node), Box::new(other));
        }
    }

    fn single(&mut self) -> Found {
        if self.take("-") {
            let at = self.at();
            let (node, given) = self.deeper(Self::single)?;
            Self::must(at, given, Type::Number)?;
            return Ok((Node::Negative(Box::new(node)), Type::Number));
        }
        if self.take("(") {
            let found = self.deeper(Self::either)?;
            self.expect(")")?;
            return Ok(found);
        }
        let at = self.at();
        let token = self.peek().clone();
        let found = match token {
            Token::Number(number) => (Node::Number(number), Type::Number),
            Token::Text(text) => (Node::Text(text), Type::Text),
            Token::Word(word) => {
                self.next += 1;
                return self.word(at, &word);
            }
            Token::Sign(_) | Token::End => {
                return Err(self.wrong("expected a fact, a number or a text"));
            }
        };
        self.next += 1;
        Ok(found)
    }

    fn word(&mut self, at: usize, word: &str) -> Found {
        match word {
            "true" => return Ok((Node::Truth(true), Type::Truth)),
            "false" => return Ok((Node::Truth(false), Type::Truth)),
            "min" => return Ok((Node::Least(self.list(Type::Number)?), Type::Number)),
            "max" => return Ok((Node::Most(self.list(Type::Number)?), Type::Number)),
            _ => {}
        }
        let Some(fact) = Fact::from_name(word) else {
            let like = Fact::like(word);
            let why = format!("unknown fact {word}; is it {like}?");
            return Err(Wrong { at, why });
        };
        let given = match fact.row().kind {
            Kind::Text => Type::Text,
            _ => Type::Number,
        };
        Ok((Node::Fact(fact), given))
    }

    /// `(a, b, …)` of one type.
    fn list(&mut self, wanted: Type) -> Result<Vec<Node>, Wrong> {
        self.expect("(")?;
        let mut list = Vec::new();
        loop {
            let at = self.at();
            let (node, given) = self.deeper(Self::sum)?;
            Self::must(at, given, wanted)?;
            list.push(node);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(list)
    }

    fn deeper(&mut self, part: fn(&mut Self) -> Found) -> Found {
        if self.depth == DEEPEST {
            return Err(self.wrong("too deep"));
        }
        self.depth += 1;
        let found = part(self);
        self.depth -= 1;
        found
    }
}
