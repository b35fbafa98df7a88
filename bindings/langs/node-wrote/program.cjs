'use strict'

// The tasks of langs/README.md that write, using the npm package wrote.
//
// If the language's own program syncs nothing, `durable: false` is equivalent: the bytes survive a
// crash of the process. A save is also atomic and, with a sync, durable together with its name.

const { once } = require('node:events')
const fs = require('node:fs')
const wrote = require('wrote')
const { ByHand } = require('./by-hand.cjs')

async function write(file, count, piece) {
  for (let number = 0; number < count; number++) {
    if (!file.write(piece(number))) await once(file, 'drain')
  }
  await file.commit()
}

async function writeBytes(path, size) {
  const file = wrote.create(path, { durable: false })
  await write(file, size, (number) => Buffer.from([number % 256]))
  return size
}

function save(path, text) {
  wrote.writeSync(path, text, { durable: false })
  return text.length
}

function saveSync(path, text) {
  wrote.writeSync(path, text)
  return text.length
}

async function appendLines(path, line, count) {
  await write(wrote.append(path, { durable: false }), count, () => line)
  return line.length * count
}

async function log(path, line, count) {
  const isByHand = process.argv[6] === 'by-hand'
  const log = await (isByHand ? ByHand.open(path) : wrote.openLog(`${path}.log`))
  const record = isByHand ? Buffer.from(`${line}\n`) : line
  let left = count
  const task = async () => {
    while (left-- > 0) await log.append(record)
  }
  await Promise.all(Array.from({ length: 64 }, task))
  await log.close()
  return (line.length + 1) * count
}

/** Writes the records of a log as lines to the file that is checked. */
async function takeOut(path) {
  const file = fs.openSync(path, 'w')
  for await (const record of wrote.readLog(`${path}.log`)) fs.writeSync(file, `${record.data}\n`)
  fs.closeSync(file)
  fs.rmSync(`${path}.log`, { recursive: true })
}

const letters = (size) => 'abcdefghijklmnopqrstuvwxyz'.repeat(size / 26 + 1).slice(0, size)

async function main() {
  const [task, path] = process.argv.slice(2)
  const [size, count] = process.argv.slice(4).map(Number)
  const [action, argument, times] = {
    'bytes-write': () => [writeBytes, size, count],
    save: () => [save, letters(size), count],
    'save-sync': () => [saveSync, letters(size), count],
    lines: () => [appendLines, `${letters(size - 1)}\n`, 1],
    log: () => [log, letters(size - 1), 1],
  }[task]()
  const elapsed_ns = []
  let bytes
  for (let time = 0; time < times; time++) {
    const begin = process.hrtime.bigint()
    bytes = action(path, argument, count)
    if (bytes instanceof Promise) bytes = await bytes
    elapsed_ns.push(Number(process.hrtime.bigint() - begin))
  }
  if (fs.existsSync(`${path}.log`)) await takeOut(path)
  console.log(JSON.stringify({ elapsed_ns, bytes }))
}

main()
