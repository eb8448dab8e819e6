//! Layout of texts.

/// Options of the layout.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Findings, regions and operations shown.
    pub top: usize,
    /// Whether the output understands ANSI colours.
    pub color: bool,
    /// Columns of the output.
    pub width: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions {
            top: 10,
            color: false,
            width: 100,
        }
    }
}
