/** The house rules of entities: a new one adds a line to the registry, and no other file lists them. */
import { describe, it } from "@effect/vitest"
import { listedEntities, unlistedEntities } from "./entities.ts"
import { refuses, source } from "./examples.ts"
import { parse } from "./source.ts"
import { readTree } from "./tree.ts"

const sources = readTree()
  .filter(({ path }) => /^(?:entities|src\/server)\/.*\.ts$/.test(path))
  .map(parse)

describe("entities", () => {
  it("lists each entity in the registry", () => {
    const path = "entities/referee/entity.ts"
    refuses(
      unlistedEntities([source(path, "")]),
      `${path}:1 list entities/referee/definition.ts in entities/registry.ts`
    )
    refuses(unlistedEntities(sources))
  })

  it("names the registries of several entities in no other file", () => {
    const path = "src/server/telemetry/counts.ts"
    const room = `import { LocalRooms } from "#entities/room/entity"`
    const channel = `import { LocalChannels } from "#entities/channel/entity"`
    refuses(
      listedEntities(source(path, `${room}\n${channel}`)),
      `${path}:1 loop over entities/registry.ts instead of naming room and channel`
    )
    refuses(listedEntities(source(path, room)))
    refuses(sources.flatMap(listedEntities))
  })
})
