//! Lines of an input, read by blocks and handed out in place; and the text inside Chrome's JSON wrapper.
//!
//! A line is bounded: a file without line ends must not be read into memory as one. What is longer is handed out as
//! [`Line::TooLong`], once.

use crate::{Input, ReadError};

/// How much is read at a time.
const BLOCK: usize = 256 << 10;
/// The longest line that is looked at. Trace lines have some hundred bytes; an HTML viewer's code may have a few megabytes
/// in one line, none of which is trace data.
const LINE_MAX: usize = 1 << 20;
/// The key under which Chrome's JSON holds ftrace text.
const JSON_KEY: &[u8] = b"\"systemTraceEvents\"";

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

/// Whether the text is in the file as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Plain,
    /// One JSON string, from its opening quote on.
    JsonString,
}

/// The lines of an input.
#[derive(Debug)]
pub(super) struct Lines {
    input: Input,
    encoding: Encoding,
    /// Where the text begins.
    first: u64,
    /// Where the next block begins.
    offset: u64,
    buffer: Vec<u8>,
    /// Start of the next line in `buffer`.
    start: usize,
    /// Up to where `buffer` is known to hold no line end.
    searched: usize,
    /// In the middle of a line that is too long.
    skipping: bool,
    ended: bool,
    /// Lines handed out.
    number: u64,
}

impl Lines {
    pub(super) fn new(input: Input) -> Self {
        Self {
            input,
            encoding: Encoding::Plain,
            first: 0,
            offset: 0,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            skipping: false,
            ended: false,
            number: 0,
        }
    }

    /// The lines of the string that Chrome's JSON holds under `systemTraceEvents`; `None` if there is none.
    pub(super) fn in_json(input: Input) -> Result<Option<Self>, ReadError> {
        let mut block = vec![0; BLOCK];
        let mut offset = 0;
        loop {
            let read = input.read_at(offset, &mut block)?;
            if let Some(at) = memchr::memmem::find(&block[..read], JSON_KEY) {
                let after = offset + (at + JSON_KEY.len()) as u64;
                let head = input.bytes(after, 64)?;
                let quote =
                    head.iter().position(|&byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':'));
                return Ok(quote.filter(|&at| head[at] == b'"').map(|at| {
                    let first = after + at as u64 + 1;
                    Self { encoding: Encoding::JsonString, first, offset: first, ..Self::new(input) }
                }));
            }
            if read < block.len() {
                return Ok(None);
            }
            // The key may lie across two blocks.
            offset += (read - JSON_KEY.len()) as u64;
        }
    }

    /// Back to the first line.
    pub(super) fn rewind(&mut self) {
        self.offset = self.first;
        self.buffer.clear();
        (self.start, self.searched, self.number) = (0, 0, 0);
        (self.skipping, self.ended) = (false, false);
    }

    /// The number of the line handed out last, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// How much of the input has been read.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes behind it all; offsets into them are offsets into the text only without [`Lines::is_encoded`].
    pub(super) const fn input(&self) -> &Input {
        &self.input
    }

    pub(super) fn is_encoded(&self) -> bool {
        self.encoding != Encoding::Plain
    }

    /// The next line, or `None` at the end. A last line without a line end counts.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let end = self.searched + at;
                let line = self.start..end;
                (self.start, self.searched) = (end + 1, end + 1);
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                self.number += 1;
                return Ok(Some(Line::Text(without_return(&self.buffer[line]))));
            }
            self.searched = self.buffer.len();
            if self.ended {
                let line = self.start..self.buffer.len();
                self.start = self.buffer.len();
                if line.is_empty() || std::mem::take(&mut self.skipping) {
                    return Ok(None);
                }
                self.number += 1;
                return Ok(Some(Line::Text(without_return(&self.buffer[line]))));
            }
            if self.buffer.len() - self.start > LINE_MAX || self.skipping {
                self.start = self.buffer.len();
                if !std::mem::replace(&mut self.skipping, true) {
                    self.number += 1;
                    return Ok(Some(Line::TooLong));
                }
            }
            self.fill()?;
        }
    }

    /// Moves what is left to the front and reads a block behind it.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + BLOCK, 0);
        let read = self.input.read_at(self.offset, &mut self.buffer[old..])?;
        self.buffer.truncate(old + read);
        self.offset += read as u64;
        self.ended = read < BLOCK;
        if self.encoding == Encoding::JsonString {
            self.unescape(old);
        }
        Ok(())
    }

    /// Replaces the JSON escapes from `from` on by what they mean. An escape cut by the block's end is read again with the
    /// next block.
    fn unescape(&mut self, from: usize) {
        let raw = self.buffer.split_off(from);
        let mut at = 0;
        while at < raw.len() {
            match raw[at] {
                b'"' => {
                    self.ended = true;
                    return;
                }
                b'\\' => match json_escape(&raw[at..]) {
                    Some((len, meaning)) => {
                        let mut utf8 = [0; 4];
                        self.buffer.extend_from_slice(meaning.encode_utf8(&mut utf8).as_bytes());
                        at += len;
                    }
                    None if self.ended => return,
                    None => {
                        self.offset -= (raw.len() - at) as u64;
                        return;
                    }
                },
                byte => {
                    self.buffer.push(byte);
                    at += 1;
                }
            }
        }
    }
}

/// Length and meaning of the escape at the beginning of `text`; `None` if it is cut off.
fn json_escape(text: &[u8]) -> Option<(usize, char)> {
    Some(match *text.get(1)? {
        b'n' => (2, '\n'),
        b't' => (2, '\t'),
        b'r' => (2, '\r'),
        b'b' | b'f' => (2, ' '),
        b'u' => {
            let hex = text.get(2..6)?;
            let number = std::str::from_utf8(hex).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok());
            (6, number.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
        }
        byte => (2, char::from(byte)),
    })
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut lines: Lines) -> Vec<String> {
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => String::from_utf8_lossy(text).into_owned(),
                Line::TooLong => "(too long)".to_owned(),
            });
        }
        found
    }

    #[test]
    fn lines_with_and_without_a_last_line_end() {
        let lines = |text: &str| all(Lines::new(Input::from_bytes(text.as_bytes().to_vec(), "x")));
        assert_eq!(lines("a\r\n\nb"), ["a", "", "b"]);
        assert_eq!(lines("a\n"), ["a"]);
        assert!(lines("").is_empty());
    }

    #[test]
    fn lines_across_blocks_and_beyond_the_limit() {
        let long = "x".repeat(BLOCK - 3);
        let text = format!("{long}\nbc\nd\n{}\ne\n{}", "y".repeat(2 * LINE_MAX), "z".repeat(2 * LINE_MAX));
        let found = all(Lines::new(Input::from_bytes(text.into_bytes(), "x")));
        assert_eq!(found, [long.as_str(), "bc", "d", "(too long)", "e", "(too long)"]);
    }

    #[test]
    fn json_strings_are_unescaped_even_across_blocks() {
        let pad = "p".repeat(BLOCK - 1);
        let text =
            format!(r#"{{"traceEvents":[],"systemTraceEvents" : "a\tb\n{pad}\n\u0041\"c\"\\n","x":"no"}}"#);
        let lines = Lines::in_json(Input::from_bytes(text.into_bytes(), "x")).unwrap().unwrap();
        assert_eq!(all(lines), ["a\tb", pad.as_str(), "A\"c\"\\n"]);
        let none = Lines::in_json(Input::from_bytes(b"{\"traceEvents\":[]}".to_vec(), "x")).unwrap();
        assert!(none.is_none());
    }
}
