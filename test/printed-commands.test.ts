import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { parseAst } from 'vitest/node'

/*
 * People paste the commands that we print, and a stranger chooses names of branches and files. So whatever is put into a
 * command has to go through `shellWord` or what is made of it. This reads the syntax trees of all sources: an
 * expression that stands behind a command in a template must be quoted, or made of nothing but quoted and fixed parts.
 */

const quoting = new Set(['shellWord', 'shellPath', 'writeLine'])

/** Their argument is a command, and is checked where it is written. */
const builders = new Set(['commandText', 'git', 'coppice', 'shell'])

/** Numbers and object ids hold nothing that a shell reads. A placeholder is `<name>`, to be filled in. */
const harmless = new Set(['pid', 'pids', 'sha', 'length', 'short', 'placeholder', 'itemId'])

/** What stands behind something that looks like a command all the same, and why. */
const exceptions: Record<string, Record<string, string>> = {
  'src/cli/parse.ts': { word: 'one of our own commands' },
  'src/commands/only-in-chat.ts': { 'JSON.stringify(`/${name}`)': 'one of our own commands' },
  'src/commands/help.ts': { usage: 'our own text', 'row.usage': 'our own text', of: 'one of our own commands' },
  'src/conversations/answer-command.ts': { guess: 'one of our own commands' },
  'src/conversations/question-texts.ts': {
    id: 'letters and digits that we made',
    'choiceAnswer(id, at + 1)': 'of that and a number',
  },
  'src/conversations/handle-message.ts': { 'message.text.trim()': 'what a person wrote, as the command takes it' },
  'src/commands/target.ts': { commandName: 'one of our own commands' },
  'src/commands/budget.ts': { more: 'an amount that we calculated' },
  'src/cli/doctor/repository.ts': {
    'next.how': 'a command, checked where it is written',
  },
  'src/commands/views/refusal.ts': { command: 'a command, checked where it is written' },
  'src/commands/views/unhide.ts': { bit: 'one of two options of git' },
  'src/commands/views/keep-commits.ts': {
    name: 'a placeholder',
    "named.map(({ tip, name }) => refspec(tip, name)).join(' ')": '`refspec` quotes',
    "fetched.join(' ')": 'placeholders, and a quoted remote',
  },
  'src/git/refs.ts': { 'meaningfulLine(stderr)': 'says what failed' },
  'src/git/worktree-add.ts': { path: 'says what failed' },
  'src/isolation/providers/checkout/restore-point/restore-point.ts': { id: 'the message of a commit' },
  'src/runs/run.ts': { 'holder.name': 'says what a lease is for' },
  'src/runs/wires/git-looks.ts': { 'environment.path': 'a key' },
}

const root = resolve(import.meta.dirname, '..')

type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [key: string]: unknown }

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'type' in value

const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)

const nodesIn = (node: Node): Node[] => [node, ...childrenOf(node).flatMap(nodesIn)]

const nodesOf = (value: unknown): Node[] => (Array.isArray(value) ? value : [value]).filter(isNode)

const nodeOf = (value: unknown): Node | undefined => nodesOf(value)[0]

/** `shellWord` of `shellWord(…)`, `commandText` of `view.commandText(…)`. */
const calledName = ({ callee }: Node): string => lastName(nodeOf(callee))

const lastName = (node: Node | undefined): string =>
  node?.type === 'MemberExpression' ? lastName(nodeOf(node['property'])) : nameOf(node)

const nameOf = (node: Node | undefined): string => (typeof node?.['name'] === 'string' ? node['name'] : '')

type Bindings = ReadonlyMap<string, readonly (Node | undefined)[]>

/** All that a name stands for in a file: what a constant is made of; undefined for a parameter and the like. */
const bindingsIn = (tree: Node): Bindings => {
  const found = new Map<string, (Node | undefined)[]>()
  const bind = (id: Node, to: Node | undefined): void =>
    void found.set(nameOf(id), [...(found.get(nameOf(id)) ?? []), to])
  const bindAll = (pattern: Node): void => {
    if (pattern.type === 'Identifier') bind(pattern, undefined)
    else if (pattern.type === 'Property') nodesOf(pattern['value']).forEach(bindAll)
    else if (pattern.type === 'AssignmentPattern') nodesOf(pattern['left']).forEach(bindAll)
    else childrenOf(pattern).forEach(bindAll)
  }
  for (const node of nodesIn(tree)) {
    const id = nodeOf(node['id'])
    if (node.type === 'VariableDeclarator' && id?.type === 'Identifier') bind(id, nodeOf(node['init']))
    else if (node.type === 'VariableDeclarator' && id !== undefined) bindAll(id)
    if (node.type.includes('Function')) nodesOf(node['params']).forEach(bindAll)
  }
  return found
}

