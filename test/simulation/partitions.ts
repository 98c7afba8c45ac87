/**
 * A simulated cluster that is partitioned: any number of runners, a few players who open rooms all the
 * time, and a record of whom each runner takes for healthy.
 */
import { Context, Effect } from "effect"
import { RunnerAddress, RunnerStorage, ShardId, Sharding } from "effect/cluster"
import { PeerRunners } from "#server/cluster/runner-links"
import { ChannelRecord } from "./channel-record.ts"
import { ConfigPushes } from "./config-pushes.ts"
import { Database, type RealDatabase } from "./database.ts"
import { Network } from "./network.ts"
import { Invalidations } from "./invalidations.ts"
import { NodeTable } from "./node-reports.ts"
import { PlayerRecords } from "./player-records.ts"
import { Chance } from "./random.ts"
import { RoomRecord } from "./record.ts"
import { Runner } from "./runner.ts"
import { ShardLocks } from "./shard-locks.ts"
import { PlayerSocket } from "./socket.ts"
import { Simulator } from "./simulator.ts"

const lockMillis = 5000
const sampleMillis = 250
const shards = 60
const mostPlayers = 5
/** Pause between two requests of a client. */
const restMillis = 1000
/** A request that waits longer for its reply is a fault. */
const replyMillis = 16_000

const shardIds = Array.from({ length: shards }, (_, i) => ShardId.make("default", i + 1))

/** A client that opens a room and leaves it, over and over. */
class Client {
  readonly #cluster: PartitionedCluster
  readonly #id: string
  readonly #chance: Chance
  #socket: PlayerSocket | undefined
  #sentAt = 0
  #waitsFor: string | undefined
  #inRoom = false
  #runner: Runner

  constructor(cluster: PartitionedCluster, index: number, runner: Runner, chance: Chance) {
    this.#cluster = cluster
    this.#id = `pl_${String(index).padStart(26, "0")}`
    this.#chance = chance
    this.#runner = runner
  }

  #connect(): PlayerSocket {
    const { simulator } = this.#cluster
    this.#waitsFor = "welcome"
    this.#inRoom = false
    this.#sentAt = simulator.now
    const socket: PlayerSocket = new PlayerSocket({
      playerId: this.#id,
      runner: this.#runner,
      simulator,
      chance: this.#chance,
      events: {
        frame: (text) => {
          if (socket === this.#socket) this.#receive(Object(JSON.parse(text)))
        },
        closed: (code) => {
          if (socket !== this.#socket) return
          this.#cluster.count(`closed ${code}`)
          this.#socket = undefined
        }
      }
    })
    return socket
  }

  #receive(frame: Readonly<Record<string, unknown>>): void {
    if (frame["t"] === "welcome") this.#waitsFor = undefined
    if (frame["t"] !== "reply") return
    this.#waitsFor = undefined
    const code = frame["ok"] === true ? "ok" : String(Object(frame["error"]).code)
    this.#cluster.count(code)
    if (frame["ok"] === true) this.#inRoom = !this.#inRoom
    else if (code !== "unavailable") this.#inRoom = code !== "not_in_room"
  }

  act(): void {
    const { simulator } = this.#cluster
    if (this.#socket === undefined) {
      const runner = this.#cluster.healthyRunnerNear(this.#runner)
      if (runner === undefined) return
      this.#runner = runner
      this.#socket = this.#connect()
    }
    const waited = simulator.now - this.#sentAt
    if (this.#waitsFor === undefined && waited > restMillis) {
      const frame = this.#inRoom ? { t: "leave" } : { t: "create", mode: "party" }
      this.#waitsFor = frame.t
      this.#sentAt = simulator.now
      this.#socket.say({ ...frame, rid: String(simulator.now) })
    } else if (this.#waitsFor !== undefined && waited > replyMillis) {
      simulator.fault(`${this.#runner.name}: no reply to ${this.#waitsFor} for ${replyMillis} ms`)
      this.#sentAt = simulator.now
    }
  }
}

