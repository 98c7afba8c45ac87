/**
 * Every rule of the config document, broken once in an otherwise valid document: the
 * only issue is the expected one, at its exact path. Boundary values that are valid stand next to it.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { decodeConfig } from "#rpc/config-document/document"
import { changed, fullest, without } from "../../support/config-documents.ts"

const problemsOf = (document: unknown) =>
  Result.match(decodeConfig(document), {
    onSuccess: () => [],
    onFailure: ({ details }) => details.issues.map(({ path, message }) => `${path}: ${message}`)
  })

/** A path, invalid values, the expected message, and the issue's path if it differs. */
type InvalidCase = readonly [
  at: string,
  values: ReadonlyArray<unknown>,
  message: string,
  path?: string
]
type ValidCase = readonly [at: string, values: ReadonlyArray<unknown>]

const cases = (broken: ReadonlyArray<InvalidCase>) =>
  broken.flatMap(([at, values, message, path = at]) =>
    values.map((value) => ({ at, value, problem: `${path}: ${message}` }))
  )

const refuses = (broken: ReadonlyArray<InvalidCase>) =>
  it.each(cases(broken))("refuses a config with $at = $value", ({ at, value, problem }) => {
    assert.deepStrictEqual(problemsOf(changed(fullest, at, value)), [problem])
  })

const accepts = (right: ReadonlyArray<ValidCase>) =>
  it.each(right.flatMap(([at, values]) => values.map((value) => ({ at, value }))))(
    "accepts a config with $at = $value",
    ({ at, value }) => assert.deepStrictEqual(problemsOf(changed(fullest, at, value)), [])
  )

const notText = "must be a string, or an object from language code to string"
const notLanguage = "is not a language code such as en, ja or pt-BR"
const notKey =
  "must be lowercase snake_case of at most 48 characters that starts with a letter, like high_score"
const notPath = "must be the path of a file in the deployment, like assets/card.png"
const notBoolean = "must be true or false"
const notObject = "must be an object"
const notString = "must be a string"
const notList = "must be a list"
const integer = (minimum: number, maximum: number) =>
  `must be an integer from ${minimum} to ${maximum}`
const length = (max: number) => `must be 1 to ${max} characters long`

const x = (count: number) => "x".repeat(count)
const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index))

describe("top level", () => {
  refuses([
    ["", [null, 1, "{}", []], notObject],
    ["$schema", [1], notString],
    ["version", [0, 2, "1", null], "must be 1"],
    ["resetTimeZone", [null, 1], notString],
    [
      "resetTimeZone",
      [
        "",
        "Mars/Olympus",
        "+03:00",
        "UTC+1",
        " UTC",
        "IST",
        "PST",
        "SystemV/PST8",
        "Europe/berlin/"
      ],
      "must be an IANA time zone, like UTC or Europe/Berlin"
    ],
    ["audience", ["adults", null], 'must be one of "general", "mixed", "kids"'],
    ["svcNews.optIn", ["no"], notBoolean],
    ["svcNews.optOut", [true], "unknown field: remove it, or use one of optIn"],
    ["svcNews", [false], notObject]
  ])
  accepts([
    ["resetTimeZone", ["UTC", "Asia/Kolkata", "Asia/Calcutta", "America/Argentina/Ushuaia", "EST"]],
    ["resetTimeZone", ["America/Port-au-Prince", "Etc/GMT+12", "GMT", "W-SU", "US/Pacific"]],
    ["audience", ["general", "mixed", "kids"]]
  ])
})

describe("features", () => {
  const known =
    "emailLogin, saves, stats, multiplayer, realtimeChannels, voice, hosting, statsVerification"
  refuses([
    ["features", [null, [], ["saves"]], notObject],
    ["features.saves", [null, 0, "true"], notBoolean],
    ["features.Saves", [true, false], 'unknown feature; did you mean "saves"?'],
    ["features.vioce", [true], 'unknown feature; did you mean "voice"?'],
    ["features.chess", [true], `unknown feature: remove it, or use one of ${known}`],
    [
      "features.realtimeChannels",
      [false],
      "needs features.realtimeChannels: set it to true as well",
      "features.voice"
    ],
    [
      "features.stats",
      [false],
      "needs features.stats: set it to true as well",
      "features.statsVerification"
    ]
  ])
})

