//! Kernel addresses to names: `/proc/kallsyms` and `printk_formats` as recordings carry them.

use std::collections::BTreeMap;

/// An address this far behind the last symbol is not in it.
const LAST_SYMBOL_BYTES_MAX: u64 = 1 << 20;

/// The kernel symbols and constant strings of the machine that made a recording.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Sorted by address; of equal addresses the file's first, which is the one that the kernel prints.
    symbols: Vec<(u64, Box<str>)>,
    strings: BTreeMap<u64, Box<str>>,
}

impl Symbols {
    /// No symbols: addresses stay numbers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the lines of a `kallsyms` text (`ffffffff81000000 T name [module]`). Lines of another form, and the zero
    /// addresses that an unprivileged reader is shown, are passed over.
    pub fn add_kallsyms(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            let mut words = line.split_ascii_whitespace();
            let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
            let (Some(address @ 1..), Some(_), Some(name)) = (address, words.next(), words.next()) else {
                continue;
            };
            self.symbols.push((
                address,
                match words.next() {
                    Some(module) => format!("{name} {module}").into(),
                    None => name.into(),
                },
            ));
        }
        self.symbols.sort_by_key(|&(address, _)| address);
    }

    /// Adds the lines of a `printk_formats` text (`0xffffffff82000000 : "text"`).
    pub fn add_printk_formats(&mut self, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            let Some((address, string)) = line.split_once(':') else { continue };
            let address = address.trim().trim_start_matches("0x");
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            let string = string.trim();
            let string = string.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(string);
            self.strings.insert(address, string.replace("\\n", "\n").trim_end().into());
        }
    }

    /// `function+0xoffset/0xsize`, as the kernel prints a call site, or the number itself.
    #[must_use]
    pub fn call_site(&self, address: u64) -> String {
        match self.find(address) {
            Some((name, offset, size)) => {
                let (name, module) = match name.split_once(' ') {
                    Some((name, module)) => (name, format!(" {module}")),
                    None => (name, String::new()),
                };
                let size = size.map_or_else(String::new, |size| format!("/{size:#x}"));
                format!("{name}+{offset:#x}{size}{module}")
            }
            None => format!("{address:#x}"),
        }
    }

    /// The function at an address, or the number itself.
    #[must_use]
    pub fn function(&self, address: u64) -> String {
        self.find(address).map_or_else(|| format!("{address:#x}"), |(name, ..)| name.to_owned())
    }

    /// The constant string at an address, or the number itself.
    #[must_use]
    pub fn string(&self, address: u64) -> String {
        self.strings.get(&address).map_or_else(|| format!("{address:#x}"), ToString::to_string)
    }

    /// Name, offset in it, and its size as the distance to the next one.
    fn find(&self, address: u64) -> Option<(&str, u64, Option<u64>)> {
        let after = self.symbols.partition_point(|&(start, _)| start <= address);
        let start = self.symbols[..after].last()?.0;
        let first = self.symbols[..after].partition_point(|&(other, _)| other < start);
        let offset = address - start;
        let size = self.symbols.get(after).map(|&(next, _)| next - start);
        if size.is_none() && offset > LAST_SYMBOL_BYTES_MAX {
            return None;
        }
        Some((&self.symbols[first].1, offset, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_as_the_kernel_does() {
        let mut symbols = Symbols::new();
        symbols.add_kallsyms(
            b"0 A hidden\nffff1000 T wakeup_preempt\nffff1000 t alias\nffff10a0 t next\t[mod]\nbad\n",
        );
        assert_eq!(symbols.call_site(0xffff_1092), "wakeup_preempt+0x92/0xa0");
        assert_eq!(symbols.function(0xffff_1000), "wakeup_preempt");
        assert_eq!(symbols.call_site(0xfff), "0xfff");
        assert_eq!(symbols.call_site(0xffff_10a4), "next+0x4 [mod]");
        assert_eq!(symbols.call_site(0xffff_ffff_ffff_ffff), "0xffffffffffffffff");
        symbols.add_printk_formats(b"0xff20 : \"Rescheduling interrupts\"\n");
        assert_eq!(symbols.string(0xff20), "Rescheduling interrupts");
        assert_eq!(symbols.string(0xff21), "0xff21");
    }
}
