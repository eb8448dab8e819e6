//! Reads the directives in a test program's comments. The grammar is on the crate's page.

use std::collections::BTreeMap;

/// A line of the source, one-based.
pub type Line = u32;

/// Ranks, and the loss that each has or causes, if given, in seconds.
pub type RankShares = Vec<(u32, Option<f64>)>;

/// All directives of a source.
#[derive(Debug, Default, PartialEq)]
pub struct Directives {
    /// How to build and start it.
    pub run: Run,
    /// Bottlenecks that the report must have.
    pub expects: Vec<Expect>,
    /// Patterns that must not show.
    pub silents: Vec<Silent>,
    /// Totals over the run.
    pub metrics: Vec<Metric>,
    /// `ROOT`
    pub roots: Vec<Root>,
    /// `NO_ROOT`
    pub innocents: Vec<Innocent>,
    /// Anomalies that the report must have, with no others above "info".
    pub anomalies: Vec<Anomaly>,
    /// Number of recorded threads of ranks.
    pub locations: Option<u32>,
    /// Texts in the report, with blanks and line breaks alike.
    pub says: Vec<String>,
    /// MPIs that cannot run the program, and why.
    pub not_with: Vec<(String, String)>,
}

/// `RUN`
#[derive(Debug, Default, PartialEq)]
pub struct Run {
    /// Number of ranks.
    pub ranks: u32,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Additional environment of the ranks.
    pub env: Vec<(String, String)>,
    /// Compiler flags before the source.
    pub cflags: Vec<String>,
    /// Linker flags behind the source.
    pub libs: Vec<String>,
    /// Source of a library to link before these.
    pub link: Option<String>,
}

/// Patterns whose values are added, `a+b`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patterns(pub Vec<String>);

impl Patterns {
    /// Whether `id` is one of them.
    pub fn contains(&self, id: &str) -> bool {
        self.0.iter().any(|p| p == id)
    }
}

impl std::fmt::Display for Patterns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("+"))
    }
}

/// A place in the program: the bottlenecks that a directive applies to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The line of the call.
    pub at: Option<Line>,
    /// A line on the call path.
    pub via: Option<Line>,
    /// The name of the operation.
    pub operation: Option<String>,
    /// Part of the name of the calling function.
    pub function: Option<String>,
}

/// How far a time may be from the expected one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// As a fraction of the time.
    pub relative: f64,
    /// In seconds per instance.
    pub absolute: f64,
}

/// `EXPECT`
#[derive(Debug, PartialEq)]
pub struct Expect {
    /// The line of the directive.
    pub line: Line,
    /// Alternative patterns.
    pub patterns: Patterns,
    /// The bottlenecks.
    pub place: Place,
    /// Their total in seconds.
    pub severity: f64,
    /// Their number of instances.
    pub instances: Option<u64>,
    /// Ranks that lose time, and how much.
    pub ranks: Option<RankShares>,
    /// Ranks that cause it, and how much.
    pub cause_ranks: Option<RankShares>,
    /// Line of the cause.
    pub cause_line: Option<Line>,
    /// Call of the cause.
    pub cause_operation: Option<String>,
    /// Part of an explanation.
    pub because: Option<String>,
    /// Tolerance of the times.
    pub tolerance: Tolerance,
}

/// `SILENT`
#[derive(Debug, PartialEq)]
pub struct Silent {
    /// The line of the directive.
    pub line: Line,
    /// The patterns.
    pub patterns: Patterns,
    /// The bottlenecks; all if empty.
    pub place: Place,
    /// The limit in seconds.
    pub below: f64,
}

/// `METRIC`
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// The line of the directive.
    pub line: Line,
    /// The patterns.
    pub patterns: Patterns,
    /// Their total in seconds.
    pub total: f64,
    /// Their number of instances.
    pub instances: Option<u64>,
    /// Tolerance of the total.
    pub tolerance: Tolerance,
}

/// `ROOT`
#[derive(Debug, PartialEq)]
pub struct Root {
    /// The line of the directive.
    pub line: Line,
    /// What the ranks did.
    pub activity: String,
    /// Line of the call, or of the one after the computation.
    pub at: Option<Line>,
    /// The ranks, and the waiting that each causes, s.
    pub ranks: RankShares,
    /// Tolerance of the times.
    pub tolerance: Tolerance,
}