const isQuoted = (node: Node | undefined, names: Bindings, seen: readonly string[] = []): boolean => {
  if (node === undefined) return false
  const all = (key: string): boolean => nodesOf(node[key]).every((one) => isQuoted(one, names, seen))
  switch (node.type) {
    case 'Literal':
      return true
    case 'TemplateLiteral':
      return all('expressions')
    case 'ConditionalExpression':
      return all('consequent') && all('alternate')
    case 'LogicalExpression':
    case 'BinaryExpression':
      return all('left') && all('right')
    case 'ArrayExpression':
      return all('elements')
    case 'SpreadElement':
      return all('argument')
    case 'ArrowFunctionExpression':
      return nodeOf(node['body'])?.type !== 'BlockStatement' && all('body')
    case 'MemberExpression':
      return harmless.has(lastName(node))
    case 'Identifier': {
      const name = nameOf(node)
      if (harmless.has(name)) return true
      const values = names.get(name) ?? []
      return values.length > 0 && !seen.includes(name) && values.every((one) => isQuoted(one, names, [...seen, name]))
    }
    case 'CallExpression': {
      const name = calledName(node)
      if (quoting.has(name) || builders.has(name) || harmless.has(name)) return true
      const callee = nodeOf(node['callee'])
      if (callee?.type === 'Identifier') return isQuoted(callee, names, seen)
      const [first] = nodesOf(node['arguments'])
      if (name === 'map' || name === 'flatMap') return quoting.has(lastName(first)) || isQuoted(first, names, seen)
      return ['join', 'slice', 'filter'].includes(name) && isQuoted(nodeOf(callee?.['object']), names, seen)
    }
    default:
      return false
  }
}

