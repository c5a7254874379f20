import type { Agent } from '../../src/agents/agent.ts'
import { claudeAt, codexAt } from '../agents/stage.ts'
import { startAnthropicServer } from '../helpers/model-servers/anthropic.ts'
import { startOpenAiServer } from '../helpers/model-servers/openai.ts'
import type { Asked, Call, ModelServer, Script } from '../helpers/model-servers/scripted.ts'
import { type AgentSpec, hanging, type Scene } from './agent-specs.ts'

/** The real programs of Claude Code and Codex. What they do is the model's script, on a server that lives for one run. */

type Vendor = {
  readonly name: string
  readonly start: (script: Script) => Promise<ModelServer>
  readonly agent: (url: string, scene: Scene, outputLimitBytes: number | undefined) => Agent
  readonly shell: (command: string) => Call
}

const claude: Vendor = {
  name: 'claude',
  start: startAnthropicServer,
  agent: (url, scene, outputLimitBytes) => claudeAt(url, stageOf(scene), limited(outputLimitBytes)),
  shell: (command) => ({ tool: 'Bash', input: { command, description: 'x' } }),
}

const codex: Vendor = {
  name: 'codex',
  start: startOpenAiServer,
  // Without its sandbox: what the suite looks at from outside (traces, numbers of processes) does not exist in there.
  agent: (url, scene, outputLimitBytes) =>
    codexAt(url, stageOf(scene), { sandbox: 'danger-full-access', ...limited(outputLimitBytes) }),
  shell: (cmd) => ({ tool: 'exec_command', input: { cmd, yield_time_ms: 30_000 } }),
}

const stageOf = ({ box, repo, directory }: Scene) => ({ box, repo, directory, [Symbol.dispose]: () => undefined })

const limited = (outputLimitBytes: number | undefined) => (outputLimitBytes === undefined ? {} : { outputLimitBytes })

const scripted =
  ({ start, agent, name }: Vendor, script: Script, outputLimitBytes?: number) =>
  (scene: Scene): Agent => ({
    name,
    availability: () => agent('http://127.0.0.1:9', scene, undefined).availability(),
    run: async (request) => {
      await using server = await start(script)
      // awaited here: the server must live as long as the run
      return await agent(server.url, scene, outputLimitBytes).run(request)
    },
  })

/** What the user said last, without what the program puts around it. */
const prompt = ({ said }: Asked): string => said.at(-1)?.trim().split('\n').at(-1) ?? ''

const runs =
  (vendor: Vendor, command: (scene: Scene) => string) =>
  (scene: Scene): Agent =>
    scripted(vendor, ({ results }) =>
      results.length === 0 ? { say: 'working', call: vendor.shell(command(scene)) } : { say: 'done' },
    )(scene)

const specOf = (vendor: Vendor): AgentSpec => ({
  name: vendor.name,
  hasTools: true,
  works: scripted(vendor, (asked) =>
    asked.results.length === 0
      ? { say: `Grüße, ${prompt(asked)}`, call: vendor.shell('echo done > done.txt') }
      : { say: 'fertig' },
  ),
  fails: scripted(vendor, () => ({ status: 400, type: 'invalid_request_error', message: 'no such model' })),
  hangs: runs(vendor, (scene) => hanging(scene.trace('pids'))),
  tells: runs(vendor, (scene) => `env -0 > '${scene.trace('env')}'; pwd -P > '${scene.trace('cwd')}'`),
  rambles: scripted(vendor, () => ({ say: `${'ünïcödé '.repeat(6_000)}the end` }), 10_000),
  forks: undefined,
})

export const programSpecs: readonly AgentSpec[] = [specOf(claude), specOf(codex)]
