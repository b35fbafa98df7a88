//! Finds the source locations of a program's calls, and its language.
//!
//! The stack is examined only if some file of the program has line numbers, so that programs
//! without symbols cost nothing. An interpreter's stack does not show the lines of its script: for
//! Python, its frames are read (`python`); for other interpreters, there are no lines.

use super::memory;
use super::ptrace::{self, Entry};
use super::python::{Python, RUNTIME};
use crate::call::{Language, PlaceId};
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

/// The maximum number of frames of a stack that are examined.
const FRAMES_MAX: usize = 64;
/// The number of words at the top of the stack that identify a repeated call.
const WORDS_MAX: usize = 8;
/// The maximum number of stacks that are remembered to recognise repeated calls.
const KNOWN_MAX: usize = 1 << 12;
/// The maximum number of locations. Calls from further locations are reported without one.
const PLACES_MAX: usize = 1 << 13;
/// Parts of paths to sources of languages' own libraries and of packages. The program's own line is
/// further out on the stack.
const FOREIGN: [&str; 8] = [
    "/rustc/",
    "/usr/include/",
    "/usr/lib/",
    "/usr/local/go/",
    "/lib/python",
    "/.cargo/registry/",
    "/go/pkg/mod/",
    "/rustlib/src/",
];

/// The system's own programs, which shell scripts call.
const COMMANDS: [&str; 4] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"];

type Bytes = Arc<[u8]>;

/// The source locations of the calls of all processes.
#[derive(Default)]
pub struct Places {
    /// Executable files by path; `None` for one that can't be read.
    images: HashMap<PathBuf, Option<Arc<Image>>>,
    processes: HashMap<pid_t, Process>,
    /// The number of programs so far. A process may execute several.
    programs: u64,
    known: HashMap<(u64, u64, u64), Known>,
    /// The language and frames of each location; the frames begin with the innermost, and are empty
    /// if the stack was not examined.
    places: Vec<(Language, Vec<Frame>)>,
    ids: HashMap<(Language, Vec<Frame>), PlaceId>,
    loaders: HashMap<PathBuf, Option<Loader>>,
}

/// The addresses and values of words of a stack.
type Words = Vec<(u64, u64)>;

/// A call that was made before.
struct Known {
    words: Words,
    place: PlaceId,
}

/// An instruction, as a file and an address in it; in a script, the address is a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    path: Arc<Path>,
    address: u64,
}

/// The program in a process's memory.
#[derive(Default)]
struct Process {
    program: u64,
    language: Language,
    /// The unwinder's data; `None` if no file has line numbers.
    stacks: Option<Stacks>,
    python: Option<Python>,
}

struct Stacks {
    unwinder: Walker<Bytes>,
    cache: Cache,
    /// The executable mappings: the addresses, the file, and the offset between memory and file
    /// addresses.
    mapped: Vec<(std::ops::Range<u64>, Arc<Path>, u64)>,
}

/// The parts of an executable file that are needed to get from a frame to its caller.
struct Image {
    has_lines: bool,
    language: Language,
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

    /// Returns the location of the call that a task is about to make; `None` if it can't be found.
    pub fn at(&mut self, process: pid_t, task: pid_t, entry: &Entry) -> Option<PlaceId> {
        if !self.processes.contains_key(&process) {
            self.programs += 1;
            let found = self.program(process).unwrap_or_default();
            self.processes.insert(process, Process { program: self.programs, ..found });
        }
        let Process { program, language, stacks, python } = self.processes.get_mut(&process)?;
        let language = *language;
        let Some(stacks) = stacks else {
            let line = python.as_ref().and_then(|python| python.line(task, is_own));
            let frames = line.map(|(path, address)| Frame { path, address });
            return self.place(language, frames.into_iter().collect());
        };
        let key = (*program, entry.instruction, entry.stack);
        if let Some(known) = self.known.get(&key)
            && memory::words(task, known.words.iter().map(|(address, _)| *address))
                .is_some_and(|words| words.iter().eq(known.words.iter().map(|(_, word)| word)))
        {
            return Some(known.place);
        }
        let (frames, words) = stacks.unwind(task, entry)?;
        let place = self.place(language, frames)?;
        if self.known.len() == KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(key, Known { words, place });
        Some(place)
    }

