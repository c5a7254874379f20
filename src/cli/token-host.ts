import { AppError } from '../domain/errors.ts'
import { gitHostOf } from '../platforms/github/host.ts'

/** The host GITHUB_TOKEN is for: github.com, or that of the configured API. */
export const tokenHost = (apiUrl: string | undefined): string => {
  const host = gitHostOf(apiUrl)
  if (host !== undefined) return host
  throw new AppError('config-invalid', "GITHUB_API_URL isn't a valid URL", {
    remedy: 'set it to a URL such as https://api.github.com or https://github.example.com/api/v3',
  })
}