export class PartitionedCluster {
  readonly simulator: Simulator
  readonly network: Network
  readonly database: Database
  readonly runners: ReadonlyArray<Runner>
  readonly #clients: ReadonlyArray<Client>
  /** Whom a runner takes for unhealthy now. */
  readonly #unhealthy = new Map<Runner, ReadonlySet<string>>()
  /** Changes of one runner's opinion on another since the last call of `report`, by `<runner> <other>`. */
  readonly #changes = new Map<string, number>()
  readonly #counts = new Map<string, number>()

  constructor(seed: number, size: number, real: RealDatabase) {
    let streams = 0
    const newChance = () => new Chance(seed, streams++)
    this.simulator = new Simulator(newChance())
    this.network = new Network(this.simulator, newChance())
    this.database = new Database(real, this.simulator, newChance())
    const invalidations = new Invalidations(this.database)
    const all = {
      network: this.network,
      database: this.database,
      locks: new ShardLocks(this.database, lockMillis),
      invalidations,
      records: new PlayerRecords(this.database, invalidations),
      configs: new ConfigPushes(this.database, invalidations),
      record: new RoomRecord(),
      channels: new ChannelRecord(),
      nodes: new NodeTable(this.database),
      shards
    }
    this.runners = Array.from({ length: size }, (_, i) => {
      const name = `r${String(i).padStart(2, "0")}`
      return new Runner(name, name, this.simulator, newChance(), all)
    })
    this.#clients = this.runners
      .slice(0, mostPlayers)
      .map((runner, i) => new Client(this, i, runner, newChance()))
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  /** The runner itself if it takes itself for healthy, else the first that does. */
  healthyRunnerNear(runner: Runner): Runner | undefined {
    const isHealthy = (of: Runner) => of.open && this.#unhealthy.get(of)?.has(of.name) !== true
    return isHealthy(runner) ? runner : this.runners.find(isHealthy)
  }

  #sample(runner: Runner): void {
    const read = Effect.gen({ self: this }, function* () {
      const storage = yield* RunnerStorage.RunnerStorage
      const listed = yield* Effect.orElseSucceed(storage.getRunners, () => undefined)
      if (listed === undefined) return
      const unhealthy = new Set(
        listed.filter(([, healthy]) => !healthy).map(([{ address }]) => address.host)
      )
      const before = this.#unhealthy.get(runner) ?? new Set()
      for (const { name } of this.runners) {
        if (unhealthy.has(name) === before.has(name)) continue
        const pair = `${runner.name} ${name}`
        this.#changes.set(pair, (this.#changes.get(pair) ?? 0) + 1)
      }
      this.#unhealthy.set(runner, unhealthy)
    })
    runner.run(read)
  }

  async pass(millis: number): Promise<void> {
    const until = this.simulator.now + millis
    while (this.simulator.now < until) {
      for (const client of this.#clients) client.act()
      for (const runner of this.runners) this.#sample(runner)
      await this.simulator.pass(sampleMillis)
    }
  }

  /** The owners of each shard. */
  owners(): ReadonlyArray<ReadonlyArray<string>> {
    return shardIds.map((shard) =>
      this.runners.flatMap(({ name, services }) =>
        services !== undefined && Context.get(services, Sharding.Sharding).hasShardId(shard)
          ? [name]
          : []
      )
    )
  }

  /** Whom each runner takes for unhealthy, and everything counted since the last report. */
  report() {
    const opinions = this.runners.map((runner) =>
      Array.from(this.#unhealthy.get(runner) ?? []).toSorted()
    )
    const mostChanges = Math.max(0, ...this.#changes.values())
    const counts = Object.fromEntries(this.#counts)
    this.#changes.clear()
    this.#counts.clear()
    return { opinions, mostChanges, counts, owners: this.owners() }
  }

  /** Whether every runner's links to all others reply. */
  areLinksAlive(): boolean {
    return this.runners.every(({ name, services }) => {
      if (services === undefined) return false
      const peers = Context.get(services, PeerRunners)
      return this.runners.every(
        (other) => other.name === name || peers.isAlive(RunnerAddress.make(other.name, 1))
      )
    })
  }

  end(): void {
    for (const runner of this.runners) runner.kill(false)
  }
}