/// `NO_ROOT`
#[derive(Debug, PartialEq)]
pub struct Innocent {
    /// The line of the directive.
    pub line: Line,
    /// Line of the call, or of the one after the computation.
    pub at: Option<Line>,
    /// The ranks; all of them if empty.
    pub ranks: Vec<u32>,
    /// The limit, as a fraction of all waiting.
    pub below: f64,
}

/// `ANOMALY`
#[derive(Debug, PartialEq)]
pub struct Anomaly {
    /// The id.
    pub id: String,
    /// Number of occurrences.
    pub count: u64,
    /// Part of the detail.
    pub detail: Option<String>,
}

/// An error in a source.
#[derive(Debug, PartialEq)]
pub struct Error {
    /// The line.
    pub line: Line,
    /// The error.
    pub message: String,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

const KEYWORDS: [&str; 11] = [
    "RUN",
    "MARK",
    "EXPECT",
    "SILENT",
    "METRIC",
    "ROOT",
    "NO_ROOT",
    "ANOMALY",
    "LOCATIONS",
    "SAYS",
    "NOT_WITH",
];
const OPENERS: [&str; 4] = ["/*", "//", "!", "#"];

impl Directives {
    /// Reads the directives of a source text.
    ///
    /// # Errors
    /// A directive that is unknown, incomplete or contradicts itself, or a mark that is missing,
    /// double or never used.
    pub fn parse(source: &str) -> Result<Directives, Error> {
        let raw = collect(source);
        let marks = marks(&raw)?;
        let mut out = Directives::default();
        let mut runs = 0;
        let mut used = Vec::new();
        for directive in &raw {
            let mut fields = Fields::new(directive, &marks, &mut used)?;
            match directive.keyword {
                "RUN" => {
                    runs += 1;
                    out.run = fields.run()?;
                }
                "EXPECT" => out.expects.push(fields.expect()?),
                "SILENT" => out.silents.push(fields.silent()?),
                "METRIC" => out.metrics.push(fields.metric()?),
                "ROOT" => out.roots.push(fields.root()?),
                "NO_ROOT" => out.innocents.push(fields.innocent()?),
                "ANOMALY" => out.anomalies.push(fields.anomaly()?),
                "LOCATIONS" => out.locations = Some(fields.word_as("a number")?),
                "SAYS" => out.says.push(fields.says()?),
                "NOT_WITH" => out.not_with.push(fields.not_with()?),
                _ => fields.words.clear(), // MARK
            }
            fields.finish()?;
        }
        let error = |line, message: String| Err(Error { line, message });
        if runs != 1 {
            return error(1, format!("{runs} RUN directives instead of one"));
        }
        match marks.iter().find(|(name, _)| !used.contains(*name)) {
            Some((name, line)) => error(*line, format!("mark {name:?} is never used")),
            None => Ok(out),
        }
    }
}

/// A directive before its fields are understood.
struct Raw {
    keyword: &'static str,
    text: String,
    line: Line,
    behind_code: bool,
}

/// Finds the directives in the comments.
fn collect(source: &str) -> Vec<Raw> {
    let mut found: Vec<Raw> = Vec::new();
    let mut continues = false;
    for (index, text) in source.lines().enumerate() {
        let line = index as Line + 1;
        if let Some(comment) = whole_line_comment(text) {
            if let Some((keyword, rest)) = split_keyword(comment) {
                found.push(Raw {
                    keyword,
                    text: rest.into(),
                    line,
                    behind_code: false,
                });
                continues = true;
            } else if continues && starts_with_field(comment) {
                let last = found.last_mut().expect("continues a directive");
                last.text.push(' ');
                last.text.push_str(comment);
            } else {
                continues = false;
            }
            continue;
        }
        continues = false;
        found.extend(behind_code(text, line));
    }
    found
}

/// The text of a line that is only a comment.
fn whole_line_comment(line: &str) -> Option<&str> {
    let fixed_form = line.strip_prefix("C ").or(line.strip_prefix("c "));
    let text = line.trim_start();
    let rest = fixed_form
        .or_else(|| OPENERS.iter().find_map(|o| text.strip_prefix(o)))
        .or_else(|| text.strip_prefix('*'))?;
    Some(rest.trim_end().trim_end_matches("*/").trim())
}

fn split_keyword(comment: &str) -> Option<(&'static str, &str)> {
    let (word, rest) = comment.split_once(' ')?;
    let keyword = KEYWORDS.iter().find(|k| **k == word)?;
    Some((keyword, rest.trim()))
}

fn starts_with_field(comment: &str) -> bool {
    let word = comment.split([' ', '=']).next().unwrap_or("");
    !word.is_empty() && comment[word.len()..].starts_with('=')
}

/// The directives after the code of a line.
fn behind_code(text: &str, line: Line) -> Vec<Raw> {
    let mut found = Vec::new();
    for opener in OPENERS {
        for (at, _) in text.match_indices(opener) {
            let comment = text[at + opener.len()..].trim_start();
            let end = match opener {
                "/*" => comment.find("*/").unwrap_or(comment.len()),
                _ => comment.len(),
            };
            if let Some((keyword, rest)) = split_keyword(comment[..end].trim_end()) {
                found.push(Raw {
                    keyword,
                    text: rest.into(),
                    line,
                    behind_code: true,
                });
            }
        }
    }
    found
}

type Marks = BTreeMap<String, Line>;

fn marks(raw: &[Raw]) -> Result<Marks, Error> {
    let mut marks = Marks::new();
    for directive in raw.iter().filter(|d| d.keyword == "MARK") {
        let (line, name) = (directive.line, directive.text.trim());
        let fail = |message| Err(Error { line, message });
        if !directive.behind_code {
            return fail(format!("mark {name:?} stands on no line of code"));
        }
        if marks.insert(name.to_string(), line).is_some() {
            return fail(format!("mark {name:?} stands on two lines"));
        }
    }
    Ok(marks)
}

/// The words and fields of one directive that have not been understood yet.
struct Fields<'a> {
    directive: &'a Raw,
    marks: &'a Marks,
    used: &'a mut Vec<String>,
    words: Vec<String>,
    fields: BTreeMap<String, String>,
}

