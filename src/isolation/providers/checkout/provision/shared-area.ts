import { join } from 'node:path'
import type { Codebase } from '../../../../domain/environment.ts'
import type { IsolationContext } from '../../../context.ts'

/** Where copied files come from: the canonical checkout; for a bare repository, a directory a person fills. */
export const fileSource = (context: Pick<IsolationContext, 'home'>, codebase: Codebase): string =>
  codebase.checkoutPath ?? join(context.home, 'shared', codebase.name, 'files')

/** What `worktree.link` points into: shared by all environments of the codebase, and never the checkout. */
export const linkRoot = (context: Pick<IsolationContext, 'home'>, codebase: Codebase): string =>
  join(context.home, 'shared', codebase.name, 'links')
