/** The rate limits of players: a deletion finds them by key, so each must be listed. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { HttpApi } from "effect/http-api"
import { Api } from "#rpc/api"
import { PlayerRate } from "#rpc/auth"
import { playerLimits } from "#rpc/features"

describe("the rate limits of players", () => {
  it("names in playerLimits every rate limit kept per player, so that a deletion finds it", () => {
    const files = readdirSync("src/server", { recursive: true, encoding: "utf8" })
    const texts = files
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(join("src/server", file), "utf8"))
    const names = texts.flatMap((text) =>
      Array.from(text.matchAll(/`([a-z-]+):\$\{(?:\w+\.)?playerId\}`/g), ([, name = ""]) => name)
    )
    HttpApi.reflect(Api, {
      onGroup: () => undefined,
      onEndpoint: ({ endpoint: { annotations } }) => {
        const rate = Context.get(annotations, PlayerRate)
        if (rate !== undefined) names.push(rate.name)
      }
    })
    assert.deepStrictEqual([...new Set(names)].toSorted(), [...playerLimits].toSorted())
  })
})
