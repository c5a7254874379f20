import { execFileSync, spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parseLsof } from './darwin.ts'
import { processesInside } from './processes-inside.ts'

/** Some states of the system cannot be made by a shell alone, or not without rights. */
const works = (command: string, args: string[]) => spawnSync(command, args).status === 0

let dir = ''
let children: ChildProcess[] = []

beforeEach(() => {
  dir = realpathSync(mkdtempSync(join(tmpdir(), 'coppice-inside-')))
  for (const name of ['a', 'b', 'a-b']) mkdirSync(join(dir, name))
})

afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  children = []
  rmSync(dir, { recursive: true, force: true })
})

/** Starts a shell command that says when it is ready and then stays. */
const staying = async (cwd: string, script: string): Promise<number> => {
  const child = spawn('/bin/sh', ['-c', `${script}\necho ready; exec sleep 60`], { cwd })
  children.push(child)
  await once(child.stdout, 'data')
  while (execFileSync('cat', [`/proc/${child.pid}/comm`], { encoding: 'utf8' }).trim() !== 'sleep') {
    await new Promise(setImmediate)
  }
  return child.pid ?? 0
}

test('a process is found by its working directory, also below the directory, and beside it is not inside', async () => {
  mkdirSync(join(dir, 'a', 'deep'))
  const below = await staying(join(dir, 'a', 'deep'), '')
  await staying(join(dir, 'a-b'), '')
  const { inside } = await processesInside([join(dir, 'a'), join(dir, 'b')])
  expect(inside).toEqual([{ dir: join(dir, 'a'), pid: below, command: 'sleep', how: 'cwd' }])
})

test('a process is found by an open file', async () => {
  const pid = await staying('/', `exec 5>'${join(dir, 'b', 'open file')}'`)
  const { inside } = await processesInside([join(dir, 'a'), join(dir, 'b')])
  expect(inside).toEqual([{ dir: join(dir, 'b'), pid, command: 'sleep', how: 'file' }])
})

test('an open file that was deleted still counts', async () => {
  const file = join(dir, 'b', 'gone')
  const pid = await staying('/', `exec 5>${file}; rm ${file}`)
  expect((await processesInside([join(dir, 'b')])).inside).toMatchObject([{ pid, how: 'file' }])
})

test('a working directory that was deleted itself still counts', async () => {
  const pid = await staying(join(dir, 'b'), 'rmdir ../b')
  expect((await processesInside([join(dir, 'b')])).inside).toMatchObject([{ pid, how: 'cwd' }])
})

test('a process is found by its program', async () => {
  const program = join(dir, 'a', 'program')
  copyFileSync('/bin/sleep', program)
  execFileSync('chmod', ['755', program])
  const child = spawn(program, ['60'], { cwd: '/' })
  children.push(child)
  await once(child, 'spawn')
  const { inside } = await processesInside([join(dir, 'a')])
  expect(inside).toEqual([{ dir: join(dir, 'a'), pid: child.pid, command: 'program', how: 'exe' }])
})

test.runIf(works('python3', ['-c', '']))(
  'a file that is mapped and no longer open counts, unless only asked for display',
  async () => {
    writeFileSync(join(dir, 'a', 'data'), Buffer.alloc(4096))
    const python = `import mmap,time
f=open(${JSON.stringify(join(dir, 'a', 'data'))},'r+b');libc=__import__('ctypes').CDLL(None,use_errno=True)
libc.mmap.restype=__import__('ctypes').c_void_p
libc.mmap(None,4096,3,1,f.fileno(),0);f.close();print('ready',flush=True);time.sleep(60)`
    const child = spawn('python3', ['-c', python], { cwd: '/' })
    children.push(child)
    await once(child.stdout, 'data')
    expect((await processesInside([join(dir, 'a')])).inside).toMatchObject([{ pid: child.pid, how: 'file' }])
    expect((await processesInside([join(dir, 'a')], { mappings: false })).inside).toEqual([])
  },
)

