//! Writes small trace.dat files for the tests: versions 6 and 7, both byte orders and word sizes, packed or not, with or
//! without an instance, so that machines whose recordings nobody keeps are covered.

use super::compress::Codec;
use super::options;
use crate::ring::PageLayout;
use crate::ring::testing::PageWriter;
use crate::tracepoint::Endian;
use std::io::Write;

/// What kind of file to write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    pub(super) version: u8,
    pub(super) layout: PageLayout,
    pub(super) codec: Codec,
    /// Put CPU 1's second page into an instance of its own?
    pub(super) instance: Option<&'static str>,
}

/// Every kind of machine and packing.
pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for layout in crate::ring::testing::layouts() {
        for (version, codec) in [(6, Codec::None), (7, Codec::None), (7, Codec::Zlib), (7, Codec::Zstd)] {
            for instance in [None, Some("extra")] {
                kinds.push(Kind { version, layout, codec, instance });
            }
        }
    }
    kinds
}

/// The bytes of one file and of the parts whose places must be filled in later.
pub(super) struct Writer {
    kind: Kind,
    bytes: Vec<u8>,
}

const SWITCH_64: &str = "name: sched_switch\nID: 300\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
    \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%s\", REC->prev_state & 255 ? __print_flags(REC->prev_state & 255, \"|\", { 1, \"S\" }, { 2, \"D\" }) \
    : \"R\", REC->prev_state & 256 ? \"+\" : \"\"\n";

const IPI: &str = "name: ipi_send_cpu\nID: 301\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned int cpu;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:void * callsite;\toffset:16;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"\"\n";

