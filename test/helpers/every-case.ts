/**
 * `npm run test:every-case`, part of CI: every combination of a table, a kill in every scenario, both databases.
 * `npm test` takes each row and each column of such a table at least once.
 */
export const everyCase = process.env['COPPICE_TEST'] === 'every-case'
