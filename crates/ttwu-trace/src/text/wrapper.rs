//! The trace's lines out of what stands around them: systrace's HTML, and the JavaScript string of old ones.
//!
//! Current systrace files hold the text in `<script class="trace-data">` elements, one for ftrace and further ones for JSON
//! or compressed data, which are skipped and said. Until 2015 it was a string, `var linuxPerfData = "\`, each line of
//! which ends with an escaped line end.

use memchr::memmem::find;
use std::borrow::Cow;

/// Where in the file the present line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The whole file is text.
    Plain,
    /// In the viewer's HTML.
    Outside,
    /// In a script element, before its first line that is not blank.
    Opening,
    /// In a script element with trace text.
    Inside,
    /// In a script element with something else.
    Skipping,
    /// In a JavaScript string; `true` if the file is nothing else.
    Script(bool),
}

/// Takes the wrapping off, line by line.
#[derive(Debug)]
pub(super) struct Wrapper {
    state: State,
    /// Elements with JSON or compressed data.
    pub(super) skipped: u64,
    /// Elements with trace text, or strings.
    pub(super) found: u64,
}

impl Wrapper {
    /// For a file that begins with `head`.
    pub(super) fn new(head: &[u8]) -> Self {
        let state = if is_html(head) {
            State::Outside
        } else if first_line(head).ends_with(b"\\n\\") {
            State::Script(true)
        } else {
            State::Plain
        };
        Self { state, skipped: 0, found: 0 }
    }

    pub(super) fn is_html(&self) -> bool {
        !matches!(self.state, State::Plain | State::Script(true))
    }

    /// The trace's part of `line`, if it has one.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match self.state {
            State::Plain => Some(Cow::Borrowed(line)),
            State::Outside => self.outside(line),
            State::Opening | State::Inside | State::Skipping => self.inside(line).map(Cow::Borrowed),
            State::Script(whole_file) => self.script(line, whole_file),
        }
    }

    fn outside<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        // At the beginning of a line: the viewer's own code has both texts in the middle of lines.
        let start = line.trim_ascii_start();
        if start.starts_with(b"<script")
            && let Some(len) = start.iter().position(|&byte| byte == b'>')
            && find(&start[..len], b"trace-data").is_some()
        {
            self.state = State::Opening;
            return self.inside(&start[len + 1..]).map(Cow::Borrowed);
        }
        if start.starts_with(b"var linuxPerfData")
            && let Some(quote) = start.iter().position(|&byte| byte == b'"')
        {
            self.state = State::Script(false);
            self.found += 1;
            return self.script(&start[quote + 1..], false);
        }
        None
    }

    fn inside<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let (text, ends) = match find(line, b"</script>") {
            Some(at) => (&line[..at], true),
            None => (line, false),
        };
        let blank = text.trim_ascii().is_empty();
        if self.state == State::Opening && !blank {
            // JSON, or base64 of gzip's magic number.
            let other = matches!(text.trim_ascii_start(), [b'{' | b'[', ..] | [b'H', b'4', b's', b'I', ..]);
            self.state = if other { State::Skipping } else { State::Inside };
            *(if other { &mut self.skipped } else { &mut self.found }) += 1;
        }
        let is_trace = self.state == State::Inside && !(ends && blank);
        if ends {
            self.state = State::Outside;
        }
        is_trace.then_some(text)
    }

    fn script<'a>(&mut self, line: &'a [u8], whole_file: bool) -> Option<Cow<'a, [u8]>> {
        let text = if let Some(text) = line.strip_suffix(b"\\n\\") {
            text
        } else if let Some(text) = line.strip_suffix(b"\";") {
            self.end(whole_file);
            text.strip_suffix(b"\\n").unwrap_or(text)
        } else if find(line, b"</script>").is_some() {
            self.end(whole_file);
            return None;
        } else {
            // Some tools have put raw line ends into the string, or end a line by the continuation alone.
            line.strip_suffix(b"\\").unwrap_or(line)
        };
        let blank = text.trim_ascii().is_empty();
        (!blank).then(|| unescape(text))
    }

    fn end(&mut self, whole_file: bool) {
        if !whole_file {
            self.state = State::Outside;
        }
    }
}

/// Does a file begin as HTML does?
pub(super) fn is_html(head: &[u8]) -> bool {
    let head = head.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|start| head.len() >= start.len() && head[..start.len()].eq_ignore_ascii_case(start))
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).find(|line| !line.is_empty()).unwrap_or(b"")
}

/// A JavaScript string's `\"`, `\\` and `\'`.
fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => plain.extend(bytes.next()),
            byte => plain.push(byte),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let mut wrapper = Wrapper::new(text.as_bytes());
        let found: Vec<_> = text
            .lines()
            .filter_map(|line| Some(String::from_utf8_lossy(&wrapper.line(line.as_bytes())?).into_owned()))
            .collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn plain_text_passes() {
        check("# tracer: nop\n\nx", &["# tracer: nop", "", "x"]);
    }

    #[test]
    fn script_elements_with_text_pass_and_others_do_not() {
        check(
            "<!DOCTYPE html>\n<script>\nfind(/^  <script class=\"trace-data\">/);\n</script>\n<script class=\"trace-data\" type=\"x\">\n# a\nb\n\
             </script>\n<script class=\"trace-data\">\n{\"traceEvents\": []}\n</script>\n<script class=\"trace-data\">c</script>",
            &["# a", "b", "c"],
        );
    }

    #[test]
    fn javascript_strings() {
        check(
            "<html>\n<script>\n  var linuxPerfData = \"\\\n# a\\n\\\nb \\\"c\\\"\\n\\\n\\n\";\nd\n</script>",
            &["# a", "b \"c\""],
        );
        check("<html>\n  var linuxPerfData = \"\\\n# a\nb\n  </script>\nc", &["# a", "b"]);
        check("# tracer: nop\\n\\\nx\\n\\\n", &["# tracer: nop", "x"]);
    }
}
