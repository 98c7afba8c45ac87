/**
 * The environment config document: decoding, defaults, and reports of all issues
 * at once. The rules of single fields are in `rules.test.ts`.
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Predicate, Result, Schema } from "effect"
import * as fc from "fast-check"
import { decodeConfig, decodeStoredConfig, EnvironmentConfig } from "#rpc/config-document/document"
import { featureTable } from "#rpc/config-document/features"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { memberPath } from "#rpc/config-document/paths"
import { changed, documents, fullest, without } from "../../support/config-documents.ts"

const encode = Schema.encodeSync(EnvironmentConfig)
const decoded = (document: unknown) => Result.getOrThrow(decodeConfig(document))
const issuesOf = (document: unknown, production = false) =>
  Result.match(decodeConfig(document, { production }), {
    onSuccess: () => [],
    onFailure: ({ details }) => details.issues
  })

const keys = (count: number) => Array.from({ length: count }, (_, index) => ({ key: `k${index}` }))

/** Lists all values of a document with their paths, the root first. */
const placesIn = (value: unknown, path = ""): ReadonlyArray<readonly [string, unknown]> => {
  const members = Array.isArray(value)
    ? Array.from<readonly [number, unknown]>(value.entries())
    : Object.entries(Predicate.isObject(value) ? value : {})
  const below = members.flatMap(([key, member]) => placesIn(member, memberPath(path, key)))
  return [[path, value], ...below]
}

const isFields = (value: unknown) => Predicate.isObject(value) && !Array.isArray(value)

/** The rights and teams of a mode that declares none. */
const noRights = {
  authority: { host: [], matchedHost: [], votes: [] },
  teams: [],
  assign: "auto"
} as const

describe("a valid document", () => {
  it("fills an empty document with every default", () => {
    assert.deepStrictEqual(decoded({}), {
      version: 1,
      resetTimeZone: "UTC",
      features: {
        emailLogin: false,
        saves: false,
        stats: false,
        multiplayer: false,
        realtimeChannels: false,
        voice: false,
        hosting: false,
        statsVerification: false
      },
      stats: [],
      multiplayer: { modes: [] },
      auth: {
        redirectUrls: [],
        providers: {
          google: { enabled: false },
          discord: { enabled: false },
          apple: { enabled: false },
          x: { enabled: false }
        }
      },
      web: { allowedOrigins: [] },
      share: {
        images: {
          enabled: false,
          theme: { background: "#0f1115", accent: "#ffcc33", text: "#ffffff" }
        },
        tags: { enabled: false },
        links: { enabled: false, hashtags: [] },
        tracking: { enabled: false },
        inAppBrowser: { enabled: false }
      },
      audience: "general",
      integrity: {
        stats: {
          rules: [],
          maxSubmitsPerMinute: 60,
          webhook: { timeoutMs: 1500, onFailure: "accept" }
        }
      },
      svcNews: { optIn: true }
    })
  })

  it("fills a list entry that has only a key with its defaults", () => {
    const config = decoded({ stats: [{ key: "a" }], multiplayer: { modes: [{ key: "b" }] } })
    assert.deepStrictEqual(config.stats, [{ key: "a", aggregation: "sum" }])
    assert.deepStrictEqual(config.multiplayer.modes, [
      {
        key: "b",
        minPlayers: 2,
        maxPlayers: 4,
        fillTimeoutSeconds: 15,
        transport: "server",
        p2p: { maxPlayers: 4, relayOnly: true },
        durable: false,
        reconnectSeconds: 30,
        ...noRights
      }
    ])
  })

  it("keeps every value of a full document", () => {
    const [duel, mesh] = fullest.multiplayer.modes
    const p2p = { maxPlayers: 4, relayOnly: true }
    assert.deepStrictEqual<unknown>(decoded(fullest), {
      ...fullest,
      multiplayer: {
        modes: [
          { ...duel, p2p },
          { ...mesh, durable: false, ...noRights }
        ]
      }
    })
  })

  it("accepts a document that omits any section or any optional field", () => {
    // Exceptions: keys, the last language of a text, and features that another one needs.
    const needed = /^$|\]$|\.(key|stat|en|op)$|^features\.|teams\[\d\]\.max$/
    for (const [path] of placesIn(fullest).filter(([path]) => !needed.test(path))) {
      assert.deepStrictEqual(issuesOf(without(fullest, path)), [], path)
    }
  })

  it("caps maxPlayers in peer-to-peer modes only", () => {
    const seats = (mode: object) =>
      decoded({ multiplayer: { modes: [{ key: "a", ...mode }] } }).multiplayer.modes[0]?.maxPlayers
    assert.strictEqual(seats({ transport: "p2p", maxPlayers: 64 }), 4)
    assert.strictEqual(seats({ transport: "p2p", maxPlayers: 64, p2p: { maxPlayers: 8 } }), 8)
    assert.strictEqual(seats({ transport: "p2p", maxPlayers: 3 }), 3)
    assert.strictEqual(seats({ maxPlayers: 64, p2p: { maxPlayers: 8 } }), 64)
  })
})

