import fs from "node:fs/promises";

await replace("a", "new\n");
await save("f", "new\n");
await flushFolder(".");
await fs.unlink("d");
await flushFolder(".");
await append("log", Array(3).fill(Buffer.from("record" + " ".repeat(400) + "\n")));
await flushFolder(".");
await writeStream("n/s", ["stream\n"]);
await overwrite("b", 1, Buffer.from("block"));
