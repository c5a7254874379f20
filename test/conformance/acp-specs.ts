import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAcpAgent } from '../../src/agents/acp/agent.ts'
import type { Agent, AgentRequest } from '../../src/agents/agent.ts'
import { installGemini } from '../helpers/acp/install-gemini.ts'
import { google } from '../helpers/model-servers/google.ts'
import { type Script, startModelServer, type Step } from '../helpers/model-servers/scripted.ts'
import { type AgentSpec, contextDirectory, hanging, type Scene } from './agent-specs.ts'

const program = fileURLToPath(new URL('../helpers/acp/agent.ts', import.meta.url))

type Program = { readonly name: string; readonly command: readonly string[]; readonly outputLimitBytes?: number }

const acpAgent = (scene: Scene, run: Program, variables: Readonly<Record<string, string>> = {}): Agent =>
  createAcpAgent({
    ...run,
    variables,
    forks: false,
    permissions: 'allow',
    silenceMs: 60_000,
    clock: Date.now,
    ids: randomUUID,
    ownEnvironment: scene.box.env,
    contextDirectory: contextDirectory(scene),
  })

/** The small one of our own, on the SDK's agent side. */
const example = (scene: Scene, behaviour: string, outputLimitBytes?: number): Agent =>
  acpAgent(scene, {
    name: 'example',
    command: [process.execPath, program, behaviour, scene.box.path('traces')],
    ...(outputLimitBytes !== undefined && { outputLimitBytes }),
  })

export const acpExample: AgentSpec = {
  name: 'example',
  hasTools: true,
  works: (scene) => example(scene, 'works'),
  fails: (scene) => example(scene, 'fails'),
  hangs: (scene) => example(scene, 'hangs'),
  tells: (scene) => example(scene, 'tells'),
  rambles: (scene) => example(scene, 'rambles', 10_000),
  forks: (scene) => example(scene, 'forks'),
}

/** The real Gemini CLI, with a model that follows a script. The model is named so that it asks none which to take. */
const gemini = (scene: Scene, scriptFor: (request: AgentRequest) => Script): Agent => {
  const named: Program = {
    name: 'gemini',
    command: [process.execPath, installGemini(process.env), '--acp', '--model', 'gemini-2.5-pro'],
  }
  return {
    ...acpAgent(scene, named),
    run: async (request) => {
      await using server = await startModelServer(google, scriptFor(request))
      const variables = { GEMINI_API_KEY: 'made-up', GOOGLE_GEMINI_BASE_URL: server.url }
      // Awaited here: the server goes with this scope.
      return await acpAgent(scene, named, variables).run(request)
    },
  }
}

const shell =
  (command: string): Script =>
  ({ results }): Step =>
    results.length === 0
      ? { call: { tool: 'run_shell_command', input: { command, description: 'as asked' } } }
      : { say: 'Ran it.' }

export const acpGemini: AgentSpec = {
  name: 'gemini',
  // Gemini 0.61 sometimes answers "No previous sessions found for this project" right after it has had one.
  mayForget: true,
  hasTools: true,
  works: (scene) =>
    gemini(
      scene,
      ({ directory, prompt }) =>
        ({ results }): Step =>
          results.length === 0
            ? {
                say: 'Grüße. ',
                call: { tool: 'write_file', input: { file_path: join(directory, 'done.txt'), content: `${prompt}\n` } },
              }
            : { say: `${prompt}: done` },
    ),
  fails: (scene) => gemini(scene, () => () => ({ status: 400, type: 'INVALID_ARGUMENT', message: 'no such model' })),
  hangs: (scene) => gemini(scene, () => shell(hanging(scene.trace('pids')))),
  tells: (scene) => gemini(scene, () => shell(`env -0 > '${scene.trace('env')}'; pwd -P > '${scene.trace('cwd')}'`)),
  // It ends a turn by itself in which its model repeats itself.
  rambles: undefined,
  forks: undefined,
}
