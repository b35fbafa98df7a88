'use strict'

// Functions that save or copy an entire file in one call.

const { bytes, call, checked, native, pathBytes, wait } = require('./native.js')

const SAVE = ['durable', 'encoding', 'signal']
const NEW = ['encoding', 'signal']

function how({ durable = true }) {
  return durable ? 'durable' : 'unflushed'
}

async function write(path, data, options) {
  const { encoding, signal, ...rest } = checked(options, SAVE)
  signal?.throwIfAborted()
  const [to, content] = [pathBytes(path), bytes(data, encoding)]
  return wait(() => native.write(to, content, how(rest)))
}

function writeSync(path, data, options) {
  const { encoding, ...rest } = checked(options, SAVE)
  const [to, content] = [pathBytes(path), bytes(data, encoding)]
  call(() => native.writeSync(to, content, how(rest)))
}

async function writeNew(path, data, options) {
  const { encoding, signal } = checked(options, NEW)
  signal?.throwIfAborted()
  const [to, content] = [pathBytes(path), bytes(data, encoding)]
  return wait(() => native.write(to, content, 'new'))
}

function writeNewSync(path, data, options) {
  const { encoding } = checked(options, NEW)
  const [to, content] = [pathBytes(path), bytes(data, encoding)]
  call(() => native.writeSync(to, content, 'new'))
}

async function copy(source, target, options) {
  checked(options, ['signal']).signal?.throwIfAborted()
  const [from, to] = [pathBytes(source), pathBytes(target)]
  return wait(() => native.copy(from, to))
}

function copySync(source, target) {
  const [from, to] = [pathBytes(source), pathBytes(target)]
  return call(() => native.copySync(from, to))
}

function atomicWrites(path) {
  const of = pathBytes(path)
  return call(() => native.atomicWrites(of))
}

module.exports = { atomicWrites, copy, copySync, write, writeNew, writeNewSync, writeSync }
