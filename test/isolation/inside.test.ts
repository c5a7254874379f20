import { resolve } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { built } from '../helpers/built.ts'
import { canMount, runWithMounts } from '../helpers/with-mounts.ts'
import type { Seen, Told } from './inside-child.ts'
import { type Kind, keepable, kinds, kindsAt, mountOnTree, type Place } from './inside-kinds.ts'

/** What becomes of the environment; whatever is inside it stays whole, except where `isWhole` says otherwise. */
type Expected = (kind: Kind) => Partial<Seen>

const refused: Expected = ({ gate }) => ({ outcome: `${gate} no` })
const left: Expected = () => ({ outcome: 'left' })
const isKept = ({ name }: Kind): boolean => keepable.has(name)

const places: Record<string, Place> = {
  'a pull request that moved on': 'a review',
  'a rewritten pull request': 'a review',
  'undoing an interrupted creation': 'a creation',
  'discarding a spare': 'a spare',
  'retiring a spare': 'a spare that cannot serve',
  'removing a cloned codebase': 'a clone',
  'emptying the trash': 'the trash',
  'after remove.saved': 'remove.saved',
  'after remove.moved': 'remove.moved',
  'after remove.checked': 'remove.checked',
}

const ways: Record<string, Expected> = {
  'the command': refused,
  'the fleet': refused,
  'a closed conversation': refused,
  'the sweep of what is merged': refused,
  'the sweep of what is stale': refused,
  'a pull request that moved on': left,
  'a rewritten pull request': left,
  'making room': () => ({ outcome: 'kept' }),
  // Repositories are in the restore point, and it brings them back.
  'the forced command': (kind) => (isKept(kind) ? { outcome: 'removed' } : refused(kind)),
  'undoing an interrupted creation': (kind) => ({ outcome: isKept(kind) ? 'undone' : 'left' }),
  'discarding a spare': left,
  'retiring a spare': left,
  'removing a cloned codebase': left,
  // What was given up is in a restore point; only what no restore point can hold is left.
  'emptying the trash': (kind) => (isKept(kind) ? { outcome: 'deleted', isWhole: false } : { outcome: 'left' }),
}

const changed = 'nothing-uncommitted no'
const moments: Record<string, Expected> = {
  'after remove.saved': (kind) => {
    if (kind.name === mountOnTree) return { outcome: 'failed' }
    return { outcome: kind.gate === 'no-mount' ? 'no-mount no' : changed }
  },
  'after remove.moved': (kind) => {
    if (kind.name === mountOnTree) return { outcome: 'failed' }
    return { outcome: kind.gate === 'no-mount' ? 'no-mount no' : changed }
  },
  // Past the last look only the deletion itself can notice: it leaves mounts and worktrees.
  'after remove.checked': (kind) => {
    if (kind.name === mountOnTree) return { outcome: 'failed' }
    return isKept(kind) ? { outcome: 'removed', isWhole: false } : { outcome: 'removed' }
  },
}

const cases = (table: Record<string, Expected>) =>
  Object.entries(table).flatMap(([way, expected]) =>
    kindsAt(places[way] ?? 'an environment').map(
      (kind) => [way, JSON.stringify(kind.name).slice(1, -1), { way, kind, expected }] as const,
    ),
  )

let { report, more }: Told = { report: {}, more: {} }
beforeAll(async () => {
  ;({ report, more } = await runWithMounts<Told>(
    built('test/isolation/inside-child.ts'),
    {},
    resolve(import.meta.dirname),
  ))
}, 300_000)

describe('what is inside a worktree and not of it stays whole', () => {
  test.each(cases(ways))('%s and %s', (_way, _kind, { way, kind, expected }) => {
    expect(report[way]?.[kind.name]).toEqual({ isWhole: true, ...expected(kind) })
  })

  test.each(cases(moments))('appearing %s: %s', (_way, _kind, { way, kind, expected }) => {
    expect(report[way]?.[kind.name]).toEqual({ isWhole: true, ...expected(kind) })
  })

  test.runIf(canMount)('a directory that becomes a mount while its siblings are deleted is left', () => {
    expect(more['mounted while it is deleted']).toBe('true')
    expect(more['what was left']).toMatch(/couldn't delete all of \/tree: \/tree\/\w+ \(something is mounted there\)/)
  })

  test.runIf(canMount)(
    "a mount in place of a codebase's directory is no obstacle: the trash is on the same mount",
    () => {
      expect(more).toMatchObject({
        'undone on a mount': 'true,false',
        'removed on a mount': 'removed 1',
        'restored on a mount': 'precious\n',
        'emptied on a mount': '',
      })
    },
  )

  test.runIf(canMount)('a volume in place of a tracked directory keeps a pull request where it is', () => {
    expect(more['a volume in place of a tracked directory']).toBe('left file; left file')
  })

  test.runIf(canMount)("a mount in git's record keeps the record of a worktree that is gone", () => {
    expect(more['forgetting a record']).toBe("something is mounted inside git's record")
    expect(more['whole in a record']).toBe('true')
  })

  test.runIf(canMount)('a spare that cannot serve is left with a mount in it that git does not notice', () => {
    expect(more['retiring a spare with a mounted file']).toBe('left')
  })

  test.runIf(canMount)('without a trash on the same mount a removal says what to do, and nothing is lost', () => {
    const trash = '/trees/project/.trash'
    expect(more['nowhere to move it']).toBe(
      `couldn't move /trees/project/issue-1 to the trash: ${trash} is on another mount → umount ${trash}`,
    )
    expect(more['kept on a mount']).toBe('precious active')
  })

  test.runIf(canMount)('a mount table that makes no sense removes nothing, with force neither', () => {
    expect(more['a mount table that makes no sense']).toBe('no-mount cannot-tell,no-mount cannot-tell')
  })

  test.runIf(canMount)('doctor names what is mounted in the trash', () => {
    const detail =
      "/trees/.trash/gone-mounted/ign/data can't be deleted: something is mounted there (bind mount of /outside-"
    expect(more['doctor']).toContain(detail)
    expect(more['doctor']).toContain('umount /trees/.trash/gone-mounted/ign/data')
    expect(more['whole after doctor']).toBe('true')
  })

  test.runIf(canMount)('where there is no mount table, another device tells', () => {
    // A bind mount of the same device beside it is what this cannot see: Linux has the table for that.
    expect(more['found by device']).toBe('/trees/.trash/gone-mounted/ign/volume')
  })

  test('mounts are among it where the platform has them, and everything is planted somewhere', () => {
    expect(kinds.some(({ gate }) => gate === 'no-mount')).toBe(canMount)
    const planted = new Set(Object.values(report).flatMap((seen) => Object.keys(seen)))
    expect([...planted].sort()).toEqual(kinds.map(({ name }) => name).sort())
  })
})
