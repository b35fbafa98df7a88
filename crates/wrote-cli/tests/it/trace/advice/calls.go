import "bufio"
import "bytes"
import "os"

func must(err error) {
    if err != nil {
        panic(err)
    }
}

func main() {
    must(replace("a", []byte("new\n")))
    file, err := os.Create("f")
    must(err)
    buffer := bufio.NewWriter(file)
    buffer.WriteString("new\n")
    must(flush(buffer, file))
    must(flushFolder("."))
    must(os.Remove("d"))
    must(flushFolder("."))
    record := append([]byte("record"), bytes.Repeat([]byte(" "), 400)...)
    record = append(record, '\n')
    must(appendRecords("log", [][]byte{record, record, record}))
    must(flushFolder("."))
    must(writeStream("n/s", [][]byte{[]byte("stream\n")}))
    must(overwrite("b", 1, []byte("block")))
}
