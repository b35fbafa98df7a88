'use strict'

// Whole files by one call: saved and copied.

const { bytes, call, native, pathBytes, wait } = require('./native.js')

function how({ durable = true } = {}) {
  return durable ? 'durable' : 'unflushed'
}

async function write(path, data, options = {}) {
  options.signal?.throwIfAborted()
  const [to, content] = [pathBytes(path), bytes(data)]
  return wait(() => native.write(to, content, how(options)))
}

function writeSync(path, data, options) {
  const [to, content] = [pathBytes(path), bytes(data)]
  call(() => native.writeSync(to, content, how(options)))
}

async function writeNew(path, data, { signal } = {}) {
  signal?.throwIfAborted()
  const [to, content] = [pathBytes(path), bytes(data)]
  return wait(() => native.write(to, content, 'new'))
}

function writeNewSync(path, data) {
  const [to, content] = [pathBytes(path), bytes(data)]
  call(() => native.writeSync(to, content, 'new'))
}

async function copy(source, target, { signal } = {}) {
  signal?.throwIfAborted()
  const [from, to] = [pathBytes(source), pathBytes(target)]
  return wait(() => native.copy(from, to))
}

function copySync(source, target) {
  const [from, to] = [pathBytes(source), pathBytes(target)]
  return call(() => native.copySync(from, to))
}

module.exports = { copy, copySync, write, writeNew, writeNewSync, writeSync }