/** A document, and the path of one of its objects. */
const objectIn = documents.chain((document) =>
  fc.tuple(
    fc.constant(document),
    fc.constantFrom(
      ...placesIn(document).flatMap(([path, value]) => (isFields(value) ? [path] : []))
    )
  )
)

describe("any valid document", () => {
  it("decodes any valid document", () => {
    fc.assert(fc.property(documents, (document) => issuesOf(document).length === 0))
  })

  it("decodes a document with its defaults filled in to itself", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const config = decoded(document)
        assert.deepStrictEqual<unknown>(encode(config), config)
        assert.deepStrictEqual(decoded(encode(config)), config)
      })
    )
  })

  it("rejects an unknown field at any depth, and names its path", () => {
    const names = fc.constantFrom("typo", "Enabled", "a b", "__proto__", "constructor", "é", "0")
    fc.assert(
      fc.property(objectIn, names, ([document, at], name) => {
        const path = memberPath(at, name)
        const issues = issuesOf(changed(document, `${at}.${name}`, 1))
        assert.deepStrictEqual(
          issues.map((issue) => issue.path),
          [path]
        )
        assert.match(
          issues[0]?.message ?? "",
          /^unknown (?:field|feature|provider)|^is not a language code/
        )
      })
    )
  })

  it("reads a stored document without fields that a newer release added", () => {
    const fields = objectIn.filter(([, path]) => !path.endsWith("title"))
    fc.assert(
      fc.property(fields, ([document, path]) => {
        const later = changed(document, memberPath(path, "addedLater"), { nested: true })
        assert.isNotEmpty(issuesOf(later))
        assert.deepStrictEqual(Effect.runSync(decodeStoredConfig(later)), decoded(document))
      })
    )
  })
})

describe("an invalid document", () => {
  it("reports all issues of an invalid document at once, also those between fields", () => {
    const issues = issuesOf({
      version: 2,
      resetTimeZone: "Mars/Olympus",
      features: { voice: true },
      stats: [{ key: "a" }, { key: "a" }],
      multiplayer: {
        modes: [
          { key: "x", minPlayers: 4, maxPlayers: 3 },
          { key: "Y", maxPlayers: 65 }
        ]
      },
      auth: { providers: { myspace: { enabled: true } } },
      web: { allowedOrigins: ["https://example.com/"] },
      share: { images: { enabled: "yes" } },
      integrity: { stats: { rules: [{ stat: "a", min: 2, max: 1 }], maxSubmitsPerMinute: 0 } },
      sahre: {}
    })
    assert.deepStrictEqual(issues.map(({ path }) => path).toSorted(), [
      "auth.providers.myspace",
      "features.voice",
      "integrity.stats.maxSubmitsPerMinute",
      "integrity.stats.rules[0].max",
      "multiplayer.modes[0].maxPlayers",
      "multiplayer.modes[1].key",
      "multiplayer.modes[1].maxPlayers",
      "resetTimeZone",
      "sahre",
      "share.images.enabled",
      "stats[1].key",
      "version",
      "web.allowedOrigins[0]"
    ])
  })

  it("reports an issue of several fields beside any issue of a single one", () => {
    /** Issues of several fields or entries, each with what breaks it. */
    const between = [
      ["features.voice", { features: { voice: true } }],
      ["stats[1].key", { stats: [{ key: "a" }, { key: "a" }] }],
      ["multiplayer.modes[1].key", { multiplayer: { modes: [{ key: "a" }, { key: "a" }] } }],
      [
        "multiplayer.modes[0].maxPlayers",
        { multiplayer: { modes: [{ key: "a", minPlayers: 4, maxPlayers: 2 }] } }
      ],
      [
        "multiplayer.modes[0].minPlayers",
        { multiplayer: { modes: [{ key: "a", transport: "p2p", minPlayers: 5, maxPlayers: 8 }] } }
      ],
      ["multiplayer.modes", { multiplayer: { modes: keys(17) } }],
      ["stats", { stats: keys(129) }],
      ["share.tags", { share: { tags: { title: "Game" } } }],
      [
        "integrity.stats.rules[0].max",
        { integrity: { stats: { rules: [{ stat: "a", min: 2, max: 1 }] } } }
      ],
      [
        "integrity.stats.webhook.url",
        { integrity: { stats: { webhook: { url: "http://localhost:9000" } } } }
      ]
    ] as const
    for (const [path, document] of between) {
      const production = (it: unknown) => issuesOf(it, true).map((issue) => issue.path)
      assert.deepStrictEqual(production(document), [path])
      // An unknown field in each object of the document, the root and the broken one included.
      for (const [place, value] of placesIn(document)) {
        if (!isFields(value)) continue
        const unknown = memberPath(place, "other")
        const found = production(changed(document, unknown, 1))
        assert.deepStrictEqual(found.toSorted(), [path, unknown].toSorted(), place)
      }
    }
  })

  it("names two modes with one key beside an unknown feature", () => {
    const issues = issuesOf({
      features: { vioce: true },
      multiplayer: { modes: [{ key: "a", minPlayers: 4, maxPlayers: 2 }, { key: "a" }] }
    })
    assert.deepStrictEqual(issues, [
      { path: "features.vioce", message: 'unknown feature; did you mean "voice"?' },
      {
        path: "multiplayer.modes[1].key",
        message: '"a" is already the key of multiplayer.modes[0]: use another key'
      },
      { path: "multiplayer.modes[0].maxPlayers", message: "must be >= minPlayers (4)" }
    ])
  })

  it("fails with invalid_config and a message that lists the issues", () => {
    const error = Result.getOrThrow(
      Result.flip(
        decodeConfig({
          audience: "all",
          multiplayer: { modes: [{ key: "a", minPlayers: 4, maxPlayers: 2 }] }
        })
      )
    )
    assert.strictEqual(error._tag, "invalid_config")
    assert.strictEqual(
      error.message,
      "multiplayer.modes[0].maxPlayers: must be >= minPlayers (4); " +
        'audience: must be one of "general", "mixed", "kids"'
    )
    assert.deepStrictEqual(error.details.issues, [
      { path: "multiplayer.modes[0].maxPlayers", message: "must be >= minPlayers (4)" },
      { path: "audience", message: 'must be one of "general", "mixed", "kids"' }
    ])
  })
})

