// The tasks of langs/README.md. Scala's library has no file I/O of its own, so programs use java.io
// and java.nio.file.

import java.io.{BufferedInputStream, BufferedOutputStream, BufferedWriter}
import java.io.{FileInputStream, FileOutputStream, FileWriter}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import scala.util.Using

/** The length of the file after one timed run, in bytes, and the sum of the bytes read. */
case class Done(bytes: Long, sum: Option[Long] = None)

@main def program(arguments: String*): Unit =
  arguments match
    case Seq(task, path, size, count) => run(task, path, size.toLong, count.toInt)
    case _                            => fail("usage: program TASK PATH SIZE COUNT")

def run(task: String, path: String, size: Long, count: Int): Unit =
  task match
    case "bytes-write" => time(count)(writeBytes(path, size))
    case "bytes-read"  => time(count)(readBytes(path))
    case "save" =>
      val text = letters(size)
      time(count)(save(path, text))
    case "save-sync" =>
      val text = letters(size)
      time(count)(saveSync(path, text))
    case "lines" =>
      val line = letters(size - 1)
      time(1)(appendLines(path, line, count))
    case other => fail(s"no such task: $other")

// A BufferedOutputStream has a buffer of 8192 bytes by default. The loop is a `while`, because
// `for` over a range of Long allocates an object for every number.
def writeBytes(path: String, size: Long): Done =
  Using.resource(BufferedOutputStream(FileOutputStream(path))): out =>
    var i = 0L
    while i < size do
      out.write((i & 0xff).toInt)
      i += 1
  Done(size)

// A BufferedInputStream has a buffer of 8192 bytes by default.
def readBytes(path: String): Done =
  var bytes = 0L
  var sum = 0L
  Using.resource(BufferedInputStream(FileInputStream(path))): in =>
    var value = in.read()
    while value != -1 do
      bytes += 1
      sum += value
      value = in.read()
  Done(bytes, Some(sum))

// Files.writeString encodes the text as a whole, and writes 8192 bytes at a time.
def save(path: String, text: String): Done =
  Files.writeString(Path.of(path), text)
  Done(text.length)

// A FileOutputStream has no buffer; its descriptor's sync() is fsync.
def saveSync(path: String, text: String): Done =
  Using.resource(FileOutputStream(path)): out =>
    out.write(text.getBytes(UTF_8))
    out.getFD.sync()
  Done(text.length)

// A BufferedWriter has a buffer of 8192 characters by default, in front of the 8192 bytes of the
// FileWriter's encoder. The usual PrintWriter is not used, because it hides errors.
def appendLines(path: String, line: String, count: Int): Done =
  Using.resource(BufferedWriter(FileWriter(path, true))): out =>
    for _ <- 0 until count do
      out.write(line)
      out.newLine()
  Done((line.length + 1L) * count)

def letters(size: Long): String =
  Iterator.tabulate(size.toInt)(k => ('a' + k % 26).toChar).mkString

def time(count: Int)(action: => Done): Unit =
  var done = Done(0)
  val elapsed = Array.fill(count):
    val begin = System.nanoTime()
    done = action
    System.nanoTime() - begin
  val sum = done.sum.fold("")(sum => s""", "sum": $sum""")
  println(s"""{"elapsed_ns": ${elapsed.mkString("[", ", ", "]")}, "bytes": ${done.bytes}$sum}""")

def fail(message: String): Nothing =
  System.err.println(message)
  sys.exit(2)