describe("stats", () => {
  const key = "stats[0].key"
  const stat = (index: number) => ({ key: `stat_${index}` })
  refuses([
    ["stats", [null, {}, "a"], notList],
    ["stats", [many(129, stat)], "must have at most 128 entries"],
    ["stats[0]", [null, "high_score", []], notObject],
    [key, [null, 1], notString],
    [key, ["", "High", "1st", "_a", "a-b", "a b", "é", "a\n", "__proto__", x(49)], notKey],
    [key, ["time"], '"time" is already the key of stats[0]: use another key', "stats[1].key"],
    ["stats[0].title", [null, 1, true], notText],
    ["stats[0].title", ["", x(121), "𝕏".repeat(121)], length(120)],
    ["stats[0].title", [{}], "must have a text in at least one language"],
    ["stats[0].title", [{ en: 1 }], notString, "stats[0].title.en"],
    ["stats[0].title", [{ en: "" }, { en: x(121) }], length(120), "stats[0].title.en"],
    ["stats[0].title", [" ", "\u200b"], "must have at least one visible character"],
    ["stats[0].title", [{ en: "a\n" }], "must have no control characters", "stats[0].title.en"],
    ["stats[0].title", ["a\u202eb"], "must have no bidirectional control characters"],
    ["stats[0].title.EN", ["a"], notLanguage, "stats[0].title.EN"],
    ["stats[0].title", [{ "pt-br": "a" }], notLanguage, 'stats[0].title["pt-br"]'],
    ["stats[0].title", [{ english: "a" }], notLanguage, "stats[0].title.english"],
    ["stats[0].aggregation", ["avg", null], 'must be one of "sum", "max", "min", "latest"'],
    ["stats[0].maxPerSubmit", ["1", null, Infinity], "must be a number"],
    ["stats[0].maxPerSubmit", [0, -1], "must be greater than 0"],
    [
      "stats[0].maxPerReport",
      [1],
      "unknown field: remove it, or use one of key, title, aggregation, maxPerSubmit"
    ]
  ])
  accepts([
    ["stats", [[], many(128, stat)]],
    [key, ["a", x(48), "a_1__b", "constructor"]],
    ["stats[0].title", [x(120), "𝕏".repeat(120), { fil: "a", "zh-Hant-TW": "b", "es-419": "c" }]],
    ["stats[0].aggregation", ["sum", "max", "min", "latest"]],
    ["stats[0].maxPerSubmit", [0.001, 1e300]]
  ])
  it("requires a key in every stat of a config", () => {
    assert.deepStrictEqual(problemsOf(without(fullest, "stats[1].key")), [
      "stats[1].key: is required"
    ])
  })
})

describe("multiplayer", () => {
  const duel = "multiplayer.modes[0]"
  const mesh = "multiplayer.modes[1]"
  const mode = (index: number) => ({ key: `mode_${index}` })
  refuses([
    ["multiplayer", [null, []], notObject],
    ["multiplayer.rooms", [[]], "unknown field: remove it, or use one of modes"],
    ["multiplayer.modes", [{}, null], notList],
    ["multiplayer.modes", [many(17, mode)], "must have at most 16 entries"],
    [duel, [1], notObject],
    [`${duel}.key`, ["Duel", ""], notKey],
    [
      `${duel}.key`,
      ["mesh"],
      '"mesh" is already the key of multiplayer.modes[0]: use another key',
      `${mesh}.key`
    ],
    [`${duel}.title`, [x(121), ""], length(120)],
    [`${duel}.minPlayers`, [0, 65, 1.5, "2", null], integer(1, 64)],
    [`${duel}.maxPlayers`, [0, 65, 2.5, "4"], integer(1, 64)],
    [`${duel}.maxPlayers`, [1], "must be >= minPlayers (2)"],
    [`${mesh}.minPlayers`, [4], "must be >= minPlayers (4)", `${mesh}.maxPlayers`],
    [`${duel}.fillTimeoutSeconds`, [-1, 301, 0.5, "15"], integer(0, 300)],
    [`${duel}.transport`, ["udp", null], 'must be one of "server", "p2p"'],
    [`${duel}.reconnectSeconds`, [-1, 301, "30"], integer(0, 300)],
    [`${mesh}.p2p`, [true, null], notObject],
    [`${mesh}.p2p.maxPlayers`, [1, 9, 2.5, "4"], integer(2, 8)],
    [`${mesh}.p2p.relayOnly`, ["yes", null], notBoolean],
    [`${mesh}.p2p.relay`, [true], "unknown field: remove it, or use one of maxPlayers, relayOnly"],
    [
      mesh,
      [{ key: "mesh", transport: "p2p", minPlayers: 5, maxPlayers: 6 }],
      "must be <= p2p.maxPlayers (4)",
      `${mesh}.minPlayers`
    ],
    [
      `${duel}.relayOnly`,
      [true],
      "unknown field: remove it, or use one of key, title, minPlayers, maxPlayers, fillTimeoutSeconds, " +
        "transport, p2p, durable, reconnectSeconds, authority, teams, assign"
    ]
  ])
  accepts([
    ["multiplayer.modes", [[], many(16, mode)]],
    [duel, [{ key: "solo", minPlayers: 1, maxPlayers: 1 }]],
    [duel, [{ key: "full", minPlayers: 64, maxPlayers: 64 }]],
    [
      mesh,
      [{ key: "mesh", transport: "p2p", minPlayers: 8, maxPlayers: 8, p2p: { maxPlayers: 8 } }]
    ],
    // The mesh size limit applies to peer-to-peer modes only.
    [duel, [{ key: "big", minPlayers: 8, maxPlayers: 8, p2p: { maxPlayers: 2 } }]],
    [`${duel}.fillTimeoutSeconds`, [0, 300]],
    [`${duel}.reconnectSeconds`, [0, 300]]
  ])
})

