import { type RemoteAddress, remoteAddress } from './remote-address.ts'

export type Comparison = { readonly base: string; readonly branch: string }

/** The page on which a person opens a pull request for this branch. Undefined for a host that we don't know. */
export const compareUrl = (remoteUrl: string | undefined, comparison: Comparison): string | undefined => {
  const address = remoteAddress(remoteUrl)
  const page = address && pageOf(address, encoded(comparison))
  return address && page && `https://${address.host}/${encodeURI(address.path)}/${page}`
}

const pageOf = ({ host }: RemoteAddress, { base, branch }: Comparison): string | undefined => {
  if (host === 'github.com' || /^[^.]+\.ghe\.com$/.test(host)) return `compare/${base}...${branch}?expand=1`
  if (host === 'gitlab.com') return `-/merge_requests/new?merge_request[source_branch]=${branch}`
  if (host === 'bitbucket.org') return `pull-requests/new?source=${branch}`
  return host === 'codeberg.org' ? `compare/${base}...${branch}` : undefined
}

/** Slashes stay: these hosts expect them in a branch's name. */
const encoded = ({ base, branch }: Comparison): Comparison => ({ base: inPath(base), branch: inPath(branch) })

const inPath = (name: string): string => name.split('/').map(encodeURIComponent).join('/')
