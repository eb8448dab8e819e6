//! `anchor.xml`: the three trees.

use std::collections::BTreeMap;
use std::io;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

use crate::{Cube, Unit};

/// Children by parent, in their order.
type Below = BTreeMap<Option<usize>, Vec<usize>>;

struct Anchor<'c> {
    cube: &'c Cube,
    xml: Writer<Vec<u8>>,
}

/// The file's text. Call paths have the ids `ids`.
pub fn anchor(cube: &Cube, below: &Below, ids: &[u32]) -> io::Result<Vec<u8>> {
    let mut anchor = Anchor {
        cube,
        xml: Writer::new(Vec::new()),
    };
    let declaration = BytesDecl::new("1.0", Some("UTF-8"), None);
    anchor.xml.write_event(Event::Decl(declaration))?;
    anchor.element("cube", &[("version", "4.0")], |anchor| {
        for (key, value) in &cube.attributes {
            anchor.element("attr", &[("key", key), ("value", value)], |_| Ok(()))?;
        }
        anchor.element("metrics", &[], |anchor| anchor.metrics())?;
        anchor.element("program", &[], |anchor| anchor.program(below, ids))?;
        anchor.element("system", &[], |anchor| anchor.system())
    })?;
    Ok(anchor.xml.into_inner())
}

impl Anchor<'_> {
    fn element(
        &mut self,
        name: &str,
        attributes: &[(&str, &str)],
        inside: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut start = BytesStart::new(name);
        for (key, value) in attributes {
            start.push_attribute((*key, legal(value).as_str()));
        }
        self.xml.write_event(Event::Start(start))?;
        inside(self)?;
        self.xml.write_event(Event::End(BytesEnd::new(name)))
    }

    fn text(&mut self, name: &str, text: &str) -> io::Result<()> {
        let text = legal(text);
        self.element(name, &[], |anchor| {
            anchor.xml.write_event(Event::Text(BytesText::new(&text)))
        })
    }

    fn metrics(&mut self) -> io::Result<()> {
        let below = Cube::below(self.cube.metrics.iter().map(|metric| metric.parent));
        self.metrics_below(&below, None)
    }

    fn metrics_below(&mut self, below: &Below, parent: Option<usize>) -> io::Result<()> {
        for &at in below.get(&parent).into_iter().flatten() {
            let metric = &self.cube.metrics[at];
            let id = at.to_string();
            // Exclusive along call paths; readers add up what is below a node.
            let attributes = [("id", id.as_str()), ("type", "EXCLUSIVE")];
            self.element("metric", &attributes, |anchor| {
                let (kind, unit) = match metric.unit {
                    Unit::Seconds => ("DOUBLE", "sec"),
                    Unit::Occurrences => ("UINT64", "occ"),
                    Unit::Bytes => ("UINT64", "bytes"),
                };
                anchor.text("disp_name", &metric.name)?;
                anchor.text("uniq_name", &metric.id)?;
                anchor.text("dtype", kind)?;
                anchor.text("uom", unit)?;
                anchor.text("url", "")?;
                anchor.text("descr", &metric.description)?;
                anchor.metrics_below(below, Some(at))
            })?;
        }
        Ok(())
    }

    fn program(&mut self, below: &Below, ids: &[u32]) -> io::Result<()> {
        let mut regions: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let cube = self.cube;
        for path in &cube.call_paths {
            let next = regions.len();
            let key = (path.function.as_str(), path.file.as_str());
            if *regions.entry(key).or_insert(next) != next {
                continue;
            }
            let id = next.to_string();
            let attributes = [
                ("id", id.as_str()),
                ("mod", &path.file),
                ("begin", "-1"),
                ("end", "-1"),
            ];
            self.element("region", &attributes, |anchor| {
                anchor.text("name", &path.function)?;
                anchor.text("mangled_name", &path.function)?;
                anchor.text("paradigm", path.paradigm)?;
                anchor.text("role", "function")?;
                anchor.text("url", "")?;
                anchor.text("descr", "")
            })?;
        }
        // Not by recursion: a stack may have any depth.
        let mut open: Vec<Step> = vec![Step::Enter(0)];
        while let Some(step) = open.pop() {
            let Step::Enter(at) = step else {
                self.xml.write_event(Event::End(BytesEnd::new("cnode")))?;
                continue;
            };
            let Some(path) = cube.call_paths.get(at) else {
                continue;
            };
            let (id, region) = (ids[at], regions[&(&*path.function, &*path.file)]);
            let mut start = BytesStart::new("cnode");
            start.push_attribute(("id", id.to_string().as_str()));
            start.push_attribute(("calleeId", region.to_string().as_str()));
            if path.line > 0 {
                start.push_attribute(("line", path.line.to_string().as_str()));
                start.push_attribute(("mod", legal(&path.called_in).as_str()));
            }
            self.xml.write_event(Event::Start(start))?;
            open.push(Step::Leave);
            let children = below.get(&Some(at)).into_iter().flatten().rev();
            open.extend(children.map(|&child| Step::Enter(child)));
        }
        Ok(())
    }

    fn system(&mut self) -> io::Result<()> {
        let cube = self.cube;
        let (mut group, mut thread) = (0u32, 0u32);
        self.node(0, "machine", "machine", |anchor| {
            for (id, host) in (1..).zip(&cube.hosts) {
                anchor.node(id, &host.name, "node", |anchor| {
                    for process in &host.processes {
                        let rank = process.rank.to_string();
                        let id = group.to_string();
                        group += 1;
                        anchor.element("locationgroup", &[("Id", &id)], |anchor| {
                            anchor.text("name", &process.name)?;
                            anchor.text("rank", &rank)?;
                            anchor.text("type", "process")?;
                            for number in &process.threads {
                                let id = thread.to_string();
                                thread += 1;
                                anchor.element("location", &[("Id", &id)], |anchor| {
                                    anchor.text("name", &format!("thread {number}"))?;
                                    anchor.text("rank", &number.to_string())?;
                                    anchor.text("type", "thread")
                                })?;
                            }
                            Ok(())
                        })?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    fn node(
        &mut self,
        id: u32,
        name: &str,
        class: &str,
        inside: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.element("systemtreenode", &[("Id", &id.to_string())], |anchor| {
            anchor.text("name", name)?;
            anchor.text("class", class)?;
            inside(anchor)
        })
    }
}

/// A step through the call tree.
enum Step {
    Enter(usize),
    Leave,
}

/// The text without characters that XML 1.0 does not have, not even as references.
fn legal(text: &str) -> String {
    let is_legal = |c: char| {
        matches!(c, '\t' | '\n' | '\r') || (' '..'\u{fffe}').contains(&c) || c > '\u{ffff}'
    };
    text.chars()
        .map(|c| if is_legal(c) { c } else { '\u{fffd}' })
        .collect()
}
