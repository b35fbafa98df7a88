'use strict'

// Logs with a promise for each record, which the event loop fulfils when the record is safe.

const { bytes, call, checked, native, pathBytes, raised, wait } = require('./native.js')
const { closed, opened } = require('./open.js')
const { records } = require('./records.js')

const OPTIONS = ['bufferBytes', 'buffers', 'format', 'mode', 'retainAge', 'retainBytes', 'segmentBytes', 'sync']

/**
 * The native parts with pending promises. They are kept alive even if the program drops the log.
 */
const busy = new Set()

/** The native part of a log, and the promises for its records. */
class Part {
  constructor(path) {
    this.path = path
    this.log = null
    /** The function that appends a record for a promise. */
    this.append = null
    this.last = 0
    /** The promises for records that were appended, by number. */
    this.promises = new Map()
    /** The appends for which there was no room, in order. */
    this.queue = []
    /** Called when the queue is empty. */
    this.drained = () => {}
  }

  /** Starts `append(number)`, which returns the record's sequence, or null if there is no room. */
  start(append, again) {
    return new Promise((resolve, reject) => {
      const promise = { append, resolve, reject, sequence: null }
      if (this.queue.length === 0 && this.begin(promise)) return
      promise.append = again()
      this.queue.push(promise)
      busy.add(this)
    })
  }

  /**
   * Calls the append of a promise. Returns true if it succeeded or failed, and false if it found no
   * room.
   */
  begin(promise) {
    this.last = (this.last + 1) >>> 0
    const number = this.last
    try {
      promise.sequence = promise.append(number)
    } catch (failure) {
      promise.reject(raised(failure))
      return true
    }
    if (promise.sequence === null) return false
    this.promises.set(number, promise)
    busy.add(this)
    return true
  }

  /** Resolves promises; called by the event loop. */
  answer() {
    const { ready, failed, errors, hasRoom, noRoom } = this.log.answers()
    for (const number of ready) {
      const { resolve, sequence } = this.take(number)
      resolve(sequence)
    }
    failed.forEach((number, place) => {
      const { reject, sequence } = this.take(number)
      reject(Object.assign(raised(errors[place]), { sequence }))
    })
    if (noRoom) this.queue.shift()?.reject(raised(noRoom))
    if (hasRoom) this.repeat()
    if (this.promises.size + this.queue.length === 0) busy.delete(this)
  }

  take(number) {
    const promise = this.promises.get(number)
    this.promises.delete(number)
    return promise
  }

  repeat() {
    while (this.queue.length > 0 && this.begin(this.queue[0])) this.queue.shift()
    if (this.queue.length === 0) this.drained()
  }

  /** Waits until there has been room for all earlier appends. */
  async settled() {
    while (this.queue.length > 0) {
      await new Promise((resolve) => {
        const before = this.drained
        this.drained = () => {
          before()
          resolve()
        }
      })
    }
  }

  /**
   * Closes the log, after appending the records that are still waiting for room, because no event
   * loop will append them any more.
   */
  end() {
    try {
      for (this.repeat(); this.queue.length > 0; this.repeat()) this.log.drainSync()
      this.log.closeSync()
    } catch (failure) {
      return raised(failure).message
    }
  }

  forget() {
    this.log.close().catch(() => {})
    return `${this.path}: the log was never closed`
  }
}

class Log {
  #part
  #isClosed = false

  constructor(part) {
    this.#part = part
    this.path = part.path
    opened(this, part)
  }

  append(record) {
    const { append } = this.#part
    return this.#part.start((number) => append(bytes(record), number), () => {
      // The bytes are copied because the caller may reuse them.
      const data = Buffer.from(bytes(record))
      return (number) => append(data, number)
    })
  }

  async appendAll(records) {
    const list = Array.from(records, bytes)
    const { log } = this.#part
    const last = await this.#part.start((number) => log.appendAll(list, number), () => {
      const copies = list.map((record) => Buffer.from(record))
      return (number) => log.appendAll(copies, number)
    })
    return { first: last - list.length + 1, last }
  }

  wait(sequence, options) {
    const { durable = false } = checked(options, ['durable'])
    const { log } = this.#part
    return new Promise((resolve, reject) => this.#part.begin({
      append: (number) => {
        log.wait(sequence, durable, number)
        return sequence
      },
      resolve,
      reject,
    }))
  }

  async sync() {
    await this.#part.settled()
    return wait(() => this.#part.log.sync())
  }

  trimBefore(sequence) {
    return wait(() => this.#part.log.trimBefore(sequence))
  }

  async truncateFrom(sequence) {
    await this.#part.settled()
    return wait(() => this.#part.log.truncateFrom(sequence))
  }

  survives(sequence) {
    return call(() => this.#part.log.survives(sequence))
  }

  stats() {
    return this.#part.log.stats()
  }

  reader(options) {
    const { start = 0, follow = false, signal } = checked(options, ['follow', 'signal', 'start'])
    const { log } = this.#part
    return records((arrived) => log.reader(start, follow, arrived), signal)
  }

  async close() {
    await this.#part.settled()
    await wait(() => this.#part.log.close())
    this.#isClosed = true
    closed(this.#part)
  }

  get closed() {
    return this.#isClosed
  }

  async [Symbol.asyncDispose ?? Symbol('asyncDispose')]() {
    await this.close()
  }
}

async function openLog(path, given) {
  const options = checked(given, OPTIONS)
  const part = new Part(String(path))
  const [folder, answered] = [pathBytes(path), answering(new WeakRef(part))]
  part.log = await wait(() => native.openLog(folder, options, answered))
  part.append = part.log.appender()
  return new Log(part)
}

/**
 * Returns a function that the native part keeps. The function must not in turn keep the native part
 * alive.
 */
function answering(part) {
  return () => part.deref()?.answer()
}

module.exports = { Log, openLog }
