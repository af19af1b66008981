//! One CPU's pages as a stream of records in time order.
//!
//! The stream keeps at least one page ahead of the one being walked: a page whose stamp is damaged reaches beyond the next
//! page's start, and only looking ahead tells it from a clock that really jumped. Times that contradict their neighbours
//! are moved to the nearest time that does not, and said as clock steps; nothing is dropped for its time.

use super::PageLayout;
use super::page::{Entry, Lost, PageCursor, PageHead, Step};
use crate::{Input, ReadError};
use std::sync::Arc;
use ttwu_model::{ClockStep, CpuId, Duration, Time, TraceHealth};

/// What [`PageSource::fill`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Appended something.
    More,
    /// Something is unreadable here (said in the health); call again for what follows.
    Gap,
    /// There is no more.
    End,
}

/// Where the bytes of one CPU's pages come from.
pub(crate) trait PageSource: Send {
    /// Appends about `want` further bytes to `buffer`.
    ///
    /// # Errors
    /// Only the operating system's. Damage is a [`Fill::Gap`].
    fn fill(
        &mut self,
        buffer: &mut Vec<u8>,
        want: usize,
        health: &mut TraceHealth,
    ) -> Result<Fill, ReadError>;
}

/// Pages that lie one after the other in an input.
#[derive(Debug)]
pub(crate) struct PlainPages {
    input: Arc<Input>,
    at: u64,
    end: u64,
}

impl PlainPages {
    /// The bytes from `at` to `end`, or to the input's end if that comes first.
    pub(crate) fn new(input: Arc<Input>, at: u64, end: u64) -> Self {
        let end = end.min(input.len());
        Self { input, at, end }
    }
}

impl PageSource for PlainPages {
    fn fill(&mut self, buffer: &mut Vec<u8>, want: usize, _: &mut TraceHealth) -> Result<Fill, ReadError> {
        let want = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(want);
        let start = buffer.len();
        buffer.resize(start + want, 0);
        let read = self.input.read_at(self.at, &mut buffer[start..])?;
        buffer.truncate(start + read);
        self.at += read as u64;
        Ok(if read == 0 { Fill::End } else { Fill::More })
    }
}

/// From a recording's raw time stamps to nanoseconds of the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockMap {
    /// Raw stamps are multiplied by this and shifted right by `shift`.
    pub(crate) mult: u32,
    pub(crate) shift: u32,
    /// Nanoseconds added afterwards.
    pub(crate) offset: i64,
}

impl ClockMap {
    /// Raw stamps are nanoseconds already.
    pub(crate) const IDENTITY: Self = Self { mult: 1, shift: 0, offset: 0 };

    #[inline]
    pub(crate) fn map(self, raw: u64) -> u64 {
        if self == Self::IDENTITY {
            return raw;
        }
        let scaled = (u128::from(raw) * u128::from(self.mult)) >> self.shift.min(127);
        u64::try_from(scaled).unwrap_or(u64::MAX).saturating_add_signed(self.offset)
    }
}

/// What a stream stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// A record's payload, at these offsets of the stream's buffer.
    Record { start: usize, end: usize },
    /// Events are missing just before the next record.
    Lost(Option<u64>),
    /// The end.
    End,
}

/// One CPU's records.
pub(crate) struct CpuStream {
    cpu: CpuId,
    layout: PageLayout,
    clock: ClockMap,
    source: Box<dyn PageSource>,
    want: usize,
    drained: bool,
    /// Whole pages, the one being walked at `page`.
    buffer: Vec<u8>,
    page: usize,
    page_len: usize,
    /// Bytes of the stream before `buffer`.
    passed: u64,
    /// Where in the buffer something unreadable was, between what the source gave.
    gap: Option<usize>,
    cursor: Option<PageCursor>,
    lost: Lost,
    /// The record behind a [`Head::Lost`].
    behind: Option<Entry>,
    head: Head,
    time: u64,
    /// No record of this page may be later.
    limit: u64,
    step_said: bool,
}

impl CpuStream {
    /// Before the first record; `want` is how much to read ahead.
    pub(crate) fn new(
        cpu: CpuId,
        layout: PageLayout,
        clock: ClockMap,
        source: Box<dyn PageSource>,
        want: usize,
    ) -> Self {
        Self {
            cpu,
            layout,
            clock,
            source,
            want: want.max(2 * layout.size()),
            drained: false,
            buffer: Vec::new(),
            page: 0,
            page_len: 0,
            passed: 0,
            gap: None,
            cursor: None,
            lost: Lost::None,
            behind: None,
            head: Head::End,
            time: 0,
            limit: u64::MAX,
            step_said: false,
        }
    }

    pub(crate) fn cpu(&self) -> CpuId {
        self.cpu
    }

    #[inline]
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// The head's time.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    #[inline]
    pub(crate) fn bytes(&self, start: usize, end: usize) -> &[u8] {
        &self.buffer[start..end]
    }

    /// Goes on to the next record.
    ///
    /// # Errors
    /// Only the operating system's.
    #[inline]
    pub(crate) fn advance(&mut self, health: &mut TraceHealth) -> Result<(), ReadError> {
        if let Some(cursor) = &mut self.cursor
            && self.behind.is_none()
            && self.lost == Lost::None
        {
            let page = &self.buffer[self.page..self.page + self.page_len];
            match cursor.next(page) {
                Step::Entry(entry) => {
                    self.time = self.settle(entry.time, health);
                    self.head = Head::Record { start: self.page + entry.start, end: self.page + entry.end };
                    return Ok(());
                }
                Step::End => {}
                Step::Damaged { at } => self.note_damage(at, health),
            }
        }
        self.advance_slowly(health)
    }

