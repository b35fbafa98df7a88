'use strict'

// Open streams and logs. They are ended, and reported, when the process exits or drops them.

const { native } = require('./native.js')

/**
 * The native parts. Each has a method `end`, which ends it on this thread and returns what the user
 * should know.
 */
const open = new Set()

const forgotten = new FinalizationRegistry((part) => {
  open.delete(part)
  process.emitWarning(part.forget(), 'ResourceWarning')
})

/** Adds the native part of `owner`, which must not refer to it. */
function opened(owner, part) {
  open.add(part)
  forgotten.register(owner, part, part)
}

function closed(part) {
  open.delete(part)
  forgotten.unregister(part)
}

// process.exit() does not run finalizers of the native part.
process.on('exit', () => {
  native.finishWork()
  for (const part of open) {
    const text = part.end()
    if (text) process.stderr.write(`wrote: ${text}\n`)
  }
})

module.exports = { closed, opened }
