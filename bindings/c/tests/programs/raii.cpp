// Uses wrote.hpp in the folder given as argument.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <wrote.hpp>

static void check(bool is_so, int line) {
    if (!is_so) {
        std::fprintf(stderr, "line %d: not so\n", line);
        std::exit(1);
    }
}
#define CHECK(condition) check(condition, __LINE__)

static std::string content(const std::string &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

int main(int, char **arguments) {
    std::string folder = arguments[1], path = folder + "/file";
    wrote::write(path, "old");
    try {
        auto writer = wrote::writer::replace(path);
        writer.write("half");
        throw 1;
    } catch (int) {
    }
    CHECK(content(path) == "old");
    auto writer = wrote::writer::replace(path);
    writer.write({"one\n", "two\n"});
    auto moved = std::move(writer);
    CHECK(moved.finish().durable && content(path) == "one\ntwo\n");
    try {
        wrote::write_new(path, "x");
        CHECK(false);
    } catch (const wrote::error &error) {
        CHECK(error.code() == std::errc::file_exists && error.path() == path);
        CHECK(error.kind() == WROTE_KIND_FILE && error.offset() == -1);
    }
    CHECK(wrote::copy(path, folder + "/copy") == 8);
    wrote::reader reader(path);
    CHECK(reader.line() == "one" && reader.line() == "two" && !reader.line());

    wrote::log log(folder + "/events");
    CHECK(log.append_wait("first") == 0);
    wrote::wakeup wakeup;
    auto ticket = log.append_all({"second", "third"});
    while (!ticket.poll(wakeup)) {
        pollfd fd{wakeup.fd(), POLLIN, 0};
        poll(&fd, 1, -1);
        wakeup.clear();
    }
    log.append("fourth").until_durable().wait();
    CHECK(log.stats().durable_sequence == 4);
    int records = 0;
    wrote::log_reader records_of(folder + "/events");
    while (auto record = records_of.next())
        CHECK(record->sequence == static_cast<std::uint64_t>(records++));
    CHECK(records == 4);
    log.truncate_from(3);
    CHECK(log.trim_before(0) == 0);
    log.close();

    wrote::lines lines(folder + "/file.jsonl");
    lines.append("one").until_durable().wait();
    lines.append_wait("two");
    lines.reopen();
    lines.append("three");
    lines.flush();
    lines.close();
    CHECK(content(folder + "/file.jsonl") == "one\ntwo\nthree\n");
    std::puts("every handle freed itself");
}
