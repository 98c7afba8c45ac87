/**
 * The steady load: apps in rooms, matchmaking, a channel, saves and stats, each with its own typed
 * client; and the checks that hold after a repair.
 */
import { setTimeout as delay } from "node:timers/promises"
import { Effect } from "effect"
import { snapshotDeadlineMillis } from "#entities/write-behind"
import type { Client, Room } from "#client/client"
import type { TestTarget } from "#testing/players"
import { type App, appClient, drive, retryPassing } from "./apps.ts"
import { StatApp, SaveApp } from "./data-apps.ts"
import type { Journal } from "./journal.ts"
import { MatchApp, RoomApp, ChannelApp } from "./play-apps.ts"

/** How long a match keeps the seat of a disconnected player. */
export const duelSeconds = 5

/** The config document that the load needs. */
export const config = {
  version: 1,
  features: { saves: true, stats: true, multiplayer: true, realtimeChannels: true },
  stats: [{ key: "kills" }],
  integrity: { stats: { maxSubmitsPerMinute: 600 } },
  multiplayer: {
    modes: [
      { key: "party", minPlayers: 2, maxPlayers: 8 },
      { key: "duel", minPlayers: 2, maxPlayers: 2, reconnectSeconds: duelSeconds }
    ]
  }
}

export interface Sizes {
  readonly rooms: number
  readonly players: number
  readonly matched: number
  readonly talkers: number
  readonly savers: number
  readonly counters: number
}

export interface LoadOptions {
  readonly sizes: Sizes
  /** Failures in a row that an app retries. */
  readonly retries: number
  /** A room may lose with its runner what it granted in less time; 0 allows no loss. */
  readonly forgetMillis: number
}

/** The promise of the service; a room counts in whole milliseconds. */
export const forgettableMillis = snapshotDeadlineMillis + 1

const patienceMillis = 60_000
const lookMillis = 20

const numbered = <A>(count: number, make: (i: number) => Promise<A>): Promise<Array<A>> =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i + 1)))

/** Waits until nothing is missing. After a minute, what is missing is a violation. */
const until = async (journal: Journal, missing: () => ReadonlyArray<string>): Promise<void> => {
  const deadline = performance.now() + patienceMillis
  while (missing().length > 0) {
    if (performance.now() > deadline) {
      for (const what of missing()) journal.violated(what)
      return
    }
    await delay(lookMillis)
  }
}

export class Load {
  readonly #target: TestTarget
  readonly #journal: Journal
  readonly #options: LoadOptions
  readonly #clients: Array<Client> = []
  readonly #rooms: Array<ReadonlyArray<RoomApp>> = []
  readonly #talkers: Array<ChannelApp> = []
  readonly #others: Array<App> = []
  readonly #stopped = new AbortController()
  readonly #driven: Array<Promise<unknown>> = []
  #round = 0

  private constructor(target: TestTarget, journal: Journal, options: LoadOptions) {
    this.#target = target
    this.#journal = journal
    this.#options = options
  }

