import java.io.*;
import java.nio.file.*;

public static void main(String[] arguments) throws IOException {
    replace(Path.of("a"), "new\n".getBytes());
    try (var file = new FileOutputStream("f"); var text = new OutputStreamWriter(file)) {
        text.write("new\n");
        flush(text, file);
    }
    flushFolder(Path.of("."));
    Files.delete(Path.of("d"));
    flushFolder(Path.of("."));
    var records = new ByteArrayOutputStream();
    records.write(("record" + " ".repeat(400) + "\n").repeat(3).getBytes());
    append(Path.of("log"), records);
    flushFolder(Path.of("."));
    writeStream(Path.of("n/s"), java.util.List.of("stream\n".getBytes()));
    overwrite(Path.of("b"), 1, "block".getBytes());
}
