'use strict'

// A plain line file with a promise for each line, fulfilled when the line is safe.

const { bytes, call, checked, native, pathBytes, wait } = require('./native.js')

const OPTIONS = ['bufferBytes', 'mode', 'sync', 'waits']

class Lines {
  #lines

  constructor(path, lines) {
    this.path = path
    this.#lines = lines
  }

  async append(line) {
    const data = bytes(line)
    const safe = call(() => this.#lines.append(data))
    return wait(() => safe)
  }

  flush() {
    return wait(() => this.#lines.flush())
  }

  reopen() {
    return wait(() => this.#lines.reopen())
  }

  close() {
    return wait(() => this.#lines.close())
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    return this.close()
  }
}

async function lines(path, options) {
  const name = pathBytes(path)
  const opened = await wait(() => native.openLines(name, checked(options, OPTIONS)))
  return new Lines(path, opened)
}

module.exports = { Lines, lines }
