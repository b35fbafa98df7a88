'use strict'

// Saves a file or appends to a log by the npm package: subject.js save|log PATH.
//
// The first line is 0, when all is ready. Requests come on standard input, each a length of 4 bytes
// and its content. Each has a line as its answer, in order, once it is durable: the record's
// sequence, or 0 for a file. The first error ends the program, with its negative number as the
// answer.

const fs = require('node:fs')
const wrote = require('wrote')

const [work, path] = process.argv.slice(-2)

const answer = (number) => fs.writeSync(1, `${number}\n`)

async function* requests() {
  let rest = Buffer.alloc(0)
  for await (const piece of process.stdin) {
    rest = Buffer.concat([rest, piece])
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE()) {
      const end = 4 + rest.readUInt32LE()
      yield rest.subarray(4, end)
      rest = rest.subarray(end)
    }
  }
}

async function save(number, content) {
  if (number % 2 === 1) return wrote.write(path, content)
  const file = wrote.replace(path)
  for (let begin = 0; begin < content.length; begin += 33333) {
    file.write(content.subarray(begin, begin + 33333))
  }
  return file.commit()
}

async function saves() {
  let number = 0
  answer(0)
  for await (const content of requests()) {
    number += 1
    await save(number, content)
    answer(0)
  }
}

async function appends() {
  const log = await wrote.openLog(path, { segmentBytes: 256 << 10, bufferBytes: 128 << 10 })
  answer(0)
  for await (const record of requests()) log.append(record).then(answer, refused)
}

function refused(error) {
  if (typeof error.errno !== 'number') throw error
  answer(-Math.abs(error.errno))
  // The exit would close the log, which would only fail again.
  process.kill(process.pid, 'SIGKILL')
}

(work === 'save' ? saves() : appends()).catch(refused)
