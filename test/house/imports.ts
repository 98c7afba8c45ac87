/**
 * Rules about imports: they run downwards, they show the room, and they form no cycle.
 */
import { floors, parts, rooms, serverFloors } from "./house.ts"
import { problem, type Import, type Problem, type Source } from "./source.ts"

const isWithin = (path: string, folder: string) => path.startsWith(`${folder}/`)

/** The room of a file: a top folder, a part of `src`, or a floor of the server. */
const roomOf = (path: string): string | undefined => {
  const [room, part = "", floor = ""] = path.split("/")
  if (room !== "src") return rooms.find((it) => it === room)
  if (part === "server" && serverFloors.includes(floor)) return `src/server/${floor}`
  return parts.includes(part) ? `src/${part}` : undefined
}

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
  if (floor.may.some((it) => target === it || isWithin(target, it))) return undefined
  return `${floor.folder} may import ${floor.may.join(", ")}, not ${target}`
}

/** Imports run downwards, from floor to floor (see `floors`). */
export const arrows = (source: Source): ReadonlyArray<Problem> =>
  source.imports.flatMap((it) => {
    const message = arrowMessage(source.path, it)
    return message === undefined ? [] : [problem(source, it.offset, message)]
  })

const formMessage = (path: string, { specifier, target }: Import): string | undefined => {
  const from = roomOf(path)
  const to = target === undefined ? undefined : roomOf(target)
  if (from === undefined || to === undefined) return undefined
  const near = from === to || isWithin(to, from)
  if (near && specifier.startsWith("#"))
    return `import inside a room by a relative path, not ${specifier}`
  if (!near && !specifier.startsWith("#"))
    return `import another room as #room/name, not ${specifier}`
  return undefined
}

/** Every import line shows whether it leaves its room. */
export const importForms = (source: Source): ReadonlyArray<Problem> =>
  source.imports.flatMap((it) => {
    const message = formMessage(source.path, it)
    return message === undefined ? [] : [problem(source, it.offset, message)]
  })

/**
 * What a file counts as among folders: the whole feature, its folder, or, directly in a room, itself
 * (`rpc/saves.ts` is a feature as much as the folder `rpc/hosting`).
 */
const folderOf = (path: string): string => {
  const feature = /^src\/server\/features\/[^/]+(?=\/)/.exec(path)
  if (feature !== null) return feature[0]
  const folder = path.slice(0, path.lastIndexOf("/"))
  return folder === "src/server" || rooms.some((room) => room === folder) ? path : folder
}

/**
 * No cycles between folders, so that one of two can be read, tested and removed without the other.
 */
export const folderCycles = (sources: ReadonlyArray<Source>): ReadonlyArray<Problem> => {
  const arrowsOf = new Map<string, Map<string, { source: Source; offset: number }>>()
  for (const source of sources) {
    const from = folderOf(source.path)
    const arrows = arrowsOf.get(from) ?? new Map()
    arrowsOf.set(from, arrows)
    for (const { offset, target } of source.imports) {
      const to = target !== undefined && /\.tsx?$/.test(target) ? folderOf(target) : from
      if (to !== from && !arrows.has(to)) arrows.set(to, { source, offset })
    }
  }
  const problems: Array<Problem> = []
  const done = new Set<string>()
  const visit = (folder: string, trail: ReadonlyArray<string>) => {
    if (done.has(folder)) return
    const here = [...trail, folder]
    for (const [next, { offset, source }] of arrowsOf.get(folder) ?? []) {
      const start = here.indexOf(next)
      if (start === -1) visit(next, here)
      else {
        const cycle = [...here.slice(start), next].join(" -> ")
        problems.push(problem(source, offset, `folder cycle: ${cycle}`))
      }
    }
    done.add(folder)
  }
  for (const folder of arrowsOf.keys()) visit(folder, [])
  return problems
}

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
