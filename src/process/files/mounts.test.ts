import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mountsInside, mountsInTable } from './mounts.ts'

const table = (...lines: string[]): Buffer => Buffer.from(`${lines.join('\n')}\n`, 'latin1')
const root = '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw'

describe('the mount table', () => {
  test.each([
    ['a bind mount', '40 22 254:0 /data/x /t/tree/ign rw - ext4 /dev/vda rw', '/t/tree/ign', 'bind mount of /data/x'],
    ['the directory itself', '40 22 254:0 /data /t/tree rw - ext4 /dev/vda rw', '/t/tree', 'bind mount of /data'],
    ['a file', '40 22 254:0 /etc/hosts /t/tree/f rw - ext4 /dev/vda rw', '/t/tree/f', 'bind mount of /etc/hosts'],
    ['a tmpfs', '40 22 0:51 / /t/tree/tmp rw - tmpfs none rw', '/t/tree/tmp', 'tmpfs'],
    ['a disk', '40 22 8:1 / /t/tree/disk rw - xfs /dev/sdb1 rw', '/t/tree/disk', 'xfs on /dev/sdb1'],
    ['several optional fields', '40 22 0:51 / /t/tree/o rw shared:9 master:2 - tmpfs none rw', '/t/tree/o', 'tmpfs'],
    [
      'a part of what is mounted nowhere else',
      '40 22 8:9 /sub /t/tree/s rw - ext4 /dev/x rw',
      '/t/tree/s',
      'bind mount of /sub',
    ],
    [
      'a name with a space, a newline and a backslash',
      '40 22 0:51 / /t/tree/a\\040b\\012c\\134 rw - tmpfs none rw',
      '/t/tree/a b\nc\\',
      'tmpfs',
    ],
    [
      'a name in UTF-8',
      `40 22 0:51 / /t/tree/${Buffer.from('ä').toString('latin1')} rw - tmpfs none rw`,
      '/t/tree/ä',
      'tmpfs',
    ],
  ])('says what is mounted: %s', (_name, line, path, what) => {
    expect(mountsInTable(table(root, line), ['/t/tree'])).toEqual([{ path, what }])
  })

  test('a bind mount of another mount is named by where that is', () => {
    const disk = '30 22 8:1 / /srv/disk rw - xfs /dev/sdb1 rw'
    const bind = '40 22 8:1 /volumes/7 /t/tree/v rw - xfs /dev/sdb1 rw'
    expect(mountsInTable(table(root, disk, bind), ['/t/tree'])).toEqual([
      { path: '/t/tree/v', what: 'bind mount of /srv/disk/volumes/7' },
    ])
  })

  test('what is beside or above the directory does not count, and two mounts on one place count once', () => {
    const beside = ['/t/tree2/x', '/t', '/t/tre'].map((at, i) => `${i + 50} 22 0:51 / ${at} rw - tmpfs none rw`)
    const twice = ['60', '61'].map((id) => `${id} 22 0:5${id} / /t/tree/x rw - tmpfs none rw`)
    expect(mountsInTable(table(root, ...beside, ...twice), ['/t/tree'])).toHaveLength(1)
  })

  test.each(['nonsense', '40 22 8:1 / /t/tree rw', '40 22 8:1 - xfs /dev/sdb1 rw'])(
    'a line like %j is not *nothing*',
    (line) => {
      expect(() => mountsInTable(table(root, line), ['/elsewhere'])).toThrow(/unexpected line/)
    },
  )
})

test('an ordinary directory has nothing mounted inside, and one that is not there is not answered', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'coppice-mounts-'))
  try {
    mkdirSync(join(directory, 'a/b'), { recursive: true })
    expect(await mountsInside([directory])).toEqual([])
    await expect(mountsInside([join(directory, 'gone')])).rejects.toThrow(/ENOENT/)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