    /// Everything but one record after another of one page.
    #[cold]
    fn advance_slowly(&mut self, health: &mut TraceHealth) -> Result<(), ReadError> {
        if let Some(entry) = self.behind.take() {
            self.head = Head::Record { start: self.page + entry.start, end: self.page + entry.end };
            return Ok(());
        }
        loop {
            if let Some(entry) = self.walk(health) {
                self.time = self.settle(entry.time, health);
                match std::mem::replace(&mut self.lost, Lost::None) {
                    Lost::None => {
                        let (start, end) = (self.page + entry.start, self.page + entry.end);
                        self.head = Head::Record { start, end };
                    }
                    lost => {
                        self.head = Head::Lost(lost.count());
                        self.behind = Some(entry);
                    }
                }
                return Ok(());
            }
            if !self.next_page(health)? {
                // A loss with nothing behind it is still a loss.
                self.head = match std::mem::replace(&mut self.lost, Lost::None) {
                    Lost::None => Head::End,
                    lost => Head::Lost(lost.count()),
                };
                return Ok(());
            }
        }
    }

    /// The next entry of this page, if there is one.
    fn walk(&mut self, health: &mut TraceHealth) -> Option<Entry> {
        let cursor = self.cursor.as_mut()?;
        match cursor.next(&self.buffer[self.page..self.page + self.page_len]) {
            Step::Entry(entry) => return Some(entry),
            Step::End => {}
            Step::Damaged { at } => self.note_damage(at, health),
        }
        self.cursor = None;
        None
    }

    #[cold]
    fn note_damage(&mut self, at: usize, health: &mut TraceHealth) {
        let place = self.passed + (self.page + at) as u64;
        health.add_repair(format!(
            "cpu {}: the ring-buffer entry at {place:#x} of its pages reaches beyond its page; the page's rest is skipped",
            self.cpu
        ));
        self.lost = self.lost.and(Lost::Uncounted);
    }

    /// Moves a time that contradicts its neighbours.
    #[inline]
    fn settle(&mut self, raw: u64, health: &mut TraceHealth) -> u64 {
        let time = self.clock.map(raw);
        if time >= self.time && time <= self.limit { time } else { self.mend(time, health) }
    }

    #[cold]
    fn mend(&mut self, time: u64, health: &mut TraceHealth) -> u64 {
        let (at, to) = if time > self.limit { (time, self.limit) } else { (self.time, time) };
        // One damaged stamp shifts all of its page: that is one step, not hundreds.
        if !self.step_said {
            self.step_said = true;
            let back = Duration::from_ns(at - to);
            health.add_clock_step(ClockStep { cpu: self.cpu, at: Time::from_ns(at), back });
        }
        time.clamp(self.time, self.limit)
    }

    /// Goes on to the next usable page; is there one?
    fn next_page(&mut self, health: &mut TraceHealth) -> Result<bool, ReadError> {
        loop {
            self.cursor = None;
            self.page += self.page_len;
            self.page_len = 0;
            self.read_ahead(health)?;
            if self.gap.is_some_and(|gap| gap <= self.page) {
                self.gap = None;
                self.lost = self.lost.and(Lost::Uncounted);
            }
            self.page_len = self.layout.size().min(self.buffer.len() - self.page);
            if self.page_len == 0 {
                return Ok(false);
            }
            let page = &self.buffer[self.page..self.page + self.page_len];
            match PageHead::parse(page, &self.layout) {
                Ok(head) => {
                    self.lost = self.lost.and(head.lost);
                    self.cursor = Some(PageCursor::new(&head, &self.layout));
                    self.step_said = false;
                    self.limit = self.next_start().filter(|&next| next >= self.time).unwrap_or(u64::MAX);
                    return Ok(true);
                }
                Err(len) => {
                    let place = self.passed + self.page as u64;
                    let why = if self.page_len < self.layout.size() {
                        format!("the last page has only {} bytes", self.page_len)
                    } else {
                        format!("the page at {place:#x} of its pages claims {len} bytes of entries")
                    };
                    health.add_repair(format!("cpu {}: {why}; it is skipped", self.cpu));
                    self.lost = self.lost.and(Lost::Uncounted);
                }
            }
        }
    }

    /// The start of the page after this one, if it is in the buffer, sound and not empty (unused pages have no time).
    fn next_start(&self) -> Option<u64> {
        let next = self.buffer.get(self.page + self.page_len..)?;
        let next = &next[..next.len().min(self.layout.size())];
        let head = PageHead::parse(next, &self.layout).ok()?;
        (head.end > self.layout.data_at()).then(|| self.clock.map(head.time))
    }

    /// Reads until there is a whole page behind this one, as far as there is one.
    fn read_ahead(&mut self, health: &mut TraceHealth) -> Result<(), ReadError> {
        if self.drained || self.buffer.len() - self.page >= 2 * self.layout.size() {
            return Ok(());
        }
        self.buffer.drain(..self.page);
        self.passed += self.page as u64;
        self.gap = self.gap.map(|gap| gap.saturating_sub(self.page));
        self.page = 0;
        while self.buffer.len() < 2 * self.layout.size() {
            match self.source.fill(&mut self.buffer, self.want, health)? {
                Fill::More => {}
                Fill::Gap => {
                    self.gap.get_or_insert(self.buffer.len());
                }
                Fill::End => {
                    self.drained = true;
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Lost {
    fn count(self) -> Option<u64> {
        match self {
            Self::None | Self::Uncounted => None,
            Self::Counted(count) => Some(count),
        }
    }

    /// Both losses with nothing between them.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, lost) | (lost, Self::None) => lost,
            (Self::Counted(a), Self::Counted(b)) => Self::Counted(a.saturating_add(b)),
            (Self::Uncounted, _) | (_, Self::Uncounted) => Self::Uncounted,
        }
    }
}