impl<'a> Fields<'a> {
    fn new(directive: &'a Raw, marks: &'a Marks, used: &'a mut Vec<String>) -> Result<Self, Error> {
        let mut fields = Fields {
            directive,
            marks,
            used,
            words: Vec::new(),
            fields: BTreeMap::new(),
        };
        for token in tokens(&directive.text) {
            match token.split_once('=') {
                Some((key, value)) => {
                    let value = value.trim_matches('"').to_string();
                    if fields.fields.insert(key.into(), value).is_some() {
                        return Err(fields.error(format!("{key} is given twice")));
                    }
                }
                None => fields.words.insert(0, token),
            }
        }
        Ok(fields)
    }

    fn error(&self, message: String) -> Error {
        Error {
            line: self.directive.line,
            message: format!("{}: {message}", self.directive.keyword),
        }
    }

    /// The next word that is not a field.
    fn word(&mut self, what: &str) -> Result<String, Error> {
        self.words
            .pop()
            .ok_or(self.error(format!("{what} is missing")))
    }

    fn word_as<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Error> {
        let word = self.word(what)?;
        self.number(&word)
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T, Error> {
        text.parse()
            .map_err(|_| self.error(format!("{text:?} is not a number")))
    }

    fn take(&mut self, key: &str) -> Option<String> {
        self.fields.remove(key)
    }

    fn take_number<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, Error> {
        self.take(key).map(|v| self.number(&v)).transpose()
    }

    fn take_list(&mut self, key: &str) -> Vec<String> {
        let value = self.take(key).unwrap_or_default();
        value.split_whitespace().map(String::from).collect()
    }

    /// A field `key=@mark`.
    fn take_line(&mut self, key: &str) -> Result<Option<Line>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let name = value.strip_prefix('@').unwrap_or_default();
        let Some(line) = self.marks.get(name) else {
            return Err(self.error(format!("{key}={value}: no such mark")));
        };
        self.used.push(name.to_string());
        Ok(Some(*line))
    }

    fn patterns(&mut self) -> Result<Patterns, Error> {
        let word = self.word("a pattern")?;
        Ok(Patterns(word.split('+').map(String::from).collect()))
    }

    fn place(&mut self) -> Result<Place, Error> {
        let here = self.directive.behind_code.then_some(self.directive.line);
        let at = self.take_line("at")?;
        if here.is_some() && at.is_some() {
            return Err(self.error("stands behind code and has at=".into()));
        }
        Ok(Place {
            at: here.or(at),
            via: self.take_line("via")?,
            operation: self.take("operation"),
            function: self.take("function"),
        })
    }

