/**
 * A secret for one host. Git reads it from a private file that exists for one network call. It's never in a URL, on a
 * command line or in the environment: git leaves processes behind that keep their environment for hours (a shared ssh
 * connection, a credential cache, `git maintenance`).
 */
export type HostToken = { readonly host: string; readonly secret: string }

/** What git logs in with, or why there is nothing although something is configured. */
export type Login =
  | (HostToken & {
      /** The user's credential helpers must not answer in its place, nor keep it: it is useless in an hour. */
      readonly shortLived?: true
    })
  | { readonly problem: string }

/** Asked right before a network call to this URL. Undefined: nothing is configured for it. */
export type FindLogin = (url: string | undefined) => Promise<Login | undefined>
