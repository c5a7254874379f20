/** `npm run test:crash`: a crash at every failpoint of every scenario. */
export const isSoak = process.env['COPPICE_CRASH'] === 'all'
