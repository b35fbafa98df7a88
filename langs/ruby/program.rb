# frozen_string_literal: true

# The tasks of langs/README.md, as they are usually written with File.

require "json"

# Ruby's buffer for writing to a File has 8 KiB.
def write_bytes(path, size)
  File.open(path, "wb") do |file|
    size.times { |number| file.putc(number % 256) }
  end
  { bytes: size }
end

# Ruby's buffer for reading from a File also has 8 KiB.
def read_bytes(path)
  count = 0
  sum = 0
  File.open(path, "rb") do |file|
    file.each_byte do |byte|
      count += 1
      sum += byte
    end
  end
  { bytes: count, sum: sum }
end

def save(path, text)
  File.write(path, text)
  { bytes: text.bytesize }
end

# fsync first writes Ruby's buffer to the kernel.
def save_sync(path, text)
  File.open(path, "w") do |file|
    file.write(text)
    file.fsync
  end
  { bytes: text.bytesize }
end

# puts adds the line feed.
def append_lines(path, line, count)
  File.open(path, "a") do |file|
    count.times { file.puts(line) }
  end
  { bytes: (line.bytesize + 1) * count }
end

def letters(size)
  Array.new(size) { |k| ("a".ord + k % 26).chr }.join
end

def timed(count)
  done = {}
  elapsed_ns = Array.new(count) do
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    done = yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start
  end
  puts JSON.generate({ elapsed_ns: elapsed_ns }.merge(done))
end

abort "usage: program.rb TASK PATH SIZE COUNT" unless ARGV.length == 4

task, path = ARGV
size = Integer(ARGV[2])
count = Integer(ARGV[3])

case task
when "bytes-write"
  timed(count) { write_bytes(path, size) }
when "bytes-read"
  timed(count) { read_bytes(path) }
when "save"
  text = letters(size)
  timed(count) { save(path, text) }
when "save-sync"
  text = letters(size)
  timed(count) { save_sync(path, text) }
when "lines"
  line = letters(size - 1)
  timed(1) { append_lines(path, line, count) }
else
  abort "no such task: #{task}"
end
