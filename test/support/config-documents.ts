/**
 * Config documents for tests: a full one, random valid ones, and copies with one changed value.
 */
import { Predicate } from "effect"
import * as fc from "fast-check"
import { lineIssue } from "#rpc/text"

/** A document that uses every field. */
export const fullest = {
  $schema: "./node_modules/player-backend/rpc/config.schema.json",
  version: 1,
  resetTimeZone: "Europe/Berlin",
  features: {
    emailLogin: true,
    saves: true,
    stats: true,
    multiplayer: true,
    realtimeChannels: true,
    voice: true,
    hosting: true,
    statsVerification: true
  },
  stats: [
    { key: "high_score", title: "High score", aggregation: "max", maxPerSubmit: 1000.5 },
    { key: "time", title: { en: "Time", ja: "時間", "pt-BR": "Tempo" }, aggregation: "min" }
  ],
  multiplayer: {
    modes: [
      {
        key: "duel",
        title: "Duel",
        minPlayers: 2,
        maxPlayers: 64,
        fillTimeoutSeconds: 0,
        transport: "server",
        durable: true,
        reconnectSeconds: 300,
        authority: {
          host: ["kick", "ban", "mute", "team", "transfer"],
          matchedHost: ["kick"],
          votes: [{ op: "kick", share: 0.75, minVoters: 2, seconds: 10, cooldownSeconds: 0 }]
        },
        teams: [
          { key: "red", title: { en: "Red" }, min: 1, max: 64 },
          { key: "blue", title: "Blue", min: 1, max: 64 }
        ],
        assign: "free"
      },
      {
        key: "mesh",
        title: { en: "Mesh" },
        minPlayers: 2,
        maxPlayers: 3,
        fillTimeoutSeconds: 300,
        transport: "p2p",
        p2p: { maxPlayers: 8, relayOnly: false },
        reconnectSeconds: 0
      }
    ]
  },
  auth: {
    redirectUrls: ["https://example.com/signed-in", "https://example.com/app/*", "myapp://back"],
    providers: {
      google: { enabled: true },
      discord: { enabled: false },
      apple: { enabled: true },
      x: { enabled: true }
    }
  },
  web: {
    allowedOrigins: ["https://example.com", "https://*.example.com", "capacitor://localhost"]
  },
  share: {
    images: {
      enabled: true,
      title: "Game",
      background: "assets/card.png",
      font: "/fonts/inter.ttf",
      theme: { background: "#000000", accent: "#ABCDEF", text: "#ffffff" }
    },
    tags: {
      enabled: false,
      title: "Game",
      description: { en: "Play" },
      imageAlt: "A card",
      image: "https://example.com/card.png",
      site: "@studio"
    },
    links: { enabled: true, text: "I got {score}!", hashtags: ["game", "ゲーム"], via: "studio" },
    tracking: { enabled: true },
    inAppBrowser: { enabled: true }
  },
  audience: "mixed",
  integrity: {
    stats: {
      rules: [
        { stat: "high_score", min: 0, max: 1000 },
        { stat: "time", min: 1 }
      ],
      maxSubmitsPerMinute: 600,
      webhook: { url: "https://example.com/verify", timeoutMs: 5000, onFailure: "reject" }
    }
  },
  svcNews: { optIn: false }
}

