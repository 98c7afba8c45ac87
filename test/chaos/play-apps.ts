/**
 * Apps that use rooms, matchmaking and channels through the typed client. On a lost connection they only
 * repeat the failed call.
 */
import { type Channel, type Client, isError, type Room } from "#client/client"
import type { App } from "./apps.ts"
import type { Journal } from "./journal.ts"

/** A room or a channel closed for its member, which is a violation. */
class GoneError extends Error {
  readonly _tag = "gone"
}

interface GrantedChange {
  readonly change: number
  readonly sentAt: number
  readonly grantedAt: number
}

/**
 * A lower bound of the time between the first and the last change that a room executed, in milliseconds.
 * It counts neither the way of a reply nor the wait of this process for a core.
 */
export const spanOf = ([first, ...others]: ReadonlyArray<GrantedChange>): number =>
  Math.max(0, (others.at(-1)?.sentAt ?? 0) - (first?.grantedAt ?? 0))

const grantedMax = 1000

export class RoomApp implements App {
  readonly kind = "rooms"
  readonly name: string
  readonly room: Room
  readonly #journal: Journal
  readonly #granted: Array<GrantedChange> = []
  #change = 0

  /** `forgetMillis`: the changes that a room granted in less time may be lost with its runner. */
  constructor(name: string, room: Room, journal: Journal, forgetMillis: number) {
    this.name = name
    this.room = room
    this.#journal = journal
    room.on("room_joined", (joined) => this.#compare(joined.room.state, forgetMillis))
    room.on("closed", ({ reason }) => journal.violated(`${name} lost its room: ${reason}`))
  }

  async step(): Promise<void> {
    if (this.room.closed !== undefined) throw new GoneError("the room is over")
    const change = (this.#change += 1)
    const sentAt = performance.now()
    await this.room.confirmed.setState({ [this.name]: change })
    this.#granted.push({ change, sentAt, grantedAt: performance.now() })
    if (this.#granted.length > grantedMax) this.#granted.shift()
  }

  /** After a rejoin: granted changes that the new state lacks are lost. */
  #compare(state: Readonly<Record<string, unknown>>, forgetMillis: number): void {
    const known = Number(state[this.name] ?? 0)
    const forgotten = this.#granted.filter(({ change }) => change > known)
    if (forgotten.length === 0) return
    const millis = spanOf(forgotten)
    if (millis >= forgetMillis) {
      this.#journal.violated(
        `${this.name} was granted ${forgotten.length} changes in ${millis.toFixed()} ms; its room forgot them`
      )
    }
    this.#granted.splice(0)
  }
}

/** Errors after a call without a reply: the player is already where the call would take it. */
const staleCodes = [
  "already_in_room",
  "already_matching",
  "not_in_room",
  "match_cancelled"
] as const

export class MatchApp implements App {
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
      // The failed call may have left a seat, which would block the next match.
      const stale = await this.#client.rooms.resume()
      await stale?.leave().catch(() => undefined)
      if (!staleCodes.some((code) => isError(error, code))) throw error
    }
  }
}

export class ChannelApp implements App {
  readonly kind = "channels"
  readonly name: string
  readonly playerId: string
  /** The last number received, by sender. */
  readonly received = new Map<string, number>()
  readonly #channel: Channel
  #sent = 0

  constructor(name: string, playerId: string, channel: Channel, journal: Journal) {
    this.name = name
    this.playerId = playerId
    this.#channel = channel
    channel.on("message", ({ from, data }) => {
      const sender = String(from)
      const before = this.received.get(sender) ?? 0
      const number = Number(data)
      if (number <= before) {
        journal.violated(`${name} received ${number} from ${sender} after ${before}`)
      }
      this.received.set(sender, number)
    })
    channel.on("closed", ({ reason }) => journal.violated(`${name} lost its channel: ${reason}`))
  }

  get sent(): number {
    return this.#sent
  }

  async step(): Promise<void> {
    if (this.#channel.closed !== undefined) throw new GoneError("the channel is over")
    this.#sent += 1
    await this.#channel.confirmed.send("count", this.#sent)
  }
}
