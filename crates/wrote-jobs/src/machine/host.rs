//! The machine, according to `/proc`, `/sys` and the kernel.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use wrote::engine::Engine;
use wrote_result::document::Host;

/// The clock sources that are outside the processor or count ticks. The kernel uses one of them if
/// it does not trust the processor's clock.
pub const SLOW_CLOCKS: [&str; 5] = ["acpi_pm", "hpet", "pit", "jiffies", "refined-jiffies"];

/// The memory that this process may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The memory in bytes.
    pub bytes: u64,
    /// A description of who sets this limit.
    pub whose: &'static str,
}

/// Returns the machine's memory, or the limit of a control group if that is lower.
pub fn memory() -> Memory {
    let bytes = memory_bytes();
    match super::watch::memory_bytes(Path::new("/")) {
        Some(group) if group < bytes => Memory { bytes: group, whose: "the control group's" },
        _ => Memory { bytes, whose: "the machine's" },
    }
}

/// Returns the machine's main memory in bytes.
pub fn memory_bytes() -> u64 {
    let memory = rustix::system::sysinfo();
    // `c_ulong` is 32 bits wide on 32-bit machines.
    #[allow(clippy::useless_conversion)]
    let bytes = u64::from(memory.totalram) * u64::from(memory.mem_unit);
    bytes
}

/// Returns a description of the machine. A figure that cannot be read is `unknown` or 0.
pub fn host() -> Host {
    let root = Path::new("/");
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get());
    Host {
        hostname: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        cpu_model: cpu_model(root),
        cpus: cpus as u32,
        memory_bytes: memory_bytes(),
        virtualization: virtualization(root),
        io_uring: Engine::probe_io_uring().err().unwrap_or_else(|| "yes".into()),
        clocksource: text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_read_ns: Some(clock_read_ns()),
    }
}

pub(crate) fn is_virtual() -> bool {
    virtualization(Path::new("/")) != "none"
}

/// Measures the time to read the clock once: the median over batches, because any batch may be
/// interrupted.
fn clock_read_ns() -> f64 {
    const BATCHES: usize = 21;
    const LOOKS: u32 = 200;
    let batch = |_| {
        let began = Instant::now();
        for _ in 1..LOOKS {
            black_box(Instant::now());
        }
        began.elapsed().as_nanos() as f64 / f64::from(LOOKS)
    };
    wrote_result::stats::median(&(0..BATCHES).map(batch).collect::<Vec<f64>>())
}

/// Returns the name of the first processor, from `/proc/cpuinfo` or else from the device tree's
/// model.
fn cpu_model(root: &Path) -> String {
    let cpuinfo = read(root, "proc/cpuinfo");
    let named = ["model name", "cpu model", "cpu"];
    named
        .iter()
        .find_map(|key| cpuinfo.lines().find_map(|line| value_of(line, key)))
        .map(str::to_owned)
        .or_else(|| text(root, "sys/firmware/devicetree/base/model"))
        .unwrap_or_else(|| "unknown".into())
}

/// Returns the value of a line `key : value` in `/proc/cpuinfo`; `None` for another key, or without
/// a value.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (found, value) = line.split_once(':')?;
    (found.trim() == key && !value.trim().is_empty()).then(|| value.trim())
}

/// Returns the hypervisor, followed by the container, as far as they are known; `none` if there is
/// neither.
fn virtualization(root: &Path) -> String {
    match (hypervisor(root), container(root)) {
        (Some(hypervisor), Some(container)) => format!("{hypervisor}, {container}"),
        (Some(layer), None) | (None, Some(layer)) => layer,
        (None, None) => "none".into(),
    }
}

/// Returns the hypervisor, with its product in parentheses: `kvm (Firecracker)`. `None` if none is
/// known.
fn hypervisor(root: &Path) -> Option<String> {
    let product = product(root);
    let kind = kind(root).or_else(|| virtual_product(root).then_some("hypervisor"))?;
    Some(product.map_or_else(|| kind.into(), |product| format!("{kind} ({product})")))
}

