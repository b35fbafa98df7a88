// The tasks of langs/README.md, as they are usually written with kotlin.io.

import java.io.File
import java.io.FileOutputStream
import kotlin.system.exitProcess

/** The length of the file after one timed run, in bytes, and the sum of the bytes read. */
class Done(val bytes: Long, val sum: Long? = null)

fun main(arguments: Array<String>) {
    if (arguments.size != 4) fail("usage: program TASK PATH SIZE COUNT")
    val (task, path) = arguments
    val file = File(path)
    val size = arguments[2].toLong()
    val count = arguments[3].toInt()
    when (task) {
        "bytes-write" -> time(count) { writeBytes(file, size) }
        "bytes-read" -> time(count) { readBytes(file) }
        "save" -> {
            val text = letters(size)
            time(count) { save(file, text) }
        }
        "save-sync" -> {
            val text = letters(size)
            time(count) { saveSync(file, text) }
        }
        "lines" -> {
            val line = letters(size - 1)
            time(1) { appendLines(file, line, count) }
        }
        else -> fail("no such task: $task")
    }
}

// buffered() is Java's BufferedOutputStream with kotlin.io.DEFAULT_BUFFER_SIZE, 8 KiB.
fun writeBytes(file: File, size: Long): Done {
    file.outputStream().buffered().use { out ->
        for (i in 0 until size) {
            out.write((i and 0xff).toInt())
        }
    }
    return Done(size)
}

// buffered() is Java's BufferedInputStream, also with 8 KiB.
fun readBytes(file: File): Done {
    var bytes = 0L
    var sum = 0L
    file.inputStream().buffered().use { input ->
        while (true) {
            val value = input.read()
            if (value == -1) break
            bytes++
            sum += value
        }
    }
    return Done(bytes, sum)
}

// writeText encodes a short text (below 16 Ki characters) as a whole, and writes it in one piece.
fun save(file: File, text: String): Done {
    file.writeText(text)
    return Done(text.length.toLong())
}

// A FileOutputStream has no buffer; its descriptor's sync() is fsync.
fun saveSync(file: File, text: String): Done {
    FileOutputStream(file).use { out ->
        out.write(text.toByteArray())
        out.fd.sync()
    }
    return Done(text.length.toLong())
}

// bufferedWriter() is Java's BufferedWriter with 8 Ki characters, in front of the 8 KiB of its
// encoder.
fun appendLines(file: File, line: String, count: Int): Done {
    FileOutputStream(file, true).bufferedWriter().use { out ->
        repeat(count) { out.appendLine(line) }
    }
    return Done((line.length + 1L) * count)
}

fun letters(size: Long): String = buildString {
    for (k in 0 until size) append('a' + (k % 26).toInt())
}

fun time(count: Int, action: () -> Done) {
    var done = Done(0)
    val elapsed = List(count) {
        val begin = System.nanoTime()
        done = action()
        System.nanoTime() - begin
    }
    val sum = done.sum?.let { ", \"sum\": $it" } ?: ""
    println("{\"elapsed_ns\": $elapsed, \"bytes\": ${done.bytes}$sum}")
}

fun fail(message: String): Nothing {
    System.err.println(message)
    exitProcess(2)
}
