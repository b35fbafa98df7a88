// The tasks of langs/README.md, as they are usually written with node:fs.

import { once } from "node:events";
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fsyncSync,
  openSync,
  writeFileSync,
} from "node:fs";
import { finished } from "node:stream/promises";

// A stream accepts 16 KiB by default, or 64 KiB since Node.js 22 (stream.getDefaultHighWaterMark),
// before it asks the program to wait for "drain". It keeps each write separate, and passes pending
// writes to the system with writev, at most 1,024 at a time, which is the system's limit.
async function writeBytes(path, size) {
  const file = createWriteStream(path);
  for (let number = 0; number < size; number++) {
    if (!file.write(Buffer.from([number % 256]))) {
      await once(file, "drain");
    }
  }
  file.end();
  await finished(file);
  return { bytes: size };
}

// A stream that reads a file yields pieces of 64 KiB by default.
async function readBytes(path) {
  let bytes = 0;
  let sum = 0;
  for await (const piece of createReadStream(path)) {
    for (const byte of piece) {
      bytes += 1;
      sum += byte;
    }
  }
  return { bytes, sum };
}

function save(path, text) {
  writeFileSync(path, text);
  return { bytes: text.length };
}

function saveSync(path, text) {
  const file = openSync(path, "w");
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  return { bytes: text.length };
}

async function appendLines(path, line, count) {
  const file = createWriteStream(path, { flags: "a" });
  for (let written = 0; written < count; written++) {
    if (!file.write(line)) {
      await once(file, "drain");
    }
  }
  file.end();
  await finished(file);
  return { bytes: line.length * count };
}

function letters(size) {
  const first = "a".charCodeAt(0);
  return String.fromCharCode(...Array.from({ length: size }, (_, k) => first + (k % 26)));
}

async function timed(count, action) {
  const elapsed_ns = [];
  let done;
  for (let i = 0; i < count; i++) {
    const begin = process.hrtime.bigint();
    done = action();
    // Waiting for a finished operation would add a turn of the event loop to the time.
    if (done instanceof Promise) {
      done = await done;
    }
    elapsed_ns.push(Number(process.hrtime.bigint() - begin));
  }
  console.log(JSON.stringify({ elapsed_ns, ...done }));
}

function fail(message) {
  console.error(message);
  process.exit(2);
}

function wholeNumber(argument) {
  const number = Number(argument);
  return Number.isSafeInteger(number) && number >= 0 ? number : fail(`no number: ${argument}`);
}

if (process.argv.length !== 6) {
  fail("usage: program.mjs TASK PATH SIZE COUNT");
}
const [task, path] = process.argv.slice(2);
const size = wholeNumber(process.argv[4]);
const count = wholeNumber(process.argv[5]);

switch (task) {
  case "bytes-write":
    await timed(count, () => writeBytes(path, size));
    break;
  case "bytes-read":
    await timed(count, () => readBytes(path));
    break;
  case "save": {
    const text = letters(size);
    await timed(count, () => save(path, text));
    break;
  }
  case "save-sync": {
    const text = letters(size);
    await timed(count, () => saveSync(path, text));
    break;
  }
  case "lines": {
    const line = `${letters(size - 1)}\n`;
    await timed(1, () => appendLines(path, line, count));
    break;
  }
  default:
    fail(`no such task: ${task}`);
}
