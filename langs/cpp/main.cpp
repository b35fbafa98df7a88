// The tasks of `wrote langs` in C++, using its file streams.
//
// A stream's buffer belongs to its filebuf. In libstdc++ it has BUFSIZ bytes, 8192, one of which is
// kept free (basic_filebuf, bits/fstream.tcc). A stream that has failed remains failed and does
// nothing more, so its state is checked once, after close().
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

// A stream does not give the reason for its failure. If the last system call failed, errno contains
// it.
[[noreturn]] void fail(const std::string &path) {
    throw std::system_error(errno, std::generic_category(), path);
}

// This writes the rest of the buffer, so an error of the disk may first appear here.
template <typename Stream> void close(Stream &file, const std::string &path) {
    file.close();
    if (!file)
        fail(path);
}

// Writes one byte at a time with the function for any number of bytes, which is unformatted and
// takes an address and a length.
void write_bytes(const std::string &path, std::uint64_t size) {
    std::ofstream file(path, std::ios::binary);
    for (std::uint64_t i = 0; i < size; i++) {
        const char byte = static_cast<char>(i % 256);
        file.write(&byte, 1);
    }
    close(file, path);
}

// Like write_bytes, but uses the function for a single byte.
void put_bytes(const std::string &path, std::uint64_t size) {
    std::ofstream file(path, std::ios::binary);
    for (std::uint64_t i = 0; i < size; i++)
        file.put(static_cast<char>(i % 256));
    close(file, path);
}

struct Found {
    std::uint64_t bytes = 0;
    std::uint64_t sum = 0;

    void add(char byte) {
        bytes++;
        sum += static_cast<unsigned char>(byte);
    }
};

// At the end of the file, the last read has failed, so failbit is set. It is cleared only in that
// case.
void close_at_end(std::ifstream &file, const std::string &path) {
    if (file.bad() || !file.eof())
        fail(path);
    file.clear();
    close(file, path);
}

Found read_bytes(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    Found found;
    char byte;
    while (file.read(&byte, 1))
        found.add(byte);
    close_at_end(file, path);
    return found;
}

Found get_bytes(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    Found found;
    char byte;
    while (file.get(byte))
        found.add(byte);
    close_at_end(file, path);
    return found;
}

void save(const std::string &path, const std::string &text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    close(file, path);
}

// C++ has no sync, and before C++26 (native_handle), a stream does not reveal its descriptor, for
// which POSIX's fsync could be called. A program that needs a sync opens the file by POSIX.
void save_sync(const std::string &path, const std::string &text) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file == -1)
        fail(path);
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t written = ::write(file, text.data() + done, text.size() - done);
        if (written == -1)
            fail(path);
        done += static_cast<std::size_t>(written);
    }
    if (::fsync(file) == -1 || ::close(file) == -1)
        fail(path);
}

void append_lines(const std::string &path, const std::string &line, std::uint64_t count) {
    std::ofstream file(path, std::ios::binary | std::ios::app);
    for (std::uint64_t i = 0; i < count; i++)
        file << line;
    close(file, path);
}

// The letters a to z, repeated.
std::string make_text(std::uint64_t size) {
    std::string text(size, '\0');
    for (std::uint64_t i = 0; i < size; i++)
        text[i] = static_cast<char>('a' + i % 26);
    return text;
}

std::uint64_t parse(const std::string &word) {
    if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos || std::stoull(word) == 0)
        throw std::invalid_argument("not a number above 0: " + word);
    return std::stoull(word);
}

void run(const std::vector<std::string> &arguments) {
    if (arguments.size() < 4)
        throw std::invalid_argument("usage: program TASK PATH SIZE COUNT [get-put]");
    const std::string &task = arguments[0], &path = arguments[1];
    const std::uint64_t size = parse(arguments[2]), count = parse(arguments[3]);
    const bool get_put = arguments.size() > 4 && arguments[4] == "get-put";
    const bool lines = task == "lines";

    Found found{lines ? size * count : size, 0};
    std::string text = task.rfind("bytes", 0) == 0 ? "" : make_text(size);
    if (lines)
        text.back() = '\n';
    std::vector<std::int64_t> elapsed_ns;
    do {
        const auto start = std::chrono::steady_clock::now();
        if (task == "bytes-write")
            get_put ? put_bytes(path, size) : write_bytes(path, size);
        else if (task == "bytes-read")
            found = get_put ? get_bytes(path) : read_bytes(path);
        else if (task == "save")
            save(path, text);
        else if (task == "save-sync")
            save_sync(path, text);
        else if (lines)
            append_lines(path, text, count);
        else
            throw std::invalid_argument("unknown task: " + task);
        const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
        elapsed_ns.push_back(elapsed.count());
    } while (!lines && elapsed_ns.size() < count);

    for (std::size_t i = 0; i < elapsed_ns.size(); i++)
        std::cout << (i == 0 ? "{\"elapsed_ns\": [" : ", ") << elapsed_ns[i];
    std::cout << "], \"bytes\": " << found.bytes;
    if (task == "bytes-read")
        std::cout << ", \"sum\": " << found.sum;
    std::cout << "}" << std::endl;
}

} // namespace

int main(int argc, char **argv) {
    try {
        run(std::vector<std::string>(argv + 1, argv + argc));
        return std::cout ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return EXIT_FAILURE;
    }
}
