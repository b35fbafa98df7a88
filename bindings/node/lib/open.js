'use strict'

// The open streams and logs. When the process exits or drops them, they are closed, with a warning.

const { native } = require('./native.js')

/**
 * The native parts. Each has a method `end`, which closes it on this thread and returns a message
 * for the user.
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
