/*
 * For loading YAML on demand: `import('yaml')` itself has no named exports once bundled, because the package is
 * CommonJS.
 */
export { parseDocument } from 'yaml'
