/** Modes, public definitions, warnings and changed paths of a decoded config. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as fc from "fast-check"
import { changedPaths } from "#rpc/config-document/changes"
import { Definitions, publicConfig } from "#rpc/config-document/definitions"
import { decodeConfig } from "#rpc/config-document/document"
import { builtInMode, findMode, modesOf } from "#rpc/config-document/multiplayer"
import { configWarnings } from "#rpc/config-document/warnings"
import { changed, documents, fullest, without } from "../../support/config-documents.ts"

const decoded = (document: unknown) => Result.getOrThrow(decodeConfig(document))
const warningsOf = (document: unknown) => configWarnings(decoded(document), document)

describe("modes", () => {
  it("offers the built-in mode when no mode is defined", () => {
    assert.deepStrictEqual(modesOf(decoded({})), [builtInMode])
    assert.strictEqual(findMode(decoded({}), "default"), builtInMode)
    assert.deepStrictEqual(builtInMode, {
      key: "default",
      minPlayers: 2,
      maxPlayers: 8,
      fillTimeoutSeconds: 15,
      transport: "server",
      p2p: { maxPlayers: 4, relayOnly: true },
      durable: false,
      reconnectSeconds: 30,
      authority: { host: [], matchedHost: [], votes: [] },
      teams: [],
      assign: "auto"
    })
  })

  it("offers only the defined modes when there are any", () => {
    const config = decoded(fullest)
    assert.deepStrictEqual(
      modesOf(config).map(({ key }) => key),
      ["duel", "mesh"]
    )
    assert.strictEqual(findMode(config, "mesh")?.transport, "p2p")
    assert.isUndefined(findMode(config, "default"))
    assert.isUndefined(findMode(config, "constructor"))
  })
})

describe("definitions", () => {
  it("publishes only the public part of the config", () => {
    const [duel] = fullest.multiplayer.modes
    assert.deepStrictEqual<unknown>(publicConfig(decoded(fullest), 7), {
      configVersion: 7,
      resetTimeZone: "Europe/Berlin",
      features: fullest.features,
      stats: [
        { key: "high_score", title: "High score", aggregation: "max" },
        {
          key: "time",
          title: { en: "Time", ja: "時間", "pt-BR": "Tempo" },
          aggregation: "min"
        }
      ],
      modes: [
        {
          key: "duel",
          title: "Duel",
          minPlayers: 2,
          maxPlayers: 64,
          fillTimeoutSeconds: 0,
          transport: "server",
          authority: duel?.authority,
          teams: duel?.teams,
          assign: "free"
        },
        {
          key: "mesh",
          title: { en: "Mesh" },
          minPlayers: 2,
          maxPlayers: 3,
          fillTimeoutSeconds: 300,
          transport: "p2p",
          p2p: { maxPlayers: 8, relayOnly: false }
        }
      ],
      providers: ["google", "apple", "x"],
      share: { images: true, links: true, tracking: true, inAppBrowser: true },
      audience: "mixed",
      news: { optIn: false }
    })
  })

  it("never offers news to kids", () => {
    const optIn = (document: unknown) => publicConfig(decoded(document), 1).news.optIn
    assert.isTrue(optIn({}))
    assert.isTrue(optIn({ audience: "mixed" }))
    assert.isFalse(optIn({ audience: "kids" }))
    assert.isFalse(optIn({ svcNews: { optIn: false } }))
  })

  it("matches the schema of the definitions exactly for any config", () => {
    const encode = Schema.encodeSync(Definitions, { onExcessProperty: "error" })
    fc.assert(
      fc.property(documents, (document) => {
        const definitions = publicConfig(decoded(document), 1)
        assert.deepStrictEqual<unknown>(encode(definitions), definitions)
      })
    )
  })
})

describe("warnings", () => {
  it("warns of nothing in a document without useless settings", () => {
    assert.deepStrictEqual(warningsOf({}), [])
    assert.deepStrictEqual(warningsOf(without(fullest, "share.tags.enabled")), [])
  })

  it.each([
    [
      changed({}, "share.tags.enabled", true),
      "share.tags.enabled",
      "is no longer used: remove it; the service adds no tags to pages"
    ],
    [
      changed({}, "multiplayer.modes", [{ key: "a", p2p: {} }]),
      "multiplayer.modes[0].p2p",
      'has no effect: remove it, or set transport to "p2p"'
    ],
    [
      changed({}, "multiplayer.modes", [
        { key: "a" },
        { key: "b", transport: "p2p", maxPlayers: 6 }
      ]),
      "multiplayer.modes[1].maxPlayers",
      "is capped to p2p.maxPlayers (4): lower it, or raise p2p.maxPlayers"
    ],
    [
      changed({}, "integrity.stats.rules", [{ stat: "score", min: 0 }]),
      "integrity.stats.rules[0].stat",
      'has no effect: add "score" to stats, or remove the rule'
    ],
    [
      changed({}, "integrity.stats.webhook.url", "HTTP://localhost:9000"),
      "integrity.stats.webhook.url",
      "works in development only: use an https URL in production"
    ],
    [
      changed({}, "integrity.stats.webhook", { timeoutMs: 200 }),
      "integrity.stats.webhook",
      "has no effect without a url: add webhook.url, or remove webhook"
    ],
    [
      { stats: [{ key: "score" }], integrity: { stats: { rules: [{ stat: "score" }] } } },
      "integrity.stats.rules[0]",
      "has no effect: add min or max, or remove the rule"
    ],
    [
      {
        stats: [{ key: "score" }],
        integrity: {
          stats: {
            rules: [
              { stat: "score", min: 0 },
              { stat: "score", max: 9 }
            ]
          }
        }
      },
      "integrity.stats.rules[1].stat",
      'integrity.stats.rules[0] is for "score" too and both apply: merge them'
    ]
  ])("warns of %j at %s", (document, path, message) => {
    assert.deepStrictEqual(warningsOf(document), [{ path, message }])
  })

  it("reports all warnings together", () => {
    const document = {
      share: { tags: { enabled: false } },
      multiplayer: { modes: [{ key: "a", p2p: {} }] }
    }
    assert.deepStrictEqual(
      warningsOf(document).map(({ path }) => path),
      ["multiplayer.modes[0].p2p", "share.tags.enabled"]
    )
  })
})

describe("changes", () => {
  it.each([
    [{}, {}, []],
    [{}, { features: { saves: true, stats: true } }, ["features.saves", "features.stats"]],
    [{ features: { saves: true } }, {}, ["features.saves"]],
    [{ features: { saves: true } }, { features: { saves: false } }, ["features.saves"]],
    [{ audience: "kids" }, { audience: "mixed" }, ["audience"]],
    [{ stats: [{ key: "a" }] }, { stats: [{ key: "b" }] }, ["stats[0].key"]],
    [{ stats: [{ key: "a" }] }, { stats: [{ key: "a" }, { key: "b" }] }, ["stats[1]"]],
    [{ stats: [{ key: "a" }, { key: "b" }] }, { stats: [{ key: "a" }] }, ["stats[1]"]],
    [{}, { stats: [{ key: "a", title: "A" }] }, ["stats[0]"]],
    [{}, { stats: [] }, ["stats"]],
    [{ auth: {} }, {}, ["auth"]],
    [{ stats: [] }, { stats: {} }, ["stats"]],
    [{ stats: [{ title: "A" }] }, { stats: [{ title: { en: "A" } }] }, ["stats[0].title"]],
    [
      { stats: [{ title: { "pt-BR": "A" } }] },
      { stats: [{ title: { "pt-BR": "B" } }] },
      ['stats[0].title["pt-BR"]']
    ],
    [1, { a: 1 }, [""]]
  ])("finds between %j and %j the changes %j", (before, after, paths) => {
    assert.deepStrictEqual(changedPaths(before, after), paths)
  })

  it("finds no change between equal documents with different field order", () => {
    const reversed = Object.fromEntries(Object.entries(fullest).toReversed())
    assert.deepStrictEqual(changedPaths(fullest, reversed), [])
    assert.deepStrictEqual(changedPaths(fullest, structuredClone(fullest)), [])
  })

  it("finds symmetric changes for any two documents", () => {
    fc.assert(
      fc.property(documents, documents, (before, after) => {
        assert.sameMembers([...changedPaths(before, after)], [...changedPaths(after, before)])
      })
    )
  })
})
