/** What a push prints for each path that it changes. */
import { assert, describe, it } from "@effect/vitest"
import { changedPaths } from "#rpc/config-document/changes"
import { changeText } from "#cli/change-text"

const before = {
  features: { saves: true, stats: true },
  stats: [{ key: "kills" }, { key: "laps" }],
  web: { allowedOrigins: ["https://a.example"] }
}

const after = {
  features: { stats: false, hosting: true },
  resetTimeZone: "UTC",
  stats: [{ key: "kills", title: { "pt-BR": "Mortes" } }],
  multiplayer: { modes: [{ key: "arena" }] },
  web: { allowedOrigins: ["https://b.example"] }
}

describe("the text of changes", () => {
  it("says which features are on and off, and which values are in force", () => {
    const lines = changedPaths(before, after).map((path) => changeText(after, path))
    assert.deepStrictEqual(lines.toSorted(), [
      "features.hosting on",
      "features.saves off",
      "features.stats off",
      "multiplayer.modes[0] set",
      'resetTimeZone = "UTC"',
      'stats[0].title["pt-BR"] = "Mortes"',
      "stats[1] removed",
      'web.allowedOrigins[0] = "https://b.example"'
    ])
  })
})
