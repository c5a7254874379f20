import { normalize } from 'node:path'

/** Where directories that Archon knows are on this machine, such as a container's `/.archon`. */
export type PathMap = readonly { readonly from: string; readonly to: string }[]

/** `/.archon=/opt/archon`; undefined unless both are absolute paths. */
export const parsePathMap = (text: string): PathMap[number] | undefined => {
  const at = text.indexOf('=/')
  const [from, to] = [text.slice(0, Math.max(at, 0)), text.slice(at + 1)]
  return at > 0 && from.startsWith('/') && !text.includes('\0') ? { from: plain(from), to: plain(to) } : undefined
}

/** The longest match wins. Only whole names match: `/.archon` isn't the start of `/.archon2`. */
export const mapPath = (map: PathMap, path: string): string => {
  const wanted = plain(path)
  const [best] = map
    .filter(({ from }) => wanted === from || wanted.startsWith(from === '/' ? '/' : `${from}/`))
    .toSorted((a, b) => b.from.length - a.from.length)
  return best === undefined ? path : plain(`${best.to}/${wanted.slice(best.from.length)}`)
}

const plain = (path: string): string => {
  const short = normalize(path)
  return short.length > 1 && short.endsWith('/') ? short.slice(0, -1) : short
}
