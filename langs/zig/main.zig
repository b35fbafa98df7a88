//! The tasks of `wrote langs` in Zig (0.16 and newer), using `std.Io`.
//!
//! Zig has no default buffer: the caller passes one to the Writer or Reader of a file. Zig's own
//! sources mostly use 4096 bytes.

const std = @import("std");
const Io = std.Io;

const buffer_bytes = 4096;

/// The program's output.
const Answer = struct {
    elapsed_ns: []i96,
    bytes: u64,
    sum: ?u64 = null,
};

fn writeBytes(io: Io, path: []const u8, size: usize) !void {
    const file = try Io.Dir.cwd().createFile(io, path, .{});
    defer file.close(io);
    var buffer: [buffer_bytes]u8 = undefined;
    var file_writer = file.writer(io, &buffer);
    const writer = &file_writer.interface;
    // The interface reports only that a write failed; the reason is stored in the file's writer.
    for (0..size) |number| writer.writeByte(@truncate(number)) catch return file_writer.err.?;
    try file_writer.flush();
}

const Found = struct { bytes: u64, sum: u64 };

fn readBytes(io: Io, path: []const u8) !Found {
    const file = try Io.Dir.cwd().openFile(io, path, .{});
    defer file.close(io);
    var buffer: [buffer_bytes]u8 = undefined;
    var file_reader = file.reader(io, &buffer);
    const reader = &file_reader.interface;
    var found: Found = .{ .bytes = 0, .sum = 0 };
    while (reader.takeByte()) |byte| {
        found.bytes += 1;
        found.sum += byte;
    } else |err| switch (err) {
        error.EndOfStream => return found,
        error.ReadFailed => return file_reader.err.?,
    }
}

/// Opens the file, writes without a buffer, and closes it.
fn save(io: Io, path: []const u8, text: []const u8) !void {
    try Io.Dir.cwd().writeFile(io, .{ .sub_path = path, .data = text });
}

/// `writeFile` has no option to sync; `sync` is fsync(2).
fn saveSync(io: Io, path: []const u8, text: []const u8) !void {
    const file = try Io.Dir.cwd().createFile(io, path, .{});
    defer file.close(io);
    try file.writeStreamingAll(io, text);
    try file.sync(io);
}

/// `std.Io` has no O_APPEND: the file is opened without truncating it, and written to from its end.
fn appendLines(io: Io, path: []const u8, line: []const u8, count: usize) !void {
    const file = try Io.Dir.cwd().createFile(io, path, .{ .truncate = false });
    defer file.close(io);
    var buffer: [buffer_bytes]u8 = undefined;
    var file_writer = file.writer(io, &buffer);
    try file_writer.seekTo(try file.length(io));
    const writer = &file_writer.interface;
    for (0..count) |_| writer.writeAll(line) catch return file_writer.err.?;
    try file_writer.flush();
}

/// Returns the letters a to z, repeated.
fn makeText(gpa: std.mem.Allocator, size: usize) ![]u8 {
    const text = try gpa.alloc(u8, size);
    for (text, 0..) |*letter, place| letter.* = 'a' + @as(u8, @intCast(place % 26));
    return text;
}

const Task = enum { @"bytes-write", @"bytes-read", save, @"save-sync", lines };

fn run(io: Io, arena: std.mem.Allocator, args: []const [:0]const u8) !void {
    if (args.len < 5) std.process.fatal("usage: program TASK PATH SIZE COUNT", .{});
    const task = std.meta.stringToEnum(Task, args[1]) orelse
        std.process.fatal("unknown task: {s}", .{args[1]});
    const path = args[2];
    const size = try std.fmt.parseInt(usize, args[3], 10);
    const count = try std.fmt.parseInt(usize, args[4], 10);
    if (size == 0 or count == 0) std.process.fatal("SIZE and COUNT must be above 0", .{});

    const text: []u8 = switch (task) {
        .@"bytes-write", .@"bytes-read" => &.{},
        .save, .@"save-sync", .lines => try makeText(arena, size),
    };
    if (task == .lines) text[size - 1] = '\n';
    var answer: Answer = .{
        .elapsed_ns = try arena.alloc(i96, if (task == .lines) 1 else count),
        .bytes = if (task == .lines) size * count else size,
    };

    for (answer.elapsed_ns) |*elapsed_ns| {
        // This clock is monotonic, and stops while the machine sleeps.
        const start: Io.Timestamp = .now(io, .awake);
        switch (task) {
            .@"bytes-write" => try writeBytes(io, path, size),
            .@"bytes-read" => {
                const found = try readBytes(io, path);
                answer.bytes = found.bytes;
                answer.sum = found.sum;
            },
            .save => try save(io, path, text),
            .@"save-sync" => try saveSync(io, path, text),
            .lines => try appendLines(io, path, text, count),
        }
        elapsed_ns.* = start.untilNow(io, .awake).nanoseconds;
    }

    var buffer: [buffer_bytes]u8 = undefined;
    var stdout = Io.File.stdout().writer(io, &buffer);
    try std.json.Stringify.value(answer, .{ .emit_null_optional_fields = false }, &stdout.interface);
    try stdout.interface.writeByte('\n');
    try stdout.flush();
}

pub fn main(init: std.process.Init) !void {
    const arena = init.arena.allocator();
    const args = try init.minimal.args.toSlice(arena);
    run(init.io, arena, args) catch |err| {
        std.process.fatal("{s}: {t}", .{ if (args.len > 2) args[2] else args[0], err });
    };
}
