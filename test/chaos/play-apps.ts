/**
 * Apps that play and talk, through the typed client: members of a room who change its state, players
 * who look for one match after the other, members of a channel. None of them does anything about a lost
 * connection but to call again what has failed.
 */
import { type Channel, type Client, isError, type Room } from "#client/client"
import type { App } from "./apps.ts"
import type { Journal } from "./journal.ts"

/** A room or a channel is over for its member, which must not be. */
class Gone extends Error {
  readonly _tag = "gone"
}

interface Granted {
  readonly change: number
  readonly at: number
}

const grantedMax = 1000

export class Member implements App {
  readonly kind = "rooms"
  readonly name: string
  readonly room: Room
  readonly #journal: Journal
  readonly #granted: Array<Granted> = []
  #change = 0

  /** `forgetMillis`: granted changes of the last so many milliseconds may be lost with a runner. */
  constructor(name: string, room: Room, journal: Journal, forgetMillis: number) {
    this.name = name
    this.room = room
    this.#journal = journal
    room.on("room_joined", (joined) => this.#compare(joined.room.state, forgetMillis))
    room.on("closed", ({ reason }) => journal.violated(`${name} lost its room: ${reason}`))
  }

  async step(): Promise<void> {
    if (this.room.closed !== undefined) throw new Gone("the room is over")
    const change = (this.#change += 1)
    await this.room.confirmed.setState({ [this.name]: change })
    this.#granted.push({ change, at: performance.now() })
    if (this.#granted.length > grantedMax) this.#granted.shift()
  }

  /** The room was given anew: a change that it does not know was forgotten. */
  #compare(state: Readonly<Record<string, unknown>>, forgetMillis: number): void {
    const known = Number(state[this.name] ?? 0)
    const last = this.#granted.at(-1)
    const forgotten = this.#granted.find(({ change }) => change > known)
    if (last === undefined || forgotten === undefined) return
    const age = last.at - forgotten.at
    if (age >= forgetMillis) {
      const count = last.change - known
      this.#journal.violated(
        `${this.name} was granted ${count} changes in ${age.toFixed()} ms that its room forgot`
      )
    }
    this.#granted.splice(0)
  }
}

/** What says in a match that the player is already where it would go; nothing is wrong. */
const stale = ["already_in_room", "already_matching", "not_in_room", "match_cancelled"] as const

export class Matched implements App {
  readonly kind = "matches"
  readonly name: string
  readonly #client: Client
  readonly #journal: Journal
  readonly #seats: number

  constructor(name: string, client: Client, journal: Journal, seats: number) {
    this.name = name
    this.#client = client
    this.#journal = journal
    this.#seats = seats
  }

  async step(signal: AbortSignal): Promise<void> {
    try {
      const room = await this.#client.rooms.quickMatch("duel", { signal })
      if (room.players.length > this.#seats) {
        this.#journal.violated(`${room.players.length} players in a match of ${this.#seats}`)
      }
      if (room.me === undefined) this.#journal.violated(`${this.name} is not in its own match`)
      await room.confirmed.send("hello")
      await room.leave()
    } catch (error) {
      if (signal.aborted) return
      // A seat that the failed call may have left behind would be in the way of the next match.
      const held = await this.#client.rooms.resume()
      await held?.leave().catch(() => undefined)
      if (!stale.some((code) => isError(error, code))) throw error
    }
  }
}

export class Talker implements App {
  readonly kind = "channels"
  readonly name: string
  readonly playerId: string
  /** What was said last, by sender. */
  readonly heard = new Map<string, number>()
  readonly #channel: Channel
  #spoken = 0

  constructor(name: string, playerId: string, channel: Channel, journal: Journal) {
    this.name = name
    this.playerId = playerId
    this.#channel = channel
    channel.on("channel_message", ({ from, data }) => {
      const sender = String(from)
      const before = this.heard.get(sender) ?? 0
      const spoken = Number(data)
      if (spoken <= before) {
        journal.violated(`${name} heard ${spoken} of ${sender} after ${before}`)
      }
      this.heard.set(sender, spoken)
    })
    channel.on("closed", ({ reason }) => journal.violated(`${name} lost its channel: ${reason}`))
  }

  get spoken(): number {
    return this.#spoken
  }

  async step(): Promise<void> {
    if (this.#channel.closed !== undefined) throw new Gone("the channel is over")
    this.#spoken += 1
    await this.#channel.confirmed.send("count", this.#spoken)
  }
}