    fn place(&mut self, language: Language, frames: Vec<Frame>) -> Option<PlaceId> {
        let next = self.places.len() as PlaceId;
        let place = (language, frames);
        if self.places.len() == PLACES_MAX && !self.ids.contains_key(&place) {
            return None;
        }
        Some(*self.ids.entry(place).or_insert_with_key(|place| {
            self.places.push(place.clone());
            next
        }))
    }

    /// Returns a process's language and the data needed to find its lines, but not yet the
    /// program's number; `None` if the process's program is unknown.
    fn program(&mut self, process: pid_t) -> Option<Process> {
        let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
        if let Some(language) = interpreted(&path) {
            let python = (language == "python").then(|| self.python(process)).flatten();
            return Some(Process { language, python, ..Process::default() });
        }
        let language = match self.image(&path) {
            _ if COMMANDS.iter().any(|folder| path.starts_with(folder)) => "sh",
            image => image.map_or("", |image| image.language),
        };
        Some(Process { language, stacks: self.stacks(process), ..Process::default() })
    }

    fn python(&mut self, process: pid_t) -> Option<Python> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        maps.lines().filter_map(executable).find_map(|(addresses, file_offset, path)| {
            interpreted(path)?;
            let image = self.image(path)?;
            let (runtime, _) = image.sections.get(RUNTIME)?;
            Python::of(path, runtime.start + image.bias(addresses.start, file_offset)?)
        })
    }

    fn image(&mut self, path: &Path) -> Option<Arc<Image>> {
        self.images.entry(path.into()).or_insert_with(|| Image::read(path)).clone()
    }

    /// Returns what is needed to unwind the stacks of a process; `None` if none of its files has
    /// line numbers, or it is an interpreter.
    fn stacks(&mut self, process: pid_t) -> Option<Stacks> {
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
        let mut has_lines = false;
        let mut stacks = Stacks { unwinder: Walker::new(), cache: Cache::new(), mapped: vec![] };
        for line in maps.lines() {
            let Some((addresses, file_offset, path)) = executable(line) else { continue };
            if interpreted(path).is_some() {
                return None;
            }
            let Some(image) = self.image(path) else { continue };
            let Some(bias) = image.bias(addresses.start, file_offset) else { continue };
            has_lines |= image.has_lines;
            let name = path.to_string_lossy().into_owned();
            let module = Module::new(name, addresses.clone(), bias, image.unwinding());
            stacks.unwinder.add_module(module);
            stacks.mapped.push((addresses, path.into(), bias));
        }
        has_lines.then_some(stacks)
    }

    /// Returns the language of a location, and the file and line of the innermost frame that
    /// belongs to the program itself, if known. The file is relative to `folder`.
    pub fn shown(&mut self, place: PlaceId, folder: &Path) -> (Language, Option<String>) {
        let (language, frames) = self.places.get(place as usize).cloned().unwrap_or_default();
        let line = match &frames[..] {
            [Frame { path, address }] if language == "python" => {
                Some((path.to_path_buf(), *address))
            }
            frames => self.line(frames),
        };
        let shown = |(file, line): (PathBuf, u64)| {
            format!("{}:{line}", file.strip_prefix(folder).unwrap_or(&file).display())
        };
        (language, line.map(shown))
    }

    fn line(&mut self, frames: &[Frame]) -> Option<(PathBuf, u64)> {
        for Frame { path, address } in frames {
            let loader = self.loaders.entry(path.to_path_buf());
            let loader = loader.or_insert_with(|| Loader::new(path).ok());
            let Some(loader) = loader else { continue };
            let Ok(mut frames) = loader.find_frames(*address) else { continue };
            while let Ok(Some(frame)) = frames.next() {
                let location = frame.location.and_then(|of| Some((of.file?, of.line?)));
                let Some((file, line)) = location.filter(|(_, line)| *line > 0) else { continue };
                if is_own(file) {
                    return Some((file.into(), line.into()));
                }
            }
        }
        None
    }
}

