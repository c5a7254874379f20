/** What an import can't do: named, with what is needed to do it by hand. The words are the caller's. */
export type Advice =
  /** Commands that must be committed to `.coppice/commands/`. */
  | { readonly kind: 'commands'; readonly codebase: string; readonly files: readonly CommandFile[] }
  /** `yaml`: lines for the repository's `.coppice/config.yaml`. `unused`: keys that nothing here corresponds to. */
  | {
      readonly kind: 'repository-config'
      readonly codebase: string
      readonly file: string
      readonly yaml: readonly string[]
      readonly unused: readonly string[]
    }
  /** `yaml`: lines for the home's `config.yaml`. */
  | {
      readonly kind: 'home-config'
      readonly file: string
      readonly yaml: readonly string[]
      readonly unused: readonly string[]
    }
  | { readonly kind: 'unreadable-config'; readonly file: string; readonly why: string }
  | { readonly kind: 'base-missing'; readonly codebase: string; readonly branch: string }
  | { readonly kind: 'unknown-agent'; readonly codebase: string; readonly agent: string }
  | { readonly kind: 'variable'; readonly name: string; readonly use: VariableUse }
  /** Archon answered everybody on this platform; here the list must be set. */
  | { readonly kind: 'allow-list'; readonly platform: string; readonly variable: string }

export type CommandFile = {
  readonly file: string
  /** What it is called here. */
  readonly name: string
  /** A command of Coppice's has that name, so it needs another one. */
  readonly clash: boolean
  /** Uses `$1`, `$2`, …, and only `$ARGUMENTS` is filled in here. */
  readonly positional: boolean
}

/**
 * `renamed`: set it under the other name. `content`: the same, but to what is in the file that it names. `separate`: the
 * other name, but never the same value. `user-ids`: the same name, with IDs instead of names. `login`: log in with the
 * program instead. `option`: give it to `coppice serve`. `nothing`: nothing here needs it.
 */
export type VariableUse =
  | { readonly kind: 'renamed' | 'content' | 'separate'; readonly to: string }
  | { readonly kind: 'user-ids' }
  | { readonly kind: 'login'; readonly program: string }
  | { readonly kind: 'option'; readonly to: string }
  | { readonly kind: 'no-platform'; readonly platform: string }
  | { readonly kind: 'nothing' }
