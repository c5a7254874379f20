import { readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Script } from 'node:vm'
import type { Metafile } from 'esbuild'

/**
 * Turns the largest file that the program loads first into a script, whose compiled functions can be cached, and a
 * module that runs it and has the same exports. Lines and columns keep matching the source map.
 */
export const makeScriptChunk = async (root: string, outputs: Metafile['outputs'], main: string): Promise<void> => {
  const first = (outputs[main]?.imports ?? []).filter(({ kind }) => kind === 'import-statement')
  const largest = first.map(({ path }) => path).toSorted((a, b) => bytesOf(outputs, b) - bytesOf(outputs, a))[0]
  if (largest === undefined) throw new Error(`${main} imports nothing`)
  assertNoCycle(outputs, largest)
  const file = join(root, largest)
  const { script, module } = split(await readFile(file, 'utf8'), basename(file))
  assertScript(script, largest)
  await writeFile(join(dirname(file), scriptName(basename(file))), script)
  await writeFile(file, module)
}

/** Not everything is allowed in a script: no `import.meta`, no `await` outside a function. */
const assertScript = (text: string, chunk: string): void => {
  try {
    void new Script(text)
  } catch (cause) {
    throw new Error(`${chunk} can't become a script`, { cause })
  }
}

const scriptName = (chunk: string): string => chunk.replace(/\.js$/, '.script.js')

const bytesOf = (outputs: Metafile['outputs'], path: string): number => outputs[path]?.bytes ?? 0

/** The chunk's imports are passed to the script as values, so they must have run before it. */
const assertNoCycle = (outputs: Metafile['outputs'], chunk: string): void => {
  const seen = new Set<string>()
  const pending = [chunk]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for (const { path, kind } of outputs[next]?.imports ?? []) {
      if (kind !== 'import-statement' || seen.has(path)) continue
      if (path === chunk) throw new Error(`${next} and ${chunk} import each other`)
      seen.add(path)
      pending.push(path)
    }
  }
}

const split = (text: string, chunk: string): { script: string; module: string } => {
  const [banner = '', ...lines] = text.split('\n')
  const imports: { names: string; from: string }[] = []
  let code = lines.join('\n')
  for (let found = importStatement.exec(code); found !== null; found = importStatement.exec(code)) {
    const [statement, names = '', from = ''] = found
    imports.push({ names, from })
    code = `${' '.repeat(statement.length)}${code.slice(statement.length)}`
  }
  const exported = exportStatement.exec(code)
  if (!banner.startsWith('const require = ') || exported === null) throw new Error(`${chunk} has an unexpected form`)
  const [statement, list = ''] = exported
  const names = list.split(',').map((one): readonly [local: string, name: string] => {
    const [local = '', name = local] = one.split(' as ')
    return [local, name]
  })
  const given = imports.map(({ names: local }, i) => `const{${local.replaceAll(' as ', ':')}}=modules[${i}];`).join('')
  const result = `return{${names.map(([local, name]) => `${name}:${local}`).join(',')}}})`
  return {
    script: `(function(require,${load},modules){"use strict";${given}\n${withoutImports(
      code.replace(statement, () => result),
      chunk,
    )}`,
    module: [
      banner,
      `import{runCachedScript}from"../cached-script.js";`,
      ...imports.map(({ from }, i) => `import*as given${i} from${JSON.stringify(from)};`),
      `const file=process.getBuiltinModule("node:url").fileURLToPath(new URL(${JSON.stringify(`./${scriptName(chunk)}`)},import.meta.url));`,
      `const done=runCachedScript(file,require,path=>import(path),[${imports.map((_, i) => `given${i}`).join(',')}]);`,
      `export const ${names.map(([, name]) => `${name}=done.${name}`).join(',')};`,
      '',
    ].join('\n'),
  }
}

/** Replaces `import()`, for which Node prints a warning in a script. Has the same length, so columns still match. */
const load = 'load_$'

const withoutImports = (code: string, chunk: string): string => {
  const replaced = code.replaceAll(/\bimport(?=\("\.\/[\w.-]+"\))/g, load)
  if (/\bimport\(/.test(replaced)) throw new Error(`${chunk} imports something that isn't a chunk`)
  return replaced
}

/** May follow blanks, which replaced an earlier import. */
const importStatement = /^ *import\{([^}]*)\}from"([^"]+)";/
const exportStatement = /export\{([^}]*)\};(?=\s*(?:\/\/# sourceMappingURL=\S+\s*)?$)/
