import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ensureImage, nodeImage, nodeStandIn, openPodman, type Podman } from './podman.ts'

/* deploy/coppice.service with the real systemd, which runs in a container. */

let podman: Podman
beforeAll(() => {
  podman = openPodman()
  ensureImage(podman, nodeImage, () => nodeStandIn(podman))
  podman.documented('podman build --format docker --tag coppice .')
  writeFileSync(
    join(podman.workingDirectory, 'Dockerfile.systemd'),
    `FROM coppice
USER root
RUN apt-get update && apt-get install -y --no-install-recommends dbus sudo systemd
RUN useradd --system --create-home --home-dir /var/lib/coppice --shell /usr/sbin/nologin coppice
COPY deploy/coppice.service /etc/systemd/system/coppice.service
RUN install -m 600 /dev/null /etc/coppice.env && systemctl enable coppice
ENTRYPOINT []
CMD ["/lib/systemd/systemd"]
`,
  )
  podman.run(
    'build',
    '--tag',
    'coppice-systemd',
    '--file',
    join(podman.workingDirectory, 'Dockerfile.systemd'),
    podman.workingDirectory,
  )
  podman.run('run', '-d', '--name', 'systemd', '--privileged', '--systemd=always', 'coppice-systemd')
})
afterAll(() => podman[Symbol.dispose]())

const sh = (script: string): string => podman.run('exec', '--workdir', '/', 'systemd', 'sh', '-ec', script)
/** In a container the home directory would be /.coppice. */
const user = 'sudo -H -u coppice COPPICE_HOME=/var/lib/coppice/.coppice'
const asCoppice = (command: string): string => sh(`cd /var/lib/coppice/project && ${user} ${command}`)
const active = (): string => podman.attempt('exec', 'systemd', 'systemctl', 'is-active', 'coppice').out
const isHealthy = (): boolean => podman.attempt('exec', 'systemd', '/opt/coppice/deploy/healthcheck.js').code === 0
const becomesActive = async (): Promise<void> => {
  await expect.poll(isHealthy, { timeout: 60_000 }).toBe(true)
  expect(active()).toBe('active')
}

test('the unit is valid; the service answers, restarts without losing a message, and its agents reach neither secrets nor the system', async () => {
  await becomesActive()
  expect(sh('systemd-analyze verify --man=no /etc/systemd/system/coppice.service')).toBe('')
  const look = [
    'cat > /dev/null',
    'cat /etc/coppice.env 2>/dev/null && echo "reads the file"',
    'grep -sq webhook-secret /proc/[0-9]*/environ && echo "reads the environment"',
    'touch /etc/written /opt/coppice/written 2>/dev/null && echo "writes the system"',
    'ls /home/* 2>/dev/null && echo "sees home directories"',
    'git commit -q --allow-empty -m x && git log -1 --format=%s',
    'if [ ! -e ~/began ]; then touch ~/began; sleep 600; fi',
    'echo "attempt $COPPICE_ATTEMPT in $(pwd)"',
  ]
  writeFileSync(join(podman.workingDirectory, 'agent.sh'), look.join('\n'))
  podman.run('cp', join(podman.workingDirectory, 'agent.sh'), 'systemd:/usr/local/bin/agent.sh')
  sh('mkdir -p /home/ada && touch /home/ada/private && chmod 644 /usr/local/bin/agent.sh')
  sh(
    'printf "GITHUB_WEBHOOK_SECRET=webhook-secret-1\\nCOPPICE_AGENT_COMMAND=sh /usr/local/bin/agent.sh\\n" > /etc/coppice.env',
  )
  sh('systemctl restart coppice')
  await becomesActive()
  sh('sudo -H -u coppice git -C /var/lib/coppice init -q -b main project')
  asCoppice('git commit -q --allow-empty -m first')
  asCoppice('coppice codebase add /var/lib/coppice/project')
  sh(`cd /var/lib/coppice/project && (${user} coppice chat --conversation cli-kept look >/dev/null 2>&1 &)`)
  const began = (): boolean => podman.attempt('exec', 'systemd', 'test', '-e', '/var/lib/coppice/began').code === 0
  await expect.poll(began, { timeout: 60_000 }).toBe(true)
  // The agent sleeps for longer than the server gives it.
  sh('systemctl restart coppice')
  await becomesActive()
  expect(sh('journalctl -u coppice --no-pager')).toContain('1 unfinished message will run again on the next start')
  const next = asCoppice('coppice chat --conversation cli-kept again')
  expect(next).toMatch(/^x\nattempt 1 in \/var\/lib\/coppice\/\.coppice\/worktrees\/project\/thread-[0-9a-f]{8}$/m)
  expect(next).not.toMatch(/reads|writes|sees|Working in/)
  sh('systemctl stop coppice')
  expect(sh('systemctl show coppice --property=Result,ExecMainStatus')).toBe('Result=success\nExecMainStatus=0')
})
