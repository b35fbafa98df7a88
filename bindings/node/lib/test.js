'use strict'

// `crash(name, save, check)`: a test for `node --test` of what a power loss leaves of a save. It
// needs the program `wrote`, in PATH or named by the variable WROTE. See docs/ci.md.

const { execFile } = require('node:child_process')
const { existsSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { describe, it, test } = require('node:test')

// In a child: the job, the folder for marks that show which jobs are done, and the job's folder.
const [job, place, path] = (process.env.WROTE_CRASH ?? '').split(/:([^:]*):(.*)/s)
const names = new Set()

// Runs `save(folder)`, and then `check(folder, hasReturned)` with each folder that a power loss
// could have left. `save` and each `check` run in a child process, which executes this file again
// for this test alone. `before(folder)` fills the folder.
function crash(name, save, check, { before, within = '30s' } = {}) {
  const runners = [globalThis.it, globalThis.describe, process.env.VITEST]
  const isForeign = runners.some((runner) => ![undefined, it, describe].includes(runner))
  if (isForeign) throw new Error('crash() needs node --test: this is another test runner')
  if (names.has(name)) throw new Error(`crash(): two tests have the name ${name}`)
  names.add(name)
  if (path === undefined) return test(name, (t) => parent(t, name, before, within))
  if (process.env.WROTE_CRASH_TEST === name) setImmediate(child, save, check)
}

async function child(save, check) {
  // The exit code of Node for a promise that is never settled.
  process.exitCode = 13
  try {
    if (job === 'save') await save(path)
    else await check(path, process.env.WROTE_ANSWERS !== '0')
    writeFileSync(join(place, job), '')
    process.exit(0)
  } catch (error) {
    console.error(error)
    process.exit(1)
  }
}

async function parent(t, name, before, within) {
  const place = mkdtempSync(join(tmpdir(), 'wrote-crash-test-'))
  const folder = mkdtempSync(join(place, 'folder-'))
  try {
    await before?.(folder)
    // The child runs no other tests of the file.
    const again = ['--test-name-pattern=^$', ...process.execArgv, ...process.argv.slice(1)]
    // Temporary folders that a child leaves behind are removed with the folders of this test.
    const words = (job) => ['env', `TMPDIR=${place}`, `WROTE_CRASH=${job}`, process.execPath, ...again]
    const quoted = (word) => `'${word.replaceAll("'", `'\\''`)}'`
    const check = words(`check:${place}:DIR`).map(quoted).join(' ')
    const options = ['trace', '--under', folder, '--within', within, '--check', check, '--']
    const env = { ...process.env, WROTE_CRASH_TEST: name, NODE_TEST_CONTEXT: undefined }
    const [error, said] = await new Promise((resolve) => {
      const program = process.env.WROTE ?? 'wrote'
      const done = (error, out, err) => resolve([error, out + err])
      execFile(program, [...options, ...words(`save:${place}:${folder}`)], { env }, done)
    })
    if (error?.code === 'ENOENT') {
      throw new Error(`${error.message}: install wrote, or set WROTE to its path (docs/ci.md)`)
    }
    if (error?.code === 125 && job === 'skip') return t.skip(said)
    const jobs = error ? ['save'] : ['save', 'check']
    const missed = jobs.find((job) => !existsSync(join(place, job)))
    if (missed) throw new Error(`the child did not reach the end of the ${missed}:\n${said}`)
    if (error) throw new Error(said)
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

module.exports = { crash }