    fn tolerance(&mut self) -> Result<Tolerance, Error> {
        Ok(Tolerance {
            relative: self.take_number("tolerance")?.unwrap_or(0.1),
            absolute: self.take_number("abs")?.unwrap_or(0.0),
        })
    }

    fn run(&mut self) -> Result<Run, Error> {
        let pairs = self.take_list("env");
        let env = pairs.iter().filter_map(|pair| pair.split_once('='));
        Ok(Run {
            ranks: self
                .take_number("np")?
                .ok_or(self.error("np= is missing".into()))?,
            args: self.take_list("args"),
            env: env.map(|(k, v)| (k.into(), v.into())).collect(),
            cflags: self.take_list("cflags"),
            libs: self.take_list("libs"),
            link: self.take_list("link").into_iter().next(),
        })
    }

    fn expect(&mut self) -> Result<Expect, Error> {
        Ok(Expect {
            line: self.directive.line,
            patterns: self.patterns()?,
            place: self.place()?,
            severity: self
                .take_number("severity")?
                .ok_or(self.error("severity= is missing".into()))?,
            instances: self.take_number("instances")?,
            ranks: self.ranks("ranks")?,
            cause_ranks: self.ranks("cause_rank")?,
            cause_line: self.take_line("cause_line")?,
            cause_operation: self.take("cause_operation"),
            because: self.take("because"),
            tolerance: self.tolerance()?,
        })
    }

    fn ranks(&mut self, key: &str) -> Result<Option<RankShares>, Error> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let rank = |text: &str| match text.split_once(':') {
            Some((rank, share)) => Ok((self.number(rank)?, Some(self.number(share)?))),
            None => Ok((self.number(text)?, None)),
        };
        value
            .split(',')
            .map(rank)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn silent(&mut self) -> Result<Silent, Error> {
        Ok(Silent {
            line: self.directive.line,
            patterns: self.patterns()?,
            place: self.place()?,
            below: self.take_number("below")?.unwrap_or(0.010),
        })
    }

    fn metric(&mut self) -> Result<Metric, Error> {
        Ok(Metric {
            line: self.directive.line,
            patterns: self.patterns()?,
            total: self.word_as("a total")?,
            instances: self.take_number("instances")?,
            tolerance: self.tolerance()?,
        })
    }

    fn root(&mut self) -> Result<Root, Error> {
        let place = self.place()?;
        let ranks = self.ranks("ranks")?;
        Ok(Root {
            line: self.directive.line,
            activity: self.word("an activity")?,
            at: place.at,
            ranks: ranks.ok_or(self.error("ranks= is missing".into()))?,
            tolerance: self.tolerance()?,
        })
    }

    fn innocent(&mut self) -> Result<Innocent, Error> {
        let place = self.place()?;
        let ranks = self.ranks("ranks")?.unwrap_or_default();
        if place.at.is_none() && ranks.is_empty() {
            return Err(self.error("neither ranks= nor at=".into()));
        }
        Ok(Innocent {
            line: self.directive.line,
            at: place.at,
            ranks: ranks.into_iter().map(|(rank, _)| rank).collect(),
            below: self.take_number("below")?.unwrap_or(0.05),
        })
    }

    fn anomaly(&mut self) -> Result<Anomaly, Error> {
        Ok(Anomaly {
            id: self.word("an id")?,
            count: self
                .take_number("count")?
                .ok_or(self.error("count= is missing".into()))?,
            detail: self.take("detail"),
        })
    }

    fn says(&mut self) -> Result<String, Error> {
        let text = self.take("text");
        text.ok_or(self.error("text= is missing".into()))
    }

    fn not_with(&mut self) -> Result<(String, String), Error> {
        let mpi = self.word("openmpi or mpich")?;
        let because = self.take("because");
        let because = because.ok_or(self.error("because= is missing".into()))?;
        Ok((mpi, because))
    }

    /// Fails if anything is left.
    fn finish(self) -> Result<(), Error> {
        match self.words.last().or(self.fields.keys().next()) {
            Some(left) => Err(self.error(format!("{left:?} is not understood"))),
            None => Ok(()),
        }
    }
}

