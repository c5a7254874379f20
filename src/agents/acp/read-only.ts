import {
  type ClientContext,
  RequestError,
  type SessionConfigOption,
  type SessionModeState,
} from '@agentclientprotocol/sdk'

/** What an agent says about its modes when a session starts or is resumed. */
export type SessionModes = {
  readonly modes?: SessionModeState | null
  readonly configOptions?: readonly SessionConfigOption[] | null
}

/** Returns to the mode the session had before. */
export type LeaveReadOnly = () => Promise<void>

/**
 * Switches the session to the agent's read-only mode: not all agents ask before they write. Undefined if it has none or
 * refuses; then only what it asks Coppice to do can be denied.
 */
export const enterReadOnly = async (
  agent: ClientContext,
  sessionId: string,
  session: SessionModes,
): Promise<LeaveReadOnly | undefined> => {
  try {
    // Agents that have both expect clients to use the options only.
    return (await byOption(agent, sessionId, session)) ?? (await byMode(agent, sessionId, session))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return undefined
  }
}

const byOption = async (
  agent: ClientContext,
  sessionId: string,
  { configOptions }: SessionModes,
): Promise<LeaveReadOnly | undefined> => {
  const selects = (configOptions ?? []).flatMap((option) => (option.type === 'select' ? [option] : []))
  // The category is only a hint, and may be missing.
  const sorted = selects.toSorted((a, b) => Number(b.category === 'mode') - Number(a.category === 'mode'))
  for (const { id: configId, currentValue, options } of sorted) {
    const values = options.flatMap((one) => ('options' in one ? one.options : [one]))
    const value = values.find((one) => isReadOnly(one.value, one.name))?.value
    if (value === undefined) continue
    if (value === currentValue) return async () => undefined
    const set = await agent.request('session/set_config_option', { sessionId, configId, value })
    const now = set.configOptions.find(({ id }) => id === configId)?.currentValue
    if (now !== value) return undefined
    return async () => {
      await agent.request('session/set_config_option', { sessionId, configId, value: currentValue })
    }
  }
  return undefined
}

const byMode = async (
  agent: ClientContext,
  sessionId: string,
  { modes }: SessionModes,
): Promise<LeaveReadOnly | undefined> => {
  const mode = modes?.availableModes.find(({ id, name }) => isReadOnly(id, name))
  if (mode === undefined || modes === undefined || modes === null) return undefined
  const { currentModeId } = modes
  if (currentModeId === mode.id) return async () => undefined
  await agent.request('session/set_mode', { sessionId, modeId: mode.id })
  return async () => {
    await agent.request('session/set_mode', { sessionId, modeId: currentModeId })
  }
}

/** Gemini CLI, Claude Code and opencode call it `plan`, Codex `read-only`; Copilot's ids are URLs that end in `#plan`. */
const isReadOnly = (id: string, name: string): boolean =>
  [id.slice(-100).split(/[#/]/).at(-1) ?? '', name].some((one) => /^(?:plan|read[-_ ]?only)$/i.test(one))
