'use strict'

// Streams that write a file, which gets its name when the stream ends and is abandoned when the
// stream is destroyed.

const { Writable } = require('node:stream')
const { finished } = require('node:stream/promises')
const { checked, native, pathBytes, wait, wrongValue } = require('./native.js')
const { closed, opened } = require('./open.js')

/**
 * Pieces that together are shorter than this are joined, because passing a reference to each piece
 * would cost more.
 */
const JOINED_BYTES = 64 << 10

/** The options and flags for each purpose. */
const OPTIONS = ['durable', 'encoding', 'flags', 'highWaterMark', 'mode', 'signal']
const KNOWN = {
  replace: [...OPTIONS, 'sizeHint'],
  create: [...OPTIONS, 'direct', 'sizeHint', 'sync'],
  append: [...OPTIONS, 'sync'],
}
const FLAGS = { replace: ['w', 'wx'], create: ['w', 'wx'], append: ['a'] }

/** The native part of a stream. */
class Part {
  constructor(writer, path, purpose) {
    this.writer = writer
    this.path = path
    this.purpose = purpose
  }

  end() {
    this.writer.abandonSync()
    const state = this.purpose === 'replace' ? 'not replaced' : 'not whole'
    return `${this.path}: ${state}: its stream was never ended`
  }

  forget() {
    return this.end()
  }
}

class Writer extends Writable {
  #to
  #purpose
  #options
  #durable
  /** The native part; `null` before the file is opened and after it is closed. */
  #part = null
  #written

  constructor(path, purpose, given) {
    const { durable = true, signal, encoding, highWaterMark, flags, ...options } =
      checked(given, KNOWN[purpose])
    if (![undefined, ...FLAGS[purpose]].includes(flags)) {
      throw wrongValue(`flags="${flags}": use "${FLAGS[purpose].join('" or "')}"`)
    }
    // The arguments are checked first, because `super` opens the file in a later turn.
    const to = pathBytes(path)
    super({ signal, highWaterMark, defaultEncoding: encoding })
    this.path = path
    this.bytesWritten = 0
    this.#to = to
    this.#purpose = purpose
    this.#durable = durable
    this.#options = { ...options, exclusive: flags === 'wx' }
  }

  _construct(callback) {
    const open = () => native.openWriter(this.#to, this.#purpose, this.#options)
    settle(wait(open), callback, (writer) => {
      this.#part = new Part(writer, this.path, this.#purpose)
      opened(this, this.#part)
    })
  }

  _write(chunk, encoding, callback) {
    this.bytesWritten += chunk.length
    if (this.#part.writer.collect(chunk)) return callback()
    settle(wait(() => this.#part.writer.write([chunk])), callback)
  }

  _writev(chunks, callback) {
    const pieces = chunks.map(({ chunk }) => chunk)
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (length <= JOINED_BYTES) return this._write(Buffer.concat(pieces), 'buffer', callback)
    this.bytesWritten += length
    settle(wait(() => this.#part.writer.write(pieces)), callback)
  }

  _final(callback) {
    const { writer } = this.#part
    settle(wait(() => writer.finish(this.#durable)), callback, (written) => {
      this.#end()
      this.#written = written
    })
  }

  _destroy(error, callback) {
    const part = this.#end()
    if (part === null) return callback(error)
    settle(part.writer.abandon(), (failure) => callback(error ?? failure))
  }

  #end() {
    const part = this.#part
    if (part !== null) closed(part)
    this.#part = null
    return part
  }

  async commit() {
    if (!this.destroyed) {
      this.end()
      await finished(this)
    }
    if (this.#written !== undefined) return this.#written
    const text = `${this.path}: the stream was destroyed`
    throw this.errored ?? Object.assign(new Error(text), { code: 'ERR_STREAM_DESTROYED' })
  }

  flush() {
    return this.#after((writer) => writer.flush())
  }

  sync() {
    return this.#after((writer) => writer.sync())
  }

  /** Abandons the file, unless it was committed, and waits until it is closed. */
  async [Symbol.asyncDispose ?? Symbol('asyncDispose')]() {
    if (this.closed) return
    this.destroy()
    await new Promise((resolve) => this.once('close', resolve))
  }

  /** Calls the native part after all earlier writes. */
  async #after(action) {
    await new Promise((resolve, reject) => {
      this.write('', (error) => error ? reject(error) : resolve())
    })
    return wait(() => action(this.#part.writer))
  }
}

/** Calls `callback` outside the promise, so that its errors do not become the promise's. */
function settle(promise, callback, then = () => {}) {
  promise.then((value) => {
    then(value)
    process.nextTick(callback, null)
  }, (error) => process.nextTick(callback, error))
}

function replace(path, options) {
  return new Writer(path, 'replace', options)
}

function create(path, options) {
  return new Writer(path, 'create', options)
}

function append(path, options) {
  return new Writer(path, 'append', options)
}

module.exports = { Writer, append, create, replace }
