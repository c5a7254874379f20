import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'vitest'

export const repository = resolve(import.meta.dirname, '../..')

/**
 * Podman with its own storage, so that images, containers and volumes of the trial never meet the user's.
 * COPPICE_DEPLOY_STORAGE keeps the storage in that directory, which makes the next trial faster.
 */
export type Podman = {
  /** Runs to completion; throws with its output unless it exits with 0. */
  run(...args: string[]): string
  attempt(...args: string[]): { readonly code: number | null; readonly out: string }
  /** Runs commands that docs/deploy.md contains, line by line, as they are written there. */
  documented(commands: string, env?: Record<string, string>): void
  readonly program: string
  readonly directory: string
  /** Where documented commands run: a copy of what the image is built from. */
  readonly workingDirectory: string
  [Symbol.dispose](): void
}

export const openPodman = (): Podman => {
  const kept = process.env['COPPICE_DEPLOY_STORAGE']
  const directory = kept ?? mkdtempSync(join(tmpdir(), 'coppice-deploy-'))
  const bin = join(directory, 'bin')
  mkdirSync(bin, { recursive: true })
  const program = join(bin, 'podman')
  writeFileSync(program, wrapper(directory), { mode: 0o755 })
  const attempt: Podman['attempt'] = (...args) => {
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 64 << 20 })
    return { code: status, out: withoutComplaints(`${stdout}${stderr}`).trim() }
  }
  const run: Podman['run'] = (...args) => {
    const { code, out } = attempt(...args)
    if (code !== 0) throw new Error(`podman ${args.join(' ')}: exit code ${code}\n${out}`)
    return out
  }
  const page = readFileSync(join(repository, 'docs/deploy.md'), 'utf8').split('\n')
  const lines = new Set(page.map((line) => line.trim()))
  // In a directory of its own: a redirection of the page writes a file.
  const cwd = mkdtempSync(join(directory, 'run-'))
  for (const name of ['compose.yaml', 'Dockerfile', 'package.json', 'package-lock.json', '.dockerignore'])
    cpSync(join(repository, name), join(cwd, name))
  for (const name of ['bin', 'deploy', 'scripts', 'src'])
    cpSync(join(repository, name), join(cwd, name), { recursive: true })
  return {
    run,
    attempt,
    program,
    directory,
    workingDirectory: cwd,
    documented: (commands, env = {}) => {
      for (const line of commands
        .trim()
        .split('\n')
        .map((each) => each.trim())) {
        if (!lines.has(line)) throw new Error(`docs/deploy.md doesn't say: ${line}`)
        const options = {
          cwd,
          env: { ...process.env, ...env, PATH: `${bin}:${process.env['PATH']}` },
          maxBuffer: 64 << 20,
        }
        const { status, stdout, stderr } = spawnSync('sh', ['-ec', line], { ...options, encoding: 'utf8' })
        if (status !== 0) throw new Error(`${line}\nexit code ${status}\n${stdout.slice(-2000)}${stderr.slice(-4000)}`)
      }
    },
    [Symbol.dispose]: () => {
      attempt('rm', '--all', '--force', '--time', '0')
      attempt('volume', 'prune', '--force')
      rmSync(cwd, { recursive: true, force: true })
      if (kept !== undefined) return
      attempt('system', 'reset', '--force')
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** Stands before the real podman on the PATH, for podman-compose too. */
const wrapper = (directory: string): string => {
  const has = (name: string): boolean => spawnSync('which', [name], { stdio: 'ignore' }).status === 0
  const options = [
    '--root',
    join(directory, 'storage'),
    '--runroot',
    join(directory, 'run'),
    ...(!has('crun') && has('runc') ? ['--runtime', 'runc'] : []),
    ...(existsSync('/run/systemd/system') ? [] : ['--cgroup-manager', 'cgroupfs']),
  ]
  const real = execFileSync('which', ['podman'], { encoding: 'utf8' }).trim()
  // Podman's default limits are higher than what an unprivileged machine allows.
  return `#!/bin/sh
case $1 in
  run | create | build)
    command=$1
    shift
    exec ${real} ${options.join(' ')} "$command" --ulimit nofile=10000:10000 --ulimit nproc=4000:4000 "$@" ;;
esac
exec ${real} ${options.join(' ')} "$@"
`
}

/** Without systemd, podman can't schedule health checks, and says so with every command. The trial runs them itself. */
const withoutComplaints = (text: string): string =>
  text
    .split('\n')
    .filter((line) => !/level=error msg=".*healthcheck/.test(line))
    .join('\n')

export const becomesHealthy = async (podman: Podman, name: string): Promise<void> => {
  await expect.poll(() => podman.attempt('healthcheck', 'run', name).code, { timeout: 120_000, interval: 500 }).toBe(0)
}

/** The image by its real name: there already, pulled, or made by `standIn` where no registry can be reached. */
export const ensureImage = (podman: Podman, name: string, standIn: () => void): void => {
  if (podman.attempt('image', 'exists', name).code === 0) return
  if (podman.attempt('pull', '--quiet', name).code === 0) return
  console.log(`${name} can't be pulled here: the trial uses a stand-in made from Debian's packages`)
  standIn()
}

export const nodeImage = 'docker.io/library/node:24-bookworm-slim'
export const postgresImage = 'docker.io/library/postgres:17'

/** As in the official image: Debian, Node in /usr/local, the user `node` with ID 1000. */
export const nodeStandIn = (podman: Podman): void => {
  if (spawnSync('which', ['debootstrap'], { stdio: 'ignore' }).status !== 0 || process.getuid?.() !== 0) {
    throw new Error(`${nodeImage} can't be pulled, and making a stand-in needs root and debootstrap`)
  }
  const root = join(podman.directory, 'base')
  const sh = (script: string): void =>
    void execFileSync('sh', ['-ec', script], { cwd: podman.directory, stdio: 'pipe' })
  try {
    sh(`debootstrap --variant=minbase --include=ca-certificates bookworm '${root}'`)
    const node = join(repository, 'node_modules/node/bin/node')
    sh(`cp -L '${node}' '${root}/usr/local/bin/node' && npm pack --silent npm@11 && mkdir -p '${root}/usr/local/lib/node_modules/npm'
        tar -xzf npm-11*.tgz --strip-components=1 -C '${root}/usr/local/lib/node_modules/npm' && rm npm-11*.tgz
        for name in npm npx; do ln -s ../lib/node_modules/npm/bin/$name-cli.js '${root}/usr/local/bin/'$name; done
        chroot '${root}' sh -ec 'groupadd -g 1000 node && useradd -u 1000 -g node -s /bin/bash -m node'
        cp /etc/ssl/certs/ca-certificates.crt '${root}/usr/local/share/machine.crt'`)
    // A machine behind a proxy has certificates of its own.
    sh(`tar -C '${root}' -c . | '${podman.program}' import --change 'CMD ["node"]' \\
        --change 'ENV NODE_EXTRA_CA_CERTS=/usr/local/share/machine.crt' - ${nodeImage}`)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

/** Understands the variables of the official image that compose.yaml uses. */
export const postgresStandIn = (podman: Podman): void => {
  const folder = join(podman.directory, 'postgres-image')
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'entry.sh'),
    `#!/bin/sh
set -e
if [ ! -s /var/lib/postgresql/data/PG_VERSION ]; then
  : "\${POSTGRES_PASSWORD:?}"
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username "$POSTGRES_USER" --pwfile /tmp/password --auth-host scram-sha-256 --encoding UTF8 /var/lib/postgresql/data
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> /var/lib/postgresql/data/pg_hba.conf
  echo "create database \\"$POSTGRES_DB\\"" | postgres --single -D /var/lib/postgresql/data postgres
fi
exec postgres -D /var/lib/postgresql/data -c listen_addresses='*'
`,
    { mode: 0o755 },
  )
  writeFileSync(
    join(folder, 'Dockerfile'),
    `FROM ${nodeImage}
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-15 && rm -rf /var/lib/postgresql/15 && mkdir -p /var/lib/postgresql/data && chown -R postgres:postgres /var/lib/postgresql
COPY entry.sh /entry.sh
USER postgres
ENV PATH=/usr/lib/postgresql/15/bin:$PATH
STOPSIGNAL SIGINT
ENTRYPOINT ["/entry.sh"]
`,
  )
  podman.run('build', '--tag', postgresImage, folder)
}
