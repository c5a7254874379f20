import type { RepoConfig } from '../../../../domain/config/repository.ts'
import type { Codebase, IsolatedEnvironment } from '../../../../domain/environment.ts'
import type { ProcessIdentity } from '../../../../domain/process-identity.ts'
import type { Tree } from '../../../../git/door.ts'

/** A tree created by git that will become an environment. */
export type Provisioning = {
  readonly codebase: Codebase
  readonly environment: IsolatedEnvironment
  readonly tree: Tree
  /** From the base commit. */
  readonly config: RepoConfig
  readonly signal?: AbortSignal | undefined
  /** A script may outlive us; the journal names it. */
  readonly onSpawn?: ((identity: ProcessIdentity) => void) | undefined
}
