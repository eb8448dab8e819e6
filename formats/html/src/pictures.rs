//! Pictures that others drew: of other runs, of time by call path.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

use crate::text::{name, sentence};

/// Lines of what is said to a picture, at most.
const LINES: usize = 400;

/// A picture, as SVG. Browsers show it as they show any image: it runs and loads nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// What it is called.
    pub name: String,
    /// The file's content.
    pub svg: Vec<u8>,
    /// What it shows, as text of equally wide letters; empty: nothing is said.
    pub text: String,
}

/// The section, if there are any.
pub fn section(pictures: &[Picture]) -> Markup {
    html! {
        @if !pictures.is_empty() {
            section #pictures aria-labelledby="pictures-title" {
                h2 #pictures-title { "Pictures" }
                @for picture in pictures {
                    figure.block {
                        h3 { (name(&picture.name)) }
                        img.picture alt=(name(&picture.name)) src=(address(&picture.svg));
                        @if !picture.text.is_empty() { (told(&picture.text)) }
                    }
                }
            }
        }
    }
}

/// The same in words, for those who want numbers or do not see.
fn told(text: &str) -> Markup {
    html! {
        figcaption {
            details {
                summary { "In numbers" }
                pre.told tabindex="0" {
                    @for line in text.lines().take(LINES) { (sentence(line)) "\n" }
                }
            }
        }
    }
}

fn address(svg: &[u8]) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}
