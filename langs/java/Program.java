import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedWriter;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FileWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** The tasks of langs/README.md, as they are usually written with java.io and java.nio.file. */
public final class Program {
    /** The length of the file after one timed run, in bytes, and the sum of the bytes read. */
    private record Done(long bytes, Long sum) {}

    @FunctionalInterface
    private interface Action {
        Done run() throws IOException;
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 4) {
            System.err.println("usage: Program TASK PATH SIZE COUNT");
            System.exit(2);
        }
        String task = arguments[0];
        String path = arguments[1];
        long size = Long.parseLong(arguments[2]);
        int count = Integer.parseInt(arguments[3]);
        switch (task) {
            case "bytes-write" -> time(count, () -> writeBytes(path, size));
            case "bytes-read" -> time(count, () -> readBytes(path));
            case "save" -> {
                String text = letters(size);
                time(count, () -> save(path, text));
            }
            case "save-sync" -> {
                String text = letters(size);
                time(count, () -> saveSync(path, text));
            }
            case "lines" -> {
                String line = letters(size - 1);
                time(1, () -> appendLines(path, line, count));
            }
            default -> {
                System.err.println("no such task: " + task);
                System.exit(2);
            }
        }
    }

    // BufferedOutputStream has 8192 bytes by default. Its write(int) takes a lock.
    private static Done writeBytes(String path, long size) throws IOException {
        try (var out = new BufferedOutputStream(new FileOutputStream(path))) {
            for (long i = 0; i < size; i++) {
                out.write((int) (i & 0xff));
            }
        }
        return new Done(size, null);
    }

    // BufferedInputStream has 8192 bytes by default, and takes the same kind of lock.
    private static Done readBytes(String path) throws IOException {
        long bytes = 0;
        long sum = 0;
        try (var in = new BufferedInputStream(new FileInputStream(path))) {
            int value;
            while ((value = in.read()) != -1) {
                bytes++;
                sum += value;
            }
        }
        return new Done(bytes, sum);
    }

    // Files.writeString (since Java 11) encodes the text as a whole, and writes 8192 bytes at a
    // time.
    private static Done save(String path, String text) throws IOException {
        Files.writeString(Path.of(path), text);
        return new Done(text.length(), null);
    }

    // A FileOutputStream has no buffer; its descriptor's sync() is fsync.
    private static Done saveSync(String path, String text) throws IOException {
        try (var out = new FileOutputStream(path)) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
            out.getFD().sync();
        }
        return new Done(text.length(), null);
    }

    // BufferedWriter has 8192 characters by default, in front of the 8192 bytes of the FileWriter's
    // encoder.
    private static Done appendLines(String path, String line, int count) throws IOException {
        try (var out = new BufferedWriter(new FileWriter(path, true))) {
            for (int i = 0; i < count; i++) {
                out.write(line);
                out.newLine();
            }
        }
        return new Done((line.length() + 1L) * count, null);
    }

    private static String letters(long size) {
        var text = new StringBuilder();
        for (int k = 0; k < size; k++) {
            text.append((char) ('a' + k % 26));
        }
        return text.toString();
    }

    private static void time(int count, Action action) throws IOException {
        var elapsed = new long[count];
        var done = new Done(0, null);
        for (int i = 0; i < count; i++) {
            long begin = System.nanoTime();
            done = action.run();
            elapsed[i] = System.nanoTime() - begin;
        }
        String sum = done.sum() == null ? "" : ", \"sum\": " + done.sum();
        System.out.printf(
                "{\"elapsed_ns\": %s, \"bytes\": %d%s}%n", Arrays.toString(elapsed), done.bytes(), sum);
    }
}
