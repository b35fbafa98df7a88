import os

replace("a", b"new\n")
with open("f", "wb") as file:
    file.write(b"new\n")
    flush(file)
flush_folder(".")
os.unlink("d")
flush_folder(".")
append("log", [b"record" + b" " * 400 + b"\n"] * 3)
flush_folder(".")
write_stream("n/s", [b"stream\n"])
overwrite("b", 1, b"block")
