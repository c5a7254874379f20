import { createLocalPlatform, type LocalPlatform } from '../local.ts'

/** The HTTP API and the page. */
export const createWebPlatform = (): LocalPlatform => createLocalPlatform('web')
