'use strict'

// Access to the native part: converts its arguments, and its errors into errors like those of
// node:fs.

const { fileURLToPath } = require('node:url')
const { getSystemErrorName } = require('node:util')

const native = load()

function load() {
  try {
    return require('../wrote.node')
  } catch (cause) {
    const machine = `${process.platform}-${process.arch}`
    throw new Error(`wrote: no native part for ${machine} and this C library`, { cause })
  }
}

/** Returns the bytes of content; those of a view are not copied. */
function bytes(data, encoding) {
  if (Buffer.isBuffer(data)) return data
  if (typeof data === 'string') return Buffer.from(data, encoding)
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength)
  throw wrongType('data', 'a string, Buffer, TypedArray or DataView', data)
}

/** Returns the bytes of a path. */
function pathBytes(path) {
  const name = path instanceof URL ? fileURLToPath(path) : path
  if (typeof name !== 'string' && !Buffer.isBuffer(name)) {
    throw wrongType('path', 'a string, Buffer or URL', path)
  }
  if (name.includes('\0')) throw wrongValue('The "path" argument must have no null bytes')
  return Buffer.from(name)
}

/**
 * Returns the options of a call. An option that is not `known` is an error, because ignoring it
 * would change what is written. A string is interpreted as an encoding, as in node:fs.
 */
function checked(options, known) {
  if (typeof options === 'string') return checked({ encoding: options }, known)
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || known.includes(name)) continue
    throw wrongValue(`unknown option "${name}": use ${known.join(', ')}`)
  }
  return options ?? {}
}

function wrongValue(text) {
  return Object.assign(new TypeError(text), { code: 'ERR_INVALID_ARG_VALUE' })
}

function wrongType(name, right, value) {
  const error = new TypeError(`The "${name}" argument must be ${right}, not ${typeof value}`)
  return Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
}

/** Returns the error for a failure of the native part. */
function raised(failure) {
  const { code: status, errno, kind, message, offset, path } = failure
  if (kind === undefined) {
    const isArgument = status !== 'GenericFailure' && !status?.startsWith('ERR_')
    if (!isArgument) return failure
    return wrongValue(message)
  }
  const code = getSystemErrorName(-errno)
  const error = new Error(`${code}: ${message}${path === null ? '' : `, '${path}'`}`)
  Object.assign(error, { errno: -errno, code, kind })
  if (path !== null) error.path = path
  if (offset !== null) error.offset = offset
  return error
}

/** Calls the native part on this thread. */
function call(action) {
  try {
    return action()
  } catch (failure) {
    throw raised(failure)
  }
}

/** Calls the native part on another thread. */
async function wait(action) {
  try {
    return await action()
  } catch (failure) {
    throw raised(failure)
  }
}

module.exports = { bytes, call, checked, native, pathBytes, raised, wait, wrongValue }
