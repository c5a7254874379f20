import { AppError } from '../domain/errors.ts'

/** The host GITHUB_TOKEN is for: github.com, or the configured API's host. */
export const tokenHost = (apiUrl: string | undefined): string => {
  if (apiUrl === undefined || apiUrl === '') return 'github.com'
  const host = URL.parse(apiUrl)?.host
  if (host === undefined || host === '') {
    throw new AppError('config-invalid', "GITHUB_API_URL isn't a valid URL", {
      remedy: 'set it to a URL such as https://api.github.com or https://github.example.com/api/v3',
    })
  }
  return host === 'api.github.com' ? 'github.com' : host
}