describe("auth and web", () => {
  refuses([
    ["auth", [null], notObject],
    ["auth.redirectUrls", ["https://example.com", {}], notList],
    [
      "auth.redirectUrls",
      [many(33, (index) => `https://example.com/${index}`)],
      "must have at most 32 entries"
    ],
    ["auth.redirectUrls", [[1]], notString, "auth.redirectUrls[0]"],
    ["auth.providers", [[], null], notObject],
    ["auth.providers.google", [true], notObject],
    ["auth.providers.google.enabled", [1, "on"], notBoolean],
    [
      "auth.providers.discord.clientSecret",
      ["s"],
      "unknown field: remove it, or use one of enabled"
    ],
    [
      "auth.providers.github",
      [{ enabled: true }],
      "unknown provider: remove it, or use one of google, discord, apple, x"
    ],
    ["web", ["https://example.com"], notObject],
    ["web.allowedOrigins", ["*", null], notList],
    [
      "web.allowedOrigins",
      [many(33, (index) => `https://${index}.example.com`)],
      "must have at most 32 entries"
    ],
    ["web.allowedOrigins", [[null]], notString, "web.allowedOrigins[0]"],
    ["web.origins", [[]], "unknown field: remove it, or use one of allowedOrigins"]
  ])
  accepts([
    ["auth.redirectUrls", [[], many(32, (index) => `https://example.com/${index}`)]],
    ["web.allowedOrigins", [[], many(32, (index) => `https://${index}.example.com`)]]
  ])
})

