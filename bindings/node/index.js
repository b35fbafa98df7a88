'use strict'

// The package: saves, streams that replace files, and logs. index.d.ts states what each promises.

const { atomicWrites, copy, copySync, write, writeNew, writeNewSync, writeSync } = require(
  './lib/save.js')
const { Writer, append, create, replace } = require('./lib/writer.js')
const { Log, openLog } = require('./lib/log.js')
const { Lines, lines } = require('./lib/lines.js')
const { readLog } = require('./lib/records.js')
const { native } = require('./lib/native.js')
const version = native.version()

// Only names are listed, so that an import from an ES module finds them without executing this
// file.
module.exports = {
  Lines,
  Log,
  Writer,
  append,
  atomicWrites,
  copy,
  copySync,
  create,
  lines,
  openLog,
  readLog,
  replace,
  version,
  write,
  writeNew,
  writeNewSync,
  writeSync,
}
