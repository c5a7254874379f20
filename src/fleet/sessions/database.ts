import { join } from 'node:path'
import { AppError } from '../../domain/errors.ts'
import { readUntrustedTextSync } from '../../process/files/read-untrusted.ts'
import type { FleetContext } from '../context.ts'

/**
 * An agent's commands (`coppice prime`, `coppice done`) open the database, but a session gets none of our variables
 * with passwords. So the database must be set in `config.yaml`.
 */
export const assertDatabaseInConfig = ({
  settings: { databaseUrl },
  home,
  ownEnvironment = {},
}: Pick<FleetContext['isolation'], 'settings' | 'home' | 'ownEnvironment'>): void => {
  if (databaseUrl === undefined) return
  const file = join(home, 'config.yaml')
  const isThere = readUntrustedTextSync(file, { followLink: true })?.includes(databaseUrl) === true
  const needsPassword = (URL.parse(databaseUrl)?.password ?? '') === '' && ownEnvironment['PGPASSWORD'] !== undefined
  if (isThere && !needsPassword) return
  const where = isThere ? 'its password is only in PGPASSWORD' : 'its address is only in COPPICE_DATABASE_URL'
  throw new AppError('config-invalid', `agents couldn't reach the database: ${where}, which they don't get`, {
    remedy: `set database.url in ${file}${needsPassword ? ', with the password' : ''}`,
  })
}
