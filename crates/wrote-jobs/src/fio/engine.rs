//! The I/O engines: fio's names, and the library's engines behind them.

use super::value::Value;
use wrote::Ioengine;

/// An engine under its name in the job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    pub name: &'static str,
    pub ioengine: Ioengine,
    /// Whether it does one operation at a time, for any `iodepth`.
    pub synchronous: bool,
}

/// All accepted names. fio's `posixaio` is the C library's, which on Linux is threads (aio(7)).
const ENGINES: &[Engine] = &[
    Engine { name: "psync", ioengine: Ioengine::Psync, synchronous: true },
    Engine { name: "io_uring", ioengine: Ioengine::IoUring, synchronous: false },
    Engine { name: "mmap", ioengine: Ioengine::Mmap, synchronous: true },
    Engine { name: "sync", ioengine: Ioengine::Psync, synchronous: true },
    Engine { name: "vsync", ioengine: Ioengine::Psync, synchronous: true },
    Engine { name: "pvsync", ioengine: Ioengine::Psync, synchronous: true },
    Engine { name: "pvsync2", ioengine: Ioengine::Psync, synchronous: true },
    Engine { name: "libaio", ioengine: Ioengine::IoUring, synchronous: false },
    Engine { name: "posixaio", ioengine: Ioengine::Threads, synchronous: false },
];

impl Default for Engine {
    /// Returns fio's default on Linux.
    fn default() -> Engine {
        ENGINES[0]
    }
}

pub(super) fn engine(value: &mut Value<'_>) -> Result<Engine, String> {
    let text = value.text()?;
    let Some(engine) = ENGINES.iter().find(|engine| engine.name == text) else {
        let names: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
        return Err(format!("there is no such engine here; there are {}", names.join(", ")));
    };
    let means = engine.ioengine.as_str();
    if engine.name != means {
        value.note(match engine.ioengine {
            Ioengine::Psync => {
                format!("ioengine={}: psync is used: pread(2) and pwrite(2)", engine.name)
            }
            Ioengine::Threads => {
                format!(
                    "ioengine={}: threads are used, as the C library's own is made",
                    engine.name
                )
            }
            _ => format!("ioengine={}: {means} is used", engine.name),
        });
    }
    Ok(*engine)
}
