/** Rules about entities: each is in the registry, and nothing else lists what lives of several of them. */
import { problem, type Problem, type Source } from "./source.ts"

const registry = "entities/registry.ts"

const behaviourOf = /^entities\/([^/]+)\/entity\.ts$/

/** Entities that the registry does not list. */
export const unlistedEntities = (sources: ReadonlyArray<Source>): ReadonlyArray<Problem> => {
  const listed = new Set(
    sources.find(({ path }) => path === registry)?.imports.map(({ target }) => target)
  )
  return sources.flatMap((source) => {
    const word = behaviourOf.exec(source.path)?.[1]
    const definition = `entities/${word}/definition.ts`
    if (word === undefined || listed.has(definition)) return []
    return [problem(source, 0, `list ${definition} in ${registry}`)]
  })
}

/** Files that name the registries of several entities, beside the folder of an entity. */
export const listedEntities = (source: Source): ReadonlyArray<Problem> => {
  const own = /^entities\/([^/]+)\//.exec(source.path)?.[1]
  const others = source.imports.flatMap(({ offset, target }) => {
    const word = behaviourOf.exec(target ?? "")?.[1]
    return word === undefined || word === own ? [] : [{ offset, word }]
  })
  const [first, ...more] = others
  if (first === undefined || more.every(({ word }) => word === first.word)) return []
  const words = Array.from(new Set(others.map(({ word }) => word))).join(" and ")
  return [problem(source, first.offset, `loop over ${registry} instead of naming ${words}`)]
}
