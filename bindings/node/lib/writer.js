'use strict'

// Streams that write one file: put in place when they end, abandoned when they are destroyed.

const { Writable } = require('node:stream')
const { finished } = require('node:stream/promises')
const { native, pathBytes, wait } = require('./native.js')
const { closed, opened } = require('./open.js')

/** Pieces that together are shorter become one: a reference to each costs more. */
const JOINED_BYTES = 64 << 10

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
  /** `null` before the opening and after the end. */
  #part = null
  #written

  constructor(path, purpose, { durable = true, signal, highWaterMark, flags, ...options }) {
    super({ signal, highWaterMark })
    this.path = path
    this.bytesWritten = 0
    this.#to = pathBytes(path)
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

  /** Calls the native part after all earlier writes. */
  async #after(action) {
    await new Promise((resolve, reject) => {
      this.write('', (error) => error ? reject(error) : resolve())
    })
    return wait(() => action(this.#part.writer))
  }
}

/** Calls back, outside of the promise: the callback's errors are not the promise's. */
function settle(promise, callback, then = () => {}) {
  promise.then((value) => {
    then(value)
    process.nextTick(callback, null)
  }, (error) => process.nextTick(callback, error))
}

function replace(path, options = {}) {
  return new Writer(path, 'replace', options)
}

function create(path, options = {}) {
  return new Writer(path, 'create', options)
}

function append(path, options = {}) {
  return new Writer(path, 'append', options)
}

module.exports = { Writer, append, create, replace }
