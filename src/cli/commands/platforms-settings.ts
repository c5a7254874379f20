import { join } from 'node:path'
import type { IsolationContext } from '../../isolation/context.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import type { PlatformSettings } from '../../platforms/remote.ts'
import { readPlatformSettings } from '../../platforms/settings.ts'

export type HomeSettings = { readonly settings: PlatformSettings; readonly file: string }

/** As this home's server would read them. */
export const platformSettingsOf = ({
  home,
  ownEnvironment: env = {},
}: Pick<IsolationContext, 'home' | 'ownEnvironment'>): HomeSettings => {
  const homeFile = join(home, 'config.yaml')
  const homeText = readUntrustedTextSync(homeFile, { followLink: true })
  const settings = readPlatformSettings({ homeFile, env, ...(homeText !== undefined && { homeText }) })
  return { settings, file: homeFile }
}