impl Kind {
    fn number16(&self, value: u16) -> [u8; 2] {
        if self.layout.order() == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    fn number32(&self, value: u32) -> [u8; 4] {
        if self.layout.order() == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    fn number64(&self, value: u64) -> [u8; 8] {
        if self.layout.order() == Endian::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    fn long(&self, value: u32) -> Vec<u8> {
        if self.layout.long_len() == 4 {
            self.number32(value).to_vec()
        } else {
            self.number64(u64::from(value)).to_vec()
        }
    }

    /// Formats by system, for this word size.
    fn formats(&self) -> [(&'static str, String); 2] {
        let mut switch = SWITCH_64.to_owned();
        let mut ipi = IPI.to_owned();
        if self.layout.long_len() == 4 {
            let moves = [
                ("offset:32;\tsize:8", "offset:32;\tsize:4"),
                ("offset:40", "offset:36"),
                ("offset:56", "offset:52"),
            ];
            for (from, to) in moves {
                switch = switch.replace(from, to);
            }
            switch = switch.replace("offset:60", "offset:56");
            ipi = ipi.replace("offset:16;\tsize:8", "offset:12;\tsize:4");
        }
        [("sched", switch), ("ipi", ipi)]
    }

    fn common(&self, id: u16, pid: u32) -> Vec<u8> {
        [&self.number16(id)[..], &[1, 0], &self.number32(pid)].concat()
    }

    /// A `sched_switch` record.
    pub(super) fn switch(&self, prev: u32, next: u32, state: u32) -> Vec<u8> {
        let name = |pid: u32| {
            let mut name = format!("t{pid}").into_bytes();
            name.resize(16, 0);
            name
        };
        [
            &self.common(300, prev)[..],
            &name(prev),
            &self.number32(prev),
            &self.number32(120),
            &self.long(state),
            &name(next),
            &self.number32(next),
            &self.number32(100),
        ]
        .concat()
    }

    /// An `ipi_send_cpu` record; the call site is 0x10 behind a symbol.
    pub(super) fn ipi(&self, pid: u32, target: u32) -> Vec<u8> {
        let mut record = [self.common(301, pid), self.number32(target).to_vec()].concat();
        if self.layout.long_len() == 8 {
            record.extend([0; 4]);
        }
        record.extend(self.long(0xc000_1010));
        record
    }

    /// The pages of both CPUs: CPU 0 has one, CPU 1 two, the second of which says that 3 events were lost.
    pub(super) fn pages(&self) -> [Vec<Vec<u8>>; 2] {
        let page = |time| PageWriter::new(self.layout, time);
        let zero = page(1000).short(0, &self.switch(5, 6, 1)).short(20, &self.ipi(6, 1)).finish();
        let one = page(1005).short(0, &self.switch(0, 7, 256)).finish();
        let two = page(1050).short(10, &self.switch(7, 8, 2)).lost(Some(3)).finish();
        [vec![zero], vec![one, two]]
    }
}

impl Writer {
    /// The whole file.
    pub(super) fn write(kind: Kind) -> Vec<u8> {
        let long = u8::try_from(kind.layout.long_len()).expect("4 or 8");
        let order = u8::from(kind.layout.order() == Endian::Big);
        let mut writer = Self { kind, bytes: super::MAGIC.to_vec() };
        writer.bytes.extend([b'0' + kind.version, 0, order, long]);
        writer.put32(4096);
        if kind.version == 6 {
            writer.version_6();
        } else {
            writer.version_7();
        }
        writer.bytes
    }

    fn put16(&mut self, value: u16) {
        self.bytes.extend(self.kind.number16(value));
    }

    fn put32(&mut self, value: u32) {
        self.bytes.extend(self.kind.number32(value));
    }

    fn put64(&mut self, value: u64) {
        self.bytes.extend(self.kind.number64(value));
    }

    fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn set64(&mut self, at: u64, value: u64) {
        let at = usize::try_from(at).expect("small");
        self.bytes[at..at + 8].copy_from_slice(&self.kind.number64(value));
    }

    /// What `write` appends, taken out again.
    fn aside(&mut self, write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let before = std::mem::take(&mut self.bytes);
        write(self);
        std::mem::replace(&mut self.bytes, before)
    }

    fn header_info(&mut self) {
        let (long, data) = (self.kind.layout.long_len(), self.kind.layout.data_at());
        let text = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
             \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
             \tfield: char data;\toffset:{data};\tsize:{};\tsigned:0;\n",
            4096 - data
        );
        self.bytes.extend(b"header_page\0");
        self.put64(text.len() as u64);
        self.bytes.extend(text.as_bytes());
        self.bytes.extend(b"header_event\0");
        self.put64(0);
    }

    fn event_formats(&mut self) {
        let formats = self.kind.formats();
        self.put32(2);
        for (system, text) in formats {
            self.bytes.extend(system.as_bytes());
            self.bytes.push(0);
            self.put32(1);
            self.put64(text.len() as u64);
            self.bytes.extend(text.as_bytes());
        }
    }

    fn kallsyms(&mut self) {
        let text = "c0001000 T wakeup_preempt\nc00010a0 T next\n";
        self.put32(u32::try_from(text.len()).expect("short"));
        self.bytes.extend(text.as_bytes());
    }

    fn cmdlines(&mut self) {
        let text = "5 five by name\n99 never seen\n";
        self.put64(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn option(&mut self, id: u16, data: &[u8]) {
        self.put16(id);
        self.put32(u32::try_from(data.len()).expect("short"));
        self.bytes.extend(data);
    }

    fn facts(&mut self) {
        self.option(5, b"Linux box 6.12.0 x86_64\0");
        self.option(4, b"[local] mono\n\0");
        self.option(7, b"100\0");
        self.option(2, b"CPU: 1\noverrun: 4\ncommit overrun: 0\ndropped events: 0\n\0");
    }

    /// The pages of the top buffer and those of the instance, by CPU.
    fn split(&self) -> ([Vec<u8>; 2], Option<[Vec<u8>; 2]>) {
        let [zero, mut one] = self.kind.pages();
        match self.kind.instance {
            None => ([zero.concat(), one.concat()], None),
            Some(_) => {
                let last = one.pop().expect("two pages");
                ([zero.concat(), one.concat()], Some([Vec::new(), last]))
            }
        }
    }

    fn version_6(&mut self) {
        self.header_info();
        self.put32(0);
        self.event_formats();
        self.kallsyms();
        self.put32(0);
        self.cmdlines();
        self.put32(2);
        self.bytes.extend(b"options  \0");
        self.facts();
        let mut place = None;
        if let Some(name) = self.kind.instance {
            let data = [&[0; 8], name.as_bytes(), &[0]].concat();
            self.option(options::BUFFER, &data);
            place = Some(self.at() - data.len() as u64);
        }
        self.put16(options::DONE);
        let (top, instance) = self.split();
        self.flyrecord(&top);
        if let (Some(place), Some(pages)) = (place, instance) {
            self.set64(place, self.at());
            self.flyrecord(&pages);
        }
    }

    /// The table of places, then the pages, page-aligned.
    fn flyrecord(&mut self, pages: &[Vec<u8>; 2]) {
        self.bytes.extend(b"flyrecord\0");
        let table = self.at();
        for pages in pages {
            self.put64(0);
            self.put64(pages.len() as u64);
        }
        for (index, pages) in (0..).zip(pages) {
            self.bytes.resize(self.bytes.len().next_multiple_of(4096), 0);
            self.set64(table + 16 * index, self.at());
            self.bytes.extend(pages);
        }
    }

    fn pack(&self, plain: &[u8]) -> Vec<u8> {
        match self.kind.codec {
            Codec::None => plain.to_vec(),
            Codec::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(plain).expect("in memory");
                encoder.finish().expect("in memory")
            }
            Codec::Zstd => {
                ruzstd::encoding::compress_to_vec(plain, ruzstd::encoding::CompressionLevel::Fastest)
            }
        }
    }

    /// A section; its offset.
    fn section(&mut self, id: u16, write: impl FnOnce(&mut Self)) -> u64 {
        let plain = self.aside(write);
        let packed = self.kind.codec != Codec::None;
        let at = self.at();
        self.put16(id);
        self.put16(u16::from(packed));
        self.put32(0);
        let data = self.pack(&plain);
        self.put64(data.len() as u64 + if packed { 8 } else { 0 });
        if packed {
            self.put32(u32::try_from(data.len()).expect("small"));
            self.put32(u32::try_from(plain.len()).expect("small"));
        }
        self.bytes.extend(data);
        at
    }

    /// A buffer's section; the data of the option that points to it.
    fn buffer(&mut self, name: &str, pages: &[Vec<u8>; 2]) -> Vec<u8> {
        let packed = self.kind.codec != Codec::None;
        let at = self.at();
        self.put16(options::BUFFER);
        self.put16(u16::from(packed));
        self.put32(0);
        self.put64(0);
        let mut places = Vec::new();
        for pages in pages {
            self.bytes.resize(self.bytes.len().next_multiple_of(4096), 0);
            let start = self.at();
            if packed && !pages.is_empty() {
                self.put32(u32::try_from(pages.len() / 4096).expect("small"));
                for page in pages.chunks(4096) {
                    let data = self.pack(page);
                    self.put32(u32::try_from(data.len()).expect("small"));
                    self.put32(4096);
                    self.bytes.extend(data);
                }
                places.push((start, self.at() - start - 4));
            } else {
                self.bytes.extend(pages);
                places.push((start, self.at() - start));
            }
        }
        self.aside(|writer| {
            writer.put64(at);
            writer.bytes.extend([name.as_bytes(), b"\0local\0"].concat());
            writer.put32(4096);
            writer.put32(2);
            for (cpu, (start, size)) in (0..).zip(places) {
                writer.put32(cpu);
                writer.put64(start);
                writer.put64(size);
            }
        })
    }

    fn version_7(&mut self) {
        self.bytes.extend(match self.kind.codec {
            Codec::None => &b"none\0\0"[..],
            Codec::Zlib => b"zlib\x001.3\0",
            Codec::Zstd => b"zstd\x001.5\0",
        });
        let first = self.at();
        self.put64(0);
        let sections = [
            (options::HEADER_INFO, self.section(options::HEADER_INFO, Self::header_info)),
            (options::FTRACE_EVENTS, self.section(options::FTRACE_EVENTS, |writer| writer.put32(0))),
            (options::EVENT_FORMATS, self.section(options::EVENT_FORMATS, Self::event_formats)),
            (options::KALLSYMS, self.section(options::KALLSYMS, Self::kallsyms)),
            (options::CMDLINES, self.section(options::CMDLINES, Self::cmdlines)),
        ];
        let (top, instance) = self.split();
        let mut buffers = vec![self.buffer("", &top)];
        if let (Some(name), Some(pages)) = (self.kind.instance, instance) {
            buffers.push(self.buffer(name, &pages));
        }
        // Two lists, as trace-cmd writes them: the buffers come in the second, which lies before the first here.
        let second = self.section(options::DONE, |writer| {
            for buffer in &buffers {
                writer.option(options::BUFFER, buffer);
            }
            writer.option(options::DONE, &[0; 8]);
        });
        let list = self.section(options::DONE, |writer| {
            for (id, at) in sections {
                let at = writer.kind.number64(at);
                writer.option(id, &at);
            }
            writer.facts();
            let second = writer.kind.number64(second);
            writer.option(options::DONE, &second);
        });
        self.set64(first, list);
    }
}
