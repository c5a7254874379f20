import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IsolationContext } from '../../isolation/context.ts'
import { type PlatformSettings, readPlatformSettings } from '../../platforms/settings.ts'

export type HomeSettings = { readonly settings: PlatformSettings; readonly file: string }

/** As the server of this home would read them. */
export const platformSettingsOf = ({
  home,
  ownEnvironment: env = {},
}: Pick<IsolationContext, 'home' | 'ownEnvironment'>): HomeSettings => {
  const homeFile = join(home, 'config.yaml')
  const homeText = existsSync(homeFile) ? readFileSync(homeFile, 'utf8') : undefined
  const settings = readPlatformSettings({ homeFile, env, ...(homeText !== undefined && { homeText }) })
  return { settings, file: homeFile }
}