describe("the feature table", () => {
  it("lists every feature switch of the config", () => {
    assert.deepStrictEqual(Object.keys(featureTable), Object.keys(decoded({}).features))
    const { description, ...feature } = featureTable.realtimeChannels
    assert.match(description, /^Channels with messages/)
    assert.deepStrictEqual(feature, {
      key: "realtimeChannels",
      title: "Realtime channels",
      configPath: "features.realtimeChannels"
    })
  })
})

/** The parts of a JSON Schema that an editor shows. */
interface Node {
  readonly description?: string
  readonly default?: unknown
  readonly properties?: { readonly [name: string]: Node }
  readonly items?: Node
}
const Node: Schema.Codec<Node> = Schema.Struct({
  description: Schema.optionalKey(Schema.String),
  default: Schema.optionalKey(Schema.Unknown),
  properties: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.suspend(() => Node)
    )
  ),
  items: Schema.optionalKey(Schema.suspend(() => Node))
})
const decodeNode = Schema.decodeSync(Schema.fromJsonString(Node))

const fieldsOf = (node: Node, path = ""): ReadonlyArray<readonly [string, Node]> => [
  ...Object.entries(node.properties ?? {}).flatMap(([name, field]) => [
    [`${path}.${name}`, field] as const,
    ...fieldsOf(field, `${path}.${name}`)
  ]),
  ...(node.items === undefined ? [] : fieldsOf(node.items, `${path}[]`))
]

describe("rpc/config.schema.json", () => {
  const file = readFileSync(new URL("../../../rpc/config.schema.json", import.meta.url), "utf8")

  it("commits the schema that the definitions generate (otherwise: npm run generate)", () => {
    assert.strictEqual(file, configJsonSchemaText())
  })

  it("describes every field in the schema, and states the default of each optional one", () => {
    const fields = new Map(fieldsOf(decodeNode(file)))
    for (const [path, { description }] of fields) assert.isString(description, path)
    assert.strictEqual(fields.get(".resetTimeZone")?.default, "UTC")
    assert.strictEqual(fields.get(".multiplayer.modes[].maxPlayers")?.default, 4)
    assert.strictEqual(fields.get(".share.images.theme.accent")?.default, "#ffcc33")
    assert.strictEqual(fields.get(".integrity.stats.webhook.onFailure")?.default, "accept")
    assert.strictEqual(fields.get(".svcNews.optIn")?.default, true)
  })
})
