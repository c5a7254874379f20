import { gitHostOf } from './host.ts'

/** Where people see the GitHub at this API. */
export const webUrlOf = (apiUrl: string | undefined): string => {
  const { protocol = 'https:' } = URL.parse(apiUrl ?? '') ?? {}
  return `${protocol}//${gitHostOf(apiUrl) ?? 'github.com'}`
}
