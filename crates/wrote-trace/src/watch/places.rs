//! Finds the places in a program's source at which it made its calls.
//!
//! The stack is taken at a call only where some file of the program has line numbers: interpreters
//! and programs without symbols cost nothing.

use super::memory;
use super::ptrace::{self, Entry};
use crate::call::PlaceId;
use addr2line::Loader;
#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Walker,
};
#[cfg(not(target_arch = "aarch64"))]
use framehop::x86_64::{
    CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Walker,
};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use libc::pid_t;
use object::elf::PT_LOAD;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most frames of a stack that are examined.
const FRAMES_MAX: usize = 64;
/// The words of a stack that a repeated call is recognised by: its innermost frames.
const WORDS_MAX: usize = 8;
/// The most stacks that are remembered to recognise repeated calls.
const KNOWN_MAX: usize = 1 << 12;
/// The most places. Calls from others have none.
const PLACES_MAX: usize = 1 << 13;
/// Sources of languages' own libraries, and of packages: the program's line is further out.
const FOREIGN: [&str; 7] = [
    "/rustc/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/go/",
    "/.cargo/registry/",
    "/go/pkg/mod/",
    "/rustlib/src/",
];

/// The beginnings of the names of interpreters, whose lines are not the program's.
const INTERPRETERS: [&str; 8] =
    ["libnode", "libpython", "libruby", "node", "perl", "php", "python", "ruby"];

type Bytes = Arc<[u8]>;

/// The stacks at the calls of all processes.
#[derive(Default)]
pub struct Places {
    /// Executable files by path; `None` for one that can't be read.
    images: HashMap<PathBuf, Option<Arc<Image>>>,
    processes: HashMap<pid_t, Process>,
    /// Counts programs, since a process may execute another.
    programs: u64,
    known: HashMap<(u64, u64, u64), Known>,
    /// The frames of each place, innermost first.
    places: Vec<Vec<Frame>>,
    ids: HashMap<Vec<Frame>, PlaceId>,
    loaders: HashMap<PathBuf, Option<Loader>>,
}

/// The addresses and values of words of a stack.
type Words = Vec<(u64, u64)>;

/// A call made before.
struct Known {
    words: Words,
    place: PlaceId,
}

/// An instruction: its file, and its address there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    path: Arc<Path>,
    address: u64,
}

/// The memory of a process.
struct Process {
    program: u64,
    /// `None` where no file has line numbers.
    stacks: Option<Stacks>,
}

struct Stacks {
    unwinder: Walker<Bytes>,
    cache: Cache,
    /// Each executable mapping: its addresses, its file, and the offset between the two.
    mapped: Vec<(std::ops::Range<u64>, Arc<Path>, u64)>,
}

/// The parts of an executable file that lead from a frame to its caller.
struct Image {
    has_lines: bool,
    /// The file offset and the address of each loaded segment.
    segments: Vec<(u64, u64)>,
    sections: HashMap<&'static str, (std::ops::Range<u64>, Bytes)>,
}

impl std::fmt::Debug for Places {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.debug_struct("Places").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Places {
    /// Forgets the memory of a process that has executed another program or ended.
    pub fn forget(&mut self, process: pid_t) {
        self.processes.remove(&process);
    }

    /// Returns the place of the call at whose start a task is; `None` if it can't be found.
    pub fn at(&mut self, process: pid_t, task: pid_t, entry: &Entry) -> Option<PlaceId> {
        if !self.processes.contains_key(&process) {
            self.programs += 1;
            let stacks = self.stacks(process);
            self.processes.insert(process, Process { program: self.programs, stacks });
        }
        let Process { program, stacks } = self.processes.get_mut(&process)?;
        let stacks = stacks.as_mut()?;
        let key = (*program, entry.instruction, entry.stack);
        if let Some(known) = self.known.get(&key)
            && memory::words(task, known.words.iter().map(|(address, _)| *address))
                .is_some_and(|words| words.iter().eq(known.words.iter().map(|(_, word)| word)))
        {
            return Some(known.place);
        }
        let (frames, words) = stacks.unwind(task, entry)?;
        let next = self.places.len() as PlaceId;
        if self.places.len() == PLACES_MAX && !self.ids.contains_key(&frames) {
            return None;
        }
        let place = *self.ids.entry(frames).or_insert_with_key(|frames| {
            self.places.push(frames.clone());
            next
        });
        if self.known.len() == KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, Known { words, place });
        Some(place)
    }

    /// Reads the mappings of a process.
    fn stacks(&mut self, process: pid_t) -> Option<Stacks> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let mut has_lines = false;
        let mut stacks = Stacks { unwinder: Walker::new(), cache: Cache::new(), mapped: vec![] };
        for line in maps.lines() {
            let Some((addresses, file_offset, path)) = executable(line) else { continue };
            let image = self.images.entry(path.into()).or_insert_with(|| Image::read(path));
            let Some(image) = image.clone() else { continue };
            let Some(bias) = image.bias(addresses.start, file_offset) else { continue };
            has_lines |= image.has_lines;
            let name = path.to_string_lossy().into_owned();
            let module = Module::new(name, addresses.clone(), bias, image.unwinding());
            stacks.unwinder.add_module(module);
            stacks.mapped.push((addresses, path.into(), bias));
        }
        has_lines.then_some(stacks)
    }

    /// Returns the file and line of a place, relative to `folder`: of the innermost frame that is
    /// the program's own. `None` where a script's interpreter is nearer.
    pub fn shown(&mut self, place: PlaceId, folder: &Path) -> Option<String> {
        let frames = self.places.get(place as usize)?.iter();
        for Frame { path, address } in frames.take_while(|frame| !is_interpreter(&frame.path)) {
            let loader = self.loaders.entry(path.to_path_buf());
            let loader = loader.or_insert_with(|| Loader::new(path).ok());
            let Some(loader) = loader else { continue };
            let Ok(mut frames) = loader.find_frames(*address) else { continue };
            while let Ok(Some(frame)) = frames.next() {
                let location = frame.location.and_then(|of| Some((of.file?, of.line?)));
                let Some((file, line)) = location.filter(|(_, line)| *line > 0) else { continue };
                if !FOREIGN.iter().any(|part| file.contains(part)) {
                    let below = Path::new(file).strip_prefix(folder).unwrap_or(Path::new(file));
                    return Some(format!("{}:{line}", below.display()));
                }
            }
        }
        None
    }
}

