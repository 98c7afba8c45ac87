/** Plausible values for members and parameters by name: a fixed list, and ids and tokens from responses. */
import type { Chance } from "../simulation/random.ts"

const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

/** Fixed values by the name of the member or parameter. */
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  "name in": ["score", "wins"],
  action: ["config.push", "player.ban"],
  accent: ["#ffcc33"],
  allowedOrigins: ["https://game.example", "https://*.game.example", "http://localhost:3000"],
  background: ["#0f1115", "card.png"],
  challenge: [challenge],
  channel: ["@a", "@b", "@c", "lobby", "lobby"],
  clientId: ["1234.apps.example.com"],
  clientSecret: ["hush-hush-hush"],
  code: ["GAME1", "GAME2"],
  currentPassword: ["correct horse battery"],
  email: ["ada@example.com"],
  env: ["development"],
  font: ["font.ttf"],
  hashtags: ["game"],
  idToken: ["eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"],
  "if-match": ['"1"', '"2"', "*"],
  "if-none-match": ['"1"', "*"],
  "idempotency-key": ["once", "twice"],
  ifVersion: ["0", "1", "2"],
  image: ["https://game.example/card.png"],
  key: ["slot-1", "slot-2", "score"],
  keyId: ["ABC123DEFG"],
  limit: ["1", "10", "100"],
  mode: ["duel", "party", "mesh", "solo"],
  name: ["lobby", "@a", "Game"],
  newPassword: ["correct horse battery"],
  nonce: ["n-0S6_WzA2Mj"],
  password: ["correct horse battery"],
  playerId: [],
  provider: ["google", "discord", "apple", "x", "guest", "email"],
  q: ["Ada", "a"],
  redirectUrl: ["http://localhost:3000/back", "https://game.example/back"],
  redirectUrls: ["https://game.example/*"],
  resetTimeZone: ["UTC", "Asia/Tokyo"],
  site: ["@game"],
  stat: ["score", "wins"],
  teamId: ["ABC123DEFG"],
  text: ["#ffffff"],
  type: ["move", "chat"],
  url: ["http://localhost:9/hook", "https://game.example/hook"],
  verifier: ["dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"],
  version: ["1", "2"],
  via: ["game"]
}

/** Member names by the prefix of an id. */
const idNames: Readonly<Record<string, string>> = {
  apl: "appealId",
  key: "keyId",
  pl: "playerId",
  prj: "projectId",
  rm: "roomId",
  snc: "sanctionId"
}

/** Members of responses that later requests can send, and under which name. */
const reusable: Readonly<Record<string, string>> = {
  accessToken: "token",
  code: "code",
  nextBefore: "before",
  nextCursor: "cursor",
  refreshToken: "refreshToken",
  channel: "channel",
  name: "name"
}

const perNameMax = 24

const nameOf = (member: string, text: string): string | undefined => {
  const [, prefix] = /^([a-z]{2,3})_[0-9A-HJKMNP-TV-Z]{26}$/.exec(text) ?? []
  return prefix === undefined ? reusable[member] : idNames[prefix]
}

export class Suggestions {
  readonly #known = new Map<string, Array<string>>()
  readonly #chance: Chance

  constructor(chance: Chance) {
    this.#chance = chance
    for (const [name, texts] of Object.entries(known)) this.#known.set(name, [...texts])
  }

  /** Adds a value for a name; a random one is dropped beyond the limit. */
  learn(name: string, text: string): void {
    const known = this.#known.get(name) ?? []
    known.push(text)
    if (known.length > perNameMax) known.splice(this.#chance.integer(0, perNameMax - 1), 1)
    this.#known.set(name, known)
  }

  /** Adds the ids, tokens and codes of a response. */
  learnFrom(body: unknown, member = ""): void {
    if (typeof body === "string") {
      const name = nameOf(member, body)
      if (name !== undefined && body.length < 600) this.learn(name, body)
    } else if (Array.isArray(body)) {
      for (const item of body.slice(0, 8)) this.learnFrom(item, member)
    } else if (typeof body === "object" && body !== null) {
      for (const [name, inner] of Object.entries(body)) this.learnFrom(inner, name)
    }
  }

  readonly suggest = (name: string): string | undefined => {
    if (name === "to" || name === "allow" || name === "speakers") return this.suggest("playerId")
    if (name === "email" && this.#chance.happens(0.5)) {
      return `p${this.#chance.integer(1, 1e9)}@example.com`
    }
    return this.#chance.pick(this.#known.get(name) ?? [])
  }
}
