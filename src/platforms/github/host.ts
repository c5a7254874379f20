/**
 * The host that git uses for the GitHub at this API: GitHub Enterprise Server has both on one host, github.com and
 * *.ghe.com have the API at `api.`. Undefined for an invalid URL.
 */
export const gitHostOf = (apiUrl: string | undefined): string | undefined => {
  if (apiUrl === undefined || apiUrl === '') return 'github.com'
  const host = URL.parse(apiUrl)?.host
  return host === '' ? undefined : host?.replace(/^api\.(?=(?:github\.com|[^.]+\.ghe\.com)$)/, '')
}
