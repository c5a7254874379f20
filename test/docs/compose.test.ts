import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { anyDescriptor, remoteNames } from '../../src/platforms/remote.ts'

/** For a proxy or a GitHub Enterprise Server: not secret and seldom set, so `config.yaml` does. */
const leftOut = /^(?:GITHUB|SLACK|DISCORD|TELEGRAM)_API_URL$/

test("compose.yaml passes every platform's variables into the container", () => {
  const { services } = parse(readFileSync(join(import.meta.dirname, '../../compose.yaml'), 'utf8'))
  const passed: string[] = services.server.environment
  const all = remoteNames.flatMap((name) => Object.values(anyDescriptor(name).settings).map(({ variable }) => variable))
  expect(all.filter((variable) => !passed.includes(variable) && !leftOut.test(variable))).toEqual([])
  const prefixes = new RegExp(`^(?:${remoteNames.join('|')})_`, 'i')
  expect(passed.filter((variable) => prefixes.test(variable) && !all.includes(variable))).toEqual([])
})