const inside = /^(?:worktree|codebase|chat|agent) (?:--)?[a-z-]+ |^--(?:codebase|home|conversation|name)[ =]/
const alone =
  /(?:^|[`(]|: |&& |; |\| )(?:(?:rm|mv|cp|ln|cd|echo|printf|umount|chmod|chown|touch|mkdir|kill|sudo|ps|tmux|docker) |COPPICE_\w+=)/
const ours = /(?:^|[\s`(])(?:coppice [a-z]|\/[a-z]+ )/
const gits =
  /(?:^|[\s`(])git (?:-C|-c|--git-dir|add|branch|checkout|clean|clone|commit|config|fetch|merge|push|read-tree|remote|reset|switch|tag|update-index|update-ref|worktree)\b/

/** What of the text before an expression is still the same command: backticks and brackets end one. */
const isCommand = (before: string): boolean => {
  const open =
    before.split('`').length % 2 === 0 ? before.slice(before.lastIndexOf('`')) : before.replaceAll(/`[^`]*`/g, '')
  const rest = open.replaceAll(/\([^()]*\)/g, '')
  return [inside, alone, ours, gits].some((pattern) => pattern.test(rest))
}

const unquoted = (source: string): string[] => {
  const tree = parseAst(source, { lang: 'ts' }) as unknown as Node
  const names = bindingsIn(tree)
  const nodes = nodesIn(tree)
  const built = new Set(
    nodes.flatMap((node) =>
      node.type === 'CallExpression' && builders.has(calledName(node)) ? nodesOf(node['arguments']) : [],
    ),
  )
  return nodes.flatMap((node) => {
    if (node.type !== 'TemplateLiteral') return []
    let before = ''
    const texts = nodesOf(node['quasis']).map(({ value }) => (value as { cooked: string }).cooked)
    return nodesOf(node['expressions']).flatMap((expression, i) => {
      before += texts[i]
      const isFine = !(built.has(node) || isCommand(before)) || isQuoted(expression, names)
      before += 'x'
      return isFine ? [] : [source.slice(expression.start, expression.end)]
    })
  })
}

/** In the words of a remedy. `git` alone may be the subject of a sentence. */
const program =
  'coppice [a-z]|git (?:-|add|am|branch|checkout|cherry-pick|clean|clone|commit|config|fetch|init|log|ls-remote|merge|pull|push|rebase|remote|reset|rev-parse|stash|status|submodule|switch|tag|worktree)\\b|(?:rm|mv|cp|ln|kill|umount|chmod|chown|printf|touch|mkdir|sudo|ps|claude|codex|npm) [-a-z<$]|/[a-z]+(?: |`|$)'
const commandInText = new RegExp(`(?:^|[\`(]|: |[Rr]un )(?:${program})`)

/** Functions that are imported and take a remedy, with its place among their arguments. */
const takesRemedy: Record<string, number> = { usage: 1 }

/** Whatever becomes part of a remedy: `remedy: …`, what is given to a `remedy` parameter, what answers a `Remedy`. */
const remediesIn = (tree: Node, names: Bindings): Node[] => {
  const places = new Map(Object.entries(takesRemedy))
  for (const [name, values] of names) {
    for (const value of values) {
      const at = nodesOf(value?.['params']).findIndex((param) => nameOf(param) === 'remedy')
      if (at !== -1) places.set(name, at)
    }
  }
  const named = (type: Node): boolean => nodesIn(type).some((node) => nameOf(node) === 'Remedy')
  return nodesIn(tree).flatMap((node) => {
    if (node.type === 'Property' && nameOf(nodeOf(node['key'])) === 'remedy') return nodesOf(node['value'])
    if (node.type.includes('Function') && nodesOf(node['returnType']).some(named)) return nodesOf(node['body'])
    const at = node.type === 'CallExpression' ? places.get(calledName(node)) : undefined
    return at === undefined ? [] : nodesOf(nodesOf(node['arguments'])[at])
  })
}

/** Commands in the plain text of remedies: how they are called is for the view to say. */
const plainCommands = (source: string): string[] => {
  const tree = parseAst(source, { lang: 'ts' }) as unknown as Node
  const names = bindingsIn(tree)
  const seen = new Set<Node>()
  const texts: Node[] = []
  const visit = (node: Node): void => {
    if (seen.has(node)) return
    seen.add(node)
    if (node.type === 'CallExpression' && ['coppice', 'shell'].includes(calledName(node))) return
    if (typeof node['value'] === 'string' || node.type === 'TemplateElement') texts.push(node)
    if (node.type === 'Identifier')
      for (const value of names.get(nameOf(node)) ?? []) if (value !== undefined) visit(value)
    // `names.join` is not the constant `join`, nor is a key.
    const parts = { MemberExpression: node['object'], Property: node['value'] }[node.type]
    ;(parts === undefined ? childrenOf(node) : nodesOf(parts)).forEach(visit)
  }
  remediesIn(tree, names).forEach(visit)
  return texts
    .map((node) => source.slice(node.start, node.end).replaceAll('\\`', '`'))
    .filter((text) => commandInText.test(text.replace(/^['"`}]/, '')))
}

const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts'))
  .map((entry) => join(entry.parentPath, entry.name))
const found = files.map((path): [string, string[]] => [relative(root, path), unquoted(readFileSync(path, 'utf8'))])

test('every name in a command that we print is quoted for the shell', () => {
  expect(files.length).toBeGreaterThan(0)
  const bare = found.flatMap(([file, all]) =>
    all.filter((text) => exceptions[file]?.[text] === undefined).map((text) => `${file}: ${text}`),
  )
  expect(bare).toEqual([])
})

test('a command in a remedy is a part of its own, so that it is said as it is called where it is told', () => {
  expect(
    files.flatMap((path) =>
      plainCommands(readFileSync(path, 'utf8')).map((text) => `${relative(root, path)}: ${text}`),
    ),
  ).toEqual([])
})

test('every exception is still needed', () => {
  const needed = new Map(found)
  const unused = Object.entries(exceptions).flatMap(([file, texts]) =>
    Object.keys(texts).filter((text) => needed.get(file)?.includes(text) !== true),
  )
  expect(unused).toEqual([])
})

test.each([
  ['`rm ${path}`', 1],
  ['`delete it: rm -r ${shellWord(path)} ${path}`', 1],
  ['`run \\`coppice worktree adopt ${path}\\` to keep it`', 1],
  ['`run \\`coppice doctor\\` for ${path}`', 0],
  ['`\\`/worktree link ${branch}\\` to share it`', 1],
  ['view.commandText(`diff ${branch}`)', 1],
  ['git(`push ${remote}`)', 1],
  ['`git -C ${a ? shellPath(path) : path} status`', 1],
  ['`git -C ${path ?? other} worktree unlock x`', 1],
  ['`umount ${mounts.join(" ")}`', 1],
  ['`umount ${mounts.map(shellWord).join(" ")}`', 0],
  ['`kill -9 ${pids.join(" ")}`', 0],
  ['`cd ${a ? "~" : shellPath(path)}`', 0],
  ['{ const at = shellWord(path); f(`mv ${at} ${at}.away`) }', 0],
  ['{ const at = path; f(`mv ${at} <path>`) }', 1],
  ['{ const at = shellWord(path); const f = (at) => `mv ${at} <path>` }', 1],
  ['{ const { at } = shellWords(path); f(`mv ${at} <path>`) }', 1],
  ['`COPPICE_HOME=${home}`', 1],
  ['`could not remove ${path} (git says ${why})`', 0],
])('a name in a command: %s', (source, count) => {
  expect(unquoted(source)).toHaveLength(count)
})

test.each([
  ["f({ remedy: 'run `coppice doctor`' })", 1],
  ["f({ remedy: 'free some space: coppice cleanup' })", 1],
  ['f({ remedy: `delete it: rm ${shellWord(path)}` })', 1],
  ['f({ remedy: a ? "try again" : `${why}. Run \\`git status\\`` })', 1],
  ['f({ remedy: remedy`run \\`coppice doctor\\`` })', 1],
  ["f({ remedy: remedy`run ${coppice('doctor')}, or: ${shell('rm x')}` })", 0],
  ["f({ remedy: 'move it away: git cannot keep both' })", 0],
  ["usage('no', 'use `/clone <url>`')", 1],
  ["f({ remedy: 'run /stop and try again' })", 1],
  ["{ const way = () => 'run `coppice doctor`'; f({ remedy: way() }) }", 1],
  ["{ const way = (): Remedy => 'run `coppice doctor`' }", 1],
  ["{ const no = (why, remedy) => why; no('x', 'run `coppice doctor`') }", 1],
  ["f({ message: 'run `coppice doctor`' })", 0],
])('a command in a remedy: %s', (source, count) => {
  expect(plainCommands(source)).toHaveLength(count)
})
