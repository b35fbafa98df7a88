/*
 * wrote.h for C++17: handles that free themselves, and errors that are thrown. This file adds no
 * promises: wrote.h states what each function promises, and which threads may call it.
 */

#ifndef WROTE_HPP
#define WROTE_HPP

#include "wrote.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace wrote {

/// An error of the library: code() returns its number, and what() describes it in one line.
class error : public std::system_error {
  public:
    explicit error(wrote_error *raw)
        : std::system_error(wrote_error_errno(raw), std::generic_category()),
          kind_(wrote_error_kind(raw)), offset_(wrote_error_offset(raw)),
          path_(wrote_error_path(raw) ? wrote_error_path(raw) : ""),
          message_(wrote_error_message(raw)) {
        wrote_error_free(raw);
    }
    const char *what() const noexcept override { return message_.c_str(); }
    wrote_kind kind() const noexcept { return kind_; }
    const std::string &path() const noexcept { return path_; }
    /// The offset in the file, or -1.
    std::int64_t offset() const noexcept { return offset_; }

  private:
    wrote_kind kind_;
    std::int64_t offset_;
    std::string path_, message_;
};

namespace detail {
/// Calls a function of wrote.h whose last argument points to its error.
template <class F, class... A> void call(F function, A... arguments) {
    wrote_error *raw = nullptr;
    if (function(arguments..., &raw) != 0)
        throw error(raw);
}

template <auto Free> struct freed {
    template <class T> void operator()(T *handle) const noexcept { Free(handle); }
};

inline std::vector<iovec> pieces(const std::vector<std::string_view> &parts) {
    std::vector<iovec> pieces;
    for (auto part : parts)
        pieces.push_back({const_cast<char *>(part.data()), part.size()});
    return pieces;
}
} // namespace detail

inline void write(const std::string &path, std::string_view bytes) {
    detail::call(wrote_write, path.c_str(), bytes.data(), bytes.size());
}

inline void write_new(const std::string &path, std::string_view bytes) {
    detail::call(wrote_write_new, path.c_str(), bytes.data(), bytes.size());
}

inline std::uint64_t copy(const std::string &from, const std::string &to) {
    std::uint64_t bytes = 0;
    detail::call(wrote_copy, from.c_str(), to.c_str(), &bytes);
    return bytes;
}

/// A writer. If it is destroyed without finish() or close(), it is abandoned.
class writer {
  public:
    using options = wrote_writer_options;
    static writer create(const std::string &path, options with = {sizeof(options)}) {
        return writer(path, with);
    }
    static writer replace(const std::string &path, options with = {sizeof(options)}) {
        with.replace = true;
        return writer(path, with);
    }
    static writer append(const std::string &path, options with = {sizeof(options)}) {
        with.append = true;
        return writer(path, with);
    }
    void write(std::string_view bytes) {
        detail::call(wrote_writer_write, raw_.get(), bytes.data(), bytes.size());
    }
    void write(const std::vector<std::string_view> &parts) {
        auto pieces = detail::pieces(parts);
        detail::call(wrote_writer_writev, raw_.get(), pieces.data(), pieces.size());
    }
    void flush() { detail::call(wrote_writer_flush, raw_.get()); }
    void sync() { detail::call(wrote_writer_sync, raw_.get()); }
    wrote_written finish() { return end(wrote_writer_finish); }
    wrote_written close() { return end(wrote_writer_close); }
    wrote_writer *get() const noexcept { return raw_.get(); }

  private:
    template <class F> wrote_written end(F function) {
        wrote_written written{};
        detail::call(function, raw_.get(), &written);
        return written;
    }
    writer(const std::string &path, options with) {
        wrote_writer *raw = nullptr;
        detail::call(wrote_writer_open, path.c_str(), &with, &raw);
        raw_.reset(raw);
    }
    std::unique_ptr<wrote_writer, detail::freed<wrote_writer_free>> raw_;
};

class reader {
  public:
    explicit reader(const std::string &path) {
        wrote_reader *raw = nullptr;
        detail::call(wrote_reader_open, path.c_str(), &raw);
        raw_.reset(raw);
    }
    /// Returns the number of bytes read; 0 at the end of the file.
    std::size_t read(void *into, std::size_t room) {
        std::size_t len = 0;
        detail::call(wrote_reader_read, raw_.get(), into, room, &len);
        return len;
    }
    /// Returns a line, which lives until the next call, or nothing at the end of the file.
    std::optional<std::string_view> line() {
        const char *line = nullptr;
        std::size_t len = 0;
        detail::call(wrote_reader_line, raw_.get(), &line, &len);
        if (!line)
            return std::nullopt;
        return std::string_view(line, len);
    }
    void seek(std::uint64_t offset) { detail::call(wrote_reader_seek, raw_.get(), offset); }

  private:
    std::unique_ptr<wrote_reader, detail::freed<wrote_reader_free>> raw_;
};

class wakeup {
  public:
    wakeup() {
        wrote_wakeup *raw = nullptr;
        detail::call(wrote_wakeup_open, &raw);
        raw_.reset(raw);
    }
    int fd() const noexcept { return wrote_wakeup_fd(raw_.get()); }
    void clear() const noexcept { wrote_wakeup_clear(raw_.get()); }
    wrote_wakeup *get() const noexcept { return raw_.get(); }

  private:
    std::unique_ptr<wrote_wakeup, detail::freed<wrote_wakeup_free>> raw_;
};