/// Splits at blanks outside of double quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        quoted ^= c == '"';
        if c.is_whitespace() && !quoted {
            tokens.push(String::new());
        } else {
            tokens.last_mut().expect("never empty").push(c);
        }
    }
    tokens.retain(|t| !t.is_empty());
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Directives {
        Directives::parse(source).expect("a good source")
    }

    fn refusal(source: &str) -> String {
        Directives::parse(source)
            .expect_err("a bad source")
            .to_string()
    }

    #[test]
    fn reads_a_c_source() {
        let found = parse(
            "/* Text that is no directive, RUN neither.\n\
             \x20*\n\
             \x20* RUN np=4 args=\"-n 3\" env=\"A=1 B=2\"\n\
             \x20* EXPECT late_sender at=@recv severity=0.300 instances=5\n\
             \x20*   ranks=1:0.2,2:0.1 cause_rank=0:0.3,3 cause_line=@send because=\"computed 0.05\"\n\
             \x20*/\n\
             #include <mpi.h>\n\
             MPI_Send(x); /* MARK send */\n\
             MPI_Recv(x); /* MARK recv */ /* SILENT late_receiver below=0.02 */\n",
        );
        assert_eq!(found.run.ranks, 4);
        assert_eq!(found.run.args, ["-n", "3"]);
        assert_eq!(found.run.env[1], ("B".into(), "2".into()));
        let [expect] = &found.expects[..] else {
            panic!("one expectation")
        };
        assert_eq!(expect.place.at, Some(9));
        assert_eq!(expect.cause_line, Some(8));
        assert_eq!(expect.ranks, Some(vec![(1, Some(0.2)), (2, Some(0.1))]));
        assert_eq!(expect.cause_ranks, Some(vec![(0, Some(0.3)), (3, None)]));
        assert_eq!(expect.because.as_deref(), Some("computed 0.05"));
        let [silent] = &found.silents[..] else {
            panic!("one near miss")
        };
        assert_eq!((silent.place.at, silent.below), (Some(9), 0.02));
    }

    #[test]
    fn reads_fortran_python_and_cplusplus_comments() {
        let fixed = parse("C     RUN np=2\nC     METRIC late_sender 0.3\nC       abs=0.01\n");
        assert_eq!((fixed.run.ranks, fixed.metrics[0].total), (2, 0.3));
        assert_eq!(fixed.metrics[0].tolerance.absolute, 0.01);
        let free = parse("! RUN np=2\n! SILENT late_sender at=@x\n  call MPI_Recv() ! MARK x\n");
        assert_eq!(free.silents[0].place.at, Some(3));
        let python = parse("# RUN np=3\ncomm.recv() # SILENT late_sender\n");
        assert_eq!(python.silents[0].place.at, Some(2));
        let cplusplus = parse("// RUN np=2\n// SILENT a+b\n// LOCATIONS 4\n");
        assert!(cplusplus.silents[0].patterns.contains("b"));
        assert_eq!(cplusplus.locations, Some(4));
    }

    #[test]
    fn a_directive_alone_is_about_the_run() {
        let found =
            parse("/* RUN np=2 */\n/* SAYS text=\"a b\" */\n    /* SILENT late_sender */\n");
        assert_eq!(found.silents[0].place, Place::default());
        assert_eq!(found.says, ["a b"]);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        let cases = [
            ("x\n", "line 1: 0 RUN directives instead of one"),
            ("// RUN args=a\n", "line 1: RUN: np= is missing"),
            (
                "// RUN np=2 nq=3\n",
                "line 1: RUN: \"nq\" is not understood",
            ),
            (
                "// RUN np=2\n// NO_ROOT below=0.1\n",
                "line 2: NO_ROOT: neither ranks= nor at=",
            ),
            ("// RUN np=two\n", "line 1: RUN: \"two\" is not a number"),
            (
                "// RUN np=2\n// EXPECT a severity=1 at=@x\n",
                "line 2: EXPECT: at=@x: no such mark",
            ),
            (
                "// RUN np=2\n// EXPECT a\n",
                "line 2: EXPECT: severity= is missing",
            ),
            (
                "// RUN np=2\nf(); // MARK x\n",
                "line 2: mark \"x\" is never used",
            ),
            (
                "// RUN np=2\nf(); // MARK x\nf(); // MARK x\n",
                "line 3: mark \"x\" stands on two lines",
            ),
            (
                "// RUN np=2\n// MARK x\n",
                "line 2: mark \"x\" stands on no line of code",
            ),
            (
                "// RUN np=2\n// SILENT a below=1 below=2\n",
                "line 2: SILENT: below is given twice",
            ),
        ];
        for (source, message) in cases {
            assert_eq!(refusal(source), message);
        }
    }
}
