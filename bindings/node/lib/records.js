'use strict'

// Records of a log, read as they arrive.

const { checked, native, pathBytes, raised, wait } = require('./native.js')

/**
 * Yields the records of the reader that `open` creates. The reader calls the function that is
 * passed to `open` when records arrive.
 */
async function * records(open, signal) {
  signal?.throwIfAborted()
  let arrived = () => {}
  const reader = await wait(() => open(() => arrived()))
  const abort = () => arrived()
  signal?.addEventListener('abort', abort)
  try {
    for (;;) {
      signal?.throwIfAborted()
      const batch = reader.take()
      // From now on, a record or a signal may arrive. Either calls `arrived` in a later turn of the
      // event loop.
      const later = new Promise((resolve) => { arrived = resolve })
      for (const record of batch.records) yield record
      if (batch.error) throw raised(batch.error)
      if (batch.isOver) return
      if (batch.records.length === 0) await later
    }
  } finally {
    signal?.removeEventListener('abort', abort)
    reader.close()
  }
}

function readLog(path, options) {
  const { start = 0, since, follow = false, signal } =
    checked(options, ['follow', 'signal', 'since', 'start'])
  const folder = pathBytes(path)
  const time = since instanceof Date ? since.getTime() : since
  return records((arrived) => native.openRecords(folder, start, time, follow, arrived), signal)
}

module.exports = { readLog, records }
