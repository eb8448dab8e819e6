//! Pictures from other sources: of other runs, or of time by call path.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, html};

use crate::text::{name, sentence};

/// Most lines of a picture's text.
const LINES: usize = 400;

/// A picture, as SVG. Browsers treat it as an image: it runs and loads nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// Name.
    pub name: String,
    /// The file's content.
    pub svg: Vec<u8>,
    /// Content in words, in a monospaced font; may be empty.
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

/// The same in words, for readers who want numbers or cannot see.
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
