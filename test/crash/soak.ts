/** `npm run test:soak`: a crash at every failpoint of every scenario. `npm test` leaves out what differs in nothing. */
export const isSoak = process.env['COPPICE_CRASH'] === 'all'