/// Returns the kind of hypervisor, according to the interfaces that it offers to the guest's
/// kernel; `None` if there are none.
fn kind(root: &Path) -> Option<&'static str> {
    if let Some(kind) = text(root, "sys/hypervisor/type") {
        return Some(if kind == "xen" { "xen" } else { "hypervisor" });
    }
    let clocks = read(root, "sys/devices/system/clocksource/clocksource0/available_clocksource");
    let clocks: Vec<&str> = clocks.split_whitespace().collect();
    if clocks.contains(&"kvm-clock") {
        return Some("kvm");
    }
    if clocks.iter().any(|clock| clock.starts_with("hyperv_clocksource")) {
        return Some("hyper-v");
    }
    if text(root, "sys/firmware/devicetree/base/hypervisor/compatible")
        .is_some_and(|compatible| compatible.contains("linux,kvm"))
    {
        return Some("kvm");
    }
    // x86: CPUID leaf 1, ECX bit 31, which real processors never set.
    let cpuinfo = read(root, "proc/cpuinfo");
    let flags = cpuinfo.lines().find_map(|line| value_of(line, "flags"))?;
    flags.split_whitespace().any(|flag| flag == "hypervisor").then_some("hypervisor")
}

/// Returns the machine's vendor and product according to the firmware's tables; `None` if they name
/// neither. On a virtual machine, these identify the hypervisor.
fn product(root: &Path) -> Option<String> {
    // Firecracker has no DMI. Its ACPI tables, which only root may read, name it as the
    // manufacturer at byte 10 of each header.
    let table = fs::read(root.join("sys/firmware/acpi/tables/FACP")).unwrap_or_default();
    if table.get(10..16) == Some(b"FIRECK") {
        return Some("Firecracker".into());
    }
    let vendor = text(root, "sys/class/dmi/id/sys_vendor");
    let product = text(root, "sys/class/dmi/id/product_name");
    match (vendor, product) {
        (Some(vendor), Some(product)) if product.starts_with(&vendor) => Some(product),
        (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
        (vendor, product) => vendor.or(product),
    }
}

/// Returns whether the firmware names a product that is always virtual. This is necessary for
/// processors, such as ARM, that do not report whether the machine is virtual.
fn virtual_product(root: &Path) -> bool {
    let virtual_vendors =
        ["QEMU", "VMware", "innotek", "Xen", "Parallels", "BHYVE", "OpenStack", "Bochs"];
    let vendor = text(root, "sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let product = text(root, "sys/class/dmi/id/product_name").unwrap_or_default();
    virtual_vendors.iter().any(|known| vendor.starts_with(known))
        || ["KVM", "VirtualBox", "Virtual Machine", "Google Compute Engine"]
            .iter()
            .any(|known| product.starts_with(known))
}

fn container(root: &Path) -> Option<String> {
    // In systemd's container interface, the manager sets this variable for the first process of the
    // container.
    let environ = fs::read(root.join("proc/1/environ")).unwrap_or_default();
    let told = environ
        .split(|byte| *byte == 0)
        .find_map(|variable| variable.strip_prefix(b"container="))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .or_else(|| text(root, "run/systemd/container"))
        .filter(|name| !name.is_empty());
    if told.is_some() {
        return told;
    }
    if root.join("run/.containerenv").exists() {
        return Some("podman".into());
    }
    // A disk image built from a container has this file, too, but only a container has an overlay
    // as its root.
    (root.join(".dockerenv").exists() && root_filesystem(root).as_deref() == Some("overlay"))
        .then(|| "docker".into())
}

/// Returns the type of the root file system, from `/proc/self/mountinfo` (proc_pid_mountinfo(5));
/// `None` if it is not listed.
fn root_filesystem(root: &Path) -> Option<String> {
    let mounts = read(root, "proc/self/mountinfo");
    let of_root = |line: &&str| line.split(' ').nth(4) == Some("/");
    // The last mount on a mount point hides the others.
    let line = mounts.lines().rfind(of_root)?;
    let (_, after) = line.split_once(" - ")?;
    after.split(' ').next().map(str::to_owned)
}

fn text(root: &Path, path: &str) -> Option<String> {
    super::text(&root.join(path))
}

fn read(root: &Path, path: &str) -> String {
    text(root, path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::Tree;

    /// Creates a root with these files.
    fn root(files: &[(&str, &str)]) -> Tree {
        let root = Tree::new();
        files.iter().for_each(|(path, text)| root.file(path, text));
        root
    }

    fn found(files: &[(&str, &str)]) -> String {
        virtualization(root(files).path())
    }

    const CPUINFO: &str = "proc/cpuinfo";
    const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    const VENDOR: &str = "sys/class/dmi/id/sys_vendor";
    const PRODUCT: &str = "sys/class/dmi/id/product_name";
    const FACP: &str = "sys/firmware/acpi/tables/FACP";

    #[test]
    fn this_machine_has_a_kernel_a_processor_and_memory() {
        let host = host();
        assert!(host.kernel.contains('.'), "{host:?}");
        assert!(host.cpus >= 1);
        assert!(host.memory_bytes > 16 << 20);
        assert!(!host.cpu_model.is_empty() && !host.virtualization.is_empty());
        let refused = Engine::probe_io_uring().err();
        assert_eq!(host.io_uring, refused.as_deref().unwrap_or("yes"));
        assert!(host.clock_read_ns.is_some_and(|cost| cost > 0.0), "{host:?}");
    }

    #[test]
    fn a_machine_that_shows_nothing_is_virtual_in_no_way() {
        assert_eq!(found(&[]), "none");
        let real = [
            (CPUINFO, "model name\t: A B\nflags\t\t: fpu vme\n"),
            (VENDOR, "Dell Inc.\n"),
            (PRODUCT, "PowerEdge R650\n"),
            (CLOCKS, "tsc hpet acpi_pm\n"),
        ];
        assert_eq!(found(&real), "none");
    }

    #[test]
    fn a_hypervisor_is_named_no_further_than_the_evidence_goes() {
        let flag = (CPUINFO, "flags\t\t: fpu hypervisor lahf_lm\n");
        let kvm = (CLOCKS, "tsc kvm-clock \n");
        assert_eq!(found(&[flag]), "hypervisor");
        assert_eq!(found(&[flag, kvm]), "kvm");
        let firecracker = (FACP, "FACP\x14\x01\0\0\x06fFIRECKFCVMFADT");
        assert_eq!(found(&[flag, kvm, firecracker]), "kvm (Firecracker)");
        let qemu = [(VENDOR, "QEMU\n"), (PRODUCT, "Standard PC (Q35 + ICH9, 2009)\n")];
        assert_eq!(
            found(&[flag, kvm, qemu[0], qemu[1]]),
            "kvm (QEMU Standard PC (Q35 + ICH9, 2009))"
        );
        assert_eq!(found(&[("sys/hypervisor/type", "xen\n")]), "xen");
        assert_eq!(found(&[(CLOCKS, "hyperv_clocksource_tsc_page acpi_pm")]), "hyper-v");
    }

    #[test]
    fn the_product_names_a_hypervisor_that_the_processor_does_not() {
        let guest = [(VENDOR, "QEMU"), (PRODUCT, "QEMU Virtual Machine")];
        assert_eq!(found(&guest), "hypervisor (QEMU Virtual Machine)");
        assert_eq!(
            found(&[("sys/firmware/devicetree/base/hypervisor/compatible", "linux,kvm\0")]),
            "kvm"
        );
    }

    #[test]
    fn a_container_is_told_by_its_manager_or_by_an_overlay_root() {
        assert_eq!(found(&[("proc/1/environ", "A=b\0container=lxc\0")]), "lxc");
        assert_eq!(found(&[("run/.containerenv", "")]), "podman");
        let overlay = "20 1 0:1 / / rw - overlay overlay rw,lowerdir=/a\n";
        let disk = "20 1 254:0 / / rw - ext4 /dev/root rw\n";
        let mountinfo = "proc/self/mountinfo";
        assert_eq!(found(&[(".dockerenv", ""), (mountinfo, overlay)]), "docker");
        assert_eq!(found(&[(".dockerenv", ""), (mountinfo, disk)]), "none");
        let both = [(CLOCKS, "kvm-clock"), (".dockerenv", ""), (mountinfo, overlay)];
        assert_eq!(found(&both), "kvm, docker");
    }

    #[test]
    fn the_processor_is_named_as_it_names_itself() {
        let model = |files: &[(&str, &str)]| cpu_model(root(files).path());
        assert_eq!(model(&[(CPUINFO, "processor\t: 0\nmodel name\t: AMD EPYC\n")]), "AMD EPYC");
        let board = ("sys/firmware/devicetree/base/model", "Raspberry Pi 5\0");
        assert_eq!(model(&[(CPUINFO, "BogoMIPS\t: 108.00\n"), board]), "Raspberry Pi 5");
        assert_eq!(model(&[]), "unknown");
    }
}
