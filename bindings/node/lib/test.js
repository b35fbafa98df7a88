'use strict'

// `crash(name, save, check)`: a test for `node --test` of what a power loss leaves of a save. It
// needs the program `wrote`, in PATH or by the variable WROTE. See docs/ci.md.

const { execFile } = require('node:child_process')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { test } = require('node:test')

const [job, path] = (process.env.WROTE_CRASH ?? '').split(/:(.*)/s)

// Runs `save(folder)`, and then `check(folder, hasReturned)` with each folder that a power loss
// could have left, each in a child: this file, run again for this test alone. `before(folder)`
// fills the folder.
function crash(name, save, check, { before, within = '30s' } = {}) {
  if (path === undefined) return test(name, (t) => parent(t, name, before, within))
  if (process.env.WROTE_CRASH_TEST === name) setImmediate(child, save, check)
}

async function child(save, check) {
  try {
    if (job === 'save') await save(path)
    else await check(path, process.env.WROTE_ANSWERS !== '0')
    process.exit(0)
  } catch (error) {
    console.error(error)
    process.exit(1)
  }
}

async function parent(t, name, before, within) {
  const folder = mkdtempSync(join(tmpdir(), 'wrote-crash-test-'))
  try {
    await before?.(folder)
    // Other tests of the file do not run in the child.
    const again = ['--test-name-pattern=^$', ...process.execArgv, process.argv[1]]
    const words = (job) => ['env', `WROTE_CRASH=${job}`, process.execPath, ...again]
    const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`
    const check = words('check:DIR').map(quoted).join(' ')
    const options = ['trace', '--under', folder, '--within', within, '--check', check, '--']
    const env = { ...process.env, WROTE_CRASH_TEST: name, NODE_TEST_CONTEXT: undefined }
    const [error, said] = await new Promise((resolve) => {
      const program = process.env.WROTE ?? 'wrote'
      const done = (error, out, err) => resolve([error, out + err])
      execFile(program, [...options, ...words(`save:${folder}`)], { env }, done)
    })
    if (error?.code === 'ENOENT') {
      throw new Error(`${error.message}: install wrote, or set WROTE to its path (docs/ci.md)`)
    }
    if (error?.code === 125 && job === 'skip') return t.skip(said)
    if (error) throw new Error(said)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

module.exports = { crash }