class ticket {
  public:
    explicit ticket(wrote_ticket *raw) : raw_(raw) {}
    std::uint64_t sequence() const noexcept { return wrote_ticket_sequence(raw_.get()); }
    ticket &until_durable() {
        detail::call(wrote_ticket_until_durable, raw_.get());
        return *this;
    }
    void wait() { detail::call(wrote_ticket_wait, raw_.get()); }
    bool poll(const wakeup &wakeup) {
        bool done = false;
        detail::call(wrote_ticket_poll, raw_.get(), wakeup.get(), &done);
        return done;
    }

  private:
    std::unique_ptr<wrote_ticket, detail::freed<wrote_ticket_free>> raw_;
};

/// A log. If it is destroyed without close(), it is closed, and an error in closing it is lost.
class log {
  public:
    using options = wrote_log_options;
    explicit log(const std::string &folder, options with = {sizeof(options)}) {
        wrote_log *raw = nullptr;
        detail::call(wrote_log_open, folder.c_str(), &with, &raw);
        raw_.reset(raw);
    }
    ticket append(std::string_view record) {
        wrote_ticket *raw = nullptr;
        detail::call(wrote_log_append, raw_.get(), record.data(), record.size(),
                     static_cast<std::uint64_t *>(nullptr), &raw);
        return ticket(raw);
    }
    ticket append_all(const std::vector<std::string_view> &records) {
        wrote_ticket *raw = nullptr;
        auto pieces = detail::pieces(records);
        detail::call(wrote_log_append_all, raw_.get(), pieces.data(), pieces.size(),
                     static_cast<std::uint64_t *>(nullptr), &raw);
        return ticket(raw);
    }
    /// Returns the sequence of the record, once the record is as safe as the log promises.
    std::uint64_t append_wait(std::string_view record) {
        std::uint64_t sequence = 0;
        detail::call(wrote_log_append_wait, raw_.get(), record.data(), record.size(), &sequence);
        return sequence;
    }
    void sync() { detail::call(wrote_log_sync, raw_.get()); }
    std::uint64_t trim_before(std::uint64_t sequence) {
        std::uint64_t first = 0;
        detail::call(wrote_log_trim_before, raw_.get(), sequence, &first);
        return first;
    }
    void truncate_from(std::uint64_t sequence) {
        detail::call(wrote_log_truncate_from, raw_.get(), sequence);
    }
    wrote_log_stats stats() const {
        wrote_log_stats stats{};
        detail::call(wrote_log_get_stats, raw_.get(), &stats, sizeof stats);
        return stats;
    }
    void close() { detail::call(wrote_log_close, raw_.get()); }
    wrote_log *get() const noexcept { return raw_.get(); }

  private:
    std::unique_ptr<wrote_log, detail::freed<wrote_log_free>> raw_;
};

/// A plain line file. If it is destroyed without close(), it is closed, and an error in closing it
/// is lost.
class lines {
  public:
    using options = wrote_lines_options;
    explicit lines(const std::string &file, options with = {sizeof(options)}) {
        wrote_lines *raw = nullptr;
        detail::call(wrote_lines_open, file.c_str(), &with, &raw);
        raw_.reset(raw);
    }
    ticket append(std::string_view line) {
        wrote_ticket *raw = nullptr;
        detail::call(wrote_lines_append, raw_.get(), line.data(), line.size(), &raw);
        return ticket(raw);
    }
    void append_wait(std::string_view line) {
        detail::call(wrote_lines_append_wait, raw_.get(), line.data(), line.size());
    }
    void flush() { detail::call(wrote_lines_flush, raw_.get()); }
    void reopen() { detail::call(wrote_lines_reopen, raw_.get()); }
    void close() { detail::call(wrote_lines_close, raw_.get()); }

  private:
    std::unique_ptr<wrote_lines, detail::freed<wrote_lines_free>> raw_;
};

/// A record whose bytes live until the reader's next call.
struct record {
    std::uint64_t sequence;
    std::string_view bytes;
    std::uint64_t written_at_ns;
};

class log_reader {
  public:
    explicit log_reader(const std::string &folder, std::uint64_t from = 0)
        : log_reader(folder, from, false) {}
    static log_reader follow(const std::string &folder, std::uint64_t from = 0) {
        return log_reader(folder, from, true);
    }
    /// Returns nothing at the end. A reader that follows waits first, by default without a limit.
    std::optional<record> next(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1)) {
        wrote_record found{};
        auto ms = static_cast<std::int64_t>(timeout.count());
        detail::call(wrote_log_reader_next, raw_.get(), ms, &found);
        if (!found.data)
            return std::nullopt;
        auto bytes = std::string_view(static_cast<const char *>(found.data), found.len);
        return record{found.sequence, bytes, found.written_at_ns};
    }
    void seek(std::uint64_t sequence) {
        detail::call(wrote_log_reader_seek, raw_.get(), sequence);
    }
    void seek_time(std::uint64_t time_ns) {
        detail::call(wrote_log_reader_seek_time, raw_.get(), time_ns);
    }

  private:
    log_reader(const std::string &folder, std::uint64_t from, bool follows) {
        wrote_log_reader *raw = nullptr;
        detail::call(wrote_log_reader_open, folder.c_str(), from, follows, &raw);
        raw_.reset(raw);
    }
    std::unique_ptr<wrote_log_reader, detail::freed<wrote_log_reader_free>> raw_;
};

} // namespace wrote

#endif // WROTE_HPP