impl Stacks {
    /// Returns the frames, innermost first, and the first words of the stack that lead to them.
    fn unwind(&mut self, task: pid_t, entry: &Entry) -> Option<(Vec<Frame>, Words)> {
        let registers = registers(task, entry)?;
        let mut words = Words::new();
        let mut read = |address: u64| {
            let word = memory::number(task, address).ok_or(())?;
            if words.len() < WORDS_MAX {
                words.push((address, word));
            }
            Ok(word)
        };
        let mut frames = Vec::new();
        let Stacks { unwinder, cache, mapped } = self;
        let mut walk = unwinder.iter_frames(entry.instruction, registers, cache, &mut read);
        while let (Ok(Some(frame)), true) = (walk.next(), frames.len() < FRAMES_MAX) {
            let address = frame.address_for_lookup();
            let of = mapped.iter().find(|(addresses, ..)| addresses.contains(&address));
            let Some((_, path, bias)) = of else { continue };
            frames.push(Frame { path: path.clone(), address: address.wrapping_sub(*bias) });
        }
        (!frames.is_empty()).then_some((frames, words))
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(task: pid_t, entry: &Entry) -> Option<Registers> {
    let all = ptrace::registers(task).ok()?;
    Some(Registers::new(entry.instruction, entry.stack, all.rbp))
}

#[cfg(target_arch = "aarch64")]
fn registers(task: pid_t, entry: &Entry) -> Option<Registers> {
    let [frame_pointer, link] = ptrace::registers(task).ok()?.regs[29..] else { return None };
    Some(Registers::new(link, entry.stack, frame_pointer))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn registers(_: pid_t, _: &Entry) -> Option<Registers> {
    None
}

fn is_interpreter(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    INTERPRETERS.iter().any(|of| name.starts_with(of))
}

/// Parses a line of `/proc/PID/maps` (`proc(5)`) about executable code of a file: its addresses,
/// the offset in the file, and the path.
fn executable(line: &str) -> Option<(std::ops::Range<u64>, u64, &Path)> {
    let path = &line[line.find('/')?..];
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if !fields.next()?.contains('x') {
        return None;
    }
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((number(start)?..number(end)?, number(fields.next()?)?, Path::new(path)))
}

impl Image {
    /// Reads an ELF file of 64 bits.
    fn read(path: &Path) -> Option<Arc<Image>> {
        const SECTIONS: [&str; 4] = [".eh_frame", ".eh_frame_hdr", ".debug_frame", ".text"];
        let from = object::ReadCache::new(File::open(path).ok()?);
        let header = object::elf::FileHeader64::<object::Endianness>::parse(&from).ok()?;
        let endian = header.endian().ok()?;
        let loaded = header.program_headers(endian, &from).ok()?.iter();
        let loaded = loaded.filter(|segment| segment.p_type(endian) == PT_LOAD);
        let segments =
            loaded.map(|segment| (segment.p_offset(endian), segment.p_vaddr(endian))).collect();
        let file = object::File::parse(&from).ok()?;
        let has_lines = file.section_by_name(".debug_line").is_some() && !is_interpreter(path);
        let mut sections = HashMap::new();
        for name in SECTIONS {
            let Some(section) = file.section_by_name(name) else { continue };
            let addresses = section.address()..section.address() + section.size();
            let data = match name {
                ".text" => Bytes::default(),
                _ => Bytes::from(section.uncompressed_data().ok()?.as_ref()),
            };
            sections.insert(name, (addresses, data));
        }
        Some(Arc::new(Image { has_lines, segments, sections }))
    }

    /// Returns the offset between addresses in memory and in the file, given a mapping's.
    fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        let before = self.segments.iter().filter(|(offset, _)| *offset < file_offset + PAGE_BYTES);
        let (offset, address) = before.max_by_key(|(offset, _)| *offset)?;
        Some(start.wrapping_sub(file_offset).wrapping_sub(address.wrapping_sub(*offset)))
    }

    fn unwinding(&self) -> ExplicitModuleSectionInfo<Bytes> {
        let addresses = |name| self.sections.get(name).map(|(addresses, _)| addresses.clone());
        let data = |name| self.sections.get(name).map(|(_, data)| data.clone());
        ExplicitModuleSectionInfo {
            text_svma: addresses(".text"),
            eh_frame_svma: addresses(".eh_frame"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr_svma: addresses(".eh_frame_hdr"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            debug_frame: data(".debug_frame"),
            ..ExplicitModuleSectionInfo::default()
        }
    }
}

/// Segments are mapped in whole pages.
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_of_files_are_found() {
        let line = "55e0a000-55e0b000 r-xp 00002000 fe:00 123   /opt/a b";
        let path = Path::new("/opt/a b");
        assert_eq!(executable(line), Some((0x55e0_a000..0x55e0_b000, 0x2000, path)));
        assert_eq!(executable(&line.replace("r-xp", "r--p")), None);
        assert_eq!(executable("7ffd1000-7ffd2000 r-xp 00000000 00:00 0   [vdso]"), None);
    }
}
