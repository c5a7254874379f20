/*
 * For whoever loads YAML only when it is needed: `import('yaml')` itself has no names once it is bundled, because the
 * package is CommonJS.
 */
export { parseDocument } from 'yaml'
