/** Rules about features: each is in the registry of the service, and its handlers are its own. */
import { collectors, featureWords } from "./house.ts"
import { problem, type Problem, type Source, type TextFile } from "./source.ts"

const registry = "src/server/feature-layers.ts"

const handlersOf = /^src\/server\/features\/([^/]+)\/handlers\.ts$/

/** Features with handlers that the service does not compose. */
export const unregistered = (sources: ReadonlyArray<Source>): ReadonlyArray<Problem> => {
  const composed = new Set(
    sources.find(({ path }) => path === registry)?.imports.map(({ target }) => target)
  )
  return sources.flatMap((source) => {
    const word = handlersOf.exec(source.path)?.[1]
    const manifest = `src/server/features/${word}/feature.ts`
    if (word === undefined || composed.has(manifest)) return []
    return [problem(source, 0, `compose ${manifest} in ${registry}`)]
  })
}

/** Imports of handlers from outside of their feature: an operation has one way in, which is its endpoint. */
export const borrowedHandlers = ({ imports, path, text }: Source): ReadonlyArray<Problem> => {
  const file: TextFile = { path, text }
  return imports.flatMap(({ offset, target }) => {
    const word = handlersOf.exec(target ?? "")?.[1]
    if (word === undefined || path.startsWith(`src/server/features/${word}/`)) return []
    return [problem(file, offset, `call the endpoint in the process instead of ${target}`)]
  })
}

const wordOf = (path: string): string | undefined => {
  const word = /^(?:rpc|sql|src\/server\/features|src\/dashboard\/views)\/([^/.]+)/.exec(path)?.[1]
  return featureWords.find((it) => it === word)
}

/** Imports of features by a file that only reads what they declare. */
export const handWritten = ({ imports, path, text }: Source): ReadonlyArray<Problem> => {
  const may = collectors[path]
  if (may === undefined) return []
  return imports.flatMap(({ offset, target }) => {
    const word = wordOf(target ?? "")
    if (word === undefined || word === wordOf(path) || may.includes(word)) return []
    return [problem({ path, text }, offset, `let ${word} declare it in its manifest`)]
  })
}

const heldRate = /takeToken\([^)]*:\$\{(?:environment\.)?environmentId\}`\s*\)/g

/** Limits of a whole environment that a handler takes by hand: the middleware takes them for all mounts. */
export const heldRates = ({ path, text }: TextFile): ReadonlyArray<Problem> =>
  path.startsWith("src/server/features/")
    ? Array.from(text.matchAll(heldRate), ({ index }) =>
        problem({ path, text }, index, "declare this limit at the endpoint, by CallerRate")
      )
    : []
