import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'
import { AppError } from '../domain/errors.ts'
import type { Setting } from './neutral.ts'
import { coppice, remedy } from '../domain/remedy.ts'

/**
 * For addresses from a chat. Threats: a repository or file on this machine (`file://`, a path), a service on our
 * network that trusts anyone who can reach it, a name that resolves to one, and a public server that redirects to one.
 *
 * Allows only plain https and ssh addresses. Returns settings for the call: no redirects, and over https the resolved
 * address that was checked, so the name can't resolve to another one a moment later.
 */
export const publicAddress = async (url: string, resolve: Resolve = resolveHost): Promise<Setting[]> => {
  const { host, port } = hostOf(url)
  if (isPrivateName(host)) throw refused(`${host} is on a private network`)
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  if (addresses.length === 0) throw refused(`couldn't resolve ${host}`)
  if (addresses.some(isPrivateAddress)) throw refused(`${host} is on a private network`)
  const pinned = isIP(host) === 0 && port !== undefined ? `${host}:${port}:${addresses.join(',')}` : undefined
  return [
    ['http.followRedirects', 'false'],
    ...(pinned === undefined ? [] : [['http.curloptResolve', pinned] as const]),
  ]
}

export type Resolve = (host: string) => Promise<readonly string[]>

const resolveHost: Resolve = async (host) => {
  try {
    return (await lookup(host, { all: true })).map(({ address }) => address)
  } catch {
    return []
  }
}

/**
 * An allow-list: rejects what two parsers could read as two hosts (`\`, `@`, Unicode), and names with a trailing dot:
 * curl wouldn't find the checked address under such a name, and would resolve it again.
 */
const name = String.raw`[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?`
const forms = [
  new RegExp(String.raw`^https:\/\/(?<host>${name}|\[[0-9A-Fa-f:.]+\])(?::(?<port>\d{1,5}))?\/[\w.~%+\/-]+$`),
  new RegExp(
    String.raw`^ssh:\/\/(?:[A-Za-z_][\w.-]*@)?(?<host>${name}|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/[\w.~%+\/-]+$`,
  ),
  new RegExp(String.raw`^(?:[A-Za-z_][\w.-]*@)(?<host>${name}):(?!-)[\w.~%+\/-]+$`),
]

/** The host as a resolver reads it: `0x7f.1`, `2130706433` and `017700000001` are all 127.0.0.1. */
const hostOf = (url: string): { host: string; port: string | undefined } => {
  for (const form of forms) {
    const { host, port } = form.exec(url)?.groups ?? {}
    if (host === undefined) continue
    const parsed = URL.parse(`https://${host}/`)?.hostname
    if (parsed === undefined || parsed === '') break
    const plain = parsed.replace(/^\[|\]$/g, '').replace(/\.$/, '')
    return { host: plain, port: url.startsWith('https:') ? (port ?? '443') : undefined }
  }
  throw refused('only https:// and ssh:// addresses are allowed')
}

/** A name without a dot is looked up in the network's own domain. */
const isPrivateName = (host: string): boolean =>
  isIP(host) === 0 &&
  (!host.includes('.') || /\.(?:localhost|local|internal|intranet|lan|home|corp|private|home\.arpa)$/.test(host))

// Separate lists: a combined one treats every IPv4 address as part of `::ffff:0:0/96`.
const private4 = new BlockList()
const public6 = new BlockList()
const private6 = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const) {
  private4.addSubnet(address, prefix, 'ipv4')
}
// Everything routed on the internet. Most addresses that embed IPv4 (`::ffff:0:7f00:1`) are outside it.
public6.addSubnet('2000::', 3, 'ipv6')
// Teredo and its neighbours, and 6to4: these embed IPv4 addresses too.
private6.addSubnet('2001::', 23, 'ipv6')
private6.addSubnet('2002::', 16, 'ipv6')

/** Anything that isn't a valid address counts as private. */
const isPrivateAddress = (address: string): boolean => {
  const plain = address.split('%', 1).join('')
  const kind = isIP(plain)
  if (kind === 4) return private4.check(plain, 'ipv4')
  return kind !== 6 || !public6.check(plain, 'ipv6') || private6.check(plain, 'ipv6')
}

const refused = (why: string): AppError =>
  new AppError('name-invalid', `this can't be cloned from a chat: ${why}`, {
    remedy: remedy`use a public https:// or ssh:// address, or add it from a terminal (${coppice('codebase add')})`,
  })
