import os

def replace(path, data):
    with open(path + ".tmp", "wb") as file:
        file.write(data)
    os.replace(path + ".tmp", path)

def flush(file):
    file.flush()

def flush_folder(path):
    pass

def append(path, records):
    with open(path, "ab", buffering=0) as file:
        for byte in b"".join(records):
            file.write(bytes([byte]))