  /** Starts the apps, until the scope closes. */
  static readonly start = (target: TestTarget, journal: Journal, options: LoadOptions) =>
    Effect.acquireRelease(
      Effect.sync(() => new Load(target, journal, options)),
      (load) => Effect.sync(() => load.close())
    ).pipe(Effect.tap((load) => Effect.promise(() => load.#begin())))

  /** Opens one more room, whose members play on with the others. */
  async openRoom(): Promise<void> {
    this.#drive(await this.#openRoom(this.#rooms.length + 1))
    await this.allDone(performance.now())
  }

  async #begin(): Promise<void> {
    const journal = this.#journal
    const { sizes } = this.#options
    const client = () => this.#client()
    await numbered(sizes.rooms, (i) => this.#openRoom(i))
    this.#others.push(
      ...(await numbered(
        sizes.matched,
        async (i) => new MatchApp(`match-${i}`, await client(), journal, 2)
      )),
      ...(await numbered(
        sizes.savers,
        async (i) => new SaveApp(`save-${i}`, await client(), journal)
      )),
      ...(await numbered(
        sizes.counters,
        async (i) => new StatApp(`stat-${i}`, await client(), journal)
      ))
    )
    await this.#openChannel(sizes.talkers, client)
    this.#drive([...this.#rooms.flat(), ...this.#talkers, ...this.#others])
    await this.allDone(performance.now())
  }

  #drive(apps: ReadonlyArray<App>): void {
    const { signal } = this.#stopped
    for (const { kind, name } of apps) this.#journal.expect(kind, name)
    this.#driven.push(
      ...apps.map((app) => drive(app, this.#journal, signal, this.#options.retries))
    )
  }

  async #client(): Promise<Client> {
    const made = await appClient(this.#target)
    this.#clients.push(made)
    return made
  }

  async #openRoom(i: number): Promise<ReadonlyArray<RoomApp>> {
    const { forgetMillis, sizes } = this.#options
    const enter = async (member: number, found: (client: Client) => Promise<Room>) => {
      const made = await this.#client()
      const room = await retryPassing(() => found(made))
      return new RoomApp(`room-${i}-${member}`, room, this.#journal, forgetMillis)
    }
    const first = await enter(1, ({ rooms }) => rooms.create({ mode: "party" }))
    const others = await numbered(sizes.players - 1, (j) =>
      enter(j + 1, ({ rooms }) => rooms.join({ roomId: first.room.id }))
    )
    const members = [first, ...others]
    this.#rooms.push(members)
    return members
  }

  /** Waits until every app has completed a step after that time. */
  allDone(at: number): Promise<void> {
    return until(this.#journal, () =>
      this.#journal.silentSince(at).map((name) => `${name} is not back in play`)
    )
  }

  /** Every member of a room sees every change, and every member of the channel every message. */
  async agree(): Promise<void> {
    const round = (this.#round += 1)
    const marks = this.#rooms.map((members) => this.#mark(members, `${round}`))
    const sentCounts = this.#talkers.map(({ playerId, sent: count }) => ({ playerId, count }))
    const delivered = until(this.#journal, () =>
      this.#talkers.flatMap(({ received, name }) =>
        sentCounts
          .filter(({ count, playerId }) => (received.get(playerId) ?? 0) <= count)
          .map(({ playerId }) => `${name} does not receive from ${playerId}`)
      )
    )
    await Promise.all([delivered, ...marks])
  }

  /** Stops the apps and compares what is stored with what was acknowledged. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    await Promise.all(this.#driven)
    for (const app of this.#others) await retryPassing(async () => app.verify?.())
  }

  /** Stops the apps and closes their clients. */
  close(): void {
    this.#stopped.abort()
    for (const client of this.#clients) client.close()
  }

  async #openChannel(count: number, client: () => Promise<Client>): Promise<void> {
    const talk = async (
      i: number,
      found: (of: Client) => ReturnType<Client["channels"]["join"]>
    ) => {
      const made = await client()
      const { id } = await retryPassing(() => made.players.me())
      return new ChannelApp(`talk-${i}`, id, await retryPassing(() => found(made)), this.#journal)
    }
    let name = ""
    const first = await talk(1, async ({ channels }) => {
      const channel = await channels.create()
      name = channel.name
      return channel
    })
    const others = await numbered(count - 1, (i) =>
      talk(i + 1, ({ channels }) => channels.join(name))
    )
    this.#talkers.push(first, ...others)
  }

  /** Each member sets a mark in the room state; every member must see every mark. */
  async #mark(members: ReadonlyArray<RoomApp>, round: string): Promise<void> {
    const keyOf = ({ name }: RoomApp) => `mark-${name}`
    const missing = () =>
      members.flatMap((member) =>
        members
          .filter((other) => member.room.state[keyOf(other)] !== round)
          .map((other) => `${member.name} does not see what ${other.name} does`)
      )
    for (const member of members) {
      await retryPassing(() => member.room.confirmed.setState({ [keyOf(member)]: round })).catch(
        (error: unknown) => this.#journal.violated(`${member.name} could not act: ${String(error)}`)
      )
    }
    await until(this.#journal, missing)
  }
}
