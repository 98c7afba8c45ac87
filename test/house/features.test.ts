/** The house rules of features: each is composed once, and its operations have one way in. */
import { assert, describe, it } from "@effect/vitest"
import { knownCallers } from "./doors.ts"
import { refuses, source } from "./examples.ts"
import { borrowedHandlers, handWritten, heldRates, unregistered } from "./features.ts"
import { collectors } from "./house.ts"
import { parse } from "./source.ts"
import { readTree } from "./tree.ts"

const sources = readTree()
  .filter(({ path }) => /^(rpc|sql|src)\/.*\.tsx?$/.test(path))
  .map(parse)

describe("features", () => {
  it("composes each feature in the service, and keeps its handlers to itself", () => {
    const path = "src/server/features/lobby/handlers.ts"
    refuses(
      unregistered([source(path, "")]),
      `${path}:1 compose src/server/features/lobby/feature.ts in src/server/feature-layers.ts`
    )
    const borrowed = source("src/server/http/agent.ts", `import "#server/features/lobby/handlers"`)
    refuses(
      borrowedHandlers(borrowed),
      `src/server/http/agent.ts:1 call the endpoint in the process instead of ${path}`
    )
    refuses([...unregistered(sources), ...sources.flatMap(borrowedHandlers)])
  })

  it("collects what features declare, instead of naming the features", () => {
    const path = "rpc/player-data.ts"
    const named = `import "./saves.ts"\nimport "./sessions.ts"\nimport "./text.ts"`
    refuses(handWritten(source(path, named)), `${path}:1 let saves declare it in its manifest`)
    for (const file of Object.keys(collectors)) {
      assert.include(
        sources.map((it) => it.path),
        file
      )
    }
    refuses(sources.flatMap(handWritten))
  })

  it("declares the rate limits of an environment at the endpoints", () => {
    const path = "src/server/features/lobby/handlers.ts"
    refuses(
      heldRates(source(path, "takeToken(throttles, rates.lobby, `lobby:${environmentId}`)")),
      `${path}:1 declare this limit at the endpoint, by CallerRate`
    )
    refuses(heldRates(source(path, "takeToken(throttles, it, `a:${environmentId}:${address}`)")))
    refuses(sources.flatMap(heldRates))
  })

  it("lets only the two doors make a known caller", () => {
    const path = "src/server/features/rooms/handlers.ts"
    const makers =
      "only src/server/features/functions/server-api.ts and src/server/http/agent/endpoint.ts " +
      "make a known caller"
    refuses(
      knownCallers(source(path, `inProcess.call({ environment, actor, door: "agent" }, call)`)),
      `${path}:1 ${makers}`
    )
    const provided = source(path, `\nEffect.provideService(KnownCaller, caller)`)
    refuses(knownCallers(provided), `${path}:2 ${makers}`)
    refuses(knownCallers(source("src/server/http/agent/endpoint.ts", `f({ door: "agent" })`)))
    refuses(sources.flatMap(knownCallers))
  })
})
