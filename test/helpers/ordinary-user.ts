/** Put before a command, takes from root what lets it read everything: permissions hold as they do for anybody else. */
export const asOrdinaryUser: readonly string[] =
  process.platform === 'linux' && process.getuid?.() === 0
    ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search']
    : []
