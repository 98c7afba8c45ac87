/** Sends random frames over many sockets, of players that share rooms and channels. */
import { Effect } from "effect"
import { guest, type TestTarget } from "#testing/players"
import { Chance } from "../simulation/random.ts"
import type { Findings } from "./findings.ts"
import { FuzzSocket } from "./fuzz-socket.ts"
import { Suggestions } from "./suggestions.ts"
import { sendInvalidHandshake, sendInvalidBytes } from "./raw-sockets.ts"

const sockets = 32
const players = 64
/** New players after this: an access token expires after 15 minutes. */
const tokenMillis = 8 * 60_000

export class FrameFuzzer {
  readonly #target: TestTarget
  readonly #chance: Chance
  readonly #findings: Findings
  readonly #suggestions: Suggestions
  #tokens: Promise<ReadonlyArray<string>> = Promise.resolve([])
  #tokensAt = Number.NEGATIVE_INFINITY
  #frames = 0
  #sessions = 0

  constructor(target: TestTarget, seed: number, findings: Findings) {
    this.#target = target
    this.#chance = new Chance(seed, 1_000_000)
    this.#findings = findings
    this.#suggestions = new Suggestions(this.#chance)
  }

  get figures(): { readonly frames: number; readonly sessions: number } {
    return { frames: this.#frames, sessions: this.#sessions }
  }

  /** Sends this many more frames. */
  async send(frames: number): Promise<void> {
    const end = this.#frames + frames
    await Promise.all(
      Array.from({ length: sockets }, async () => {
        while (this.#frames < end) {
          const sent = await this.#runSocket()
          this.#frames += sent
        }
      })
    )
  }

  async #runSocket(): Promise<number> {
    const tokens = await this.#freshTokens()
    this.#sessions += 1
    const chance = new Chance(this.#chance.integer(0, 2 ** 31), this.#sessions)
    const findings = this.#findings
    const { publishableKey, url } = this.#target
    const token = chance.pick(tokens)
    const die = chance.fraction()
    if (die < 0.02) return sendInvalidHandshake(url, chance, findings)
    if (die < 0.2)
      return sendInvalidBytes(url, { t: "auth", key: publishableKey, token }, chance, findings)
    const session = new FuzzSocket({
      socketUrl: `${url.replace("http", "ws")}/v1/realtime`,
      publishableKey,
      chance,
      suggestions: this.#suggestions,
      findings
    })
    return session.run(die < 0.24 ? undefined : token, chance.integer(1, 200))
  }

  /** Tokens of the current players. */
  #freshTokens(): Promise<ReadonlyArray<string>> {
    if (performance.now() - this.#tokensAt > tokenMillis) {
      this.#tokensAt = performance.now()
      this.#tokens = this.#makePlayers()
    }
    return this.#tokens
  }

  async #makePlayers(): Promise<ReadonlyArray<string>> {
    const made = await Promise.all(
      Array.from({ length: players }, () => Effect.runPromise(guest(this.#target, "Ada")))
    )
    for (const { id } of made) this.#suggestions.learn("playerId", id)
    return made.map(({ accessToken }) => accessToken)
  }
}
