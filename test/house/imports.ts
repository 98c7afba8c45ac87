/**
 * Rules about imports: they run downwards, they show the room, and they form no cycle.
 */
import { floors, rooms } from "./house.ts"
import { problem, type Import, type Problem, type Source } from "./source.ts"

const isWithin = (path: string, folder: string) => path.startsWith(`${folder}/`)

const roomOf = (path: string) => rooms.find((room) => isWithin(path, room))

/** `effect` covers `effect/Schema`, `@effect/*` every package of that scope, `*` everything. */
const covers = (pattern: string, specifier: string) =>
  pattern.endsWith("*")
    ? specifier.startsWith(pattern.slice(0, -1))
    : specifier === pattern || specifier.startsWith(`${pattern}/`)

const arrowMessage = (path: string, { specifier, target }: Import): string | undefined => {
  const floor = floors.find(({ folder }) => isWithin(path, folder))
  if (floor === undefined) return undefined
  if (target === undefined) {
    if (floor.packages.some((pattern) => covers(pattern, specifier))) return undefined
    const packages = floor.packages.join(", ")
    return `${floor.folder} may import the packages ${packages}, not ${specifier}`
  }
  if (isWithin(target, "src/testing") && !isWithin(path, "src/testing") && floor.folder !== "test")
    return `src/testing is for tests, the service may not import it`
  if (floor.may.some((it) => target === it || isWithin(target, it))) return undefined
  return `${floor.folder} may import ${floor.may.join(", ")}, not ${target}`
}

/** Imports run downwards: src -> entities -> sql -> rpc -> effect. */
export const arrows = (source: Source): ReadonlyArray<Problem> =>
  source.imports.flatMap((it) => {
    const message = arrowMessage(source.path, it)
    return message === undefined ? [] : [problem(source, it.offset, message)]
  })

const formMessage = (path: string, { specifier, target }: Import): string | undefined => {
  const from = roomOf(path)
  const to = target === undefined ? undefined : roomOf(target)
  if (from === undefined || to === undefined) return undefined
  if (from === to && specifier.startsWith("#"))
    return `import inside a room by a relative path, not ${specifier}`
  if (from !== to && !specifier.startsWith("#"))
    return `import another room as #room/name, not ${specifier}`
  return undefined
}

/** Every import line shows whether it leaves its room. */
export const importForms = (source: Source): ReadonlyArray<Problem> =>
  source.imports.flatMap((it) => {
    const message = formMessage(source.path, it)
    return message === undefined ? [] : [problem(source, it.offset, message)]
  })

/** No import cycles, imports of types included: a reader meets them all the same. */
export const cycles = (sources: ReadonlyArray<Source>): ReadonlyArray<Problem> => {
  const byPath = new Map(sources.map((source) => [source.path, source]))
  const done = new Set<string>()
  const problems: Array<Problem> = []
  const visit = (source: Source, trail: ReadonlyArray<string>) => {
    if (done.has(source.path)) return
    const here = [...trail, source.path]
    for (const { offset, target } of source.imports) {
      const next = target === undefined ? undefined : byPath.get(target)
      if (next === undefined) continue
      const start = here.indexOf(next.path)
      if (start === -1) visit(next, here)
      else {
        const cycle = [...here.slice(start), next.path].join(" -> ")
        problems.push(problem(source, offset, `import cycle: ${cycle}`))
      }
    }
    done.add(source.path)
  }
  for (const source of sources) visit(source, [])
  return problems
}