const put = (target: unknown, [key, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  if (key === undefined) return value
  if (Array.isArray(target)) {
    return target.toSpliced(Number(key), 1, put(target[Number(key)], rest, value))
  }
  // A computed key creates an own property even for `__proto__`, like JSON.parse.
  const fields = Predicate.isObject(target) ? target : {}
  return { ...fields, [key]: put(Reflect.get(fields, key), rest, value) }
}

/** Copies a document with another value at one path; "" is the root. */
export const changed = (document: unknown, path: string, value: unknown): unknown =>
  put(
    document,
    path.split(/[.[\]]+/).filter((key) => key !== ""),
    value
  )

/** Copies a document without the field at a path. */
export const without = (document: unknown, path: string): unknown =>
  JSON.parse(JSON.stringify(changed(document, path, undefined)))

const key = fc.stringMatching(/^[a-z][a-z0-9_]{0,47}$/)
const text = (max: number) => {
  const one = fc
    .string({ minLength: 1, maxLength: max, unit: "binary" })
    .filter((it) => lineIssue(it) === undefined)
  const language = fc.constantFrom("en", "ja", "pt-BR", "zh-Hant", "es-419", "fil")
  return fc.oneof(one, fc.dictionary(language, one, { minKeys: 1, noNullPrototype: true }))
}
const some = <T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(fields, { requiredKeys: [], noNullPrototype: true })
const uniqueBy = <T extends { readonly key?: string }>(item: fc.Arbitrary<T>, maxLength: number) =>
  fc.uniqueArray(item, { maxLength, selector: (entry) => entry.key })
const enabled = some({ enabled: fc.boolean() })
const color = fc.stringMatching(/^#[0-9a-fA-F]{6}$/)
const path = fc.stringMatching(/^\/?[a-z0-9-]{1,8}(\/[a-z0-9-]{1,8}){0,3}\.[a-z]{3}$/)

const features = some({
  emailLogin: fc.boolean(),
  saves: fc.boolean(),
  stats: fc.constant(true),
  multiplayer: fc.boolean(),
  realtimeChannels: fc.constant(true),
  hosting: fc.boolean()
}).chain((on) =>
  some({
    voice: fc.constant(on.realtimeChannels === true),
    statsVerification: fc.constant(on.stats === true)
  }).map((needing) => ({ ...on, ...needing }))
)

const stats = uniqueBy(
  fc.record(
    {
      key,
      title: text(120),
      aggregation: fc.constantFrom("sum", "max", "min", "latest"),
      maxPerSubmit: fc.double({ min: 1e-9, max: 1e15, noNaN: true })
    },
    { requiredKeys: ["key"], noNullPrototype: true }
  ),
  8
)

const mode = fc.integer({ min: 1, max: 64 }).chain((players) =>
  fc.record(
    {
      key,
      title: text(120),
      minPlayers: fc.integer({ min: 1, max: Math.min(players, 4) }),
      maxPlayers: fc.integer({ min: Math.max(players, 4), max: 64 }),
      fillTimeoutSeconds: fc.integer({ min: 0, max: 300 }),
      transport: fc.constantFrom("server", "p2p"),
      p2p: some({ maxPlayers: fc.integer({ min: 4, max: 8 }), relayOnly: fc.boolean() }),
      reconnectSeconds: fc.integer({ min: 0, max: 300 })
    },
    { requiredKeys: ["key"], noNullPrototype: true }
  )
)

const share = some({
  images: some({
    enabled: fc.boolean(),
    title: text(60),
    background: path,
    font: path,
    theme: some({ background: color, accent: color, text: color })
  }),
  // Texts of a card need an image.
  tags: fc
    .record({ title: text(120), image: fc.oneof(path, fc.webUrl({ validSchemes: ["https"] })) })
    .chain((card) => fc.constantFrom<object>({ enabled: true }, {}, { image: card.image }, card)),
  links: some({
    enabled: fc.boolean(),
    text: text(200),
    hashtags: fc.array(fc.stringMatching(/^\w{1,20}$/), { maxLength: 5 }),
    via: fc.stringMatching(/^[A-Za-z0-9_]{1,15}$/)
  }),
  tracking: enabled,
  inAppBrowser: enabled
})

const integrity = some({
  stats: some({
    rules: fc.array(
      fc.record({ stat: key, min: fc.integer({ max: 0 }), max: fc.integer({ min: 0 }) }),
      { maxLength: 8 }
    ),
    maxSubmitsPerMinute: fc.integer({ min: 1, max: 600 }),
    webhook: some({
      url: fc.constantFrom("https://example.com/verify", "http://localhost:9000/"),
      timeoutMs: fc.integer({ min: 100, max: 5000 }),
      onFailure: fc.constantFrom("accept", "reject")
    })
  })
})

/** Generates random valid documents. */
export const documents = some({
  version: fc.constant(1),
  resetTimeZone: fc.constantFrom("UTC", ...Intl.supportedValuesOf("timeZone")),
  features,
  stats,
  multiplayer: some({ modes: uniqueBy(mode, 16) }),
  auth: some({
    redirectUrls: fc.array(fc.constantFrom("https://a.example", "https://a.example/*", "app:/b")),
    providers: some({ google: enabled, discord: enabled, apple: enabled, x: enabled })
  }),
  web: some({
    allowedOrigins: fc.array(
      fc.domain().map((domain) => `https://${domain}`),
      { maxLength: 32 }
    )
  }),
  share,
  audience: fc.constantFrom("general", "mixed", "kids"),
  integrity,
  svcNews: some({ optIn: fc.boolean() })
})
