/*
 * Sorts by dependency. In: keys and what each depends on. Out: an order with dependencies first, or a cycle. Iterative,
 * because a chain may have 100,000 links.
 */

type Graph<K> = ReadonlyMap<K, readonly K[]>

export type Ordered<K> = { readonly order: readonly K[] } | { readonly circle: readonly K[] }

/** Otherwise keeps the given order. Names that aren't keys of the graph have no dependencies. */
export const inOrder = <K>(graph: Graph<K>, roots: Iterable<K> = graph.keys()): Ordered<K> => {
  const order: K[] = []
  const finished = new Set<K>()
  for (const root of roots) {
    const circle = visit(graph, root, finished, order)
    if (circle !== undefined) return { circle }
  }
  return { order }
}

const visit = <K>(graph: Graph<K>, root: K, finished: Set<K>, order: K[]): readonly K[] | undefined => {
  if (finished.has(root)) return undefined
  const path: { readonly name: K; next: number }[] = [{ name: root, next: 0 }]
  const onPath = new Set<K>([root])
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const needed = graph.get(top.name)?.[top.next]
    if (needed === undefined) {
      path.pop()
      onPath.delete(top.name)
      finished.add(top.name)
      order.push(top.name)
      continue
    }
    top.next += 1
    if (onPath.has(needed)) return path.slice(path.findIndex(({ name }) => name === needed)).map(({ name }) => name)
    if (finished.has(needed)) continue
    path.push({ name: needed, next: 0 })
    onPath.add(needed)
  }
  return undefined
}