describe("share", () => {
  const known = "images, tags, links, tracking, inAppBrowser"
  refuses([
    ["share", [true], notObject],
    ["share.cards", [{}], `unknown field: remove it, or use one of ${known}`],
    ["share.images.enabled", ["yes", 1], notBoolean],
    ["share.images.title", ["", x(61)], length(60)],
    ["share.images.title", [{ en: x(61) }], length(60), "share.images.title.en"],
    ["share.images.background", [1], notString],
    [
      "share.images.background",
      ["", "/", "a//b.png", "../a.png", "a/../b.png", "./a.png", "a\\b.png", "a/"],
      notPath
    ],
    [
      "share.images.font",
      ["https://example.com/a.ttf", "a.ttf?v=1", "a.ttf#x", "a\t.ttf"],
      notPath
    ],
    ["share.images.theme", ["dark"], notObject],
    [
      "share.images.theme.background",
      ["black", "#000", "#00000g", "000000"],
      "must be a color like #ffcc33"
    ],
    ["share.images.theme.accent", ["#ffcc3"], "must be a color like #ffcc33"],
    ["share.images.theme.text", [0], notString],
    [
      "share.images.theme.border",
      ["#000000"],
      "unknown field: remove it, or use one of background, accent, text"
    ],
    ["share.tags.enabled", ["no"], notBoolean],
    [
      "share",
      [
        { tags: { title: "Game" } },
        { tags: { site: "@studio", enabled: true }, images: { enabled: false } }
      ],
      "card tags need an image: set tags.image, or images.enabled to true",
      "share.tags"
    ],
    ["share.tags.title", [x(121)], length(120)],
    ["share.tags.description", ["", x(121)], length(120)],
    ["share.tags.imageAlt", [x(121)], length(120)],
    [
      "share.tags.image",
      ["http://example.com/a.png", "//example.com/a.png", "javascript:0", ""],
      "must be the path of a file in the deployment, or an https URL"
    ],
    [
      "share.tags.site",
      ["studio", "@", "@two words", `@${x(16)}`],
      "must be a handle like @studio"
    ],
    ["share.links.enabled", [null], notBoolean],
    ["share.links.text", ["", x(201)], length(200)],
    ["share.links.hashtags", ["game"], notList],
    ["share.links.hashtags", [many(6, (index) => `tag${index}`)], "must have at most 5 entries"],
    [
      "share.links.hashtags",
      [["#game"], ["two words"], [""], ["a-b"]],
      "must consist of letters, digits and underscores, without the #",
      "share.links.hashtags[0]"
    ],
    ["share.links.via", ["@studio", "", x(16)], "must be a handle without the @, like studio"],
    ["share.tracking.enabled", [1], notBoolean],
    ["share.inAppBrowser.enabled", ["yes"], notBoolean],
    ["share.inAppBrowser.on", [true], "unknown field: remove it, or use one of enabled"]
  ])
  accepts([
    ["share.images.title", [x(60), { ja: "𝕏".repeat(60) }]],
    ["share.images.background", ["a", "/a.png", "a/b c/.hidden/d..e.png", "カード.png"]],
    ["share.images.theme.text", ["#FFFFFF", "#abcdef"]],
    ["share.tags.image", ["https://example.com/a.png?v=1", "assets/a.png"]],
    ["share.links.text", [x(200)]],
    ["share.links.hashtags", [[], ["ゲーム", "game_2", "été"]]],
    ["share.links.via", [x(15), "a_1"]]
  ])
})

describe("integrity", () => {
  const rule = "integrity.stats.rules[0]"
  const webhook = "integrity.stats.webhook"
  const notWebhook =
    "must be an https URL without user name and password (in development, http://localhost)"
  refuses([
    ["integrity", [[]], notObject],
    ["integrity.saves", [{}], "unknown field: remove it, or use one of stats"],
    ["integrity.stats", [null], notObject],
    ["integrity.stats.rules", [{}], notList],
    ["integrity.stats.rules", [many(129, () => ({ stat: "a" }))], "must have at most 128 entries"],
    [`${rule}.stat`, ["A", ""], notKey],
    [`${rule}.min`, ["0", null], "must be a number"],
    [`${rule}.max`, [Infinity], "must be a number"],
    [`${rule}.max`, [-1], "must be >= min (0)"],
    [`${rule}.step`, [1], "unknown field: remove it, or use one of stat, min, max"],
    ["integrity.stats.maxSubmitsPerMinute", [0, 601, 1.5, "60"], integer(1, 600)],
    [webhook, ["https://example.com"], notObject],
    [`${webhook}.url`, [1], notString],
    [
      `${webhook}.url`,
      ["", "example.com", "http://example.com", "ftp://example.com", "https://me:pw@example.com"],
      notWebhook
    ],
    [`${webhook}.url`, ["http://localhost.example.com", "http://127.0.0.2"], notWebhook],
    [`${webhook}.timeoutMs`, [99, 5001, 1000.5, "1500"], integer(100, 5000)],
    [`${webhook}.onFailure`, ["ignore"], 'must be one of "accept", "reject"'],
    [
      `${webhook}.secret`,
      ["s"],
      "unknown field: remove it, or use one of url, timeoutMs, onFailure"
    ]
  ])
  accepts([
    ["integrity.stats.rules", [[], many(128, () => ({ stat: "a" }))]],
    [
      rule,
      [
        { stat: "a", min: -1.5, max: -1.5 },
        { stat: "a", min: 1 },
        { stat: "a", max: -1 }
      ]
    ],
    ["integrity.stats.maxSubmitsPerMinute", [1, 600]],
    [`${webhook}.url`, ["http://localhost:9000/verify", "http://127.0.0.1", "http://[::1]:1"]],
    [`${webhook}.timeoutMs`, [100, 5000]]
  ])
  it("requires a stat in every integrity rule of a config", () => {
    assert.deepStrictEqual(problemsOf(without(fullest, `${rule}.stat`)), [
      `${rule}.stat: is required`
    ])
  })
})
