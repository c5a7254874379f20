import { createLocalPlatform, type LocalPlatform } from '../local.ts'

/** `coppice chat`, through the server or without one. */
export const createCliPlatform = (): LocalPlatform => createLocalPlatform('cli')
