import "bufio"
import "bytes"
import "os"

func replace(path string, data []byte) error {
    if err := os.WriteFile(path+".tmp", data, 0o644); err != nil {
        return err
    }
    return os.Rename(path+".tmp", path)
}

func flush(buffer *bufio.Writer, file *os.File) error {
    return buffer.Flush()
}

func flushFolder(path string) error {
    return nil
}

func appendRecords(path string, records [][]byte) error {
    file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
    for _, record := range bytes.Join(records, nil) {
        _, err = file.Write([]byte{record})
    }
    return err
}
