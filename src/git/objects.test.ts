import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mainTree, makeSandbox, type Sandbox } from '../../test/helpers/repo.ts'
import { toSha } from '../domain/names.ts'
import { catFiles, hashFiles, syncRecentObjects } from './blobs.ts'
import { commitTree, readTree, showFile } from './objects.ts'
import { treePath } from './tree-path.ts'

let box: Sandbox
beforeEach(() => {
  box = makeSandbox()
})
afterEach(() => box[Symbol.dispose]())
const path = (name: string | Buffer) => treePath(Buffer.from(name))

describe('keeping files', () => {
  it('brings every byte back: filters, line endings, links, modes and names do not matter', async () => {
    const repo = box.repo()
    repo.write('.gitattributes', '* text=auto eol=lf\n')
    repo.write('crlf', 'a\r\nb\r\n')
    repo.write('exe', '#!/bin/sh\n')
    chmodSync(join(repo.path, 'exe'), 0o755)
    repo.write('new\nline', '1')
    // git hash-object --stdin-paths would read the file without the carriage return.
    repo.write('crlf\r', '5')
    repo.write('"quoted', '2')
    repo.write(' space', '3')
    repo.write('dir/empty', '')
    symlinkSync('nowhere/at all', join(repo.path, 'link'))
    const odd = Buffer.from('caf\xe9', 'latin1')
    writeFileSync(Buffer.concat([Buffer.from(`${repo.path}/`), odd]), '4')
    const git = box.git()
    const paths = ['crlf', 'exe', 'new\nline', '"quoted', ' space', 'dir/empty', 'link', odd, 'crlf\r'].map(path)
    const files = await hashFiles(git, mainTree(repo), paths, { durable: true })
    expect(files.map(({ mode }) => mode)).toEqual([
      '100644',
      '100755',
      '100644',
      '100644',
      '100644',
      '100644',
      '120000',
      '100644',
      '100644',
    ])
    repo.git('rm', '-q', '--cached', 'README')
    const input = Buffer.concat(
      files.flatMap(({ mode, sha, bytes }) => [Buffer.from(`${mode} ${sha}\t`), bytes, Buffer.from('\0')]),
    )
    execFileSync('git', ['update-index', '-z', '--index-info'], { cwd: repo.path, env: box.env, input })
    const kept = await readTree(git, repo, toSha(repo.git('write-tree')))
    const key = (entry: { bytes: Buffer }): string => entry.bytes.toString('latin1')
    const lines = (entries: readonly { bytes: Buffer; mode: string; sha: string }[]): string[] =>
      entries.map((entry) => `${entry.mode} ${entry.sha} ${key(entry)}`).sort()
    expect(lines(kept)).toEqual(lines(files))
    const contents: string[] = []
    await catFiles(
      git,
      repo,
      files.map(({ sha }) => sha),
      async (_sha, content) => {
        contents.push(content.toString())
      },
    )
    expect(contents).toEqual(['a\r\nb\r\n', '#!/bin/sh\n', '1', '2', '3', '', 'nowhere/at all', '4', '5'])
    syncRecentObjects(repo.commonDir, 0)
  })

  it('refuses what git cannot keep instead of leaving it out', async () => {
    const repo = box.repo()
    mkdirSync(join(repo.path, 'directory'))
    const hashed = hashFiles(box.git(), mainTree(repo), [path('directory')])
    await expect(hashed).rejects.toMatchObject({ code: 'unsupported' })
    await expect(hashFiles(box.git(), mainTree(repo), [path('gone')])).rejects.toThrow(/ENOENT/)
  })

  it('commits a tree under a fixed name and time, so that the same content is the same commit', async () => {
    const repo = box.repo()
    const tree = toSha(repo.git('rev-parse', 'HEAD^{tree}'))
    const by = { name: 'Coppice', email: 'coppice@localhost', at: 1_700_000_000_123 }
    const wish = { tree, parents: [repo.sha()], message: 'kept\n', by }
    const git = box.git()
    const commit = await commitTree(git, repo, wish, { durable: true })
    expect(await commitTree(git, repo, wish)).toBe(commit)
    expect(repo.git('log', '-1', '--format=%an %ae %cn %at %P %s', commit)).toBe(
      `Coppice coppice@localhost Coppice 1700000000 ${repo.sha()} kept`,
    )
  })
})

describe('reading objects', () => {
  it('shows a file as a commit has it, or says that there is none', async () => {
    const repo = box.repo()
    const bytes = Buffer.from([0, 10, 255, 10])
    const commit = repo.commit('.coppice/config.yaml', bytes)
    const git = box.git()
    expect(await showFile(git, repo, commit, '.coppice/config.yaml')).toEqual(bytes)
    expect(await showFile(git, repo, commit, 'none')).toBeUndefined()
    expect(await showFile(git, repo, commit, '.coppice')).toBeUndefined()
  })

  it('streams large blobs in order, at the pace of whoever takes them', async () => {
    const repo = box.repo()
    const sizes = [5_000_000, 1, 0, 300_000]
    for (const [i, size] of sizes.entries()) repo.write(`f${i}`, Buffer.alloc(size, i))
    repo.git('add', '.')
    const shas = sizes.map((_, i) => toSha(repo.git('rev-parse', `:f${i}`)))
    const taken: number[] = []
    const gone = toSha('1'.repeat(40))
    await catFiles(box.git(), repo, [...shas, gone], async (_sha, content) => {
      await new Promise((resolve) => setImmediate(resolve))
      taken.push(content.length)
    })
    expect(taken).toEqual(sizes)
  })
})

describe('a commit', () => {
  it('has more parents than a command line holds', async () => {
    const repo = box.repo()
    // 40,000 arguments of 40 characters, each with a `-p` before it.
    const count = 40_000
    const one = (i: number): string =>
      `commit refs/heads/c\ncommitter A <a@b> ${i} +0000\ndata 0\nfrom refs/heads/main\n\n`
    const input = Array.from({ length: count }, (_, i) => one(i + 1)).join('')
    execFileSync('git', ['fast-import', '--quiet', '--force'], { cwd: repo.path, env: box.env, input })
    const all = execFileSync('git', ['cat-file', '--batch-all-objects', '--batch-check=%(objectname) %(objecttype)'], {
      cwd: repo.path,
      env: box.env,
      encoding: 'utf8',
      maxBuffer: 1e8,
    })
    const parents = [...all.matchAll(/^([0-9a-f]+) commit$/gm)].map(([, sha = '']) => toSha(sha))
    const by = { name: 'A', email: 'a@b', at: 0 }
    const tree = toSha(repo.git('rev-parse', 'main^{tree}'))
    const commit = await commitTree(box.git(), repo, { tree, parents, message: 'all\n', by })
    // Whatever walks through history takes seconds to sort that many.
    const parentsOf = (sha: string): string[] =>
      [...repo.git('cat-file', 'commit', sha).matchAll(/^parent (.*)/gm)].map(([, parent = '']) => parent)
    expect(parentsOf(commit).flatMap(parentsOf).toSorted()).toEqual(parents.toSorted())
  })
})
