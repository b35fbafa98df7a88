import fs from "node:fs/promises";

async function replace(path, data) {
  await fs.writeFile(path + ".tmp", data);
  await fs.rename(path + ".tmp", path);
}

async function save(path, data) {
  await fs.writeFile(path, data);
}

async function flushFolder() {}

async function append(path, records) {
  const file = await fs.open(path, "a");
  for (const byte of Buffer.concat(records)) {
    await file.write(Buffer.from([byte]));
  }
  await file.close();
}