/// Returns whether a source file belongs to the program itself.
fn is_own(file: &str) -> bool {
    !FOREIGN.iter().any(|part| file.contains(part))
}

impl Stacks {
    /// Returns the frames, innermost first, and the first stack words that led to them; `None` if
    /// the stack can't be read.
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

/// Returns the language of the scripts that an interpreter or its library runs, whatever its
/// version; `None` for other programs.
fn interpreted(path: &Path) -> Option<Language> {
    let name = path.file_name()?.to_str()?;
    let name = name.split(|of: char| of == '.' || of.is_ascii_digit()).next()?;
    Some(match name.trim_end_matches('-') {
        "bash" | "busybox" | "dash" | "ksh" | "sh" | "zsh" => "sh",
        "bun" | "deno" | "libnode" | "node" | "nodejs" => "js",
        "java" | "libjvm" => "java",
        "libpython" | "pypy" | "python" => "python",
        "libperl" | "libphp" | "libruby" | "lua" | "perl" | "php" | "ruby" | "tclsh" => "",
        _ => return None,
    })
}

/// Parses a line of `/proc/PID/maps` (`proc(5)`) about executable code of a file. Returns its
/// addresses, the file offset and the path; `None` for other lines.
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
    /// Reads a 64-bit ELF file; `None` if it can't be read.
    fn read(path: &Path) -> Option<Arc<Image>> {
        const SECTIONS: [&str; 5] =
            [".eh_frame", ".eh_frame_hdr", ".debug_frame", ".text", RUNTIME];
        let from = object::ReadCache::new(File::open(path).ok()?);
        let header = object::elf::FileHeader64::<object::Endianness>::parse(&from).ok()?;
        let endian = header.endian().ok()?;
        let loaded = header.program_headers(endian, &from).ok()?.iter();
        let loaded = loaded.filter(|segment| segment.p_type(endian) == PT_LOAD);
        let segments =
            loaded.map(|segment| (segment.p_offset(endian), segment.p_vaddr(endian))).collect();
        let file = object::File::parse(&from).ok()?;
        let has_lines = file.section_by_name(".debug_line").is_some();
        let made_by = file.section_by_name(".comment").and_then(|of| of.uncompressed_data().ok());
        let is_rust = made_by.is_some_and(|text| text.windows(5).any(|word| word == b"rustc"));
        let language = match file.section_by_name(".go.buildinfo") {
            Some(_) => "go",
            None if is_rust => "rust",
            None => "c",
        };
        let mut sections = HashMap::new();
        for name in SECTIONS {
            let Some(section) = file.section_by_name(name) else { continue };
            let addresses = section.address()..section.address() + section.size();
            let data = match name {
                ".text" | RUNTIME => Bytes::default(),
                _ => Bytes::from(section.uncompressed_data().ok()?.as_ref()),
            };
            sections.insert(name, (addresses, data));
        }
        Some(Arc::new(Image { has_lines, language, segments, sections }))
    }

    /// Returns the offset between addresses in memory and in the file, given a mapping's start and
    /// file offset; `None` if no segment matches.
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

/// The unit in which segments are mapped.
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

    #[test]
    fn an_interpreter_is_known_in_each_version_and_a_program_named_like_it_is_not_one() {
        let known = |name: &str| interpreted(&Path::new("/opt/bin").join(name));
        for (name, language) in [
            ("python3.11", "python"),
            ("python-3", "python"),
            ("libpython3.11.so.1.0", "python"),
            ("node", "js"),
            ("libnode.so.108", "js"),
            ("libjvm.so", "java"),
            ("bash", "sh"),
            ("perl5.36-x86_64-linux-gnu", ""),
            ("libruby-3.1.so.3.1", ""),
        ] {
            assert_eq!(known(name), Some(language), "{name}");
        }
        for name in ["node_exporter", "node-exporter", "pythonic", "shred", "javac", ""] {
            assert_eq!(known(name), None, "{name}");
        }
    }
}