test('a renamed directory is followed to its new name', async () => {
  const pid = await staying(join(dir, 'a'), '')
  renameSync(join(dir, 'a'), join(dir, 'trash'))
  const { inside } = await processesInside([join(dir, 'a'), join(dir, 'trash')])
  expect(inside).toMatchObject([{ dir: join(dir, 'trash'), pid, how: 'cwd' }])
})

test('a directory named through a symbolic link is the same directory', async () => {
  const pid = await staying(join(dir, 'a'), '')
  symlinkSync(join(dir, 'a'), join(dir, 'link'))
  expect((await processesInside([join(dir, 'link')])).inside).toMatchObject([{ dir: join(dir, 'link'), pid }])
})

test('a directory given under two names does not hide the use of another', async () => {
  await staying(join(dir, 'a'), `exec 5>${join(dir, 'b', 'f')}`)
  symlinkSync(join(dir, 'a'), join(dir, 'link'))
  const dirs = [join(dir, 'a'), join(dir, 'b'), join(dir, 'link')]
  expect(new Set((await processesInside(dirs)).inside.map((entry) => entry.dir))).toEqual(new Set(dirs))
})

test('only the pids that are named are left out', async () => {
  const one = await staying(join(dir, 'a'), '')
  const two = await staying(join(dir, 'a'), '')
  const { inside } = await processesInside([join(dir, 'a')], { except: new Set([one]) })
  expect(inside.map(({ pid }) => pid)).toEqual([two])
})

test('a process that uses two directories is listed for both', async () => {
  const pid = await staying(join(dir, 'a'), `exec 5>${join(dir, 'b', 'f')}`)
  const { inside } = await processesInside([join(dir, 'a'), join(dir, 'b'), dir])
  expect(inside).toHaveLength(3)
  expect(inside).toEqual(
    expect.arrayContaining([
      { dir, pid, command: 'sleep', how: 'cwd' },
      { dir: join(dir, 'a'), pid, command: 'sleep', how: 'cwd' },
      { dir: join(dir, 'b'), pid, command: 'sleep', how: 'file' },
    ]),
  )
})

test.runIf(process.getuid?.() === 0)(
  "another user's process is named as unreadable, and the kernel's threads are not",
  async () => {
    const pid = await staying(join(dir, 'a'), '')
    const module = fileURLToPath(new URL('processes-inside.ts', import.meta.url))
    const code = `import { processesInside } from ${JSON.stringify(module)}
    process.setgid(65534); process.setuid(65534)
    console.log(JSON.stringify(await processesInside(['/nowhere'])))`
    const out = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', code], {
      encoding: 'utf8',
    })
    const { inside, unreadable } = JSON.parse(out) as Awaited<ReturnType<typeof processesInside>>
    expect(inside).toEqual([])
    expect(unreadable).toContainEqual({ pid, command: 'sleep' })
    expect(unreadable.filter(({ command }) => command.startsWith('kthreadd'))).toEqual([])
  },
)

test.runIf(works('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', '/proc']))(
  'without a readable /proc it throws instead of answering "nobody"',
  () => {
    const module = fileURLToPath(new URL('processes-inside.ts', import.meta.url))
    const code = `import { processesInside } from ${JSON.stringify(module)}
    await processesInside(['/tmp']).then(() => console.log('answered'), (e) => console.log(e.name, e.message))`
    const script = 'mount -t tmpfs none /proc && exec "$0" --no-warnings --input-type=module -e "$1"'
    const out = execFileSync('unshare', ['-m', 'sh', '-c', script, process.execPath, code], { encoding: 'utf8' })
    expect(out).toMatch(/^AppError couldn't read the process list/)
  },
)

test('on macOS the lines of lsof are read by their letters', () => {
  expect(parseLsof('p12\ncnode\nfcwd\nn/work/a b\nftxt\nn/bin/node\nf3\nn/work/f\np13\ncsh\nfrtd\nn/\n')).toEqual([
    {
      pid: 12,
      command: 'node',
      links: [
        ['cwd', '/work/a b'],
        ['exe', '/bin/node'],
        ['file', '/work/f'],
      ],
    },
    { pid: 13, command: 'sh', links: [['root', '/']] },
  ])
})
