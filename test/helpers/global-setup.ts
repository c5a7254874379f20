/** Runs once before all tests. Real parts need real preparation; suites that need more add it here. */
export const setup = (): void => {
  process.env['GIT_CONFIG_NOSYSTEM'] = '1'
}
