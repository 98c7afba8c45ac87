/** Environment variables that look like settings and are none: a misspelt one has no effect. */
import { ConfigProvider, Effect } from "effect"
import { editDistance } from "#rpc/edit-distance"

const prefix = "SVC"

/** Maximum edit distance of a suggested name. */
const suggestedStepsMax = 4

/** Returns the names of the variables that start with `SVC_` and that the service does not know. */
export const unknownNames = Effect.fnUntraced(function* (known: ReadonlyArray<string>) {
  const provider = yield* ConfigProvider.ConfigProvider
  // A provider lists names step by step, split at each underscore.
  const below = (
    path: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<string>, ConfigProvider.SourceError> =>
    Effect.gen(function* () {
      const node = yield* provider.load(path)
      if (node === undefined) return []
      const own = node.value === undefined ? [] : [path.join("_")]
      if (node._tag !== "Record") return own
      const further = yield* Effect.forEach(node.keys, (key) => below([...path, key]))
      return [...own, ...further.flat()]
    })
  const names = yield* Effect.orElseSucceed(below([prefix]), () => [])
  return names.filter((name) => !known.includes(name)).toSorted()
})

/** The warning for an unknown name, with the known name that was probably meant. */
export const unknownWarning = (name: string, known: ReadonlyArray<string>): string => {
  const ranked = known
    .map((word) => ({ word, steps: editDistance(name, word) }))
    .toSorted((a, b) => a.steps - b.steps)
  const [best] = ranked
  const hint =
    best !== undefined && best.steps <= suggestedStepsMax ? `; did you mean ${best.word}?` : "."
  return `${name} is no setting of this service and has no effect${hint}`
}
