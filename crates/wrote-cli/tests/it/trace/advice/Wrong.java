import java.io.*;
import java.nio.file.*;

static void replace(Path path, byte[] data) throws IOException {
    Path next = path.resolveSibling(path.getFileName() + ".tmp");
    Files.write(next, data);
    Files.move(next, path, StandardCopyOption.ATOMIC_MOVE);
}

static void flush(Flushable buffer, FileOutputStream file) throws IOException {
    buffer.flush();
}

static void flushFolder(Path path) {}

static void append(Path path, ByteArrayOutputStream records) throws IOException {
    try (var file = new FileOutputStream(path.toFile(), true)) {
        for (byte each : records.toByteArray()) {
            file.write(each);
        }
    }
}
