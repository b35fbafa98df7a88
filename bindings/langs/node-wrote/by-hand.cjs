'use strict'

// Durable records of tasks, as one would write them by hand.

const fs = require('node:fs')
const { dirname } = require('node:path')

/** A file that is written and flushed once for all records that arrived during its last flush. */
class ByHand {
  waiting = []
  isFlushing = false

  static async open(path) {
    const log = new ByHand()
    log.file = await fs.promises.open(path, 'ax')
    const folder = await fs.promises.open(dirname(path))
    await folder.sync()
    await folder.close()
    return log
  }

  append(record) {
    return new Promise((resolve, reject) => {
      this.waiting.push({ record, resolve, reject })
      if (!this.isFlushing) this.flush()
    })
  }

  async flush() {
    this.isFlushing = true
    // The other tasks of this turn add their records to the first batch.
    await null
    while (this.waiting.length > 0) {
      const batch = this.waiting
      this.waiting = []
      try {
        await this.file.write(Buffer.concat(batch.map(({ record }) => record)))
        await this.file.datasync()
        for (const { resolve } of batch) resolve()
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
      // The tasks whose records are durable append again before the next batch begins.
      await new Promise(setImmediate)
    }
    this.isFlushing = false
  }

  close() {
    return this.file.close()
  }
}

module.exports = { ByHand }
