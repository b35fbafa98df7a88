'use strict'

// The tasks of langs/README.md that write, by the npm package wrote.
//
// Where the language's own program syncs nothing, `durable: false` gives the same: the bytes
// survive a crash of the process. A save is atomic in addition, and with a sync also durable, with
// its name.

const { once } = require('node:events')
const wrote = require('wrote')

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

const letters = (size) => 'abcdefghijklmnopqrstuvwxyz'.repeat(size / 26 + 1).slice(0, size)

async function main() {
  const [task, path] = process.argv.slice(2)
  const [size, count] = process.argv.slice(4).map(Number)
  const [action, argument, times] = {
    'bytes-write': () => [writeBytes, size, count],
    save: () => [save, letters(size), count],
    'save-sync': () => [saveSync, letters(size), count],
    lines: () => [appendLines, `${letters(size - 1)}\n`, 1],
  }[task]()
  const elapsed_ns = []
  let bytes
  for (let time = 0; time < times; time++) {
    const begin = process.hrtime.bigint()
    bytes = action(path, argument, count)
    if (bytes instanceof Promise) bytes = await bytes
    elapsed_ns.push(Number(process.hrtime.bigint() - begin))
  }
  console.log(JSON.stringify({ elapsed_ns, bytes }))
}

main()
